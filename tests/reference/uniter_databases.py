"""Small databases in the format that UNITER and TAGS-DC publish, and their contents.

    pip install lmdb lz4 msgpack numpy
    python tests/reference/uniter_databases.py crates/tags-dc/tests/golden/databases

Texts: LZ4 frames of MessagePack maps by sentence id. Images: MessagePack maps of arrays with binary keys, one value with the string keys of
older files, the same images as NPZ archives, and unfiltered values. `expected.json` has the same content as plain numbers.
"""

import io
import json
import shutil
import sys
from pathlib import Path

import lmdb
import lz4.frame
import msgpack
import numpy as np

WIDTH = 6


def environment(folder, entries):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = lmdb.open(str(folder), map_size=1 << 24)
    with env.begin(write=True) as txn:
        for key, value in entries.items():
            txn.put(key.encode(), value)
    env.close()
    (folder / "lock.mdb").unlink()  # published databases often have no lock file


def texts():
    """Sentence ids are in neither alphabetical nor numerical order."""
    long = [200 + k for k in range(61)]
    node = lambda *lists: [{"ids": ids, "name": "ignored"} for ids in lists]
    tree = {"node": node([1], None, [3, 4]), "attribute": node([0], []), "relation": node([2])}
    return {
        "30": dict(input_ids=[110, 111, 112, 113, 114], img_fname="b.npz", tree=tree),
        "4": dict(input_ids=[120, 121], img_fname="a.npz", tree=None, dataset="ignored"),
        "7": dict(input_ids=long, img_fname="b.npz"),
        "1": dict(input_ids=[130, 131, 132], img_fname="a.npz", tree={"node": node([0]), "attribute": [], "relation": []}),
    }


def text_database(folder):
    of = texts()
    environment(folder, {k: lz4.frame.compress(msgpack.packb(v, use_bin_type=True)) for k, v in of.items()})
    images = {}
    for key, value in of.items():
        images.setdefault(value["img_fname"], []).append(key)
    meta = dict(CLS=101, SEP=102, MASK=103, UNK=100, v_range=[106, 300], annotations=["ignored"], bert="ignored")
    for name, content in [
        ("meta", meta),
        ("id2len", {k: len(v["input_ids"]) for k, v in of.items()}),
        ("txt2img", {k: v["img_fname"] for k, v in of.items()}),
        ("img2txts", images),
    ]:
        (folder / f"{name}.json").write_text(json.dumps(content))


def arrays(name, rows):
    """Values of an image: the file stores more rows than are valid."""
    k = np.arange(rows * WIDTH, dtype=np.float64).reshape(rows, WIDTH) + ord(name)
    x1, y1 = np.arange(rows) / (2 * rows), np.arange(rows) / (3 * rows)
    boxes = np.stack([x1, y1, x1 + 0.25, y1 + 0.5, np.full(rows, 0.25), np.full(rows, 0.5)], 1)
    conf = 1 / (1 + np.arange(rows))
    soft = np.ones((rows, 3)) / 3
    half = lambda a: a.astype(np.float16)
    return dict(features=half(np.sin(k)), norm_bb=half(boxes), conf=half(conf), soft_labels=half(soft))


def packed(values, binary):
    key = (lambda k: k.encode()) if binary else (lambda k: k)
    array = lambda a: {
        key("nd"): True,
        key("type"): a.dtype.str,
        key("kind"): b"",
        key("shape"): list(a.shape),
        key("data"): a.tobytes(),
    }
    # Older programs wrote byte strings and texts in the same way.
    return msgpack.packb({k: array(a) for k, a in values.items()}, use_bin_type=binary)


def archive(values, compressed):
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **values)
    return out.getvalue()


def image_database(folder):
    stored = {"a.npz": arrays("a", 4), "b.npz": arrays("b", 3), "c.npz": arrays("c", 2)}
    counts = {"b.npz": 3, "a.npz": 2, "c.npz": 1}
    keys = {"__keys__": json.dumps(list(counts)).encode()}
    name = "th0.2_max100_min10"
    values = {k: packed(v, binary=k != "b.npz") for k, v in stored.items()}
    environment(folder / f"feat_{name}", values | keys)
    (folder / f"nbb_{name}.json").write_text(json.dumps(counts))
    zipped = {k: archive(v, compressed=k != "c.npz") for k, v in stored.items()}
    environment(folder / "zipped" / f"feat_{name}_compressed", zipped | keys)
    (folder / "zipped" / f"nbb_{name}.json").write_text(json.dumps(counts))
    environment(folder / "unfiltered" / "all", values | keys)
    content = {}
    for key, of in stored.items():
        flat = lambda name: of[name].astype(np.float32).ravel().tolist()
        content[key] = dict(count=counts[key], features=flat("features"), boxes=flat("norm_bb"), conf=flat("conf"))
    return content


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    text_database(folder / "text.db")
    content = image_database(folder / "images")
    expected = dict(texts=texts(), images=content, width=WIDTH)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
