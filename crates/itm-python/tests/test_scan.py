"""The scan for planted hubs against its formulas in NumPy."""

import itmatch
import numpy as np
import pytest
from conftest import unit_rows
from itmatch.hubness import scan


def world(topics=12, queries=600, items=400, width=20, seed=0):
    """Queries and items of some topics; all queries share a direction."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(topics, width))
    sides = []
    for count, shift in ((queries, 0.8), (items, 0.0)):
        sides.append(itmatch.unit(centres[rng.integers(topics, size=count)] + 0.7 * rng.normal(size=(count, width)) + shift))
    return sides


def planted(queries, items):
    everywhere = queries.mean(axis=0, keepdims=True)
    return np.vstack([items, itmatch.unit(everywhere)])


def clusters_of(queries, rounds=20):
    n = len(queries)
    count = max(1, min(32, int(np.sqrt(n))))
    rows = queries.astype(np.float64)
    centres = rows[[(c * 2654435769 % 2**32) * n // 2**32 for c in range(count)]].copy()
    for _ in range(rounds):
        nearest = ((rows[:, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for c in range(count):
            if (nearest == c).any():
                centres[c] = rows[nearest == c].mean(axis=0)
    return nearest, count


def evidence(queries, items, k):
    """Counts, firsts, z, effective clusters, capture, score and expected false alarms of every item."""
    lists = np.argsort(-(queries.astype(np.float64) @ items.astype(np.float64).T), axis=1, kind="stable")[:, :k]
    cluster, c = clusters_of(queries)
    n, m = len(queries), len(items)
    found, firsts = np.zeros((m, c)), np.zeros((m, c))
    for query, best in enumerate(lists):
        found[best, cluster[query]] += 1
        firsts[best[0], cluster[query]] += 1
    counts = found.sum(axis=1)
    median = np.median(counts)
    away = np.abs(counts - median)
    deviation = 1.4826 * np.median(away) or 1.2533 * away.mean()
    z = (counts - median) / deviation
    share = found / np.maximum(counts, 1)[:, None]
    entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1)
    capture = (firsts / np.maximum(np.bincount(cluster, minlength=c), n / c)).max(axis=1)
    score = np.where(counts > 0, z * np.maximum(entropy / np.log(c), capture), 0)
    return counts, firsts.sum(axis=1), z, np.exp(entropy), capture, score, expected(score), median, deviation


def expected(scores):
    u = np.sort(scores)[int(np.ceil(0.95 * len(scores))) - 1]
    above = np.sort(scores[scores > u] - u)
    t, r = len(above), 9 * len(above) // 10
    beta = max(np.median(above) / np.log(2), above[r - 1] / np.log(t / (t - r)) if r else 0)
    return np.where(scores > u, t * np.exp(-(scores - u) / beta), (scores[:, None] <= scores).sum(axis=1))


@pytest.mark.parametrize("k", [1, 10])
@pytest.mark.parametrize("seed", range(3))
def test_every_number_is_numpys(k, seed):
    queries, items = world(seed=seed)
    items = planted(queries, items)
    counts, firsts, z, clusters, capture, score, false_alarms, median, deviation = evidence(queries, items, k)
    found = scan(queries, items, k=k, alerts=25)
    np.testing.assert_array_equal(found.counts, counts)
    summary = found.summary
    assert (summary["median"], summary["largest"], summary["clusters"]) == (median, counts.max(), 24)
    assert summary["deviation"] == pytest.approx(deviation)
    assert summary["high"] == np.sort(counts)[int(np.ceil(0.999 * len(items))) - 1]
    order = np.argsort(-score, kind="stable")[:25]
    assert [alert["score"] for alert in found.alerts] == pytest.approx(score[order])
    for alert in found.alerts:
        at = alert["item"]
        assert (alert["count"], alert["first"]) == (counts[at], firsts[at])
        want = (z[at], clusters[at], capture[at], score[at], false_alarms[at])
        assert tuple(alert[key] for key in ("z", "clusters", "capture", "score", "false_alarms")) == pytest.approx(want)
    under = [at for at in np.argsort(-score, kind="stable") if score[at] > 0 and false_alarms[at] <= 0.1]
    assert [alert["item"] for alert in scan(queries, items, k=k).alerts] == under
    assert len(items) - 1 in under


def test_the_gate_counts_as_a_scan_with_the_item():
    queries, items = world(seed=3)
    new = np.vstack([planted(queries, items)[-1:], world(seed=3)[1][7:8] + 1e-3, unit_rows(1, 20, 5)])
    verdicts = scan(queries, items).admit(new)
    assert [verdict["refused"] for verdict in verdicts] == [True, False, False]
    for row, verdict in zip(new, verdicts):
        counts, firsts, _, clusters, capture, *_ = evidence(queries, np.vstack([items, row[None]]), 10)
        assert (verdict["count"], verdict["first"]) == (counts[-1], firsts[-1])
        assert verdict["capture"] == pytest.approx(capture[-1])
        assert verdict["clusters"] == pytest.approx(clusters[-1] if counts[-1] else 0)
    first = verdicts[0]
    assert first["sentence"].startswith(f"item 0 would be the first answer of {first['first']} of 600 queries, and among the first 10 of")
    assert first["sentence"].endswith(": refused") and verdicts[1]["sentence"].endswith(": admitted")


def test_a_buffer_that_is_used_again_changes_nothing():
    queries, items = world(seed=3)
    found, new = scan(queries, items), planted(queries, items)[-1:]
    first = found.admit(new)
    queries[:] = items[0]
    assert found.admit(new) == first


def test_what_cannot_be_scanned_is_one_line():
    queries, items = world()
    for call, line in (
        (lambda: scan(queries, items, k=0), "k: expected a whole number of at least 1, got 0"),
        (lambda: scan(queries, items, alerts=0), "alerts: expected a whole number of at least 1, got 0"),
        (lambda: scan(queries, items, false_alarms=0), "false alarms: expected a finite number above 0, got 0"),
        (lambda: scan(queries, items, false_alarms=10**400), "false_alarms: expected a number of the range of float64, got one outside"),
        (lambda: scan(queries, items[:, :5]), "items: expected the width of queries, 20, got 5"),
        (lambda: scan(queries, items[:0]), "items: expected at least 1 item, got 0"),
        (lambda: scan(queries, items).admit(items[:, :5]), "items: expected the queries' width 20, got 5"),
    ):
        with pytest.raises(ValueError, match=line) as raised:
            call()
        assert len(str(raised.value).splitlines()) == 1
    with pytest.raises(TypeError, match="^false_alarms: expected a number, got '0.1'$"):
        scan(queries, items, false_alarms="0.1")
    assert repr(scan(queries, items, alerts=3)) == "<Scan of 400 items over 600 queries, 3 alerts>"
