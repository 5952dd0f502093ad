"""Rows of the pictures of a folder by several processes under Dask, compared bit for bit with one process: docs/machines.md.

    pip install distributed
    python examples/dask_embed.py --model clip-vit-base-patch32 --images photos --out image.npy --workers 2

The embedder travels as its settings: each worker reads the model once. On several machines the files must be on all of them.
"""

import argparse
from pathlib import Path

import dask.bag
import numpy as np
from distributed import Client, LocalCluster

from itmatch.embed import Embedder

ENDS = {".jpg", ".jpeg", ".png", ".webp"}


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--batches", type=int, default=8, help="batches of a task: whole batches have the bits of one process")
    options = parser.parse_args(words)
    embedder = Embedder(options.model, batch=options.batch)
    names = sorted(str(path.resolve()) for path in options.images.iterdir() if path.suffix.lower() in ENDS)
    cluster = LocalCluster(n_workers=options.workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, Client(cluster):
        bag = dask.bag.from_sequence(names, partition_size=options.batch * options.batches)
        rows = np.stack(bag.map_partitions(embedder.images).compute())
    np.save(options.out, rows)
    same = np.array_equal(rows, embedder.images(names))
    print(f"{len(names)} pictures in {bag.npartitions} tasks, {options.workers} workers: {'equal to' if same else 'NOT'} one process")
    return same


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
