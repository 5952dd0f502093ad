"""Reference for ranks, recalls, protocols, metrics with several true items, and significance.

This script does not rank by counting, as the crate does. Positions come from sorted lists, the mean over orders of tied items from
enumerating the places of the true items, p-values from evaluating every exchange of images. All values are exact fractions.

`python tests/reference/evaluation.py` writes crates/itm-core/tests/golden/evaluation.json.
"""

import itertools
import json
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np
from scipy import stats

CUTS = (1, 5, 10)
POLICIES = ("index", "optimistic", "pessimistic", "expected")


def orders(scores, true, policy):
    """Ranks of the best true item, in every order of the items that the policy considers."""
    best = max(scores[t] for t in true)
    above = sum(s > best for s in scores)
    tied = [t for t, s in enumerate(scores) if s == best]
    own = [t for t in tied if t in true]
    if policy == "index":
        ranking = sorted(range(len(scores)), key=lambda t: (-scores[t], t))
        return [min(ranking.index(t) for t in true)]
    places = list(itertools.combinations(range(len(tied)), len(own)))
    ranks = [above + min(p) for p in places]
    return {"optimistic": [min(ranks)], "pessimistic": [max(ranks)], "expected": ranks}[policy]


def mean(values):
    values = list(values)
    return sum(map(Fraction, values), Fraction(0)) / len(values)


def direction(queries, policy):
    """Metrics of queries given as (scores, true items)."""
    per_query = [orders(s, t, policy) for s, t in queries]
    ranks = [mean(r) for r in per_query]
    recalls = [100 * mean(mean(int(r < k) for r in q) for q in per_query) for k in CUTS]
    return dict(zip(("r1", "r5", "r10"), recalls)) | {
        "median": Fraction(median(ranks).__floor__() + 1),
        "mean": mean(ranks) + 1,
    }, ranks


def decided(queries):
    best = [orders(s, t, "optimistic")[0] for s, t in queries]
    worst = [orders(s, t, "pessimistic")[0] for s, t in queries]
    at = {f"r{k}": sum((b < k) != (w < k) for b, w in zip(best, worst)) for k in CUTS}
    return at | {"rank": sum(b != w for b, w in zip(best, worst))}


def queries_of(scores, image_of_text):
    n = scores.shape[0]
    i2t = [(scores[i].tolist(), {t for t, j in enumerate(image_of_text) if j == i}) for i in range(n)]
    t2i = [(scores[:, t].tolist(), {j}) for t, j in enumerate(image_of_text)]
    return {"i2t": i2t, "t2i": t2i}


def slices(scores, image_of_text, folds):
    count, size = folds
    for f in range(count):
        images = range(f * size, (f + 1) * size)
        texts = [t for t, j in enumerate(image_of_text) if j in images]
        yield scores[np.ix_(images, texts)], [image_of_text[t] - f * size for t in texts]


def evaluation(parts, policy):
    parts = [queries_of(*p) for p in parts]
    out = {}
    for way in ("i2t", "t2i"):
        metrics = [direction(p[way], policy)[0] for p in parts]
        out[way] = {k: mean(m[k] for m in metrics) for k in metrics[0]}
        out[way + "_ranks"] = [r for p in parts for r in direction(p[way], policy)[1]]
    out["rsum"] = sum(out[way][f"r{k}"] for way in ("i2t", "t2i") for k in CUTS)
    return out


def multi(scores, relevance):
    """mAP@R, R-precision and recalls of queries given as rows, with sets of true items."""
    found = []
    for row, true in zip(scores, relevance):
        if not true:
            continue
        ranking = sorted(range(len(row)), key=lambda t: (-row[t], t))
        rel = [int(t in true) for t in ranking]
        r = len(true)
        precision = [Fraction(sum(rel[: k + 1]), k + 1) for k in range(r)]
        recalls = [int(any(rel[:k])) for k in CUTS]
        found.append([sum(p * x for p, x in zip(precision, rel)) / Fraction(r), precision[-1], *recalls])
    names = ("map_at_r", "r_precision", "r1", "r5", "r10")
    values = {name: 100 * mean(f[i] for f in found) for i, name in enumerate(names)}
    return values | {"queries": len(found), "skipped": len(scores) - len(found)}


def case(name, scores, image_of_text, folds, relevance):
    parts = list(slices(scores, image_of_text, folds))
    both = [queries_of(*p) for p in parts]
    count = {way: [decided(b[way]) for b in both] for way in ("i2t", "t2i")}
    texts = scores.shape[1]
    images_of = [{i for i, row in enumerate(relevance) if t in row} for t in range(texts)]
    return {
        "name": name,
        "images": scores.shape[0],
        "image_of_text": image_of_text,
        "scores": scores.flatten().tolist(),
        "folds": folds,
        "policies": {p: evaluation(parts, p) for p in POLICIES},
        "decided": {way: {k: sum(c[k] for c in cs) for k in cs[0]} for way, cs in count.items()},
        "relevance": [sorted(row) for row in relevance],
        "multi": {"i2t": multi(scores, relevance), "t2i": multi(scores.T, images_of)},
    }


