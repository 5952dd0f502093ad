"""Item biases of CSLS and a corrected search by several processes under Ray, compared bit for bit with one process: docs/machines.md.

    pip install ray
    python examples/ray_dehub.py --items image.npy --bank training_text.npy --queries text.npy --workers 2

Without files it makes some. The bias of an item depends on its own row and the bank, so each task takes a shard of the items; the lists
of the best items are parts that join in any order. Each task reads its own rows: on several machines the files must be on all of them.
"""

import argparse
import os
import tempfile
from pathlib import Path

import itmatch
import numpy as np
import ray


def opened(files):
    return [np.load(file, mmap_mode="r") for file in files]


def biases(files, shard, k):
    """The CSLS biases of a shard of the items."""
    items, bank, _ = opened(files)
    return itmatch.hubness.Csls(k).fit(bank, items[shard]).item_bias_


def best(files, shard, centre, bias, k):
    """The best items of every query among a shard of the items: a part. Each vector ends in its bias, measured from one centre."""
    items, _, queries = opened(files)
    vectors = np.hstack([items[shard], (centre - bias)[:, None].astype(np.float32)])
    asked = np.hstack([queries, np.ones((len(queries), 1), np.float32)])
    return itmatch.part(asked, vectors, origin=(0, shard.start), whole=(len(queries), len(items)), keep="top_texts", k=k)


def joined(parts):
    """Whichever part is ready first."""
    (first, *_), rest = ray.wait(parts)
    whole = ray.get(first)
    while rest:
        (ready, *_), rest = ray.wait(rest)
        whole = whole.join(ray.get(ready))
    return whole


def made(folder, items=40_000, bank=500, queries=300):
    rng = np.random.default_rng(0)
    files = []
    for name, count in (("items", items), ("bank", bank), ("queries", queries)):
        files.append(folder / f"{name}.npy")
        np.save(files[-1], itmatch.unit(rng.normal(size=(count, 64)) + 0.3))
    return files


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=Path)
    parser.add_argument("--bank", type=Path, help="queries of training data")
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shards", type=int, default=8)
    options = parser.parse_args(words)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=options.workers, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        files = (options.items, options.bank, options.queries)
        files = [str(Path(file).resolve()) for file in (made(Path(folder)) if None in files else files)]
        items, bank, queries = opened(files)
        ends = np.linspace(0, len(items), options.shards + 1).astype(int).tolist()
        shards = [slice(first, end) for first, end in zip(ends, ends[1:]) if first < end]
        of_shard, best_of = ray.remote(biases), ray.remote(best)
        found = ray.get([of_shard.remote(files, shard, 10) for shard in shards])
        centre = float(found[0].mean())
        lists = joined([best_of.remote(files, *sent, 10) for sent in zip(shards, [centre] * len(shards), found)]).finish()
        ray.shutdown()
        alone = itmatch.hubness.Csls(10).fit(bank, items)
        same = np.array_equal(np.concatenate(found), alone.item_bias_)
        vectors = alone.export(items, centre=centre)
        once = itmatch.search(np.hstack([queries, np.ones((len(queries), 1), np.float32)]), vectors, 10)
        same = same and np.array_equal(lists.ids, once.ids) and np.array_equal(lists.scores, once.scores)
        print(f"{len(items)} items in {len(shards)} shards, {options.workers} workers: {'equal to' if same else 'NOT'} one process")
        return same


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
