"""Goldens of NAAF's attention, Eq. 6 to 12, in double precision: loops that follow the equations, contexts of full width, no
Gram matrix. Gradients come from complex steps.

    python tests/reference/naaf_attention.py > crates/itm-kernels/tests/golden/naaf_attention.json
"""

import json

import numpy as np

COUNTS = [5, 4, 5]  # regions of the images, padded to 5
LENGTHS = [4, 2, 1, 6]  # words of the texts, padded to 6
R, L, D = 5, 6, 7
T = [0.42, 0.55, 0.3, 0.4]  # one boundary per text


def unit_rows(x):
    return x / (np.sqrt((x**2).sum(-1, keepdims=True)) + 1e-8)


def real(z):
    return np.real(z)


def attention(u, v, t, o, words):
    """One text u [m, d] and one image v [n, d]; `words`: the text's words as constants, for Eq. 9."""
    m, n = len(u), len(v)
    s = np.array([[sum(u[i] * v[j]) for j in range(n)] for i in range(m)])  # Eq. 6
    x = np.array([max(s[i], key=real) - t for i in range(m)])  # Eq. 7
    neg = np.zeros(m, complex)
    if o["negative"]:
        spread = x
        if o["intra"]:  # Eq. 9
            spread = np.zeros(m, complex)
            for i in range(m):
                p = np.exp([o["intra_scale"] * sum(words[i] * words[l]) for l in range(m)])
                p = p / p.sum()
                spread[i] = sum(p[l] * x[l] for l in range(m))
        for i in range(m):  # Eq. 8
            value = spread[i] if o["intra"] == "value_and_mask" else x[i]
            if real(spread[i]) < 0 or not o["masks"]:
                neg[i] = value
    lam = o["scale"]
    f, r = np.zeros(m, complex), np.zeros(m, complex)
    for i in range(m):  # Eq. 10
        if o["masks"]:
            e = np.array([np.exp(lam * (s[i, j] - t)) if real(s[i, j] - t) > 0 else 0.0 for j in range(n)], complex)
            w = e / (e.sum() + 1e-8)
        else:
            e = np.exp(lam * s[i])
            w = e / e.sum()
        context = sum(w[j] * v[j] for j in range(n))
        squares = (context**2).sum()
        if real(squares) > 1e-30:
            f[i] = sum(u[i] * context) / max(np.sqrt(squares), 1e-8, key=real)
    if o["relevance"]:
        a = np.where(real(s) > 0, s, o["leak"] * s)
        b = np.zeros((m, n), complex)
        for i in range(m):
            for j in range(n):
                squares = (a[:, j] ** 2).sum()
                root = np.sqrt(squares) if real(squares) > 0 else 0.0
                b[i, j] = a[i, j] / (root + 1e-8)
        for i in range(m):
            w = np.exp(lam * b[i])
            w = w / w.sum()
            r[i] = sum(w[j] * s[i, j] for j in range(n))
    return (neg + f + r).sum() / m  # Eq. 11, 12


def scores(v, u, o):
    return np.array([[attention(u[c, : LENGTHS[c]], v[i, : COUNTS[i]], T[c], o, real(u[c])) for c in range(len(u))] for i in range(len(v))])


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


BASE = {"negative": True, "masks": True, "intra": None, "intra_scale": 5.0, "scale": 20.0, "relevance": True, "leak": 0.1}
CASES = {
    "full": {},
    "intra_mask": {"intra": "mask"},
    "intra_value_and_mask": {"intra": "value_and_mask", "intra_scale": 20.0},
    "no_negative": {"negative": False},
    "no_masks": {"masks": False},
    "relu": {"leak": 0.0},
    "scale_nine": {"scale": 9.0},
    "no_relevance": {"relevance": False},
}

rng = np.random.default_rng(8)
v = rng.normal(size=(len(COUNTS), R, D))
u = rng.normal(size=(len(LENGTHS), L, D))
u[0] += 0.8 * v[0, 0]
u[3] += 0.9 * v[2, 1]
for c in (0, 3):
    u[c, 2] = u[c, 1] + 0.5 * u[c, 2]  # similar words on both sides of the boundary, so that Eq. 9 spreads something
u[1] = -np.abs(u[1]) / 3  # scores of one sign for some region: a relevance norm of 0 with ReLU
v[1, 2] = np.abs(v[1, 2])
v, u = (unit_rows(x).astype(np.float32).astype(np.float64) for x in (v, u))
for i, n in enumerate(COUNTS):
    v[i, n:] = 0
for c, m in enumerate(LENGTHS):
    u[c, m:] = 0
grad = rng.normal(size=(len(COUNTS), len(LENGTHS))).astype(np.float32).astype(np.float64)
out = {"regions": v, "words": u, "grad": grad, "t": T, "counts": COUNTS, "lengths": LENGTHS}
T = np.array(T, np.float32).astype(np.float64)
for name, options in CASES.items():
    o = BASE | options
    out[name] = real(scores(v.astype(complex), u.astype(complex), o))
    out[f"{name}.d_regions"], out[f"{name}.d_words"] = gradients(v, u, grad, o)
print(json.dumps({k: np.round(np.asarray(x, float), 12).ravel().tolist() for k, x in out.items()}))
