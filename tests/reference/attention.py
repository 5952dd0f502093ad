"""Golden of self-attention in double precision, from the equations. Central differences check the formulas of the gradients.

    python tests/reference/attention.py > crates/itm-kernels/tests/golden/attention.json
"""

import json

import numpy as np

B, L, D, HEADS = 2, 5, 6, 2
KEYS = [5, 3]
RATE, SEED = 0.4, 77
MASK64 = (1 << 64) - 1


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def unit(seed, position):
    return (mix((mix(seed) + position * 0x9E3779B97F4A7C15) & MASK64) >> 40) / 2**24


def attention(qkv, rate, causal):
    w = D // HEADS
    y = np.zeros((B, L, D))
    for b in range(B):
        n = KEYS[b]
        for h in range(HEADS):
            q, k, v = (qkv[b, :, part * D + h * w :][:, :w] for part in range(3))
            s = q @ k[:n].T / np.sqrt(w)
            if causal:
                s[np.arange(n)[None] > np.arange(L)[:, None]] = -np.inf
            a = np.exp(s - s.max(1, keepdims=True))
            a /= a.sum(1, keepdims=True)
            if rate:
                pair = b * HEADS + h
                keep = [[unit(SEED, (pair * L + i) * L + j) >= np.float32(rate) for j in range(n)] for i in range(L)]
                a = a * np.array(keep) / (1 - rate)
            y[b, :, h * w : (h + 1) * w] = a @ v[:n]
    return y


def gradient(qkv, grad, rate, causal, step=1e-6):
    d = np.zeros_like(qkv)
    for at in np.ndindex(*qkv.shape):
        high, low = qkv.copy(), qkv.copy()
        high[at] += step
        low[at] -= step
        d[at] = ((attention(high, rate, causal) - attention(low, rate, causal)) * grad).sum() / (2 * step)
    return d


rng = np.random.default_rng(4)
qkv = rng.normal(size=(B, L, 3 * D)).astype(np.float32).astype(np.float64)
grad = rng.normal(size=(B, L, D)).astype(np.float32).astype(np.float64)
out = {"qkv": qkv, "grad": grad}
for name, rate, causal in [("plain", 0.0, False), ("dropout", RATE, False), ("causal", RATE, True)]:
    out[name] = attention(qkv, rate, causal)
    out[f"{name}.d_qkv"] = gradient(qkv, grad, rate, causal)
print(json.dumps({name: [round(float(x), 9) for x in value.ravel()] for name, value in out.items()}))
