"""Peers of `benches/corrections.rs`: NumPy as in the papers' programs, the MUSE recipe for CSLS, greedy matching by sorting, faiss.

    python tests/reference/hubness_peers.py                             # 5,000 × 25,000, d = 512: minutes and 4 GB
    python tests/reference/hubness_peers.py --images 1000 --texts 5000 --rounds 1

Unit rows from a seed; each text is its image plus noise (not the numbers of the Rust benchmark). Each row runs in a separate
process, with `--threads` threads for BLAS and faiss, once uncounted and then `--rounds` times. The script prints median seconds and the
peak resident memory of that process (including interpreter, libraries and embeddings). The rows compute:

* product: the dense float32 product, for comparison.
* numpy recalls: the product, then for every query of both directions the place of its true item (for an image, of its best
  text) in the `argsort` of its whole row, as in the papers' evaluation programs; one thread after the product.
* muse csls: mean similarity of the 10 nearest by `IndexFlatIP` both ways, then the whole matrix 2 s − r − r and the 10 best
  of every row and of every column. MUSE selects with torch; here `argpartition` on blocks of rows, then a sort of 10.
* rgm sort, rgm loop: the product and `argsort` of all its entries; then the listing's loop over the sorted entries in plain
  Python until every row holds `k` (one loop, without warm-up). i2t, k = 10, capacity 10; `--rgm t2i` for the other way,
  with capacity k × texts / images.
* faiss top 10: `IndexFlatIP` and the 10 nearest both ways, including the time to build the index; only recalls up to 10, no ranks.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from statistics import median

K = 10


def embeddings(a):
    rng = np.random.default_rng(a.seed)
    captions = a.texts // a.images
    v = rng.uniform(-1, 1, (a.images, a.dim)).astype(np.float32)
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    w = rng.uniform(-1, 1, (a.texts, a.dim)).astype(np.float32)
    w += 3 * np.repeat(v, captions, axis=0)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return v, w


def product(a, v, w):
    yield from rounds(a, "product", lambda: v @ w.T)


def numpy_recalls(a, v, w):
    captions = a.texts // a.images

    def work():
        s = v @ w.T
        i2t = np.empty(a.images, int)
        for i in range(a.images):
            order = np.argsort(s[i])[::-1]
            i2t[i] = min(np.where(order == t)[0][0] for t in range(captions * i, captions * (i + 1)))
        t = s.T
        t2i = np.empty(a.texts, int)
        for j in range(a.texts):
            t2i[j] = np.where(np.argsort(t[j])[::-1] == j // captions)[0][0]
        return [100 * np.mean(r < k) for r in (i2t, t2i) for k in (1, 5, 10)]

    yield from rounds(a, "numpy recalls", work)


def nearest(base, queries):
    index = faiss.IndexFlatIP(base.shape[1])
    index.add(base)
    return index.search(queries, K)


def best(rows):
    """The 10 largest values of every row, best first, one block of rows at a time."""
    out = np.empty((len(rows), K), int)
    for at in range(0, len(rows), 1000):
        block = rows[at : at + 1000]
        top = np.argpartition(block, -K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(block, top, axis=1), axis=1)
        out[at : at + 1000] = np.take_along_axis(top, order, axis=1)
    return out


def muse_csls(a, v, w):
    def work():
        r_image = nearest(w, v)[0].mean(axis=1)
        r_text = nearest(v, w)[0].mean(axis=1)
        s = v @ w.T
        s *= 2
        s -= r_image[:, None]
        s -= r_text
        return best(s), best(s.T)

    yield from rounds(a, "muse csls", work)


def rgm(a, v, w):
    v, w = (v, w) if a.rgm == "i2t" else (w, v)
    n, m = len(v), len(w)
    capacity = K * max(1, n // m)

    kept = []

    def sort():
        kept.clear()
        s = v @ w.T
        np.negative(s, out=s)
        kept.append(np.argsort(s.ravel()))

    yield from rounds(a, f"rgm sort {a.rgm}", sort)
    start = time.perf_counter()
    rows, columns, full, stack, seen = [0] * n, [0] * m, 0, [], 0
    while full < n and seen < n * m:
        for flat in kept[0][seen : seen + 100_000].tolist():
            seen += 1
            r, q = divmod(flat, m)
            if rows[r] < K and columns[q] < capacity:
                rows[r] += 1
                columns[q] += 1
                stack.append(flat)
                full += rows[r] == K
                if full == n:
                    break
    seconds = time.perf_counter() - start
    yield f"rgm loop {a.rgm}", seconds, f"{len(stack)} pushes of {seen} entries seen"


def faiss_top10(a, v, w):
    yield from rounds(a, "faiss top 10", lambda: (nearest(w, v)[1], nearest(v, w)[1]))


PEERS = {"product": product, "numpy": numpy_recalls, "muse": muse_csls, "rgm": rgm, "faiss": faiss_top10}


def rounds(a, name, work):
    result, times = work(), []
    for _ in range(a.rounds):
        del result  # or two of them would count as memory
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    numbers = isinstance(result, list) and all(np.isscalar(x) for x in result)
    note = "recalls " + " / ".join(f"{x:.2f}" for x in result) if numbers else ""
    yield name, median(times), note


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("images", 5_000), ("texts", 25_000), ("dim", 512), ("rounds", 3), ("threads", 2), ("seed", 0)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--rgm", choices=("i2t", "t2i"), default="i2t")
    p.add_argument("--only", choices=PEERS, help="one row, in this process; the thread variables must be set already")
    a = p.parse_args()
    if a.texts % a.images:
        p.error("texts must be a multiple of images")
    if a.only:
        run(a)
        return
    print(f"{a.images} images × {a.texts} texts, d = {a.dim}, {a.threads} threads, median of {a.rounds}", flush=True)
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(variables, str(a.threads))
    failed = [peer for peer in PEERS if subprocess.call([sys.executable, *sys.argv, "--only", peer], env=environment)]
    sys.exit(f"no result: {', '.join(failed)}" if failed else 0)


def run(a):
    global np, faiss
    import faiss
    import numpy as np

    faiss.omp_set_num_threads(a.threads)
    for name, seconds, note in PEERS[a.only](a, *embeddings(a)):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {name:<16} {seconds:9.3f} s {peak:8.0f} MiB  {note}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
