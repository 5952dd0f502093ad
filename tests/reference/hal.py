"""Double-precision reference of the training losses of HAL: Eq. 2-4 and the later (AAAI) loss.

Written from the equations of the specification (sections 1.1-1.5), entry by entry: every neighbourhood is sorted separately, without a
closed form. Gradients are PyTorch's in double precision; central differences check them here. Inputs are rounded to f32 first.

    python tests/reference/hal.py        # writes crates/hubness/tests/golden/hal.json
"""

import itertools
import json
from pathlib import Path

import torch

torch.manual_seed(20190902)
MARGIN = 0.2


def f32(x):
    return torch.as_tensor(x, dtype=torch.float32).double()


def largest(values, candidates, k):
    """The k candidates with the largest values; equal values: smaller index first."""
    return sorted(candidates, key=lambda j: (-values[j].item(), j))[:k]


def neighbours(s, i, t, k, exclude, side):
    """K1 (side 0: texts near image i) or K2 (side 1: images near text t) of the entry (i, t)."""
    b = s.shape[0]
    own = (t if side == 0 else i) if exclude == "pair" else (i if side == 0 else t)
    line = s[i, :] if side == 0 else s[:, t]
    return largest(line, [j for j in range(b) if j != own], min(k, b - 1))


def factors(s, k, reweight, exclude, detach):
    """W of Eq. 4."""
    b = s.shape[0]
    rows = []
    for i in range(b):
        row = []
        for t in range(b):
            k1 = neighbours(s, i, t, k, exclude, 0)
            k2 = neighbours(s, i, t, k, exclude, 1)
            zero = s.new_zeros(())
            u = torch.stack([s[i, j] for j in k1]).mean() if k1 else zero
            v = torch.stack([s[j, t] for j in k2]).mean() if k2 else zero
            w = torch.exp(u + v)
            if i == t and reweight == "negatives":
                w = torch.ones((), dtype=s.dtype)
            row.append(w.detach() if detach else w)
        rows.append(torch.stack(row))
    return torch.stack(rows)


def triplets(s, ids, hardest):
    """Eq. 2 (sum) or Eq. 3 (max) of a matrix; ids: pairs of one image are not negatives of each other."""
    b = s.shape[0]
    total = s.new_zeros(())
    for side, a in itertools.product([0, 1], range(b)):
        line = s[a, :] if side == 0 else s[:, a]
        negatives = [c for c in range(b) if c != a and (ids is None or ids[c] != ids[a])]
        if hardest:
            negatives = largest(MARGIN - s[a, a] + line, negatives, 1)
        for c in negatives:
            hinge = MARGIN - s[a, a] + line[c]
            if hinge.item() > 0:
                total = total + hinge
    return total


def value_and_gradient(f, s):
    leaf = s.clone().requires_grad_()
    value = f(leaf)
    value.backward() if value.requires_grad else None
    grad = torch.zeros_like(s) if leaf.grad is None else leaf.grad
    return value.item(), grad


def checked(f, s, detach=False, ties=False):
    """Compares gradients with central differences, where the loss has a derivative and no weight is held constant."""
    value, grad = value_and_gradient(f, s)
    if not detach and not ties:
        h = 1e-6
        for k in range(s.numel()):
            d = torch.zeros(s.numel(), dtype=s.dtype)
            d[k] = h
            d = d.reshape(s.shape)
            slope = (f(s + d).item() - f(s - d).item()) / (2 * h)
            assert abs(slope - grad.flatten()[k].item()) < 1e-5, (k, slope, grad.flatten()[k])
    return value, grad


def digits(x):
    return [float(f"{v:.10g}") for v in torch.as_tensor(x).flatten().tolist()]


def cosines(b, low=-1.0):
    x, y = torch.randn(b, 4).double(), torch.randn(b, 4).double()
    y = y + 1.5 * x
    x, y = x / x.norm(dim=1, keepdim=True), y / y.norm(dim=1, keepdim=True)
    return f32((x @ y.T).clamp(min=low))


