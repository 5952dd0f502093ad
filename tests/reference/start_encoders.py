"""Golden values of the bag of words and of the image projection with its perceptron, with all gradients, in double precision.

    python tests/reference/start_encoders.py    writes crates/itm-core/tests/golden/start_encoders.json

The loss is a fixed weight for each value of the embeddings, summed. Gradients come from complex steps,
d f/d p = Im f(p + i e) / e with e = 1e-200, without a backward pass that could be wrong. Dropout's masks come from their hash,
implemented again on Python's integers.
"""

import json
from pathlib import Path

import numpy as np

TERMS, D, DIM, HIDDEN, IMAGES = 7, 4, 3, 6, 5
CAPTIONS = [[0, 2, 5], [], [3], [1, 2, 4, 6]]
SEED, SHARE, HIDDEN_SHARE, INPUT_SHARE, STD = 5, 0.3, 0.5, 0.2, 0.7


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def derive(seed, part):
    return mix(mix(seed) ^ mix((part + 0x6A09E667F3BCC909) % 2**64))


def factors(share, seed, shape):
    """0 or 1 / (1 - share) at each position; fewer than 1,024 positions, so one block."""
    key, values = derive(seed, 0), []
    for k in range(int(np.prod(shape))):
        x = (k + key) % 2**32
        x = (x ^ (x >> 17)) * 0xED5AD4BB % 2**32
        x ^= key >> 32
        x = (x ^ (x >> 11)) * 0xAC4C1B51 % 2**32
        x = (x ^ (x >> 15)) * 0x31848BAB % 2**32
        values.append(0.0 if x ^ (x >> 14) < round(share * 2**32) else 1 / (1 - share))
    assert 0.0 in values and any(values), "a mask that drops none or all"
    return np.reshape(values, shape)


def unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def texts(p, idf, pooling, share):
    flat = factors(share, SEED, [sum(map(len, CAPTIONS))]) if share else np.ones(sum(map(len, CAPTIONS)))
    rows, at = [], 0
    for caption in CAPTIONS:
        value = np.ones(len(caption)) / max(len(caption), 1)
        if pooling == "tf_idf":
            value = idf[caption] / np.sqrt((idf[caption] ** 2).sum())
        value, at = value * flat[at : at + len(caption)], at + len(caption)
        rows.append(value @ p["weight"][caption] + p["bias"])
    return unit(np.array(rows))


def images(p, x, factor, train):
    """The stored weights of the perceptron times `factor` are its weights."""
    drop = lambda share, seed, shape: factors(share, seed, shape) if train else np.ones(shape)
    linear = (x * drop(SHARE, SEED, x.shape)) @ p["weight"] + p["bias"]
    w1, b1, w2, b2 = (factor * p[k] for k in ("w1", "b1", "w2", "b2"))
    hidden = (0.3 * x / STD * drop(INPUT_SHARE, derive(SEED, 1), x.shape)) @ w1 + b1
    assert np.abs(hidden.real).min() > 1e-3, "a value too near zero for a test in f32"
    hidden = np.where(hidden.real > 0, hidden, 0) * drop(HIDDEN_SHARE, derive(SEED, 2), hidden.shape)
    return unit(linear + hidden @ w2 + b2)


def case(golden, name, p, weights, embed):
    golden[f"{name}.rows"] = embed(p)
    for key, value in p.items():
        grad = np.zeros(value.size)
        for k in range(value.size):
            moved = value.astype(complex).ravel()
            moved[k] += 1e-200j
            grad[k] = (weights * embed(p | {key: moved.reshape(value.shape)})).sum().imag / 1e-200
        golden[f"{name}.d_{key}"] = grad


def main():
    rng = np.random.default_rng(15)
    draw = lambda *shape: np.round(rng.normal(0, 0.7, shape) * 256) / 256
    golden = {}

    p = {"weight": draw(TERMS, D), "bias": draw(D)}
    idf = np.round(rng.uniform(1, 5, TERMS) * 256) / 256
    weights = draw(len(CAPTIONS), D)
    golden |= {"bag.idf": idf, "bag.weights": weights} | {f"bag.{k}": v for k, v in p.items()}
    for pooling in ("tf_idf", "mean"):
        for name, share in (("still", 0.0), ("dropped", SHARE)):
            case(golden, f"bag.{pooling}.{name}", p, weights, lambda p: texts(p, idf, pooling, share))

    p = {"weight": draw(DIM, D), "bias": draw(D), "w1": draw(DIM, HIDDEN), "b1": draw(HIDDEN), "w2": draw(HIDDEN, D), "b2": draw(D)}
    x, weights = draw(IMAGES, DIM), draw(IMAGES, D)
    golden |= {"map.x": x, "map.weights": weights} | {f"map.{k}": v for k, v in p.items()}
    for factor in (1, 2.5):
        for name, train in (("still", False), ("dropped", True)):
            case(golden, f"map.{factor}.{name}", p, weights, lambda p: images(p, x, factor, train))

    rounded = {k: [float(f"{v:.9g}") for v in np.ravel(a)] for k, a in golden.items()}
    path = Path(__file__).parents[2] / "crates/itm-core/tests/golden/start_encoders.json"
    path.write_text(json.dumps(rounded, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
