"""Golden values from captions and features to the triplet loss, with all gradients, in double precision.

    python tests/reference/encoders.py    writes crates/itm-core/tests/golden/encoders.json

Word vectors, gated recurrent unit, mean over the real words (FNE Eq. 1) or last state, unit length; a linear map of features,
unit length; cosine; triplet loss with all in-batch negatives, both directions, summed (FNE Eq. 3). Gradients come from complex
steps, d f/d p = Im f(p + i e) / e with e = 1e-200, without a backward pass that could be wrong. Norms are sqrt(sum of x * x), which is analytic.
"""

import json
from pathlib import Path

import numpy as np

V, E, D, DIM, MARGIN = 6, 3, 5, 4, 0.3
CAPTIONS = [[2, 5], [1, 3, 3, 4], [4]]


def unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def texts(p, pool):
    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    rows = []
    for caption in CAPTIONS:
        h, states = np.zeros(D), []
        for word in caption:
            gx = p["words"][word] @ p["w_ih"] + p["b_ih"]
            gh = h @ p["w_hh"] + p["b_hh"]
            r, z = sigmoid(gx[:D] + gh[:D]), sigmoid(gx[D : 2 * D] + gh[D : 2 * D])
            n = np.tanh(gx[2 * D :] + r * gh[2 * D :])
            h = (1 - z) * n + z * h
            states.append(h)
        rows.append(np.mean(states, 0) if pool == "mean" else h)
    return unit(np.array(rows))


def loss(p, x, pool):
    s = unit(x @ p["weight"] + p["bias"]) @ texts(p, pool).T
    total, active = 0, []
    for i in range(len(s)):
        for j in range(len(s)):
            if i != j:
                for hinge in (MARGIN - s[i, i] + s[i, j], MARGIN - s[i, i] + s[j, i]):
                    assert abs(hinge.real) > 1e-3, "a hinge too near zero for a test in f32"
                    active.append(hinge.real > 0)
                    total += hinge if hinge.real > 0 else 0
    return total, active


def main():
    rng = np.random.default_rng(11)
    shapes = {"words": (V, E), "w_ih": (E, 3 * D), "w_hh": (D, 3 * D), "b_ih": (3 * D,), "b_hh": (3 * D,)}
    shapes |= {"weight": (DIM, D), "bias": (D,)}
    p = {k: np.round(rng.normal(0, 0.7, s) * 256) / 256 for k, s in shapes.items()}
    x = np.round(rng.normal(0, 1, (len(CAPTIONS), DIM)) * 256) / 256

    golden = {"x": x, **p}
    for pool in ("mean", "last"):
        golden[f"{pool}.texts"] = texts(p, pool)
        total, active = loss(p, x, pool)
        assert any(active) and not all(active)
        golden[f"{pool}.loss"] = np.array([total])
        for name, value in p.items():
            grad = np.zeros(value.size)
            for k in range(value.size):
                moved = value.astype(complex).ravel()
                moved[k] += 1e-200j
                grad[k] = loss(p | {name: moved.reshape(value.shape)}, x, pool)[0].imag / 1e-200
            golden[f"{pool}.d_{name}"] = grad
    golden["images"] = unit(x @ p["weight"] + p["bias"])

    rounded = {k: [float(f"{v:.9g}") for v in np.ravel(a)] for k, a in golden.items()}
    path = Path(__file__).parents[2] / "crates/itm-core/tests/golden/encoders.json"
    path.write_text(json.dumps(rounded, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
