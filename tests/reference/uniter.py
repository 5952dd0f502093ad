"""A tiny UNITER with random weights in double precision: outputs and gradients of all four heads.

    python tests/reference/uniter.py        writes crates/tags-dc/tests/golden/uniter/

    full.safetensors    weights with all heads, like a file of phase 2 (f32, `uniter.` before the backbone's names)
    new.pt, old.pt      one pretrained model in PyTorch's archive format and as its older consecutive pickles: without `rank_output`,
                        `disc_output` and `correction_output`, with a second copy of the decoder and the other heads of pretraining;
                        old.pt has `bert.` before its names, gamma and beta
    golden.safetensors  inputs; outputs of full.safetensors with and without padding, with another epsilon and with the
                        tanh form of GELU; the loss and its gradients `d.NAME`; logits of the pretrained files

Written from the equations: padded batches, an index that makes each row's valid part contiguous, -10,000 on padded keys,
layer norms after each sum. The loss is the sum of all outputs times fixed numbers, so every head contributes to every
gradient that it reaches. Needs torch and safetensors.
"""

import math
from pathlib import Path

import torch
from safetensors.torch import save_file

ROOT = Path(__file__).parents[2] / "crates/tags-dc/tests/golden/uniter"
V, H, HEADS, FFN, LAYERS, POSITIONS, X = 50, 16, 4, 24, 2, 9, 6
# Token 0 of the first text is real, not padding, but its row of the table still does not learn from the lookup.
TEXTS = [[2, 17, 0, 31, 44, 8, 3], [2, 9, 17, 3], [2, 3]]
IMAGE_OF = [0, 1, 1]
REGIONS = [3, 5]
WORDS = [(0, 1), (0, 5), (1, 2), (2, 0)]  # (text, position) of the target words
CORRECTIONS = [(0, 4), (1, 1), (1, 3)]


def shapes():
    yield "uniter.embeddings.word_embeddings.weight", (V, H)
    yield "uniter.embeddings.position_embeddings.weight", (POSITIONS, H)
    yield "uniter.embeddings.token_type_embeddings.weight", (2, H)
    yield from norm("uniter.embeddings.LayerNorm")
    yield from linear("uniter.img_embeddings.img_linear", H, X)
    yield from linear("uniter.img_embeddings.pos_linear", H, 7)
    for name in ["img_layer_norm", "pos_layer_norm", "LayerNorm"]:
        yield from norm(f"uniter.img_embeddings.{name}")
    for i in range(LAYERS):
        at = f"uniter.encoder.layer.{i}"
        for name in ["query", "key", "value"]:
            yield from linear(f"{at}.attention.self.{name}", H, H)
        yield from linear(f"{at}.attention.output.dense", H, H)
        yield from norm(f"{at}.attention.output.LayerNorm")
        yield from linear(f"{at}.intermediate.dense", FFN, H)
        yield from linear(f"{at}.output.dense", H, FFN)
        yield from norm(f"{at}.output.LayerNorm")
    yield from linear("uniter.pooler.dense", H, H)
    yield from word_head("cls")
    yield from linear("itm_output", 2, H)


def later_heads():
    yield from linear("rank_output", 1, H)
    yield from linear("disc_output", 2, H)
    yield from word_head("correction_output")


def linear(name, o, i):
    yield f"{name}.weight", (o, i)
    yield f"{name}.bias", (o,)


def norm(name):
    yield f"{name}.weight", (H,)
    yield f"{name}.bias", (H,)


def word_head(name):
    yield from linear(f"{name}.predictions.transform.dense", H, H)
    yield from norm(f"{name}.predictions.transform.LayerNorm")
    yield f"{name}.predictions.bias", (V,)


def draw(named_shapes, seed):
    """Random in f32. Tables and first maps are small, so that a norm's epsilon has a visible effect."""
    g = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in named_shapes:
        x = torch.randn(shape, generator=g) * (0.02 if "embeddings" in name else 0.25)
        is_norm = ("LayerNorm" in name or "layer_norm" in name) and name.endswith("weight")
        weights[name] = x + 1.0 if is_norm else x
    return weights


