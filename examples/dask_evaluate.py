"""Evaluation and search by several processes under Dask, compared bit for bit with one process: docs/machines.md.

    pip install distributed
    python examples/dask_evaluate.py --images image.npy --texts text.npy --workers 2

Without files it makes some. Each task reads its own rows: on several machines the files must be on all of them.
"""

import argparse
import tempfile
from itertools import product
from pathlib import Path

import itmatch
import numpy as np
from distributed import Client, LocalCluster


def make(files, rows, columns, options):
    """A part, in a worker: the rows of `files` from a map, so a task holds no more than its rectangle."""
    images, texts = (np.load(file, mmap_mode="r") for file in files)
    whole, origin = (len(images), len(texts)), (rows.start, columns.start)
    return itmatch.part(images[rows], texts[columns], origin=origin, whole=whole, **options)


def join(a, b):
    return a.join(b)


def spans(count, pieces):
    ends = np.linspace(0, count, pieces + 1).astype(int).tolist()
    return [slice(first, end) for first, end in zip(ends, ends[1:]) if first < end]


def reduced(client, files, grid, **options):
    """All parts, joined pair by pair on the workers."""
    parts = [client.submit(make, files, rows, columns, options, pure=False) for rows, columns in grid]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2])
        parts = [client.submit(join, *pair, pure=False) for pair in pairs] + parts[len(parts) & ~1 :]
    return parts[0].result()


def made(folder, images, texts):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(images, 64)).astype(np.float32)
    near = np.repeat(rows, texts // images, axis=0) + 2 * rng.normal(size=(texts, 64)).astype(np.float32)
    for name, values in (("image", rows), ("text", near)):
        np.save(folder / f"{name}.npy", itmatch.unit(values))
    return folder / "image.npy", folder / "text.npy"


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pieces", type=int, default=3, help="pieces of each side")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        files = (options.images, options.texts)
        if None in files:
            files = made(Path(folder), 1000, 5000)
        files = [str(Path(file).resolve()) for file in files]
        images, texts = (np.load(file, mmap_mode="r") for file in files)
        grid = list(product(spans(len(images), options.pieces), spans(len(texts), options.pieces)))
        cluster = LocalCluster(
            n_workers=options.workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        )
        with cluster, Client(cluster) as client:
            lists = reduced(client, files, grid, keep="top_texts", k=10).finish()
            scores = reduced(client, files, grid, keep="pair_scores").finish()
            ranks = reduced(client, files, grid, keep="ranks", pair_scores=scores).finish(pair_scores=scores)
        alone = itmatch.search(images, texts, 10)
        same = np.array_equal(lists.ids, alone.ids) and np.array_equal(lists.scores, alone.scores)
        same = same and ranks == itmatch.evaluate(images, texts)
        print(f"{len(grid)} parts, {options.workers} workers: rSum {ranks['rsum']:.1f}, {'equal to' if same else 'NOT'} one process")
        return same


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
