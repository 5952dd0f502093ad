"""All pairs of 100 images and 500 texts by a small UNITER in PyTorch, three ways: the peer of `benches/all_pairs.rs`.

    python tests/reference/performance_uniter.py        needs torch; some minutes on two cores

    pair       one pair per pass, regions embedded each time; 500 pairs are timed
    text       one text with all images per pass, regions embedded each time, as in the released program
    batches    regions embedded once, texts sorted by length, batches of 128 pairs without padding
"""

import time

import torch
from torch import nn

IMAGES, TEXTS, VOCABULARY, D, HEADS, LAYERS = 100, 500, 160, 64, 4, 2


class Uniter(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.words, self.positions, self.kinds = nn.Embedding(VOCABULARY, D), nn.Embedding(512, D), nn.Embedding(2, D)
        norm = lambda: nn.LayerNorm(D, eps=1e-12)
        self.norm, self.image_norm, self.feature_norm, self.box_norm = norm(), norm(), norm(), norm()
        self.features, self.boxes = nn.Linear(features, D), nn.Linear(7, D)
        block = lambda: nn.TransformerEncoderLayer(D, HEADS, 4 * D, 0.1, "gelu", 1e-12, batch_first=True)
        self.blocks = nn.ModuleList(block() for _ in range(LAYERS))
        self.pooler, self.rank = nn.Linear(D, D), nn.Linear(D, 1)

    def regions(self, features, boxes):
        f, p = self.feature_norm(self.features(features)), self.box_norm(self.boxes(boxes))
        return self.image_norm(f + p + self.kinds.weight[1])

    def forward(self, ids, regions):
        at = torch.arange(ids.shape[1])
        x = self.norm(self.words(ids) + self.positions(at) + self.kinds.weight[0])
        x = torch.cat([x, regions], 1)
        for block in self.blocks:
            x = block(x)
        return self.rank(self.pooler(x[:, 0]).tanh())[:, 0]


def text(k):
    return [2] + [2 + (k * 31 + j * 17) % (VOCABULARY - 4) for j in range(3 + k * 7 % 12)] + [3]


def rate(pairs, run):
    run()
    best = min(timed(run) for _ in range(3))
    return pairs / best


def timed(run):
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def batches(model, features, boxes, texts):
    regions = model.regions(features, boxes)
    by_length = {}
    for t, ids in enumerate(texts):
        by_length.setdefault(len(ids), []).append(t)
    for same in by_length.values():
        ids = torch.tensor([texts[t] for t in same])
        pairs = torch.cartesian_prod(torch.arange(len(same)), torch.arange(IMAGES))
        for some in pairs.split(128):
            model(ids[some[:, 0]], regions[some[:, 1]])


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; pairs per second")
    texts = [text(k) for k in range(TEXTS)]
    for count, width in [(12, 704), (49, 128)]:
        model = Uniter(width).eval()
        features, boxes = torch.rand(IMAGES, count, width), torch.rand(IMAGES, count, 7)

        def pair():
            for k in range(500):
                i = k % IMAGES
                model(torch.tensor([texts[k]]), model.regions(features[i : i + 1], boxes[i : i + 1]))

        def beside_all():
            for ids in texts:
                model(torch.tensor([ids]).expand(IMAGES, -1), model.regions(features, boxes))

        rates = [
            rate(500, pair),
            rate(IMAGES * TEXTS, beside_all),
            rate(IMAGES * TEXTS, lambda: batches(model, features, boxes, texts)),
        ]
        print(f"| {count} | {width} | " + " | ".join(f"{r:.0f}" for r in rates) + " |")


if __name__ == "__main__":
    main()