def hinges():
    eighth = lambda rows: f32(rows) / 8
    matrices = [
        ("random", 3, None, cosines(5)),
        ("siblings", 2, [7, 8, 7, 9], cosines(4)),
        ("negative", 2, None, f32(-0.05 - 0.6 * torch.rand(4, 4))),
        # Dyadic numbers with many ties: in rows, in columns, across the cut after the k-th.
        ("ties", 2, None, eighth([[4, 3, 3, 3], [3, 4, 2, 3], [3, 3, 5, 1], [3, 3, 1, 4]])),
        ("one pair", 10, None, f32([[0.3]])),
        ("two pairs", 10, None, f32([[0.5, 0.45], [0.1, 0.2]])),
        ("three pairs", 10, None, f32([[0.5, 0.45, -0.2], [0.4, 0.3, 0.35], [0.2, 0.25, 0.1]])),
        ("k of b - 1", 2, None, f32([[0.5, 0.45, -0.2], [0.4, 0.3, 0.35], [0.2, 0.25, 0.1]])),
    ]
    out = []
    for name, k, ids, s in matrices:
        case = {"name": name, "k": k, "b": s.shape[0], "s": digits(s), "ids": ids, "plain": [], "weighted": []}
        masks = [None] if ids is None else [None, ids]
        ties = name == "ties"
        for mask, hardest in itertools.product(masks, [False, True]):
            value, grad = checked(lambda x: triplets(x, mask, hardest), s, ties=ties)
            case["plain"].append({"masked": mask is not None, "hardest": hardest, "loss": value, "grad": digits(grad)})
        for reweight, exclude, detach in itertools.product(["all", "negatives"], ["pair", "positive"], [False, True]):
            weigh = lambda x: factors(x, k, reweight, exclude, detach)
            options = {"reweight": reweight, "exclude": exclude, "detach": detach, "losses": []}
            options["weights"] = digits(weigh(s))
            for mask, hardest in itertools.product(masks, [False, True]):
                loss = lambda x: triplets(x * weigh(x), mask, hardest)
                value, grad = checked(loss, s, detach, ties)
                options["losses"].append(
                    {"masked": mask is not None, "hardest": hardest, "loss": value, "grad": digits(grad)}
                )
            case["weighted"].append(options)
        out.append(case)
    return out


# The later loss


def both_sums(e, b, g):
    """(1/g) log(1 + sum over the column) + (1/g) log(1 + sum over the row), for every j."""
    return [(torch.log(1 + e[:, j].sum()) + torch.log(1 + e[j, :].sum())) / g for j in range(b)]


def without_diagonal(s):
    return s * (1 - torch.eye(s.shape[0], dtype=s.dtype))


def local_terms(s, g, e):
    b = s.shape[0]
    sums = both_sums(torch.exp(g * (without_diagonal(s) - e)), b, g)
    return torch.stack([sums[j] - torch.log(1 + torch.clamp(s[j, j], min=0)) for j in range(b)])


def bank_weights(s, to_texts, to_images, o):
    """W and w: constants."""
    b, n = to_texts.shape
    kb = min(b if b < o["mb_k"] else o["mb_k"], n)
    a = [sorted(row.tolist(), reverse=True)[:kb] for row in to_texts]
    c = [sorted(row.tolist(), reverse=True)[:kb] for row in to_images]
    beta, e2, alpha, e1, p = o["beta"], o["e2"], o["alpha"], o["e1"], torch.diagonal(s).tolist()
    exp = lambda x: torch.exp(torch.tensor(x, dtype=torch.float64)).item()
    if o["consistent_offsets"]:
        rate, own = lambda x: exp(beta * (x - e2)), lambda x: exp(beta * (x - e2))
    else:
        rate, own = lambda x: exp(beta * x - e2), lambda x: exp(beta * x)
    A, B = [sum(map(rate, row)) for row in a], [sum(map(rate, row)) for row in c]
    strict = lambda x: exp(alpha * (x - e1))
    A1, B1 = [sum(map(strict, row)) for row in a], [sum(map(strict, row)) for row in c]
    weight = lambda i, t: (A[i] + B[t]) / (A[i] + B[t] + own(p[i]) + own(p[t]))
    W = [[0.0 if i == t else weight(i, t) for t in range(b)] for i in range(b)]
    w = [1 - strict(p[i]) / (strict(p[i]) + A1[i] + B1[i]) for i in range(b)]
    return torch.tensor(W, dtype=torch.float64), torch.tensor(w, dtype=torch.float64)


def bank_terms(s, to_texts, to_images, o):
    b, g, e = s.shape[0], o["g"], o["e"]
    W, w = bank_weights(s.detach(), to_texts, to_images, o)
    sums = both_sums(torch.exp(g * W * (without_diagonal(s) - e)), b, g)
    own = [torch.log(1 + torch.clamp(s[j, j] * w[j], min=0)) for j in range(b)]
    return torch.stack([sums[j] - own[j] for j in range(b)])


