"""PyTorch's time and memory for the rows of `crates/itm-core/benches/encoders`, `crates/fne/benches/paper_step.rs`,
`crates/naaf/benches/naaf_step.rs` and `crates/tags-dc/benches/tags_step.rs`: one row, one variant, one process.

    python tests/reference/performance.py --list
    python tests/reference/performance.py vit-224 own --threads 2 --seconds 4
    python tests/performance.py --python python      # all rows of both sides, interleaved, one table

Needs torch; the variants `transformers…` need transformers, the compiled ones a C++ compiler. Prints one line of JSON: best
and median seconds of a step, peak resident memory of the process (getrusage), resident memory before anything was built
(after the imports), calls, threads, versions; or an `error`.

Every row has the sizes of the Rust side, in float32 (except `bf16-…`), on random numbers, written as a user of PyTorch would
write it. Where there are several ways there are several variants, and the fastest variant is the peer:

* `own`: the small modules below: nn.Linear (one for q, k and v), scaled_dot_product_attention, nn.LayerNorm, exact GELU;
* `transformers`: ViTModel and BertModel with the same attention, without a pooler;
* `…-adam`: torch.optim.Adam with default settings (one kernel call per operation and tensor), `…-fused`: with fused=True;
* `…compiled…`: torch.compile(fullgraph=True) of the model, the function or the optimiser's step;
* `contexts…`: NAAF's attention as in its authors' program, caption by caption, attended vectors 1,024 wide; `gram…`: all
  pairs at once by the Gram matrices of the regions, words without padding; `padded…`: like `gram…`, with padded captions;
* `authors…`, `rules…`: TAGS-DC's micro-step as in its authors' program, and with the same rules of efficiency as ours;
* `bf16-…`: the forward pass under torch.autocast("cpu", dtype=torch.bfloat16), weights and optimiser in float32; in a bare product
  the weights are already in bfloat16, and each call converts the rows;
* `cuda-…` (not listed; row `fne-step-384-paper` has the paper's 32 pairs): the same on the first NVIDIA GPU; products in float32,
  not TF32, unless `bf16-` follows;
* `…kept…`: glibc keeps freed memory instead of returning it, as in our binary.

Gradients are set to None before each step; the loss is the sum of the output; pixels and words get no gradient, sequences
and the inputs of single operations do.
"""

import argparse
import copy
import ctypes
import json
import platform
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

from performance_naaf import naaf_cross, naaf_step
from performance_tags_dc import tags_micro_step, tags_tiny

WIDTH, HEADS, LAYERS, PATCH, WORDS, POSITIONS = 768, 12, 12, 16, 30522, 512
EPSILON, DROPOUT = 1e-12, 0.1
TERMS, BAG_WIDTH = 3268, 256


# Models.


class Attention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.dropout = dropout

    def forward(self, x):
        b, l, _ = x.shape
        q, k, v = self.qkv(x).view(b, l, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)  # [b, h, l, e] each
        rate = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=rate)
        return self.out(y.transpose(1, 2).reshape(b, l, WIDTH))


class Block(nn.Module):
    """A transformer block: norms before the two parts (ViT) or after them (BERT)."""

    def __init__(self, dropout, norm_first):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH, eps=EPSILON), nn.LayerNorm(WIDTH, eps=EPSILON)
        self.attention = Attention(dropout)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout, self.norm_first = nn.Dropout(dropout), norm_first

    def feed(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norm_1(x)))
            return x + self.dropout(self.feed(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x)))
        return self.norm_2(x + self.dropout(self.feed(x)))


