"""Golden values of InfoNCE and of the pairwise sigmoid loss, with all gradients, in double precision.

    python tests/reference/contrastive.py    writes crates/itm-core/tests/golden/contrastive.json

Each loss follows its equation entry by entry, with the maximum subtracted in the sum of exponentials. Each term has a fixed
weight in the sum, so that a wrong axis shows. Gradients come from complex steps, d f/d p = Im f(p + i e) / e, e = 1e-200.
`bounded.log_scale` is log(1/τ) after each of eight steps of Adam on InfoNCE, set back to log 100 after a step beyond.
"""

import json
from pathlib import Path

import numpy as np

B, IDS = 5, [3, 7, 3, 5, 7]
BOUND = np.log(100)


def others(masked):
    """Pairs of the same image off the diagonal."""
    return [[masked and i != j and IDS[i] == IDS[j] for j in range(B)] for i in range(B)]


def info_nce(p, masked):
    """Images as anchors, then texts as anchors."""
    z = p["scores"] * np.exp(p["log_scale"][0])
    mask, both = others(masked), []
    for z in (z, z.T):
        for a in range(B):
            row = [z[a, c] for c in range(B) if not mask[a][c]]
            top = max(v.real for v in row)
            both.append(np.log(sum(np.exp(v - top) for v in row)) + top - z[a, a])
    return np.array(both)


def sigmoid(p, masked):
    z = p["scores"] * np.exp(p["log_scale"][0]) + p["bias"][0]
    mask, terms = others(masked), []
    for i in range(B):
        for j in range(B):
            x = z[i, j] if i == j else -z[i, j]
            loss = np.log(1 + np.exp(-x)) if x.real >= 0 else -x + np.log(1 + np.exp(x))
            terms.append(0 * x if mask[i][j] else loss)
    return np.array(terms)


def bounded(scores):
    """Adam with the rate 0.05 from log 95: matched scores raise log(1/τ) beyond its bound, later ones lower it."""
    matched = (scores + 2 * np.eye(B)) / 100
    theta, m, v, course = np.log(95), 0.0, 0.0, []
    for t in range(1, 9):
        s = matched if t <= 4 else -matched
        p = {"scores": s, "log_scale": np.array([theta + 1e-200j])}
        g = info_nce(p, False).mean().imag / 1e-200
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        theta -= 0.05 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        theta = min(theta, BOUND)
        course.append(theta)
    return np.array(course)


def case(golden, name, p, weights, loss):
    golden[f"{name}.terms"] = loss(p)
    for key, value in p.items():
        grad = np.zeros(value.size)
        for k in range(value.size):
            moved = value.astype(complex).ravel()
            moved[k] += 1e-200j
            grad[k] = (weights * loss(p | {key: moved.reshape(value.shape)})).sum().imag / 1e-200
        golden[f"{name}.d_{key}"] = grad


def main():
    rng = np.random.default_rng(16)
    scores = np.round(rng.uniform(-1, 1, (B, B)) * 256) / 256
    anchors, pairs = (np.round(rng.uniform(0.5, 1.5, n) * 256) / 256 for n in (2 * B, B * B))
    golden = {"scores": scores, "ids": np.array(IDS), "anchors": anchors, "pairs": pairs}
    for masked in ("all", "masked"):
        for name, log_scale in (("warm", np.log(1 / 0.5)), ("cold", np.log(1 / 0.07)), ("past", BOUND + 0.25)):
            p = {"scores": scores, "log_scale": np.array([log_scale])}
            golden[f"{name}.log_scale"] = p["log_scale"]
            case(golden, f"info_nce.{masked}.{name}", p, anchors, lambda p: info_nce(p, masked == "masked"))
            bias = {"bias": np.array([-1.5])}
            golden |= bias
            case(golden, f"sigmoid.{masked}.{name}", p | bias, pairs, lambda p: sigmoid(p, masked == "masked"))

    golden["bounded.log_scale"] = bounded(scores)
    rounded = {k: [float(f"{v:.9g}") for v in np.ravel(a)] for k, a in golden.items()}
    path = Path(__file__).parents[2] / "crates/itm-core/tests/golden/contrastive.json"
    path.write_text(json.dumps(rounded, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