def aaai():
    released = {"g": 30, "e": 0.3, "alpha": 40, "beta": 40, "e1": 0.2, "e2": 0.1, "mb_k": 250, "consistent_offsets": False}
    # Positive pairs near 0.3, below and above zero; values where exp() of f32 would overflow without the logarithm.
    near = cosines(4)
    low = f32([[0.30, 0.20, -0.1], [0.25, -0.05, 0.1], [0.28, 0.0, 0.22]])
    local = []
    for name, g, e, s in [
        ("random", 30, 0.3, near),
        ("Flickr30K", 60, 0.7, near),
        ("negative positive", 30, 0.3, low),
        ("one pair", 30, 0.3, f32([[0.4]])),
        ("large", 300, 0.3, f32([[0.9, 1.0], [-1.0, 0.8]])),
    ]:
        terms = local_terms(s, g, e)
        _, grad = checked(lambda x: local_terms(x, g, e).mean(), s)
        local.append({"name": name, "b": s.shape[0], "g": g, "e": e, "s": digits(s), "terms": digits(terms), "grad": digits(grad)})
    bank = []
    scores = lambda b, n: f32(0.35 * torch.randn(b, n)).clamp(-1, 1)
    for name, s, n, changes in [
        ("released", near, 6, {}),
        ("consistent offsets", near, 6, {"consistent_offsets": True}),
        ("mb_k below the batch", near, 6, {"mb_k": 2}),
        ("mb_k above the batch", near, 6, {"mb_k": 5}),
        ("bank below the batch", near, 2, {}),
        ("Flickr30K", near, 6, {"g": 60, "e": 0.7}),
        ("other constants", near, 6, {"alpha": 10, "beta": 5, "e1": 0.3, "e2": 0.25}),
        ("negative positive", low, 5, {"alpha": 8, "beta": 8}),
        ("large", f32([[0.9, 1.0], [-1.0, 0.8]]), 3, {"alpha": 400, "beta": 400}),
    ]:
        o = {**released, **changes}
        if name == "large":
            to_texts, to_images = f32([[0.95, 0.2, 0.1], [0.79, 0.3, 0.0]]), f32([[0.9, 0.5, 0.1], [0.2, 0.81, 0.1]])
        else:
            to_texts, to_images = scores(s.shape[0], n), scores(s.shape[0], n)
        terms = bank_terms(s, to_texts, to_images, o)
        W, w = bank_weights(s, to_texts, to_images, o)
        _, grad = value_and_gradient(lambda x: bank_terms(x, to_texts, to_images, o).mean(), s)
        bank.append(
            {
                "name": name, "b": s.shape[0], "n": n, "options": o, "s": digits(s),
                "to_texts": digits(to_texts), "to_images": digits(to_images),
                "W": digits(W), "w": digits(w), "terms": digits(terms), "grad": digits(grad),
            }
        )  # fmt: skip
    return {"local": local, "bank": bank}


def order():
    """Order-embedding similarity; the second image dominates the first text in every coordinate."""
    images = f32([[0.1, 0.5, 0.3], [0.9, 0.8, 0.7], [0.2, 0.1, 0.6]])
    texts = f32([[0.3, 0.5, 0.6], [0.95, 0.1, 0.2]])
    weights = f32([[1.0, -0.5], [0.7, 2.0], [-1.5, 0.25]])

    def similarity(v, w):
        rows = []
        for i in range(v.shape[0]):
            row = []
            for t in range(w.shape[0]):
                q = (torch.clamp(w[t] - v[i], min=0) ** 2).sum()
                row.append(-torch.sqrt(q) if q > 0 else q * 0)
            rows.append(torch.stack(row))
        return torch.stack(rows)

    v, w = images.clone().requires_grad_(), texts.clone().requires_grad_()
    s = similarity(v, w)
    (s * weights).sum().backward()
    return {
        "images": digits(images), "texts": digits(texts), "d": 3, "weights": digits(weights),
        "s": digits(s.detach()), "images_grad": digits(v.grad), "texts_grad": digits(w.grad),
    }  # fmt: skip


def main():
    golden = {"margin": MARGIN, "hinges": hinges(), "aaai": aaai(), "order": order()}
    path = Path(__file__).parents[2] / "crates/hubness/tests/golden/hal.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
