"""Six training steps of FNE with a tiny ViT and a tiny BERT, in double precision.

    python tests/reference/fne_training.py      # writes crates/fne/tests/golden/training/

    vit, bert        folders as `save_pretrained` writes them: the weights that both sides start from (f32)
    training.json    captions, batches, bank and projections at the start; per variant and step the loss, the norm of the
                     gradients, the statistics, the weights and the columns drawn; at the end the embeddings of all pairs

The encoders are `transformers`' own, with plain ("eager") attention; everything after their last hidden state is written
here from the equations of the paper and section 3 of the specification. Batches of 4, and a bank of 12 that they fill and begin
to overwrite; two steps of epoch 0, then four of epoch 1. No dropout. Pixel `k` of image `i` is
((7919 i + 104729 (i + 1) ⌊k/64⌋) mod 1009) / 252.25 − 2, rounded to f32.

Variants: `hardest` and `drawn` are the default preset, with the hardest columns and with drawn columns. `official` and
`paper` are these presets; `no bank` is the row "w/o MMM". All variants have a margin of 0.4, a momentum of 0.9, a clip of 1, a prior
of 0.05 and a minimum count of 1, so that within six steps every part of a step matters.
"""

import copy
import json
from pathlib import Path

import torch
from torch.nn import functional as F
from transformers import BertConfig, BertModel, ViTConfig, ViTModel

ROOT = Path(__file__).parents[2] / "crates/fne/tests/golden/training"
MARGIN, MOMENTUM, CLIP, RATE, PRIOR, ALPHA, MIN_COUNT, BANK, MOST = 0.4, 0.9, 1.0, 3e-3, 0.05, 0.5, 1, 12, 7
SEEDS = 28, 128  # of the weights: with these seeds, pairs are the best of their batch more often than with most seeds

CLS, SEP = 2, 3
CAPTIONS = [  # of images 0, 0, 1, 2, 3, 3, 4, 5; the fourth is longer than MOST, cleaning leaves nothing of the sixth
    [CLS, 7, 21, SEP],
    [CLS, 7, 30, 31, 8, SEP],
    [CLS, 9, 12, SEP],
    [CLS, 40, 41, 42, 43, 44, 45, 46, SEP],
    [CLS, 11, SEP],
    [CLS, SEP],
    [CLS, 25, 26, 14, 13, 5, SEP],
    [CLS, 33, 34, SEP],
]
IMAGES = [0, 0, 1, 2, 3, 3, 4, 5]
BATCHES = [[0, 2, 3, 4], [1, 3, 5, 6], [0, 1, 4, 7], [2, 3, 5, 6], [7, 6, 1, 4], [3, 0, 2, 5]]
EPOCHS = [0, 0, 1, 1, 1, 1]

DEFAULT = dict(
    negatives="drawn", words="masked", images="all", cut_pieces=True, project=False, positive="momentum", enqueue="after",
    warmup=1, lam=0.001, tau=0.5, tie_easy=True, margin_cut=True, density="log_odds", bank=BANK,
)
VARIANTS = {
    "hardest": dict(DEFAULT, negatives="hardest"),
    "drawn": DEFAULT,
    "official": dict(DEFAULT, words="all", cut_pieces=False, density="f32"),
    "paper": dict(
        DEFAULT, words="words", images="patches", project=True, positive="online", enqueue="before", warmup=0, lam=0.01, tau=1.0,
        tie_easy=False, margin_cut=False,
    ),
    "no bank": dict(DEFAULT, bank=0),
}


def randomise(model, seed):
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        drawn = torch.randn(p.shape, generator=g) * 0.25
        norm = "norm" in name.lower() and name.endswith("weight")
        p.data = drawn + 1.0 if norm else drawn
    return model


def encoders():
    vit = ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )
    bert = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )
    vit, bert = ViTModel(vit, add_pooling_layer=False), BertModel(bert, add_pooling_layer=False)
    return randomise(vit, SEEDS[0]), randomise(bert, SEEDS[1])


