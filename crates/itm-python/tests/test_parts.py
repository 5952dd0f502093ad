"""Any split into parts and any order of joins give one process, bit for bit."""

import os
import pickle
import random
from functools import partial
from pathlib import Path

import itmatch
import numpy as np
import pytest
from conftest import grid_rows, unit_rows

EXAMPLES = Path(__file__).parents[3] / "examples"


def parts(images, texts, rows=(0, 7, 20, 40), columns=(0, 1, 60, 120), **options):
    made = []
    for a, b in zip(rows, rows[1:]):
        for c, d in zip(columns, columns[1:]):
            whole = (len(images), len(texts))
            made.append(itmatch.part(images[a:b], texts[c:d], origin=(a, c), whole=whole, **options))
    return made


def joined(some, seed):
    some, order = list(some), random.Random(seed)
    while len(some) > 1:
        order.shuffle(some)
        some.append(some.pop().join(pickle.loads(pickle.dumps(some.pop()))))
    return some[0]


@pytest.mark.parametrize("make", [unit_rows, grid_rows])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:.2.:UserWarning")
def test_parts_are_one_process(make, seed):
    images, texts = make(40, 16, 0), make(120, 16, 1)
    image_of = np.random.default_rng(2).permutation(np.arange(120) % 40)
    for keep, queries, items in (("top_texts", images, texts), ("top_images", texts, images)):
        found, alone = joined(parts(images, texts, keep=keep, k=9), seed).finish(), itmatch.search(queries, items, 9)
        np.testing.assert_array_equal(found.ids, alone.ids)
        np.testing.assert_array_equal(found.scores, alone.scores)
    scores = joined(parts(images, texts, keep="pair_scores", pairs=image_of), seed).finish()
    np.testing.assert_allclose(scores, (images[image_of] * texts).sum(axis=1), rtol=1e-5, atol=1e-6)
    some = parts(images, texts, keep="ranks", pairs=image_of, pair_scores=scores)
    found = joined(some, seed).finish(image_of, scores, k=(1, 4), ties="pessimistic")
    assert found == itmatch.evaluate(images, texts, image_of, k=(1, 4), ties="pessimistic")


def test_what_does_not_fit_is_one_line():
    images, texts = unit_rows(40, 16, 0), unit_rows(120, 16, 1)
    some = parts(images, texts, keep="top_texts", k=2)
    of_ranks = itmatch.part(images, texts[:30], origin=(0, 0), whole=(40, 120), keep="ranks", pair_scores=np.ones(120))
    ranks = {"keep": "ranks", "pairs": np.arange(120) % 40}
    for call, line in (
        (lambda: parts(images, texts, **ranks, pair_scores=np.ones((120, 1))), r"pair_scores: expected numbers in one dimension, got float64 of shape \(120, 1\)"),
        (lambda: parts(images, texts, **ranks, pair_scores=120 * ["1"]), "pair_scores: expected numbers in one dimension, got <U1"),
        (lambda: parts(images, texts, keep=None), "keep: expected a string, got None"),
        (lambda: parts(images, texts, keep="sums_of_texts", beta="x"), "beta: expected a number, got 'x'"),
        (lambda: itmatch.part(images, texts, origin=(-1, 0), whole=(40, 120), keep="top_texts"), "origin: expected a whole number of at least 0, got -1"),
        (lambda: itmatch.part(images, texts, origin=(0, 0), whole=(-1, 50), keep="top_texts"), "whole: expected a whole number of at least 0, got -1"),
        (lambda: itmatch.part(images, texts, origin=(0, 0), whole=(40,), keep="top_texts"), r"whole: expected \(images, texts\), got 1 of them"),
        (lambda: some[0].join(some[0]), "part: expected every score once, got image 0, text 0 twice"),
        (lambda: some[0].join(some[1]).finish(), "part: expected every score once, got image 0, text 60 never"),
        (lambda: some[0].join(5), "other: expected a part, got 5"),
        (lambda: of_ranks.finish(), "pair_scores: expected the scores of the pairs, got none"),
        (lambda: of_ranks.finish(pair_scores=np.ones(120)), "part: expected every score once, got image 0, text 30 never"),
        (lambda: pickle.loads(pickle.dumps(of_ranks)).finish(pair_scores=np.ones(120)), "part: expected every score once, got image 0, text 30 never"),
        (lambda: some[0].finish(pairs=np.arange(120)), "finish: expected a part of ranks for pairs, pair_scores, k or ties, got another"),
        (lambda: some[0].finish(k=[3]), "finish: expected a part of ranks for pairs, pair_scores, k or ties, got another"),
        (lambda: parts(images, texts, keep="sums_of_texts", beta=10**400), "beta: expected a number of the range of float64, got one outside"),
        (lambda: some[0].join(parts(images, texts, keep="top_texts", k=3)[1]), "part: expected the 2 best texts of every image, got the 3"),
        (lambda: itmatch.Part.from_bytes(some[0].to_bytes()[:-1]), "part: expected a whole part, got"),
        (lambda: parts(images, texts, keep="all"), "keep: expected top_texts, top_images, pair_scores, ranks, sums_of_images, sums_of_texts, moments_of_images or moments_of_texts, got all"),
        (lambda: parts(images, texts, keep="top_texts", pairs=ranks["pairs"]), "pairs: expected none, because only pair_scores and ranks take them, got some"),
        (lambda: parts(images, texts, keep="pair_scores", pair_scores=np.ones(120)), "pair_scores: expected none, because only ranks take them, got some"),
        (lambda: parts(images, texts, keep="ranks"), "pair_scores: expected the scores of all true pairs, got none"),
        (lambda: itmatch.part(images, texts, origin=(1, 0), whole=(40, 120), keep="top_texts"), "part: expected a part of 40 × 120 scores, got"),
    ):
        with pytest.raises((TypeError, ValueError), match=line) as raised:
            call()
        assert len(str(raised.value).splitlines()) == 1
    assert repr(some[0].join(some[4])) == "<Part of 2 rectangles>" and some[4].covered == [(slice(7, 20), slice(1, 60))]