def hit_table(scores, image_of_text, folds):
    """Per fold and image: hits of the image, hits of its texts, number of its texts."""
    out = []
    for part, owner in slices(scores, image_of_text, folds):
        q = queries_of(part, owner)
        i2t = [[int(orders(s, t, "index")[0] < k) for k in CUTS] for s, t in q["i2t"]]
        t2i = [[int(orders(s, t, "index")[0] < k) for k in CUTS] for s, t in q["t2i"]]
        own = [[h for h, j in zip(t2i, owner) if j == i] for i in range(len(i2t))]
        out.append([(a, [sum(c) for c in zip(*b)], len(b)) for a, b in zip(i2t, own)])
    return out


def rsum(table):
    """Ratios of sums, averaged over folds."""
    total = Fraction(0)
    for fold in table:
        captions = sum(c for _, _, c in fold)
        total += sum(Fraction(sum(i), len(fold)) + Fraction(sum(t), captions) for i, t, _ in fold)
    return 100 * total / len(table)


def exchange(a, b, image_of_text, folds):
    """Exact p: the rSum of both systems for every exchange of images."""
    a, b = (hit_table(s, image_of_text, folds) for s in (a, b))
    places = [(f, i) for f, fold in enumerate(a) for i in range(len(fold)) if fold[i] != b[f][i]]
    observed = rsum(a) - rsum(b)
    extreme = 0
    for swap in itertools.product((False, True), repeat=len(places)):
        swapped = {p for p, s in zip(places, swap) if s}
        x, y = (
            [[(v if (f, i) in swapped else u)[f][i] for i in range(len(a[f]))] for f in range(len(a))]
            for u, v in ((a, b), (b, a))
        )
        extreme += abs(rsum(x) - rsum(y)) >= abs(observed)
    return {"difference": observed, "p": Fraction(extreme, 2 ** len(places)), "differing": len(places)}


def holm(p):
    """Largest level-wise product over all hypotheses that are at least as significant."""
    ranked = sorted(range(len(p)), key=lambda i: p[i])
    return [max(min(1.0, (len(p) - j) * p[ranked[j]]) for j in range(ranked.index(i) + 1)) for i in range(len(p))]


def main():
    rng = np.random.default_rng(20)
    cases = []

    def add(name, scores, image_of_text, folds=None):
        n, m = scores.shape
        relevance = [set(np.flatnonzero(rng.random(m) < 0.3).tolist()) for _ in range(n)]
        relevance[0] = set()  # a query that is skipped
        relevance[1] |= {t for t, j in enumerate(image_of_text) if j == 1}
        cases.append(case(name, scores, image_of_text, folds or (1, n), relevance))

    uneven = [2, 0, 1, 1, 4, 3, 0, 2, 2, 5, 6, 0, 4, 2, 6, 6, 5]  # 1 to 4 captions, interleaved
    add("ties, unequal captions", rng.integers(-2, 2, (7, 17)), uneven)
    add("constant", np.zeros((6, 12), int), [t // 2 for t in range(12)])
    add("five captions, no ties", rng.permutation(13 * 65).reshape(13, 65) - 400, [t // 5 for t in range(65)])
    add("three folds", rng.integers(-4, 5, (12, 60)), [t // 5 for t in range(60)], (3, 4))
    owner = [0, 0, 1, 2, 2, 2, 3, 3, 3, 4, 5, 5, 6, 7, 7, 7]  # 9 and 7 per fold
    add("folds of unequal captions", rng.integers(-2, 3, (8, 16)), rng.permutation(owner).tolist(), (2, 4))

    tests = []
    for image_of_text, folds in (
        ([0, 1, 2], (1, 3)),
        ([t // 5 for t in range(35)], (1, 7)),
        (uneven, (1, 7)),
        (cases[4]["image_of_text"], (2, 4)),
    ):
        n, m = folds[0] * folds[1], len(image_of_text)
        true = np.equal.outer(np.arange(n), image_of_text)
        a = rng.integers(0, 100, (n, m)) + 60 * true
        b = rng.integers(0, 100, (n, m)) + 25 * true
        tests.append(
            {"images": n, "image_of_text": image_of_text, "folds": folds}
            | {"a": a.flatten().tolist(), "b": b.flatten().tolist()}
            | exchange(a, b, image_of_text, folds)
        )

    p_values = ([0.01, 0.04, 0.03, 0.005], [0.2, 0.9, 0.6], [0.02])
    golden = {
        "cases": cases,
        "randomisation": tests,
        "student_t": [[d, stats.t.ppf(0.975, d)] for d in (1, 2, 3, 4, 9, 10, 29, 100)],
        "holm": [{"p": p, "adjusted": holm(p)} for p in p_values],
    }
    path = Path(__file__).parents[2] / "crates/itm-core/tests/golden/evaluation.json"
    path.write_text(json.dumps(golden, default=float, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
