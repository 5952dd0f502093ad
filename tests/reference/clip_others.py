def write_others(root):
    pass
