"""Golden values of the element-wise and row kernels, in double precision.

    python tests/reference/kernels.py    writes crates/itm-kernels/tests/golden/kernels.json

Inputs are rounded to single precision first, so that both sides start from the same numbers. The forward passes are written from
the equations on PyTorch's double tensors; gradients of the loss sum(c * y) are PyTorch's. The normal distribution comes from
SciPy. Dropout's hash is implemented again on Python's integers.
Sizes are not multiples of a vector register (16), and a row needs more than one register.
"""

import json
import math
from pathlib import Path

import numpy as np
import torch
from scipy.special import ndtr

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(20260728)
out = {}


def single(values):
    return np.asarray(values, dtype=np.float32).astype(np.float64)


def put(name, values):
    out[name] = [int(v) if v == int(v) else float(f"{v:.11g}") for v in np.asarray(values, dtype=np.float64).ravel()]


def leaf(values):
    return torch.tensor(single(values), requires_grad=True)


def normal():
    a = single(np.concatenate([np.linspace(0, 12, 121), 10.0 ** -np.arange(1.0, 9.0)]))
    put("normal_a", a)
    put("normal_tail", ndtr(-a))
    put("normal_density", np.exp(-a * a / 2) / math.sqrt(2 * math.pi))


def gelu():
    x = leaf(np.concatenate([np.linspace(-11, 11, 133), rng.normal(size=36)]))
    c = single(rng.normal(size=x.shape))
    y = x * torch.special.erfc(-x / math.sqrt(2)) / 2
    (y * torch.tensor(c)).sum().backward()
    for name, v in [("x", x.detach()), ("c", c), ("y", y.detach()), ("dx", x.grad)]:
        put(f"gelu_{name}", v)


def other_activations():
    """On the values of `gelu`."""
    x, c = leaf(out["gelu_x"]), torch.tensor(single(out["gelu_c"]))
    for name, f in [
        ("quick_gelu", lambda x: x / (1 + torch.exp(-1.702 * x))),
        # (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)), which has no cancellation
        ("gelu_tanh", lambda x: x / (1 + torch.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    ]:
        x.grad = None
        y = f(x)
        (y * c).sum().backward()
        put(f"{name}_y", y.detach())
        put(f"{name}_dx", x.grad)


def layer_norm():
    """Rows: plain; offset 10,000; offset -3e6 (steps of 1/4); tiny compared with epsilon; huge; plain."""
    n, d, epsilon = 6, 53, 1e-12
    scale = np.array([1, 1, 3, 1e-7, 1e15, 0.01])[:, None]
    offset = np.array([0, 1e4, -3e6, 0, 0, 1])[:, None]
    x = leaf(rng.normal(size=(n, d)) * scale + offset)
    r = leaf(rng.normal(size=(n, d)) * np.minimum(scale, 3))
    gamma, beta = leaf(1 + 0.3 * rng.normal(size=d)), leaf(rng.normal(size=d))
    # So that every gradient is large enough for a comparison in single precision.
    c = single(rng.normal(size=(n, d)) * np.minimum(scale, 1))

    def norm(x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + epsilon) * gamma + beta

    put("norm_sizes", [n, d])
    for name, v in [("x", x), ("r", r), ("gamma", gamma), ("beta", beta)]:
        put(f"norm_{name}", v.detach())
    put("norm_c", c)
    y = norm(x)
    (y * torch.tensor(c)).sum().backward()
    put("norm_y", y.detach())
    for name, v in [("x", x), ("gamma", gamma), ("beta", beta)]:
        put(f"norm_d_{name}", v.grad)


def softmax():
    """Counts: all, one, none, some; rows with an offset, a large spread, equal values. Two rows share a count."""
    n, w, counts = 8, 37, [37, 1, 0, 21]
    scale = np.array([1, 1, 2, 2, 1, 1, 40, 1e-3])[:, None]
    x = torch.tensor(single(rng.normal(size=(n, w)) * scale + np.array([0, 1e3, 0, 0, 0, 0, -1e3, 5])[:, None]))
    put("softmax_sizes", [n, w])
    put("softmax_counts", counts)
    put("softmax_x", x)
    for name, real in [("all", [w] * 4), ("counts", counts)]:
        y = torch.zeros(n, w)
        for row in range(n):
            if k := real[row // 2]:
                e = torch.exp(x[row, :k] - x[row, :k].max())
                y[row, :k] = e / e.sum()
        put(f"softmax_y_{name}", y)


def order():
    """Texts that exceed their images in some coordinates; one text inside every image; one far outside."""
    n, m, d = 4, 5, 21
    images, texts = leaf(np.abs(rng.normal(size=(n, d)))), rng.normal(size=(m, d))
    texts[1], texts[3] = -1, np.abs(texts[3]) * 50
    texts = leaf(texts)
    c = single(rng.normal(size=(n, m)))
    put("order_sizes", [n, m, d])
    put("order_images", images.detach())
    put("order_texts", texts.detach())
    put("order_c", c)
    over = torch.clamp(texts[None] - images[:, None], min=0)
    squares = (over**2).sum(-1)
    s = torch.where(squares > 0, -torch.sqrt(torch.where(squares > 0, squares, 1)), 0)
    (s * torch.tensor(c)).sum().backward()
    put("order_s", s.detach())
    put("order_d_images", images.grad)
    put("order_d_texts", texts.grad)


def mix64(z):
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def dropout_bits(seed, position):
    """The key of a block of 1,024 positions from (seed, block); then three rounds on the position in the block."""
    block, k = divmod(position, 1024)
    key = mix64(mix64(seed) ^ mix64((block + 0x6A09E667F3BCC909) % 2**64))
    x = (k + key) % 2**32
    x = (x ^ (x >> 17)) * 0xED5AD4BB % 2**32
    x ^= key >> 32
    x = (x ^ (x >> 11)) * 0xAC4C1B51 % 2**32
    x = (x ^ (x >> 15)) * 0x31848BAB % 2**32
    return x ^ (x >> 14)


def dropout():
    seeds = [0, 1, 2**64 - 1]
    positions = [0, 1, 2, 1023, 1024, 5000, 2**32, 2**40 + 7]
    put("dropout_positions", positions)
    put("dropout_bits", [[dropout_bits(s, p) for p in positions] for s in seeds])


def main():
    for part in (normal, gelu, layer_norm, softmax, dropout, order, other_activations):
        part()
    path = Path(__file__).parents[2] / "crates/itm-kernels/tests/golden/kernels.json"
    lines = [f'  "{k}": {json.dumps(v)}' for k, v in out.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