def test_sums_of_parts_on_the_grid():
    """Cuts at 4096: any order gives the bits of one part, and the numbers of NumPy."""
    images, texts = unit_rows(4200, 5, 0), unit_rows(60, 5, 1)
    scores = images.astype(np.float64) @ texts.astype(np.float64).T
    for side, axis in (("images", 1), ("texts", 0)):
        for keep, beta in ((f"sums_of_{side}", 12.0), (f"moments_of_{side}", 1.0)):
            some = parts(images, texts, (0, 4096, 4200), (0, 60), keep=keep, beta=beta)
            found = np.stack(np.atleast_2d(some[1].join(some[0]).finish()))
            alone = itmatch.part(images, texts, origin=(0, 0), whole=(4200, 60), keep=keep, beta=beta)
            np.testing.assert_array_equal(found, np.stack(np.atleast_2d(alone.finish())))
            want = [np.log(np.exp(beta * scores).sum(axis=axis))] if "sums" in keep else [scores.mean(axis=axis), scores.std(axis=axis)]
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="part: expected images that begin and end at multiples of 4096.*, for sums, got 0 to 7"):
        parts(images, texts, (0, 7), (0, 60), keep="moments_of_texts")


@pytest.mark.filterwarnings("ignore")
def test_the_example_under_dask(tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    images = itmatch.unit(unit_rows(60, 64, 0))
    texts = itmatch.unit(np.repeat(images, 3, axis=0) + unit_rows(180, 64, 1))
    np.save(tmp_path / "i.npy", images)
    np.save(tmp_path / "t.npy", texts)
    import dask_evaluate

    assert dask_evaluate.main(["--images", f"{tmp_path}/i.npy", "--texts", f"{tmp_path}/t.npy"])
    assert "9 parts, 2 workers" in capsys.readouterr().out


def make_or_die(mark, *task):
    """A part; the first worker that comes here dies with its task."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        import dask_evaluate

        return dask_evaluate.make(*task)
    os._exit(1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_number_of_workers_and_one_that_dies(workers, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(EXAMPLES), str(Path(__file__).parent)]))
    import dask_evaluate

    mark, files = tmp_path / "died", dask_evaluate.made(tmp_path, 60, 180)
    images, texts = (np.load(file) for file in files)
    grid = [(a, b) for a in dask_evaluate.spans(60, 3) for b in dask_evaluate.spans(180, 3)]
    cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    monkeypatch.setattr(dask_evaluate, "make", partial(make_or_die, mark))
    with cluster, distributed.Client(cluster) as client:
        found = dask_evaluate.reduced(client, files, grid, keep="top_texts", k=7).finish()
    alone = itmatch.search(images, texts, 7)
    assert mark.exists()
    np.testing.assert_array_equal(found.ids, alone.ids)
    np.testing.assert_array_equal(found.scores, alone.scores)


@pytest.mark.filterwarnings("ignore")
def test_the_example_under_ray(tmp_path, capsys, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    words = ["--shards", "3"]
    for seed, (name, count) in enumerate((("items", 200), ("bank", 60), ("queries", 30))):
        np.save(tmp_path / f"{name}.npy", unit_rows(count, 16, seed))
        words += [f"--{name}", str(tmp_path / f"{name}.npy")]
    import ray_dehub

    assert ray_dehub.main(words)
    assert "200 items in 3 shards, 2 workers: equal to one process" in capsys.readouterr().out
