"""Golden values of the gated recurrent unit, in double precision.

    python tests/reference/gru.py    writes crates/itm-kernels/tests/golden/gru.json

The forward pass is written from the equations, one sequence and one step at a time. Gradients of the loss sum(c * states)
come from complex steps, d f/d p = Im f(p + i e) / e with e = 1e-200: exact to rounding, and without a backward pass that could be wrong.
Sizes are not multiples of a vector register. Lengths are unsorted, with a tie and a single step. c is not zero on padded steps, which
repeat the last real state.
"""

import json
from pathlib import Path

import numpy as np

B, L, I, H = 4, 5, 3, 17
LENGTHS = [3, 5, 1, 3]


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def states(x, w_ih, w_hh, b_ih, b_hh):
    out = np.zeros((B, L, H), dtype=complex)
    for b in range(B):
        h = np.zeros(H, dtype=complex)
        for t in range(L):
            if t < LENGTHS[b]:
                gx = x[b, t] @ w_ih + b_ih
                gh = h @ w_hh + b_hh
                r = sigmoid(gx[:H] + gh[:H])
                z = sigmoid(gx[H : 2 * H] + gh[H : 2 * H])
                n = np.tanh(gx[2 * H :] + r * gh[2 * H :])
                h = (1 - z) * n + z * h
            out[b, t] = h
    return out


def main():
    rng = np.random.default_rng(7)
    shapes = {"x": (B, L, I), "w_ih": (I, 3 * H), "w_hh": (H, 3 * H), "b_ih": (3 * H,), "b_hh": (3 * H,)}
    # Values that are exact in f32, so that both sides start from the same numbers.
    inputs = {k: np.round(rng.normal(0, 0.5, s) * 256) / 256 for k, s in shapes.items()}
    c = np.round(rng.normal(0, 1, (B, L, H)) * 64) / 64

    golden = {"sizes": [B, L, I, H], "lengths": LENGTHS, "c": c.ravel().tolist()}
    golden |= {k: v.ravel().tolist() for k, v in inputs.items()}
    golden["states"] = states(**inputs).real.ravel().tolist()
    step = 1e-200
    for name, value in inputs.items():
        grad = np.zeros(value.size)
        for k in range(value.size):
            moved = value.astype(complex).ravel()
            moved[k] += 1j * step
            out = states(**(inputs | {name: moved.reshape(value.shape)}))
            grad[k] = (c * out).sum().imag / step
        golden["d_" + name] = grad.tolist()

    rounded = {k: [float(f"{x:.9g}") for x in v] if k[:2] in ("d_", "st") else v for k, v in golden.items()}
    path = Path(__file__).parents[2] / "crates/itm-kernels/tests/golden/gru.json"
    path.write_text(json.dumps(rounded, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