class Uniter:
    def __init__(self, weights, eps=1e-12, tanh=False):
        self.w = {name: x.double().requires_grad_() for name, x in weights.items()}
        self.eps = eps
        self.approximate = "tanh" if tanh else "none"

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, name, x):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + self.eps) * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def gelu(self, x):
        if self.approximate == "tanh":
            return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))

    def text(self, ids):
        w, at = self.w, "uniter.embeddings"
        words = torch.nn.functional.embedding(ids, w[f"{at}.word_embeddings.weight"], padding_idx=0)
        x = words + w[f"{at}.position_embeddings.weight"][: ids.shape[1]] + w[f"{at}.token_type_embeddings.weight"][0]
        return self.norm(f"{at}.LayerNorm", x)

    def image(self, features, boxes):
        at = "uniter.img_embeddings"
        f = self.norm(f"{at}.img_layer_norm", self.linear(f"{at}.img_linear", features))
        p = self.norm(f"{at}.pos_layer_norm", self.linear(f"{at}.pos_linear", boxes))
        return self.norm(f"{at}.LayerNorm", f + p + self.w["uniter.embeddings.token_type_embeddings.weight"][1])

    def block(self, i, x, bias):
        at, (b, s, _) = f"uniter.encoder.layer.{i}", x.shape
        heads = lambda y: y.view(b, s, HEADS, H // HEADS).transpose(1, 2)
        q, k, v = (heads(self.linear(f"{at}.attention.self.{n}", x)) for n in ["query", "key", "value"])
        scores = q @ k.transpose(2, 3) / math.sqrt(H // HEADS) + bias
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, H)
        y = self.norm(f"{at}.attention.output.LayerNorm", x + self.linear(f"{at}.attention.output.dense", mixed))
        inner = self.linear(f"{at}.output.dense", self.gelu(self.linear(f"{at}.intermediate.dense", y)))
        return self.norm(f"{at}.output.LayerNorm", y + inner)

    def states(self, texts, images):
        """`images`: features and boxes of the image of each text."""
        t_max, r_max = max(map(len, texts)), max(len(f) for f, _ in images)
        ids = torch.tensor([t + [0] * (t_max - len(t)) for t in texts])
        pad = lambda x: torch.cat([x, torch.zeros(r_max - len(x), x.shape[1], dtype=x.dtype)])
        features, boxes = (torch.stack([pad(pair[k]) for pair in images]) for k in [0, 1])
        both = torch.cat([self.text(ids), self.image(features, boxes)], 1)
        lengths = [len(t) + len(f) for t, (f, _) in zip(texts, images)]
        gather = torch.arange(max(lengths)).repeat(len(texts), 1)
        for row, (t, (f, _)) in enumerate(zip(texts, images)):
            gather[row, len(t) : lengths[row]] = torch.arange(t_max, t_max + len(f))
        x = torch.gather(both, 1, gather[:, :, None].expand(-1, -1, H))
        valid = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
        bias = (1.0 - valid.double())[:, None, None, :] * -10000.0
        for i in range(LAYERS):
            x = self.block(i, x, bias)
        return x

    def pooled(self, x):
        return torch.tanh(self.linear("uniter.pooler.dense", x[:, 0]))

    def words(self, head, x, asked):
        rows = torch.stack([x[row, position] for row, position in asked])
        rows = self.gelu(self.linear(f"{head}.predictions.transform.dense", rows))
        rows = self.norm(f"{head}.predictions.transform.LayerNorm", rows)
        return rows @ self.w["uniter.embeddings.word_embeddings.weight"].T + self.w[f"{head}.predictions.bias"]

    def outputs(self, texts, images):
        x = self.states(texts, images)
        tokens = torch.cat([x[row, : len(t)] for row, t in enumerate(texts)])
        logits = self.linear("rank_output", self.pooled(x))[:, 0]
        return {
            "logits": logits,
            "scores": 1 / (1 + torch.exp(-logits)),
            "words": self.words("cls", x, WORDS),
            "discrimination": self.linear("disc_output", tokens),
            "correction": self.words("correction_output", x, CORRECTIONS),
        }


def inputs():
    g = torch.Generator().manual_seed(3)
    images = []
    for n in REGIONS:
        features = torch.rand((n, X), generator=g)
        corners = torch.rand((n, 4), generator=g).view(n, 2, 2).sort(1).values  # [n, low/high, x/y]
        size = corners[:, 1] - corners[:, 0]
        boxes = torch.cat([corners[:, 0], corners[:, 1], size, size.prod(1, keepdim=True)], 1)
        images.append((features, boxes))
    return images


def main():
    ROOT.mkdir(parents=True, exist_ok=True)
    drawn = inputs()
    in_double = [(f.double(), b.double()) for f, b in drawn]
    images = [in_double[k] for k in IMAGE_OF]
    pretrained = draw(shapes(), 1)
    full = {**pretrained, **draw(later_heads(), 2)}
    golden = {
        "features": torch.cat([f for f, _ in drawn]),
        "boxes": torch.cat([b for _, b in drawn]),
    }

    model = Uniter(full)
    out = model.outputs(TEXTS, images)
    g = torch.Generator().manual_seed(4)
    factors = {name: torch.randn(x.shape, generator=g) for name, x in out.items()}
    loss = sum((factors[name].double() * x).sum() for name, x in out.items())
    loss.backward()
    golden["loss"] = loss.detach()[None]
    for name, x in out.items():
        golden[name], golden[f"c.{name}"] = x.detach(), factors[name]
    for name, x in model.w.items():
        if name.startswith("itm_output"):
            assert x.grad is None
        else:
            golden[f"d.{name}"] = x.grad
    golden["epsilon.logits"] = Uniter(full, eps=1e-5).outputs(TEXTS, images)["logits"].detach()
    golden["tanh.logits"] = Uniter(full, tanh=True).outputs(TEXTS, images)["logits"].detach()

    # The initial heads: rank is row 1 of itm_output, discrimination is both rows, correction is the words' head.
    made = dict(pretrained)
    for part in ["weight", "bias"]:
        made[f"rank_output.{part}"] = pretrained[f"itm_output.{part}"][1:]
        made[f"disc_output.{part}"] = pretrained[f"itm_output.{part}"]
    for name, x in pretrained.items():
        if name.startswith("cls."):
            made[name.replace("cls.", "correction_output.", 1)] = x
    for name, x in Uniter(made).outputs(TEXTS, images).items():
        golden[f"made.{name}"] = x.detach()

    save_file({name: x.float().contiguous() for name, x in golden.items()}, ROOT / "golden.safetensors")
    save_file({name: x.contiguous() for name, x in full.items()}, ROOT / "full.safetensors")
    words = pretrained["uniter.embeddings.word_embeddings.weight"]
    published = {
        **pretrained,
        "cls.predictions.decoder.weight": words,
        "uniter.img_embeddings.mask_embedding.weight": torch.zeros(2, X),
        "feat_regress.bias": torch.zeros(X),
        "region_classifier.net.0.bias": torch.zeros(H),
    }
    old = {}
    for name, x in published.items():
        name = name.replace("uniter.", "bert.", 1)
        if "LayerNorm" in name or "layer_norm" in name:
            name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        old[name] = x
    torch.save(published, ROOT / "new.pt")
    torch.save(old, ROOT / "old.pt", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    main()
