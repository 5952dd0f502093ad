"""Does faiss-cpu, searching the vectors that `hubness export` wrote, find the items that our corrected search found?

    python tests/reference/hubness_faiss.py FOLDER
    python tests/reference/hubness_faiss.py FOLDER --images I.npy --texts T.npy --direction t2i --method is --beta 30

FOLDER holds items.npy (float32 [items, d + 1]), queries.npy (float32 [queries, d + 1]) and expected.npy (int32 [queries, 10]).
With the raw embeddings this script also computes the lists, from all scores in double precision, and they must be equal:
csls 2 s − r(item), is beta s − log sum exp, nnn s − alpha r(item); the bank is the test queries, or `--bank` (raw queries).
Rows of raw embeddings are used unchanged unless `--normalise` is given.

Prints one line; exit status 1 if lists differ. Items with equal scores (double precision, from the exported vectors) may
change places, because faiss does not order ties. A float32 search may also swap items that are closer than its rounding; `--tolerance`
accepts such gaps, and the line says how many lists had accepted gaps and how large the gaps were.
"""

import argparse
import sys
from pathlib import Path

import faiss
import numpy as np

K = 10


def read(path, normalise=False):
    rows = np.load(path).astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if normalise else rows


def mean_of_largest(bank, k):
    """Of every column."""
    return -np.sort(-bank, axis=0)[:k].mean(axis=0)


def corrected(args):
    """All corrected scores, queries × items."""
    images, texts = read(args.images, args.normalise), read(args.texts, args.normalise)
    queries, items = (images, texts) if args.direction == "i2t" else (texts, images)
    s = queries @ items.T
    bank = read(args.bank, args.normalise) @ items.T if args.bank else s
    if args.method == "csls":
        return 2 * s - mean_of_largest(bank, args.k)
    if args.method == "nnn":
        return s - args.alpha * mean_of_largest(bank, args.k)
    z = args.beta * bank
    top = z.max(axis=0)
    return args.beta * s - (top + np.log(np.exp(z - top).sum(axis=0)))


def differences(found, expected, score):
    """Number of differing lists, and the largest score gap between two items at the same place."""
    rows, places = np.nonzero(found != expected)
    gaps = [abs(score(r, found[r, p]) - score(r, expected[r, p])) for r, p in zip(rows, places)]
    return len(set(rows.tolist())), max(gaps, default=0.0)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=Path)
    p.add_argument("--images")
    p.add_argument("--texts")
    p.add_argument("--bank")
    p.add_argument("--normalise", action="store_true")
    p.add_argument("--direction", choices=("i2t", "t2i"), default="i2t")
    p.add_argument("--method", choices=("csls", "is", "nnn"), default="csls")
    p.add_argument("--k", type=int, default=10)
    p.add_argument("--beta", type=float, default=30.0)
    p.add_argument("--alpha", type=float, default=0.75)
    p.add_argument("--tolerance", type=float, default=0.0)
    args = p.parse_args()
    if (args.images is None) != (args.texts is None):
        p.error("--images and --texts come together")

    items, queries, expected = (np.load(args.folder / f"{name}.npy") for name in ("items", "queries", "expected"))
    for name, rows, dtype in (("items", items, "<f4"), ("queries", queries, "<f4"), ("expected", expected, "<i4")):
        assert rows.dtype == np.dtype(dtype) and rows.ndim == 2, f"{name}.npy: {rows.dtype} {rows.shape}"
    k = min(K, len(items))
    assert items.shape[1] == queries.shape[1], f"widths {items.shape[1]} and {queries.shape[1]}"
    assert expected.shape == (len(queries), k), f"expected.npy: {expected.shape}, not {(len(queries), k)}"
    assert expected.min() >= 0 and expected.max() < len(items), "expected.npy: an item that is not there"

    index = faiss.IndexFlatIP(items.shape[1])
    index.add(np.ascontiguousarray(items))
    found = index.search(np.ascontiguousarray(queries), k)[1]
    score = lambda q, j: float(queries[q].astype(np.float64) @ items[j].astype(np.float64))
    compared = {f"faiss {faiss.__version__}": differences(found, expected, score)}
    if args.images:
        u = corrected(args)
        assert u.shape == (len(queries), len(items)), f"raw embeddings give {u.shape}, the export {(len(queries), len(items))}"
        own = np.argsort(-u, axis=1, kind="stable")[:, :k]  # ties: the smaller index
        compared[f"double precision ({args.direction} {args.method})"] = differences(own, expected, lambda q, j: u[q, j])
    texts = []
    for name, (lists, gap) in compared.items():
        same = "identical" if not lists else f"{lists} lists differ, by gaps up to {gap:.1e} in the score"
        texts.append(f"{name}: {same}")
    print(f"{args.folder}: top {k} of {len(queries)} queries among {len(items)} items: " + "; ".join(texts))
    sys.exit(any(gap > args.tolerance for _, gap in compared.values()))


if __name__ == "__main__":
    main()