class Vit(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.cls = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.zeros(1, (size // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.ModuleList(Block(0.0, True) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)

    def forward(self, pixels):
        x = self.patches(pixels).flatten(2).transpose(1, 2)  # [b, l - 1, d]
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.types = nn.Embedding(WORDS, WIDTH), nn.Embedding(2, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.norm, self.dropout = nn.LayerNorm(WIDTH, eps=EPSILON), nn.Dropout(DROPOUT)
        self.blocks = nn.ModuleList(Block(DROPOUT, False) for _ in range(LAYERS))

    def forward(self, words):
        positions = torch.arange(words.shape[1])
        x = self.words(words) + self.positions(positions) + self.types(torch.zeros_like(words))
        x = self.dropout(self.norm(x))
        for block in self.blocks:
            x = block(x)
        return x


class BiGru(nn.Module):
    """All states, `[b, l, 2h]`, of sequences that all have full length or have individual lengths."""

    def __init__(self, lengths):
        super().__init__()
        self.gru, self.lengths = nn.GRU(300, 1024, batch_first=True, bidirectional=True), lengths

    def forward(self, x):
        if self.lengths is None:
            return self.gru(x)[0]
        packed = nn.utils.rnn.pack_padded_sequence(x, self.lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=x.shape[1])[0]


def from_transformers(row, size):
    import transformers

    transformers.logging.set_verbosity_error()
    if row == "vit":
        config = transformers.ViTConfig(image_size=size, attn_implementation="sdpa")
        model = transformers.ViTModel(config, add_pooling_layer=False)
    else:
        config = transformers.BertConfig(attn_implementation="sdpa")
        model = transformers.BertModel(config, add_pooling_layer=False)
    return Last(model)


class Last(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x).last_hidden_state


# Rows: each gives a function of a variant that builds everything and returns one step.


def mixed(variant):
    """Products of a forward pass, and so of its gradients, in bfloat16 if the variant says so."""
    device = "cuda" if variant.startswith("cuda") else "cpu"
    return torch.autocast(device, dtype=torch.bfloat16, enabled="bf16" in variant)


def training(model, x, variant):
    """Forward and backward; with `-adam` or `-fused` in the variant also an optimiser step."""
    model.train()
    run = torch.compile(model, fullgraph=True) if "compiled" in variant else model
    optimiser = None
    if variant.endswith(("-adam", "-fused")):
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-6, fused=variant.endswith("-fused"))

    def step():
        model.zero_grad(set_to_none=True)
        x.grad = None
        with mixed(variant):
            loss = run(x).float().sum()
        loss.backward()
        if optimiser is not None:
            optimiser.step()

    return step


def vit(size, batch):
    def build(variant):
        model = from_transformers("vit", size) if "transformers" in variant else Vit(size)
        return training(model, torch.rand(batch, 3, size, size), variant)

    return build


def bert(batch, length):
    def build(variant):
        model = from_transformers("bert", None) if "transformers" in variant else Bert()
        return training(model, torch.randint(0, WORDS, (batch, length)), variant)

    return build


def gru(lengths):
    def build(variant):
        return training(BiGru(lengths), torch.rand(64, 20, 300).requires_grad_(), variant)

    return build


class Bag(nn.Module):
    """A bag of words: the weighted sum of a caption's rows, a bias, unit length."""

    def __init__(self):
        super().__init__()
        self.rows, self.bias = nn.Embedding(TERMS, BAG_WIDTH), nn.Parameter(torch.zeros(BAG_WIDTH))
        self.terms = torch.tensor([[(row * 7919 + k * k * 331) % TERMS for k in range(10)] for row in range(128)])

    def forward(self, weights):
        weights = F.dropout(weights, 0.3)
        sums = F.embedding_bag(self.terms, self.rows.weight, mode="sum", per_sample_weights=weights)
        return F.normalize(sums + self.bias, dim=1)


def bag(variant):
    return training(Bag(), torch.full((128, 10), 10**-0.5), variant)


def operation(shape, function, parameters=()):
    """One function of a tensor, forward and backward from a gradient of ones."""

    def build(variant):
        x, ones = torch.rand(shape).requires_grad_(), torch.ones(shape)
        weights = [torch.ones(n).requires_grad_() for n in parameters]
        run = torch.compile(function, fullgraph=True) if "compiled" in variant else function

        def step():
            for t in (x, *weights):
                t.grad = None
            run(x, *weights).backward(ones)

        return step

    return build


def matmul(m, k, n, form):
    """The product of a linear layer with weights `[n, k]`, PyTorch's layout: output, or a gradient."""

    def build(variant):
        x, w, y = torch.rand(m, k), torch.rand(n, k), torch.rand(m, n)
        if variant.startswith("bf16"):
            half = w.bfloat16()
            return {
                "forward": lambda: x.bfloat16() @ half.t(),
                "dx": lambda: y.bfloat16() @ half,
                "dw": lambda: y.bfloat16().t() @ x.bfloat16(),
            }[form]
        return {
            "forward": lambda: x @ w.t(),
            "dx": lambda: y @ w,
            "dw": lambda: y.t() @ x,
        }[form]

    return build


def adam(clip):
    def build(variant):
        parameters = list(Vit(224).parameters())
        for p in parameters:
            p.grad = torch.rand_like(p)
        optimiser = torch.optim.Adam(
            parameters, lr=1e-6, fused=variant == "fused", foreach=variant in ("foreach", "compiled")
        )

        def clipped():
            nn.utils.clip_grad_norm_(parameters, clip)
            optimiser.step()

        step = optimiser.step if clip is None else clipped
        return torch.compile(step) if variant == "compiled" else step

    return build


def ema(variant):
    online, target = [p.data for p in Vit(224).parameters()], [p.data for p in Vit(224).parameters()]

    def loop():
        for t, o in zip(target, online):
            t.lerp_(o, 0.005)

    def foreach():
        torch._foreach_lerp_(target, online, 0.005)

    step = loop if variant == "loop" else foreach
    return torch.no_grad()(torch.compile(step, fullgraph=True) if variant == "compiled" else step)


# FNE's training step: section 3.1 of its specification, default preset, after the warm-up.

BATCH, PIECES = 4, 30
MARGIN, MOMENTUM, PRIOR, ALPHA, TAU, LAMBDA, MIN_COUNT = 0.2, 0.995, 1e-4, 0.5, 0.5, 0.001, 200


class Moments:
    """Count, mean and squares of one class of similarities, on the host, as in our code."""

    def __init__(self):
        self.n, self.sum, self.squares = 0, 0.0, 0.0

    def add(self, values):
        self.n, self.sum = self.n + len(values), self.sum + sum(values)
        self.squares += sum((x - self.mean()) ** 2 for x in values)

    def mean(self):
        return self.sum / max(self.n, 1)

    def sigma(self):
        return max((self.squares / max(self.n - 1, 1)) ** 0.5, 1e-4)


class FneStep:
    def __init__(self, size, bank, variant, pairs=BATCH):
        self.batch = pairs
        of = "transformers" in variant
        pair = [from_transformers("vit", size), from_transformers("bert", None)] if of else [Vit(size), Bert()]
        self.online = nn.ModuleList(pair).train()
        self.momentum = copy.deepcopy(self.online).requires_grad_(False)
        compiled = "compiled" in variant
        self.run = [torch.compile(m, fullgraph=True) if compiled else m for m in [*self.online, *self.momentum]]
        self.variant = variant
        self.pairs = [p.data for p in self.momentum.parameters()], [p.data for p in self.online.parameters()]
        self.optimiser = torch.optim.Adam(self.online.parameters(), lr=2e-5, fused=variant.endswith("-fused"))
        self.banks = [F.normalize(torch.randn(bank, WIDTH), dim=1) for _ in range(2)]
        self.ids, self.cursor, self.number = torch.full((bank,), -100), 0, 0
        self.inputs = torch.rand(pairs, 3, size, size), torch.randint(1, WORDS, (pairs, PIECES))
        self.seen = Moments(), Moments()

    def embed(self, first):
        with mixed(self.variant):
            states = [m(x) for m, x in zip(self.run[first : first + 2], self.inputs)]
        return [F.normalize(x.float().mean(1), dim=1) for x in states]

    @torch.no_grad()
    def observe(self, v, w):
        S = v @ w.T
        own = torch.arange(len(S))
        best = (S.argmax(1) == own) & (S.argmax(0) == own)
        others = S.masked_fill(torch.eye(len(S), dtype=torch.bool), 0)
        self.seen[0].add(S.diag()[best].tolist())
        self.seen[1].add(torch.cat([others.amax(1)[best], others.amax(0)[best]]).tolist())

    @torch.no_grad()
    def draw(self, S, own, same, fallback):
        positive, negative = self.seen
        rho = torch.exp(-ALPHA * (S - own) ** 2)
        if positive.n > MIN_COUNT:
            density = lambda m: torch.distributions.Normal(m.mean(), m.sigma()).log_prob(S)
            odds = torch.log(torch.tensor(PRIOR / (1 - PRIOR))) + density(positive) - density(negative)
            P = torch.sigmoid(odds)
            rho = torch.where(P > LAMBDA, torch.exp(-TAU * P), rho)
        rho.masked_fill_(same | (S <= positive.mean() - MARGIN), 0)
        empty = rho.sum(1) == 0
        rho[empty, fallback[empty]] = 1
        return torch.multinomial(rho, 1)

    def __call__(self):
        own_ids = torch.arange(self.number, self.number + self.batch)
        self.number += self.batch
        with torch.no_grad():
            torch._foreach_lerp_(*self.pairs, 1 - MOMENTUM)
            kept = self.embed(2)
        v, w = self.embed(0)
        self.observe(v, w)
        same = own_ids[:, None] == torch.cat([own_ids, self.ids])[None]
        loss = 0.0
        for anchors, side in [(v, 1), (w, 0)]:
            S = anchors @ torch.cat([kept[side], self.banks[side]]).T
            own = S.diagonal()[:, None]
            hinges = (MARGIN + S - own).clamp(min=0).masked_fill(same, 0)
            columns = self.draw(S, own, same, hinges.argmax(1))
            loss = loss + hinges.gather(1, columns).sum() / self.batch
        place = (self.cursor + torch.arange(self.batch)) % len(self.ids)
        for bank, rows in zip(self.banks, kept):
            bank[place] = rows
        self.ids[place], self.cursor = own_ids, (self.cursor + self.batch) % len(self.ids)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 2.0)
        self.optimiser.step()
        return loss.item()


def fne(size, bank=8192):
    return lambda variant: FneStep(size, bank, variant)


def fne_tiny(variant):
    """A quick trial run."""
    globals().update(WIDTH=16, HEADS=2, LAYERS=1, WORDS=50)
    return FneStep(32, 12, variant)


ROWS_224, ROWS_BERT = 4 * 197, 8 * 32
PLAIN = ["own", "own-kept", "transformers", "own-compiled", "own-compiled-kept", "bf16-own", "bf16-own-kept", "bf16-own-compiled-kept"]
WITH_ADAM = ["own-adam", "own-fused", "own-kept-fused", "transformers-fused", "own-compiled-fused", "own-compiled-kept-fused"]
WITH_ADAM += ["bf16-own-kept-fused", "bf16-own-compiled-kept-fused"]
KERNEL = ["eager", "eager-kept", "compiled", "compiled-kept"]

ROWS = {
    "vit-224": (vit(224, 4), PLAIN),
    "vit-224-adam": (vit(224, 4), WITH_ADAM),
    "vit-384": (vit(384, 1), PLAIN),
    "vit-384-adam": (vit(384, 1), WITH_ADAM),
    "bert": (bert(8, 32), PLAIN),
    "bert-adam": (bert(8, 32), WITH_ADAM),
    "bigru": (gru(None), KERNEL),
    "bigru-lengths": (gru([5 + 7 * b % 16 for b in range(64)]), KERNEL),
    "bag": (bag, ["own", "own-kept"]),
    "bag-adam": (bag, ["own-adam", "own-fused", "own-kept-fused"]),
    "gelu": (operation((ROWS_224, 4 * WIDTH), F.gelu), KERNEL),
    "layer-norm": (
        operation((ROWS_224, WIDTH), lambda x, w, b: F.layer_norm(x, (WIDTH,), w, b, EPSILON), (WIDTH, WIDTH)),
        KERNEL,
    ),
    "dropout": (operation((ROWS_224, 4 * WIDTH), lambda x: F.dropout(x, DROPOUT)), KERNEL),
    "l2-norm": (operation((64 * 36, 1024), lambda x: F.normalize(x, dim=-1)), KERNEL),
    "adam": (adam(None), ["loop", "foreach", "fused", "compiled"]),
    "adam-clip": (adam(2.0), ["foreach", "fused"]),
    "ema": (ema, ["loop", "foreach", "compiled"]),
}
for rows, k, n, form in [
    (ROWS_224, WIDTH, 4 * WIDTH, "forward"),
    (ROWS_224, WIDTH, 4 * WIDTH, "dx"),
    (ROWS_224, WIDTH, 4 * WIDTH, "dw"),
    (ROWS_224, 4 * WIDTH, WIDTH, "forward"),
    (ROWS_BERT, WIDTH, 4 * WIDTH, "forward"),
    (ROWS_BERT, WIDTH, 4 * WIDTH, "dx"),
    (ROWS_BERT, WIDTH, 4 * WIDTH, "dw"),
    (1024, 1024, 1024, "forward"),
]:
    ROWS[f"product-{rows}x{k}x{n}-{form}"] = (matmul(rows, k, n, form), ["eager", "eager-kept", "bf16-kept"])


WHOLE = ["own-adam", "own-fused", "own-kept-fused", "transformers-kept-fused", "own-compiled-kept-fused", "bf16-own-kept-fused"]
ROWS["fne-step-224"] = (fne(224), WHOLE)
ROWS["fne-step-384"] = (fne(384), WHOLE)
CROSS = ["contexts", "contexts-kept", "gram", "gram-kept", "padded", "padded-kept"]
LEARNT = ["contexts-kept-fused", "gram-kept-fused", "gram-fused", "padded-kept-fused"]
for schedule, per_caption in [("per-batch", False), ("per-caption", True)]:
    ROWS[f"naaf-cross-{schedule}"] = (naaf_cross(per_caption), CROSS)
for schedule, per_caption in [("per-batch", False), ("per-caption", True)]:
    ROWS[f"naaf-step-{schedule}"] = (naaf_step(per_caption), LEARNT)
MICRO = ["authors", "authors-kept-fused", "rules-kept-fused"]
ROWS["tags-micro-step"] = (tags_micro_step, MICRO)
CUDA = ["cuda-own-fused", "cuda-own-compiled-fused", "cuda-bf16-own-fused", "cuda-bf16-own-compiled-fused"]
UNLISTED = {"fne-step-tiny": (fne_tiny, WHOLE), "tags-tiny": (tags_tiny, MICRO)}
UNLISTED["fne-step-384-paper"] = (lambda variant: FneStep(384, 8192, variant, 32), CUDA)


# Measuring, as on the Rust side.


def measure(step, seconds):
    """Seconds of every call, after a warm-up: at least three calls, and until `seconds` have passed. A long step is called once."""
    start, times = time.perf_counter(), []
    step()
    if time.perf_counter() - start >= 30:
        return [time.perf_counter() - start]
    while time.perf_counter() - start < min(0.5, seconds):
        step()
    start = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        step()
        times.append(time.perf_counter() - before)
    return times


def keep_freed_memory():
    """As in `itm` at its start: M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, so that no step faults its buffers in again."""
    libc = ctypes.CDLL(None)
    if platform.libc_ver()[0] != "glibc" or not (libc.mallopt(-3, 1 << 30) and libc.mallopt(-1, 2**31 - 1)):
        raise OSError("only glibc can be asked to keep memory")


def blas():
    """The library of the matrix products."""
    return "MKL" if torch.backends.mkl.is_available() else "no MKL"


def resident():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("row", nargs="?")
    parser.add_argument("variant", nargs="?")
    parser.add_argument("--list", action="store_true", help="rows and their variants, a line each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=4.0)
    args = parser.parse_args()
    if args.list:
        for row, (_, variants) in ROWS.items():
            print(row, *variants)
        return
    rows = ROWS | UNLISTED
    if args.row not in rows or args.variant not in rows[args.row][1]:
        parser.error(f"no row {args.row} with a variant {args.variant}: --list names them")
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    line = {"row": args.row, "variant": args.variant, "torch": torch.__version__, "blas": blas()}
    line["python"] = platform.python_version()
    try:
        if args.variant.startswith("cuda"):
            torch.set_default_device("cuda")
            line["device"] = torch.cuda.get_device_name()
        if "kept" in args.variant:
            keep_freed_memory()
        if "transformers" in args.variant:
            import transformers

            line["transformers"] = transformers.__version__
        before = resident()
        times = measure(rows[args.row][0](args.variant), args.seconds)
        line |= {"best": min(times), "median": statistics.median(times), "calls": len(times)}
        line |= {"peak_bytes": resident(), "start_bytes": before, "threads": torch.get_num_threads()}
    except Exception as error:  # the reason goes into the table
        reason = str(error).strip().splitlines() or [""]
        line["error"] = f"{type(error).__name__}: {reason[0]}"
    print(json.dumps(line))


if __name__ == "__main__":
    main()