def pixels(images):
    k = torch.arange(3 * 32 * 32, dtype=torch.int64)
    rows = [((7919 * i + 104729 * (k // 64) * (i + 1)) % 1009).double() / 252.25 - 2 for i in images]
    return torch.stack(rows).float().double().reshape(-1, 3, 32, 32)


class Side(torch.nn.Module):
    """An encoder, its mean, optionally a linear layer; rows of unit length."""

    def __init__(self, model, pool, projection):
        super().__init__()
        self.model, self.pool = model.double(), pool
        self.model.set_attn_implementation("eager")
        self.projection = None
        if projection is not None:
            weight, bias = projection
            self.projection = torch.nn.Linear(*weight.shape).double()
            self.projection.weight.data, self.projection.bias.data = weight.T.clone(), bias.clone()

    def finish(self, rows):
        rows = rows if self.projection is None else self.projection(rows)
        return rows / rows.norm(dim=-1, keepdim=True).clamp(min=1e-12)


class ImageSide(Side):
    def forward(self, images):
        states = self.model(images).last_hidden_state
        return self.finish(states[:, 1:].mean(1) if self.pool == "patches" else states.mean(1))


class TextSide(Side):
    def forward(self, captions, width):
        lengths = torch.tensor([len(c) for c in captions])
        ids = torch.zeros(len(captions), width, dtype=torch.long)
        for row, caption in zip(ids, captions):
            row[: len(caption)] = torch.tensor(caption)
        place = torch.arange(width)[None]
        mask = place < lengths[:, None]
        states = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        if self.pool == "all":
            return self.finish(states.mean(1))
        if self.pool == "words":
            inner = (place > 0) & (place < lengths[:, None] - 1)
            mask = torch.where((lengths > 2)[:, None], inner, mask)
        share = mask.double() / mask.sum(1, keepdim=True)
        return self.finish((share[..., None] * states).sum(1))


def cut(caption):
    return caption if len(caption) <= MOST else caption[: MOST - 1] + [caption[-1]]


class Moments:
    def __init__(self):
        self.n, self.sum, self.squares = 0, 0.0, 0.0

    def add(self, values):
        self.n, self.sum = self.n + len(values), self.sum + sum(values)
        self.squares += sum((x - self.mean) ** 2 for x in values)

    @property
    def mean(self):
        return self.sum / self.n if self.n else 0.0

    @property
    def variance(self):
        return self.squares / (self.n - 1) if self.n > 1 else 0.0

    def sigma(self):
        return max(self.variance**0.5, 1e-4)

    def written(self):
        return {"count": self.n, "mean": self.mean, "variance": self.variance}


def observe(S, positive, negative):
    taken, others = [], []
    zeroed = S - torch.diag(S.diag())
    for i in range(len(S)):
        if S[i].argmax() == i and S[:, i].argmax() == i:
            taken.append(S[i, i].item())
            others += [zeroed[i].max().item(), zeroed[:, i].max().item()]
    positive.add(taken)
    negative.add(others)


def posterior(s, positive, negative, density):
    zp, zn = (s - positive.mean) / positive.sigma(), (s - negative.mean) / negative.sigma()
    if density == "log_odds":
        prior = torch.tensor([PRIOR], dtype=torch.float64)
        odds = prior.log() - (-prior).log1p() + torch.tensor(negative.sigma() / positive.sigma()).log()
        return torch.sigmoid(odds - zp**2 / 2 + zn**2 / 2)
    p = (torch.exp(-(zp**2) / 2) / positive.sigma()).float()  # both have the factor √2π
    n = (torch.exp(-(zn**2) / 2) / negative.sigma()).float()
    return (p / (p + torch.tensor((1 - PRIOR) / PRIOR).float() * n)).double()


def weigh(S, own, same, seen, v):
    positive, negative = seen
    rho = torch.exp(-ALPHA * (S - own[:, None]) ** 2)
    if positive.n > MIN_COUNT:
        P = posterior(S, positive, negative, v["density"])
        hard = P > v["lam"] if v["tie_easy"] else P >= v["lam"]
        rho = torch.where(hard, torch.exp(-v["tau"] * P), rho)
    rho[same] = 0
    if v["margin_cut"]:
        rho[S <= positive.mean - MARGIN] = 0
    return rho


def hinges(S, own, same):
    return (MARGIN + S - own[:, None]).clamp(min=0).masked_fill(same, 0)


def warm_up(v, w):
    S = v @ w.T
    diagonal = torch.eye(len(S), dtype=torch.bool)
    rows = (MARGIN + S - S.diag()[:, None]).clamp(min=0).masked_fill(diagonal, 0)
    columns = (MARGIN + S - S.diag()[None]).clamp(min=0).masked_fill(diagonal, 0)
    return (rows.max(1)[0].sum() + columns.max(0)[0].sum()) / len(S)


def train(name, v, start):
    projections = start["projections"] if v["project"] else {"image": None, "text": None}
    vit, bert = encoders()
    online = torch.nn.ModuleList(
        [ImageSide(vit, v["images"], projections["image"]), TextSide(bert, v["words"], projections["text"])]
    )
    momentum = copy.deepcopy(online)
    optimiser = torch.optim.Adam(online.parameters(), lr=RATE)
    width = 8 if v["project"] else 16
    bank = [start["bank"][key][:, :width].clone() for key in ("images", "texts")]
    bank = [rows / rows.norm(dim=1, keepdim=True) for rows in bank]
    bank = [rows.float().double() for rows in bank]
    ids, cursor = torch.full((BANK,), -100), 0
    draws = torch.Generator().manual_seed(5)
    caption = cut if v["cut_pieces"] else (lambda c: c)
    steps, first_bank, seen = [], [rows.clone() for rows in bank], (Moments(), Moments())

    for k, (pairs, epoch) in enumerate(zip(BATCHES, EPOCHS)):
        if k == 0 or EPOCHS[k - 1] != epoch:
            seen = (Moments(), Moments())
        own_ids = torch.tensor([IMAGES[p] for p in pairs])
        texts = [caption(CAPTIONS[p]) for p in pairs]
        longest = max(map(len, texts))
        inputs = pixels(own_ids.tolist())
        with torch.no_grad():
            for target, source in zip(momentum.parameters(), online.parameters()):
                target.mul_(MOMENTUM).add_((1 - MOMENTUM) * source)
            vm, wm = momentum[0](inputs), momentum[1](texts, longest)
        ve, we = online[0](inputs), online[1](texts, longest)

        step, b = {}, len(pairs)
        if epoch < v["warmup"]:
            loss = warm_up(ve, we)
        else:
            def enqueue():
                nonlocal cursor
                for i in range(b):
                    bank[0][cursor], bank[1][cursor], ids[cursor] = vm[i], wm[i], own_ids[i]
                    cursor = (cursor + 1) % BANK

            if v["bank"] == 0:
                tables, pool_ids, positive = (ve, we), own_ids, [(ve * we).sum(1)] * 2
            else:
                if v["enqueue"] == "before":
                    enqueue()
                    tables, pool_ids = [t.clone() for t in bank], ids.clone()
                else:
                    tables = [torch.cat([vm, bank[0]]), torch.cat([wm, bank[1]])]
                    pool_ids = torch.cat([own_ids, ids])
                online_pair = (ve * we).sum(1)
                positive = (
                    [online_pair, online_pair] if v["positive"] == "online" else [(ve * wm).sum(1), (we * vm).sum(1)]
                )
            observe((ve @ we.T).detach(), *seen)
            same = own_ids[:, None] == pool_ids[None]
            loss, chosen, rhos = 0.0, [], []
            for anchors, table, own in [(ve, tables[1], positive[0]), (we, tables[0], positive[1])]:
                S = anchors @ table.T
                H = hinges(S, own, same)
                fallback = H.argmax(1)
                if v["negatives"] == "hardest":
                    columns = fallback
                else:
                    rho = weigh(S.detach().clone(), own.detach(), same, seen, v)
                    for i in range(b):
                        if rho[i].sum() == 0:
                            rho[i, fallback[i]] = 1
                    columns = torch.multinomial(rho, 1, generator=draws)[:, 0]
                    rhos.append(rho.tolist())
                loss = loss + H.gather(1, columns[:, None]).sum() / b
                chosen.append(columns.tolist())
            if v["bank"] > 0 and v["enqueue"] == "after":
                enqueue()
            step |= {"chosen": chosen, "weights": rhos}
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(online.parameters(), CLIP)
        optimiser.step()
        step |= {"loss": loss.item(), "grad_norm": norm.item(), "positive": seen[0].written(), "negative": seen[1].written()}
        steps.append(step)
        print(f"{name:9} {k}: loss {loss.item():.5f} norm {norm.item():.4f} n+ {seen[0].n} {chosen if epoch >= v['warmup'] else ''}")

    with torch.no_grad():
        images = online[0](pixels(IMAGES))
        texts = torch.cat([online[1]([cut(c)], MOST if v["words"] == "all" else len(cut(c))) for c in CAPTIONS])
        kept = momentum[0](pixels(IMAGES))
    return {
        "steps": steps, "bank": [rows.tolist() for rows in first_bank], "bank_end": [rows.tolist() for rows in bank],
        "ids_end": ids.tolist(), "images": images.tolist(), "texts": texts.tolist(), "momentum_images": kept.tolist(),
    }


def main():
    ROOT.mkdir(parents=True, exist_ok=True)
    vit, bert = encoders()
    vit.save_pretrained(ROOT / "vit")
    bert.save_pretrained(ROOT / "bert")
    g = torch.Generator().manual_seed(4)
    draw = lambda *shape: (torch.randn(shape, generator=g) * 0.25).double()
    start = {
        "bank": {key: draw(BANK, 16) for key in ("images", "texts")},
        "projections": {key: (draw(16, 8), draw(8)) for key in ("image", "text")},
    }
    out = {
        "captions": CAPTIONS, "images": IMAGES, "batches": BATCHES, "epochs": EPOCHS,
        "projections": {
            key: {"weight": weight.tolist(), "bias": bias.tolist()} for key, (weight, bias) in start["projections"].items()
        },
        "variants": {name: train(name, v, start) for name, v in VARIANTS.items()},
    }
    (ROOT / "training.json").write_text(json.dumps(rounded(out), separators=(",", ":")) + "\n")


def rounded(x):
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    if isinstance(x, list):
        return [rounded(v) for v in x]
    return float(f"{x:.9g}") if isinstance(x, float) else x


if __name__ == "__main__":
    main()
