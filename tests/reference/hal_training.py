"""Double-precision twin of HAL's training: encoders, losses, clipped Adam, step decay, the memory bank of the AAAI loss.

Encoders and optimiser are PyTorch's (Embedding, GRU, Linear, Adam, clip_grad_norm_), the losses come from hal.py. Each case makes
three steps: two in epoch 0, one in epoch 1, where the rate is a tenth and the bank, if any, is in use.

    python tests/reference/hal_training.py    # writes crates/hubness/tests/golden/hal_training.json
"""

import json
from pathlib import Path

import torch

import hal

torch.set_default_dtype(torch.float64)
WORDS, WIDTH, DIM, D = 9, 3, 4, 5
RATE, DECAY_EVERY = 0.01, 1

# Seven pairs of five images; batches of four, of three (the last of an epoch) and of four again.
PAIRS = {
    "features": [[((p * 37 + k * 11) % 23 - 11) / 16 for k in range(DIM)] for p in (0, 0, 1, 2, 3, 4, 4)],
    "texts": [[2, 5], [3], [4, 6, 8, 2], [7, 7, 3], [1, 5, 4], [6], [8, 2]],
    "images": [0, 0, 1, 2, 3, 4, 4],
}
STEPS = [(0, [0, 1, 2, 3]), (0, [4, 5, 6]), (1, [6, 3, 0, 2])]
BANK = [[1, 5, 3, 4]]  # kept batches; caption 3 is also in the batch of the last step


def start():
    """Initial weights in burn's layouts: [in, out], gates r, z, n side by side. Dyadic, so that f32 holds them."""
    shapes = {
        "weight": (DIM, D), "bias": (D,), "words": (WORDS, WIDTH),
        "w_ih": (WIDTH, 3 * D), "w_hh": (D, 3 * D), "b_ih": (3 * D,), "b_hh": (3 * D,),
    }  # fmt: skip
    generator = torch.Generator().manual_seed(11)
    draw = lambda shape: torch.round((torch.rand(shape, generator=generator) - 0.5) * 256) / 256
    return {name: draw(shape) for name, shape in shapes.items()}


class Model(torch.nn.Module):
    def __init__(self, weights, case):
        super().__init__()
        self.case = case
        self.fc = torch.nn.Linear(DIM, D)
        self.embed = torch.nn.Embedding(WORDS, WIDTH)
        self.rnn = torch.nn.GRU(WIDTH, D, batch_first=True)
        with torch.no_grad():
            self.fc.weight.copy_(weights["weight"].T)
            self.fc.bias.copy_(weights["bias"])
            self.embed.weight.copy_(weights["words"])
            self.rnn.weight_ih_l0.copy_(weights["w_ih"].T)
            self.rnn.weight_hh_l0.copy_(weights["w_hh"].T)
            self.rnn.bias_ih_l0.copy_(weights["b_ih"])
            self.rnn.bias_hh_l0.copy_(weights["b_hh"])

    def weights(self):
        r = self.rnn
        return {
            "weight": self.fc.weight.T, "bias": self.fc.bias, "words": self.embed.weight,
            "w_ih": r.weight_ih_l0.T, "w_hh": r.weight_hh_l0.T, "b_ih": r.bias_ih_l0, "b_hh": r.bias_hh_l0,
        }  # fmt: skip

    def finish(self, rows, unit=True):
        rows = rows / rows.norm(dim=1, keepdim=True) if unit else rows
        return rows.abs() if self.case["similarity"] == "order" else rows

    def images(self, pairs):
        return self.finish(self.fc(torch.tensor([PAIRS["features"][p] for p in pairs])), self.case["image_norm"] == "unit")

    def texts(self, pairs):
        rows = []
        for p in pairs:  # one caption at a time, so that padding cannot be wrong
            states = self.rnn(self.embed(torch.tensor([PAIRS["texts"][p]])))[0][0]
            rows.append({"last": states[-1], "mean": states.mean(0), "max": states.max(0).values}[self.case["text_pool"]])
        return self.finish(torch.stack(rows))


