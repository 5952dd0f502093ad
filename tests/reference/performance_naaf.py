"""NAAF's training step in PyTorch, for `performance.py`: the authors' way, and with Gram matrices."""

import math

import torch
import torch.nn.functional as F
from torch import nn

# NAAF's training step: its specification, sections 2 and 3, default preset.

NAAF_BATCH, REGIONS, REGION_WIDTH, NAAF_WIDTH, NAAF_WORDS = 128, 36, 2048, 1024, 8481
SCALE, LEAK, GAMMA, NAAF_ALPHA, MIN_WORDS, SMOOTHING = 20.0, 0.1, 0.2, 2.0, 200, 0.7


def unit(x):
    return x / (x.pow(2).sum(-1, keepdim=True).clamp(min=1e-30).sqrt() + 1e-8)


def cosines(along, squares):
    """`along / √squares`; 0 where a word has no region above the boundary, with a finite slope."""
    found = squares > 1e-16
    return torch.where(found, along / torch.where(found, squares, 1.0).sqrt(), 0.0)


class Contexts:
    """One caption after another, with attended vectors."""

    def __init__(self, regions, texts, lengths):
        self.regions, self.texts, self.lengths = regions, texts, lengths

    def column(self, c, t):
        n, words = len(self.regions), self.texts[c, : self.lengths[c]]
        words = words.expand(n, -1, -1)  # [n, w, d]
        s = words @ self.regions.mT  # [n, w, r]
        a = F.leaky_relu(s, LEAK)
        b = a / (a.pow(2).sum(1, keepdim=True).sqrt() + 1e-8)
        relevance = ((SCALE * b).softmax(-1) * s).sum(-1)
        z = s - t
        e = (SCALE * z).exp() * (z > 0)
        context = (e / (e.sum(-1, keepdim=True) + 1e-8)) @ self.regions  # [n, w, d]
        effect = cosines((words * context).sum(-1), context.pow(2).sum(-1))
        best = s.amax(-1)
        return ((best - t).clamp(max=0) + effect + relevance).mean(1), best

    def scores(self, boundary, per_caption):
        columns = []
        for c in range(len(self.texts)):
            scores, best = self.column(c, boundary.t)
            columns.append(scores)
            boundary.see(c, scores.detach(), best.detach(), per_caption)
        boundary.end(per_caption)
        return torch.stack(columns, 1)


class Gram:
    """All pairs at once; `padded` captions, or their words one after another."""

    def __init__(self, regions, texts, lengths, padded=False):
        n, r, d = regions.shape
        self.lengths, self.padded = torch.tensor(lengths), padded
        real = torch.arange(texts.shape[1]) < self.lengths[:, None]  # [m, l]
        self.caption = torch.arange(len(texts))[:, None].expand(real.shape)
        self.caption = self.caption.flatten() if padded else self.caption[real]  # [w]
        self.real = real.flatten() if padded else torch.ones(len(self.caption), dtype=torch.bool)
        words = texts.flatten(0, 1) if padded else texts[real]
        self.s = (words @ regions.reshape(n * r, d).T).view(-1, n, r)  # [w, n, r]
        a = F.leaky_relu(self.s, LEAK)
        b = a / (self.sums(a.pow(2)).sqrt() + 1e-8)
        self.relevance = ((SCALE * b).softmax(-1) * self.s).sum(-1)  # [w, n]
        self.best, self.gram = self.s.amax(-1), regions @ regions.mT

    def sums(self, x):
        """Over the words of a caption, for each word."""
        if self.padded:
            x = x.view(len(self.lengths), -1, *x.shape[1:])
            sums = (x * self.real.view(x.shape[:2])[..., None, None]).sum(1, keepdim=True)
            return sums.expand(x.shape).flatten(0, 1)
        sums = x.new_zeros(len(self.lengths), *x.shape[1:]).index_add(0, self.caption, x)
        return sums[self.caption]

    def effects(self, s, best, gram, t):
        z = s - t
        e = (SCALE * z).exp() * (z > 0)
        w = (e / (e.sum(-1, keepdim=True) + 1e-8)).transpose(0, 1)  # [n, w, r]
        squares = ((w @ gram) * w).sum(-1).T.clamp(min=0)
        return (best - t.squeeze(-1)).clamp(max=0) + cosines((w.transpose(0, 1) * s).sum(-1), squares)

    def scores(self, boundary, per_caption):
        m = len(self.lengths)
        t = torch.full((m,), float(boundary.t))
        if per_caption:
            s, best, gram, relevance = [x.detach() for x in (self.s, self.best, self.gram, self.relevance)]
            with torch.no_grad():
                for c in range(m):
                    own = (self.caption == c) & self.real
                    t[c] = boundary.t
                    part = self.effects(s[own], best[own], gram, t[c].view(1, 1, 1)) + relevance[own]
                    boundary.see(c, part.mean(0), best[own].T, True)
        part = self.effects(self.s, self.best, self.gram, t[self.caption][:, None, None]) + self.relevance
        part = part * self.real[:, None]
        scores = part.new_zeros(m, part.shape[1]).index_add(0, self.caption, part) / self.lengths[:, None]
        if not per_caption:
            for c in range(m):
                boundary.see(c, scores[c].detach(), self.best[(self.caption == c) & self.real].detach().T, False)
        boundary.end(per_caption)
        return scores.T


