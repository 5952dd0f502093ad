"""NumPy's and faiss-cpu's time for the task of `benches/evaluation.rs`: retrieval both ways from embeddings.

    python tests/reference/evaluation_peers.py            # needs numpy and faiss-cpu; about a minute on two cores, 2 GB

The same sizes (1,000 × 5,000 and 5,000 × 25,000, d = 512, five texts per image, unit rows, a text = its image plus noise),
but other random numbers. One uncounted round, then the median of three. The rows compute:

* NumPy, ranks: the dense product, then for every query the number of strictly greater scores, row by row, for the
  other direction on the transpose. This gives the rank of the true item (of an image's best text), and so R@K, median and
  mean rank. Ties are not resolved (the Rust side also counts ties).
* NumPy, ranks by sorting: the same ranks from `argsort` of every row, as in the papers' evaluation programs; only the i2t
  direction and the smaller size, because this takes an order of magnitude longer.
* faiss, recalls: `IndexFlatIP` and the 10 nearest for both directions, so only R@1, R@5 and R@10: a flat index gives no
  ranks beyond k, and a search with k = all items is a sort. Recalls need less work than ranks, so the time is a lower bound. The
  time includes adding the items to the index, as the Rust side's time includes its checks.
"""

import os
import sys
import time

import numpy as np

DIM, CAPTIONS, ROUNDS = 512, 5, 3


def embeddings(n, m, seed=0):
    rng = np.random.default_rng(seed)
    v = rng.uniform(-1, 1, (n, DIM)).astype(np.float32)
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    w = rng.uniform(-1, 1, (m, DIM)).astype(np.float32) + 3 * np.repeat(v, CAPTIONS, axis=0)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return v, w


def ranks_by_counting(v, w):
    s = v @ w.T
    n, m = s.shape
    own = s.reshape(n, n, CAPTIONS)[np.arange(n), np.arange(n)]  # the true pairs' scores, [n, c]
    best = own.max(axis=1)
    i2t = np.array([np.count_nonzero(s[i] > best[i]) for i in range(n)])
    t = np.ascontiguousarray(s.T)
    positive = own.reshape(-1)
    t2i = np.array([np.count_nonzero(t[j] > positive[j]) for j in range(m)])
    return i2t, t2i


def i2t_ranks_by_sorting(v, w):
    s = v @ w.T
    ranks = np.empty(len(v), dtype=np.int64)
    for i, row in enumerate(s):
        order = np.argsort(row)[::-1]
        ranks[i] = min(np.where(order == t)[0][0] for t in range(CAPTIONS * i, CAPTIONS * (i + 1)))
    return ranks


def faiss_top10(v, w):
    texts, images = faiss.IndexFlatIP(DIM), faiss.IndexFlatIP(DIM)
    texts.add(w)
    images.add(v)
    return texts.search(v, 10)[1], images.search(w, 10)[1]


def recalls(ranks):
    return " / ".join(f"{100 * np.mean(ranks < k):.2f}" for k in (1, 5, 10))


def recalls_of_lists(found, image_of_query, image_of_item):
    hit = image_of_item[found] == image_of_query[:, None]
    return " / ".join(f"{100 * hit[:, :k].any(axis=1).mean():.2f}" for k in (1, 5, 10))


def timed(name, work):
    result = work()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    print(f"  {name:<34} {sorted(times)[ROUNDS // 2]:8.4f} s", flush=True)
    return result


def main():
    print(f"numpy {np.__version__}, faiss {faiss.__version__ if faiss else 'missing'}, {os.cpu_count()} cores")
    for n, m in ((1_000, 5_000), (5_000, 25_000)):
        print(f"\n{n} images × {m} texts, d = {DIM}")
        v, w = embeddings(n, m)
        timed("NumPy, the product alone", lambda: v @ w.T)
        i2t, t2i = timed("NumPy, ranks by counting", lambda: ranks_by_counting(v, w))
        print(f"    i2t {recalls(i2t)}, t2i {recalls(t2i)}")
        if n <= 1_000:
            sorted_i2t = timed("NumPy, i2t ranks by sorting", lambda: i2t_ranks_by_sorting(v, w))
            assert np.array_equal(sorted_i2t, i2t) or np.abs(sorted_i2t - i2t).max() <= 1  # a tie may shift a rank by one
        if faiss:
            found_texts, found_images = timed("faiss, recalls at 10 (no ranks)", lambda: faiss_top10(v, w))
            images, texts = np.arange(n), np.arange(m) // CAPTIONS
            print(f"    i2t {recalls_of_lists(found_texts, images, texts)}, "
                  f"t2i {recalls_of_lists(found_images, texts, images)}")


try:
    import faiss
except ImportError:
    faiss = None
    print("faiss-cpu is not installed: its rows are missing", file=sys.stderr)

if __name__ == "__main__":
    main()
