"""A micro-step of TAGS-DC's second phase in PyTorch, for `performance.py`: the authors' way, and with the rules of efficiency.

Its specification, sections 3 and 10: one anchor of each kind, K = L = 20, m = h = 31, Q = 399, five losses, clipped AdamW.

    authors    all 401 sentences are scored, regions are embedded for every pair, texts are padded, attention is written out with an
               additive mask, ISTM and the word losses have one pass each, every part is differentiated separately
    rules      the half that passes the filter is scored, regions are embedded once per image, texts are batched by length, attention is
               scaled_dot_product_attention, one pass serves ISTM and the word losses

By decision, half of the synthetic sentences pass the filter. Random numbers, float32.
"""

import torch
from torch import nn
from torch.nn import functional as F

D, HEADS, LAYERS, PIECES, FIRST, WORDS = 768, 12, 12, 28996, 106, 12
IMAGES, REGIONS, REGION_WIDTH = 400, 36, 2048
REPEATS, KEPT, SAMPLED = 20, 31, 399
MASK, CLS, SEP, EPSILON, DROPOUT, MARGIN, TEMPERATURE = 103, 101, 102, 1e-12, 0.1, 0.2, 1.5


class Block(nn.Module):
    def __init__(self, written_out):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
        self.norm_1, self.norm_2 = nn.LayerNorm(D, eps=EPSILON), nn.LayerNorm(D, eps=EPSILON)
        self.dropout, self.written_out = nn.Dropout(DROPOUT), written_out

    def attend(self, x, mask):
        b, l, _ = x.shape
        q, k, v = self.qkv(x).view(b, l, 3, HEADS, D // HEADS).permute(2, 0, 3, 1, 4)
        if self.written_out:
            weights = (q @ k.mT / (D // HEADS) ** 0.5 + mask).softmax(-1)
            y = self.dropout(weights) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, mask, DROPOUT if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(b, l, D))

    def forward(self, x, mask):
        x = self.norm_1(x + self.dropout(self.attend(x, mask)))
        return self.norm_2(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Head(nn.Module):
    """Logits of words: the table is the text embedding's."""

    def __init__(self):
        super().__init__()
        self.dense, self.norm = nn.Linear(D, D), nn.LayerNorm(D, eps=EPSILON)
        self.bias = nn.Parameter(torch.zeros(PIECES))

    def forward(self, x, table):
        return F.linear(self.norm(F.gelu(self.dense(x))), table, self.bias)


class Uniter(nn.Module):
    def __init__(self, written_out):
        super().__init__()
        self.words, self.positions, self.kinds = nn.Embedding(PIECES, D), nn.Embedding(512, D), nn.Embedding(2, D)
        norm = lambda: nn.LayerNorm(D, eps=EPSILON)
        self.norm, self.image_norm, self.feature_norm, self.box_norm = norm(), norm(), norm(), norm()
        self.features, self.boxes = nn.Linear(REGION_WIDTH, D), nn.Linear(7, D)
        self.blocks = nn.ModuleList(Block(written_out) for _ in range(LAYERS))
        self.pooler, self.rank = nn.Linear(D, D), nn.Linear(D, 1)
        self.masked, self.correction, self.discrimination = Head(), Head(), nn.Linear(D, 2)
        self.dropout, self.written_out = nn.Dropout(DROPOUT), written_out
        for part in self.modules():
            if isinstance(part, (nn.Linear, nn.Embedding)):
                nn.init.normal_(part.weight, std=0.02)

    def regions(self, features, boxes):
        x = self.feature_norm(self.features(features)) + self.box_norm(self.boxes(boxes)) + self.kinds.weight[1]
        return self.dropout(self.image_norm(x))

    def forward(self, ids, lengths, regions):
        """Texts `[b, l]` padded at the end, lengths or None if there is no padding, embedded regions `[b, r, d]`: `[b, l + r, d]`."""
        b, l = ids.shape
        x = self.words(ids) + self.positions.weight[:l] + self.kinds.weight[0]
        x = torch.cat([self.dropout(self.norm(x)), regions.expand(b, -1, -1)], 1)
        mask = None
        if lengths is not None or self.written_out:
            kept = torch.ones(b, x.shape[1], dtype=torch.bool)
            if lengths is not None:
                kept[:, :l] = torch.arange(l) < lengths[:, None]
            mask = ((~kept).float() * -10000)[:, None, None] if self.written_out else kept[:, None, None]
        for block in self.blocks:
            x = block(x, mask)
        return x

    def scores(self, x):
        return self.rank(self.pooler(x[:, 0]).tanh())[:, 0].sigmoid()


def text(n):
    return torch.cat([torch.tensor([CLS]), torch.randint(FIRST, PIECES, (n,)), torch.tensor([SEP])])


def padded(texts):
    lengths = torch.tensor([len(t) for t in texts])
    same = bool((lengths == lengths[0]).all())
    return nn.utils.rnn.pad_sequence(texts, batch_first=True), None if same else lengths


def hinge(scores):
    return (MARGIN - scores[0] + scores[1:]).clamp(min=0).mean()


def capped(logits, labels):
    return -logits.log_softmax(-1).gather(-1, labels[..., None])[..., 0].clamp(min=-23.02585)


class MicroStep:
    def __init__(self, variant):
        self.authors = "authors" in variant
        self.model = Uniter(self.authors)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), 5e-5, (0.9, 0.98), 1e-6, fused="fused" in variant)
        self.features, self.boxes = torch.rand(IMAGES, REGIONS, REGION_WIDTH), torch.rand(IMAGES, REGIONS, 7)
        self.texts = [text(WORDS)] + [text(5 + t * 7 % 15) for t in range(1, IMAGES)]

    def embedded(self, images):
        """For every pair again in the authors' way, otherwise once per image."""
        if self.authors:
            return self.model.regions(self.features[images], self.boxes[images])
        distinct, rows = torch.tensor(images).unique(return_inverse=True)
        return self.model.regions(self.features[distinct], self.boxes[distinct])[rows]

    def join(self, texts, images):
        return self.model(*padded(texts), self.embedded(images))

    @torch.no_grad()
    def best(self, texts, images, n):
        """The n best of these pairs."""
        self.model.eval()
        if self.authors:
            scores = self.model.scores(self.join(texts, images))
        else:
            scores, by_length = torch.empty(len(texts)), {}
            for k, t in enumerate(texts):
                by_length.setdefault(len(t), []).append(k)
            for same in by_length.values():
                for some in torch.tensor(same).split(128):
                    x = self.join([texts[k] for k in some], [images[k] for k in some])
                    scores[some] = self.model.scores(x)
        self.model.train()
        return scores.topk(n).indices.tolist()

    def maskings(self):
        own = self.texts[0]
        targets = torch.rand(REPEATS, len(own)) < 0.15
        targets[:, 0] = targets[:, -1] = False
        targets[~targets.any(1), 1] = True
        random = torch.rand(REPEATS, len(own))
        rows = own.expand(REPEATS, -1).clone()
        rows[targets & (random < 0.8)] = MASK
        other = targets & (random >= 0.9)
        rows[other] = torch.randint(FIRST, PIECES, (int(other.sum()),))
        return rows, targets

    def negatives(self, logits, targets):
        """Refilled sentences and their masked positions, best first."""
        own = self.texts[0]
        shares = (logits.detach() / TEMPERATURE).double().softmax(-1)
        drawn = shares.multinomial(REPEATS, replacement=True)  # [targets, L]
        rows = own.repeat(REPEATS, REPEATS, 1)  # [K, L, l]
        at = targets.nonzero()
        rows[at[:, 0], :, at[:, 1]] = drawn
        rows, masked = rows.flatten(0, 1), targets.repeat_interleave(REPEATS, 0)
        told = set(own.tolist())
        seen, left = set(), []
        for k, row in enumerate(rows.tolist()):
            changed = {x for x, y in zip(row, own.tolist()) if x != y}
            if tuple(row) not in seen and not changed <= told:
                left.append(k)
            seen.add(tuple(row))
        if self.authors:
            left = list(range(len(rows)))  # scored here, sorted by score below
        else:
            left = left[:: max(len(left) // (len(rows) // 2), 1)][: len(rows) // 2]  # by decision, half passes
        pool = [rows[k] for k in left]
        if self.authors:
            pool = [own, *pool]
        best = self.best(pool, [0] * len(pool), KEPT)
        number = [left[max(k - self.authors, 0)] for k in best]
        return rows[number], masked[number]

    def words(self, x, negatives, masked):
        """Word discrimination and correction of the negatives' tokens `[m, l, d]`."""
        own = self.texts[0]
        same = (negatives == own).long()
        weights = torch.tensor([1.0, 0.11])[same]
        wod = (capped(self.model.discrimination(x), same) * weights).mean()
        woc = capped(self.model.correction(x[masked], self.model.words.weight), own.expand(len(x), -1)[masked]).mean()
        return 1e-3 * wod + 1e-3 * woc

    def synthetic(self):
        model, (rows, targets) = self.model, self.maskings()
        x = self.join(list(rows), [0] * len(rows) if self.authors else [0])
        logits = model.masked(x[:, : rows.shape[1]][targets], model.words.weight)
        loss = 0.1 * F.cross_entropy(logits, self.texts[0].expand(REPEATS, -1)[targets])
        negatives, masked = self.negatives(logits, targets)
        all_rows, l = [self.texts[0], *negatives], rows.shape[1]
        x = self.join(all_rows, [0] * len(all_rows) if self.authors else [0])
        loss = loss + 1e-3 * hinge(model.scores(x))
        if not self.authors:
            (loss + self.words(x[1:, :l], negatives, masked)).backward()
            return
        loss.backward()
        x = self.join(list(negatives), [0] * len(negatives))
        self.words(x[:, :l], negatives, masked).backward()

    def retrieved(self):
        images = list(range(1, 1 + SAMPLED))
        best = self.best([self.texts[0]] * SAMPLED, images, KEPT)
        of_text = [self.texts[0]] * (1 + KEPT), [0, *(images[k] for k in best)]
        texts = [self.texts[k] for k in images]
        best = self.best(texts, [0] * SAMPLED, KEPT)
        of_image = [self.texts[0], *(texts[k] for k in best)], [0] * (1 + KEPT)
        for pairs in of_text, of_image:
            hinge(self.model.scores(self.join(*pairs))).backward()

    def __call__(self):
        self.optimiser.zero_grad(set_to_none=True)
        self.synthetic()
        self.retrieved()
        nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
        self.optimiser.step()


def tags_micro_step(variant):
    return MicroStep(variant)


def tags_tiny(variant):
    """A quick trial run."""
    globals().update(D=16, HEADS=2, LAYERS=1, PIECES=300, IMAGES=40, REGIONS=3, REGION_WIDTH=5, REPEATS=4, KEPT=3, SAMPLED=30)
    return MicroStep(variant)
