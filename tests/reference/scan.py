"""Goldens of SCAN's two scores in double precision: loops that follow the equations, attended vectors of full width. Gradients come
from complex steps.

    python tests/reference/scan.py > crates/itm-kernels/tests/golden/scan.json
"""

import json

import numpy as np

COUNTS, LENGTHS = [5, 4, 5], [4, 2, 1, 6]
R, L, D = 5, 6, 7


def real(z):
    return np.real(z)


def norm(s, kind, axis):
    leaky = np.where(real(s) > 0, s, 0.1 * s)
    if kind == "clipped_l2norm":
        return leaky / (np.sqrt((leaky**2).sum(axis, keepdims=True)) + 1e-8)
    if kind == "l2norm":
        return s / (np.sqrt((s**2).sum(axis, keepdims=True)) + 1e-8)
    return {"clipped": leaky, "no_norm": s}[kind]


def attend(queries, keys, kind, l1):
    """R of each query: its cosine with its attended vector."""
    s = np.array([[sum(q * k) for k in keys] for q in queries])
    e = norm(s, kind, 0)
    out = []
    for i, q in enumerate(queries):
        w = np.exp(l1 * e[i])
        w = w / w.sum()
        a = sum(w[j] * keys[j] for j in range(len(keys)))
        lengths = np.sqrt((q**2).sum()) * np.sqrt((a**2).sum())
        out.append(sum(q * a) / max(lengths, 1e-8, key=real))
    return np.array(out)


def aggregate(r, how, l2):
    if how == "log_sum_exp":
        return np.log(np.exp(l2 * r).sum()) / l2
    if how == "max":
        return max(r, key=real)
    return r.sum() if how == "sum" else r.sum() / len(r)


def scores(v, u, o):
    rows = []
    for i in range(len(v)):
        row = []
        for c in range(len(u)):
            regions, words = v[i, : COUNTS[i]], u[c, : LENGTHS[c]]
            sides = (words, regions) if o["asks"] == "words" else (regions, words)
            row.append(aggregate(attend(*sides, o["norm"], o["l1"]), o["how"], o["l2"]))
        rows.append(row)
    return np.array(rows)


def gradients(v, u, grad, o, step=1e-30):
    out = []
    for k, x in enumerate((v, u)):
        d = np.zeros(x.shape)
        for at in np.ndindex(*x.shape):
            moved = [v.astype(complex), u.astype(complex)]
            moved[k][at] += 1j * step
            d[at] = np.imag((scores(*moved, o) * grad).sum()) / step
        out.append(d)
    return out


CASES = {
    "t2i_lse": {"asks": "words", "norm": "clipped_l2norm", "l1": 9.0, "how": "log_sum_exp", "l2": 6.0},
    "t2i_mean": {"asks": "words", "norm": "clipped_l2norm", "l1": 9.0, "how": "mean", "l2": 0.0},
    "t2i_sum_l2norm": {"asks": "words", "norm": "l2norm", "l1": 4.0, "how": "sum", "l2": 0.0},
    "t2i_max_clipped": {"asks": "words", "norm": "clipped", "l1": 9.0, "how": "max", "l2": 0.0},
    "t2i_mean_no_norm": {"asks": "words", "norm": "no_norm", "l1": 9.0, "how": "mean", "l2": 0.0},
    "t2i_mean_no_scale": {"asks": "words", "norm": "clipped_l2norm", "l1": 0.0, "how": "mean", "l2": 0.0},
    "i2t_lse": {"asks": "regions", "norm": "clipped_l2norm", "l1": 4.0, "how": "log_sum_exp", "l2": 5.0},
    "i2t_mean": {"asks": "regions", "norm": "clipped_l2norm", "l1": 4.0, "how": "mean", "l2": 0.0},
    "i2t_max_l2norm": {"asks": "regions", "norm": "l2norm", "l1": 4.0, "how": "max", "l2": 0.0},
}

rng = np.random.default_rng(9)
v = rng.normal(size=(len(COUNTS), R, D))
u = rng.normal(size=(len(LENGTHS), L, D))
u[0] += 0.8 * v[0, 0]
u[3] += 0.9 * v[2, 1]
# Unlike NAAF's rows, these rows differ in length: the cosine divides by the length.
v, u = ((x / 3).astype(np.float32).astype(np.float64) for x in (v, u))
for i, n in enumerate(COUNTS):
    v[i, n:] = 0
for c, m in enumerate(LENGTHS):
    u[c, m:] = 0
grad = rng.normal(size=(len(COUNTS), len(LENGTHS))).astype(np.float32).astype(np.float64)
out = {"regions": v, "words": u, "grad": grad, "counts": COUNTS, "lengths": LENGTHS}
for name, o in CASES.items():
    out[name] = real(scores(v.astype(complex), u.astype(complex), o))
    out[f"{name}.d_regions"], out[f"{name}.d_words"] = gradients(v, u, grad, o)
print(json.dumps({k: np.round(np.asarray(x, float), 12).ravel().tolist() for k, x in out.items()}))