def scores(v, w, similarity):
    if similarity == "cosine":
        return v @ w.T
    return torch.stack([torch.stack([-torch.sqrt((torch.clamp(t - i, min=0) ** 2).sum()) for t in w]) for i in v])


def loss(case, model, pairs, bank):
    v, w = model.images(pairs), model.texts(pairs)
    s = scores(v, w, case["similarity"])
    ids = [PAIRS["images"][p] for p in pairs] if case["mask_same_image"] else None
    objective = case["objective"]
    if objective in ("sum", "max"):
        return hal.triplets(s, ids, objective == "max")
    if objective in ("hal", "max_hal"):
        weights = hal.factors(s, case["neighbours"], case["reweight"], case["exclude"], case["detach"])
        return hal.triplets(s * weights, ids, objective == "max_hal")
    if bank is not None:
        kept = [n for n, p in enumerate(bank["pairs"]) if p not in pairs]
        to_texts, to_images = (v @ bank["texts"][kept].T).detach(), (w @ bank["images"][kept].T).detach()
        options = {"g": case["g"], "e": case["e"], "alpha": 10, "beta": 8, "e1": 0.2, "e2": 0.1, "mb_k": 250, "consistent_offsets": False}
        return hal.bank_terms(s, to_texts, to_images, options).mean()
    return hal.local_terms(s, case["g"], case["e"]).mean()


def run(case):
    model = Model(start(), case)
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    out = {**case, "losses": [], "norms": []}
    bank = None
    for epoch, pairs in STEPS:
        if epoch == 1 and case["objective"] == "hal_aaai_bank" and bank is None:
            with torch.no_grad():
                kept = [p for batch in BANK for p in batch]
                bank = {"pairs": kept, "images": model.images(kept), "texts": model.texts(kept)}
        for group in adam.param_groups:
            group["lr"] = RATE * 0.1 ** (epoch // DECAY_EVERY)
        adam.zero_grad()
        value = loss(case, model, pairs, bank)
        value.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), case["clip"])
        adam.step()
        out["losses"].append(value.item())
        out["norms"].append(norm.item())
    out["end"] = {name: hal.digits(w.detach()) for name, w in model.weights().items()}
    return out


def main():
    default = {
        "objective": "sum", "similarity": "cosine", "image_norm": "unit", "text_pool": "last", "mask_same_image": False, "clip": 2.0,
        "neighbours": 3, "reweight": "all", "exclude": "pair", "detach": False, "g": 30, "e": 0.3,
    }  # fmt: skip
    changes = [
        {},
        {"objective": "max"},
        {"objective": "hal"},
        {"objective": "max_hal", "neighbours": 1},
        {"objective": "hal", "exclude": "positive", "reweight": "negatives", "detach": True, "neighbours": 2},
        {"objective": "hal_aaai_local"},
        {"objective": "hal_aaai_bank", "g": 10},
        {"objective": "hal", "similarity": "order"},
        {"objective": "max", "similarity": "order", "image_norm": "off", "text_pool": "max"},
        {"objective": "sum", "text_pool": "mean", "mask_same_image": True, "clip": 0.5},
    ]
    cases = [run({**default, **change}) for change in changes]
    golden = {
        "rate": RATE, "decay_every": DECAY_EVERY, "margin": hal.MARGIN, "pairs": PAIRS, "steps": STEPS, "bank": BANK,
        "start": {name: hal.digits(w) for name, w in start().items()}, "cases": cases,
    }  # fmt: skip
    path = Path(__file__).parents[2] / "crates/hubness/tests/golden/hal_training.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(path, path.stat().st_size, "bytes")
    for case in cases:
        print(case["objective"], case["similarity"], case["losses"], case["norms"])


if __name__ == "__main__":
    main()
