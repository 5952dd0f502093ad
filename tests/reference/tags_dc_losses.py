"""The five losses of TAGS-DC and their gradients, in double precision, over the tiny UNITER of `uniter.py`.

    python tests/reference/tags_dc_losses.py        writes crates/tags-dc/tests/golden/uniter/losses.safetensors

    itm mlm istm wod woc        each loss separately
    wod.plain woc.changed woc.all istm.released itm.among istm.among        with other options
    d.NAME                      gradients of itm + 0.7 mlm + 0.5 istm + 0.3 wod + 0.2 woc

Written from the equations. Every sentence passes the model separately, so nothing is padded. Every mean is a Python loop, first within
a caption, then over the captions. Needs torch and safetensors.
"""

import torch
from safetensors.torch import load_file, save_file
from uniter import ROOT, Uniter, inputs

CLS, SEP, MASK, MARGIN = 47, 48, 49, 0.2
WORDS = [[17, 11, 31, 44, 8], [9, 17], [5, 9, 21]]
IMAGE_OF = [0, 1, 1]
# (image, text, other images or other texts)
TEXT_ANCHORS = [(0, 0, [1]), (1, 1, [0])]
IMAGE_ANCHORS = [(1, 2, [0]), (0, 0, [1, 2])]
# text -> (tokens, {position: the original word there})
MASKED = {
    0: [([CLS, MASK, 11, 31, 44, 8, SEP], {1: 17}), ([CLS, 17, MASK, 5, 44, 8, SEP], {2: 11, 3: 31})],
    1: [([CLS, MASK, 17, SEP], {1: 9}), ([CLS, 9, 17, SEP], {2: 17})],
}
# text -> (tokens, positions that were masked); the third text has no negative
POOLS = {
    0: [([CLS, 20, 11, 31, 44, 8, SEP], [1]), ([CLS, 17, 11, 32, 44, 8, SEP], [2, 3])],
    1: [([CLS, 9, 40, SEP], [2])],
    2: [],
}


def mean(terms):
    return sum(terms) / len(terms)


class Losses:
    """`among`: the true pair among all its negatives, in place of a hinge for each."""

    def __init__(self, model, images, among=False):
        self.model, self.images, self.among = model, images, among

    def text(self, t):
        return [CLS, *WORDS[t], SEP]

    def states(self, tokens, image):
        return self.model.states([tokens], [self.images[image]])

    def logit(self, tokens, image):
        return self.model.linear("rank_output", self.model.pooled(self.states(tokens, image)))[0, 0]

    def ranked(self, own, others):
        """The mean hinge of probabilities, or minus the logarithm of the softmax of logits."""
        if self.among:
            return torch.stack([own, *others]).exp().sum().log() - own
        return mean([torch.clamp(MARGIN - own.sigmoid() + other.sigmoid(), min=0) for other in others])

    def itm(self):
        def of_text(image, text, others):
            own = self.logit(self.text(text), image)
            return self.ranked(own, [self.logit(self.text(text), other) for other in others])

        def of_image(image, text, others):
            own = self.logit(self.text(text), image)
            return self.ranked(own, [self.logit(self.text(other), image) for other in others])

        return mean([of_text(*a) for a in TEXT_ANCHORS]) + mean([of_image(*a) for a in IMAGE_ANCHORS])

    def log_words(self, head, tokens, image, position):
        return self.model.words(head, self.states(tokens, image), [(0, position)])[0].log_softmax(0)

    def mlm(self):
        captions = []
        for t, rows in MASKED.items():
            terms = [
                -self.log_words("cls", tokens, IMAGE_OF[t], position)[word]
                for tokens, labels in rows
                for position, word in labels.items()
            ]
            captions.append(mean(terms))
        return mean(captions)

    def istm(self, released=False):
        captions = []
        for t, pool in POOLS.items():
            if not pool:
                captions.append(0.0)
                continue
            own = self.released(t) if released else self.logit(self.text(t), IMAGE_OF[t])
            captions.append(self.ranked(own, [self.logit(tokens, IMAGE_OF[t]) for tokens, _ in pool]))
        return mean(captions)

    def released(self, t):
        """The logit of a row in which every position reads the second token."""
        tokens, (features, _) = self.text(t), self.images[IMAGE_OF[t]]
        x = self.model.text(torch.tensor([tokens]))[:, 1:2].expand(-1, len(tokens) + len(features), -1)
        bias = torch.zeros(1, 1, 1, x.shape[1], dtype=x.dtype)
        for i in range(2):
            x = self.model.block(i, x, bias)
        return self.model.linear("rank_output", self.model.pooled(x))[0, 0]

    def wod(self, weights=(1.0, 0.11)):
        captions = []
        for t, pool in POOLS.items():
            terms = []
            for tokens, _ in pool:
                logits = self.model.linear("disc_output", self.states(tokens, IMAGE_OF[t])[0, : len(tokens)])
                for own, new, row in zip(self.text(t), tokens, logits.log_softmax(1)):
                    same = int(own == new)
                    terms.append(-weights[same] * row[same])
            captions.append(mean(terms) if terms else 0.0)
        return mean(captions)

    def woc(self, which="masked"):
        captions = []
        for t, pool in POOLS.items():
            terms = []
            for tokens, masked in pool:
                own = self.text(t)
                positions = {
                    "masked": masked,
                    "changed": [j for j in range(len(own)) if own[j] != tokens[j]],
                    "all": range(len(own)),
                }[which]
                terms += [-self.log_words("correction_output", tokens, IMAGE_OF[t], j)[own[j]] for j in positions]
            captions.append(mean(terms) if terms else 0.0)
        return mean(captions)


def main():
    model = Uniter(load_file(ROOT / "full.safetensors"))
    images = [(f.double(), b.double()) for f, b in inputs()]
    losses, among = Losses(model, images), Losses(model, images, among=True)
    values = {
        "itm": losses.itm(),
        "mlm": losses.mlm(),
        "istm": losses.istm(),
        "wod": losses.wod(),
        "woc": losses.woc(),
        "wod.plain": losses.wod((1.0, 1.0)),
        "woc.changed": losses.woc("changed"),
        "woc.all": losses.woc("all"),
        "istm.released": losses.istm(released=True),
        "itm.among": among.itm(),
        "istm.among": among.istm(),
    }
    weights = {"itm": 1.0, "mlm": 0.7, "istm": 0.5, "wod": 0.3, "woc": 0.2}
    sum(weight * values[name] for name, weight in weights.items()).backward()
    golden = {name: x.detach()[None] for name, x in values.items()}
    golden |= {f"d.{name}": x.grad for name, x in model.w.items() if not name.startswith("itm_output")}
    save_file({name: x.float().contiguous() for name, x in golden.items()}, ROOT / "losses.safetensors")
    print({name: round(float(x.detach()), 6) for name, x in values.items()})


if __name__ == "__main__":
    main()