class Boundary:
    """t, and the sampled words of a batch."""

    def __init__(self):
        self.t, self.lower, self.words = 0.0, 0.0, ([], [])

    def see(self, c, scores, best, per_caption):
        """Scores `[n]` of a caption, best regions `[n, words]`."""
        if int(scores.argmax()) == c:
            self.words[0].append(best[c])
            self.words[1].append(best[int(scores.argmin())])
            if per_caption:
                self.solve()
        if per_caption:
            self.reset()

    def end(self, per_caption):
        if not per_caption:
            self.solve()
            self.reset()
        self.words = ([], [])

    def count(self):
        return sum(len(x) for x in self.words[0])

    def reset(self):
        if self.count() < MIN_WORDS:
            self.t = self.lower = 0.0

    def solve(self):
        if self.count() <= MIN_WORDS:
            return
        (mu, sigma), (nu, tau) = [(float(x.mean()), max(float(x.std()), 1e-4)) for x in map(torch.cat, self.words)]
        delta, log = mu - nu, math.log(tau) - math.log(sigma) - math.log(NAAF_ALPHA)
        root = delta**2 - 2 * (sigma**2 - tau**2) * log
        if root < 0:
            return
        t = nu + tau * (delta**2 - 2 * sigma**2 * log) / (tau * delta + sigma * root**0.5)
        moved = lambda old, new: SMOOTHING * (new if 0 <= new <= 1 else 0.0) + (1 - SMOOTHING) * old
        self.t, self.lower = moved(self.t, t), moved(self.lower, mu - 3 * sigma)


def naaf_loss(regions, texts, lengths, boundary, per_caption, variant):
    of = Contexts if "contexts" in variant else lambda *x: Gram(*x, padded="padded" in variant)
    S = of(regions, texts, lengths).scores(boundary, per_caption)
    own, hinge = S.diagonal(), torch.eye(len(S), dtype=torch.bool)
    by_image = (GAMMA + S - own[:, None]).clamp(min=0).masked_fill(hinge, 0).amax(1)
    by_text = (GAMMA + S - own[None]).clamp(min=0).masked_fill(hinge, 0).amax(0)
    return by_image.sum() + by_text.sum()


def naaf_lengths():
    return sorted((5 + 7 * c % 15 for c in range(NAAF_BATCH)), reverse=True)


def naaf_cross(per_caption):
    def build(variant):
        lengths, boundary = naaf_lengths(), Boundary()
        rows = [unit(torch.rand(NAAF_BATCH, n, NAAF_WIDTH) * 2 - 1) for n in (REGIONS, lengths[0])]
        rows = [x.requires_grad_() for x in rows]

        def step():
            for x in rows:
                x.grad = None
            naaf_loss(*rows, lengths, boundary, per_caption, variant).backward()

        return step

    return build


class NaafEncoders(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.words = nn.Linear(REGION_WIDTH, NAAF_WIDTH), nn.Embedding(NAAF_WORDS, 300)
        self.gru = nn.GRU(300, NAAF_WIDTH, batch_first=True, bidirectional=True)

    def forward(self, regions, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.words(ids), lengths, batch_first=True)
        states = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0]
        return unit(self.image(regions)), unit((states[..., :NAAF_WIDTH] + states[..., NAAF_WIDTH:]) / 2)


def naaf_step(per_caption):
    def build(variant):
        lengths, boundary, model = naaf_lengths(), Boundary(), NaafEncoders()
        optimiser = torch.optim.Adam(model.parameters(), lr=5e-4, fused=variant.endswith("-fused"))
        regions = torch.rand(NAAF_BATCH, REGIONS, REGION_WIDTH) * 2 - 1
        ids = torch.randint(0, NAAF_WORDS, (NAAF_BATCH, lengths[0]))

        def step():
            optimiser.zero_grad(set_to_none=True)
            rows = model(regions, ids, lengths)
            naaf_loss(*rows, lengths, boundary, per_caption, variant).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimiser.step()

        return step

    return build
