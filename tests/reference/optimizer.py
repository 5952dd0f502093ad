"""Golden values of AdamW with clipping of the global norm, by PyTorch in double precision.

    python tests/reference/optimizer.py    writes crates/itm-kernels/tests/golden/optimizer.json

Four parameters: a matrix, a vector, one whose first gradient comes at step 3, one without a gradient. Gradients are random, not
derived. Values are exact in f32, so that both sides start from the same numbers.
"""

import json
from pathlib import Path

import torch

SHAPES = {"matrix": (3, 7), "vector": (19,), "late": (2, 2), "idle": (3,)}
STEPS, RATE = 5, 0.01
CASES = {
    "plain": dict(betas=(0.9, 0.999), epsilon=1e-8, decay=0.0, decayed="all", clip=None),
    "decay": dict(betas=(0.9, 0.999), epsilon=1e-8, decay=0.3, decayed="all", clip=None),
    "matrices": dict(betas=(0.9, 0.999), epsilon=1e-8, decay=0.3, decayed="matrices", clip=None),
    "clipped": dict(betas=(0.9, 0.999), epsilon=1e-8, decay=0.3, decayed="all", clip=2.0),
    "wide clip": dict(betas=(0.9, 0.999), epsilon=1e-8, decay=0.0, decayed="all", clip=100.0),
    "betas": dict(betas=(0.8, 0.95), epsilon=1e-2, decay=0.1, decayed="all", clip=2.0),
}


def drawn(shape, generator):
    return torch.round(torch.randn(shape, generator=generator, dtype=torch.float64) * 256) / 256


def flat(tensors):
    return {k: t.detach().ravel().tolist() for k, t in tensors.items()}


def run(case, start, grads):
    params = {k: v.clone().requires_grad_() for k, v in start.items()}
    groups = [
        {"params": [p], "weight_decay": case["decay"] if case["decayed"] == "all" or p.dim() >= 2 else 0.0}
        for p in params.values()
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=case["betas"], eps=case["epsilon"])
    norms = []
    for step in grads:
        for name, p in params.items():
            p.grad = step[name].clone() if name in step else None
        squares = sum(float((p.grad**2).sum()) for p in params.values() if p.grad is not None)
        norms.append(squares**0.5)
        if case["clip"] is not None:
            torch.nn.utils.clip_grad_norm_(params.values(), case["clip"])
        optimizer.step()
    moments = {name: optimizer.state[p] for name, p in params.items() if p in optimizer.state}
    return {
        "norms": norms,
        "values": flat(params),
        "first": flat({k: s["exp_avg"] for k, s in moments.items()}),
        "second": flat({k: s["exp_avg_sq"] for k, s in moments.items()}),
    }


def main():
    generator = torch.Generator().manual_seed(7)
    start = {k: drawn(s, generator) for k, s in SHAPES.items()}
    grads = []
    for t in range(1, STEPS + 1):
        names = [k for k in SHAPES if k != "idle" and (k != "late" or t >= 3)]
        grads.append({k: drawn(SHAPES[k], generator) for k in names})
    golden = {
        "rate": RATE,
        "start": flat(start),
        "grads": [flat(g) for g in grads],
        "cases": {
            name: {
                "betas": case["betas"],
                "epsilon": case["epsilon"],
                "decay": case["decay"],
                "matrices": case["decayed"] == "matrices",
                "clip": case["clip"],
            }
            | run(case, start, grads)
            for name, case in CASES.items()
        },
    }
    path = Path(__file__).parents[2] / "crates/itm-kernels/tests/golden/optimizer.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
