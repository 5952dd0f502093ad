"""Numbers that other libraries have under the same definition: scikit-learn, SciPy, torchmetrics. Skipped where they are not installed."""

import itmatch
import numpy as np
import pytest


def ranked(relevant, order):
    """Whether each item of every list is true, best first."""
    return np.take_along_axis(relevant, order, axis=1)


@pytest.fixture
def world(sides):
    """Scores of both directions with what is true, and all items of every query, best first."""
    images, texts = sides
    relevant = np.arange(120)[None, :] // 3 == np.arange(40)[:, None]
    order = {"i2t": itmatch.search(images, texts, 120).ids, "t2i": itmatch.search(texts, images, 40).ids}
    scores = images @ texts.T
    return itmatch.evaluate(images, texts), {"i2t": (scores, relevant), "t2i": (scores.T, relevant.T)}, order


def precision(hits):
    """Average precision of every list over all its true items."""
    at = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return (at * hits).sum(axis=1) / hits.sum(axis=1)


def test_scikit_learn(world):
    metrics = pytest.importorskip("sklearn.metrics")
    found, of, order = world
    scores, relevant = of["t2i"]  # one true image for each text
    for k in (1, 5, 10):
        accuracy = metrics.top_k_accuracy_score(relevant.argmax(axis=1), scores, k=k, labels=np.arange(40))
        np.testing.assert_allclose(found[f"t2i_r{k}"], 100 * accuracy)
    for direction in ("i2t", "t2i"):
        scores, relevant = of[direction]
        want = metrics.label_ranking_average_precision_score(relevant, scores)
        np.testing.assert_allclose(precision(ranked(relevant, order[direction])).mean(), want)


def test_scipy(sides):
    skew = pytest.importorskip("scipy.stats").skew
    images, texts = sides
    report = itmatch.hubness.report(images, texts, methods=["csls"], resamples=0)
    for direction, (queries, items) in {"i2t": (images, texts), "t2i": (texts, images)}.items():
        for measures in report.hubs[direction]["measures"]:
            lists = itmatch.search(queries, items, measures["k"]).ids
            counts = np.bincount(lists.ravel(), minlength=len(items))
            np.testing.assert_allclose(measures["skewness"], skew(counts), rtol=1e-9)
    assert {measures["k"] for measures in report.hubs["t2i"]["measures"]} == {1, 5, 10}


def test_torchmetrics(world):
    retrieval = pytest.importorskip("torchmetrics.retrieval")
    torch = pytest.importorskip("torch")
    found, of, order = world

    def by(metric, direction):
        scores, relevant = (torch.from_numpy(np.ascontiguousarray(side)).flatten() for side in of[direction])
        queries = torch.arange(len(of[direction][0])).repeat_interleave(of[direction][0].shape[1])
        return float(metric(scores, relevant, indexes=queries))

    for k in (1, 5, 10):
        np.testing.assert_allclose(found[f"t2i_r{k}"], 100 * by(retrieval.RetrievalRecall(top_k=k), "t2i"), rtol=1e-6)
        for direction in ("i2t", "t2i"):  # R@k of several true items is whether one of them is there
            hit = 100 * by(retrieval.RetrievalHitRate(top_k=k), direction)
            np.testing.assert_allclose(found[f"{direction}_r{k}"], hit, rtol=1e-6)
    for direction in ("i2t", "t2i"):
        hits = ranked(of[direction][1], order[direction])
        np.testing.assert_allclose(precision(hits).mean(), by(retrieval.RetrievalMAP(), direction), rtol=1e-6)
        reciprocal = 1 / (hits.argmax(axis=1) + 1)
        np.testing.assert_allclose(reciprocal.mean(), by(retrieval.RetrievalMRR(), direction), rtol=1e-6)
