"""`Auto` and `GreedyMatching`."""

import pickle

import itmatch
import numpy as np
import pytest
from conftest import unit_rows
from itmatch.hubness import Auto, Csls, GreedyMatching, InvertedSoftmax


def world(seed, items=60, width=16):
    """Items, and a query near each; item 0 of every world is a hub."""
    hub, rng = unit_rows(1, width, 99), np.random.default_rng(seed)
    of = itmatch.unit(rng.normal(size=(items, width)))
    of[0] = hub
    queries = itmatch.unit(of + 0.35 * rng.normal(size=of.shape) + 0.8 * hub)
    return queries, of, rng.permutation(items)


def recall_sum(scores, truth):
    place = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)[np.arange(len(truth)), truth]
    return sum(100.0 * (place < k).mean() for k in (1, 5, 10))


def test_auto_is_the_best_on_the_validation_set():
    bank, (queries, of, order), (_, items, _) = world(1)[0], world(2), world(3)
    truth = np.argsort(order)
    auto = Auto().fit(bank, items, validation=(queries, of[order], truth))
    s = queries.astype(np.float64) @ of[order].astype(np.float64).T
    z = bank.astype(np.float64) @ of[order].astype(np.float64).T
    want = {"nns": recall_sum(s, truth)}
    for k in (100, 50, 30, 20, 10, 5, 3, 2, 1):
        want[f"csls k={k}"] = recall_sum(2 * s - np.sort(z, axis=0)[::-1][:k].mean(axis=0), truth)
    for beta in (2, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100, 150, 200):
        want[f"is beta={beta}"] = recall_sum(beta * s - np.log(np.exp(beta * z).sum(axis=0)), truth)
    assert auto.scores_ == pytest.approx(want)
    assert auto.chosen_ == max(want, key=want.__getitem__) != "nns"
    kind, number = auto.chosen_.split()[0], float(auto.chosen_.split("=")[1])
    alone = Csls(int(number)) if kind == "csls" else InvertedSoftmax(number)
    np.testing.assert_array_equal(auto.item_bias_, alone.fit(bank, items).item_bias_)
    assert auto.knowledge == "held_out" and repr(auto) == "<Auto(), held_out>"
    again = pickle.loads(pickle.dumps(auto))
    np.testing.assert_array_equal(again.search(queries, items, 3).ids, auto.search(queries, items, 3).ids)
    for same in ([{int(item)} for item in truth], dict(enumerate(truth.tolist())), {query: {item: 1} for query, item in enumerate(truth)}):
        assert Auto().fit(bank, items, validation=(queries, of[order], same)).scores_ == auto.scores_


def test_what_auto_cannot_choose_on_is_one_line():
    bank, items = unit_rows(20, 8, 0), unit_rows(9, 8, 1)
    parts = r"validation: expected \(queries, items, true items of each query\)"
    for validation, error, line in (
        (None, TypeError, f"{parts}, got None"),
        ((bank, items), ValueError, f"{parts}, got 2 of them"),
        ((bank, items, 3), TypeError, "validation, pairs: expected a list, got 3"),
        ((bank, items, [0]), ValueError, "validation, pairs: expected the true items of each of 20 queries, got 1"),
        ((bank, items, [9] * 20), ValueError, "validation, pairs, query 0: expected a whole number below 9, got 9"),
        ((bank, items, 20 * [[]]), ValueError, "validation, pairs, query 0: expected a true item, got none"),
        ((bank, items, np.ones((20, 9), bool)), TypeError, "validation, pairs, query 0: expected a whole number, got"),
        ((bank, items, np.ones(20)), TypeError, "validation, pairs, query 0: expected a whole number, got"),
        ((bank[:0], items, []), ValueError, "validation, queries: expected at least 1 query, got 0"),
        ((bank, items[:, :3], [0] * 20), ValueError, "items: expected the width of bank_queries, 8, got 3"),
    ):
        with pytest.raises(error, match=line):
            Auto().fit(bank, items, validation=validation)
    with pytest.raises(ValueError, match="^bank_items: expected none, because only DbNorm takes them, got some$"):
        Auto().fit(bank, items, validation=(bank, items, [0] * 20), bank_items=items)


def test_a_fit_that_is_refused_changes_nothing():
    bank, items = unit_rows(20, 8, 0), unit_rows(9, 8, 1)
    auto = Auto().fit(bank, items, validation=(bank, items, [0] * 20))
    before = dict(vars(auto))
    with pytest.raises(ValueError, match="items: expected the width of bank_queries, 8, got 3"):
        auto.fit(bank, items[:, :3], validation=(bank, items, [1] * 20))
    assert vars(auto) == before


def matched(scores, k, capacity):
    """Best pairs first while both have room, ties by query, then item; then each query's items by score."""
    n, m = scores.shape
    left, lists = np.full(m, capacity), [[] for _ in range(n)]
    for at in np.lexsort((np.tile(np.arange(m), n), np.repeat(np.arange(n), m), -scores.ravel())):
        query, item = divmod(int(at), m)
        if left[item] and len(lists[query]) < k:
            left[item] -= 1
            lists[query].append(item)
    return np.array([best + [-1] * (k - len(best)) for best in lists])


@pytest.mark.parametrize(("k", "relaxation"), [(1, 1.0), (1, 2.0), (3, 1.0), (3, 1.5)])
@pytest.mark.parametrize("bias", [False, True])
def test_matching_is_greedy_by_score(k, relaxation, bias):
    queries, items, _ = world(4)
    bias = np.random.default_rng(0).normal(size=60) * 0.1 if bias else None
    found = GreedyMatching(k=k, relaxation=relaxation).fit(queries, items, bias=bias)
    s = queries.astype(np.float64) @ items.astype(np.float64).T - (0 if bias is None else bias)
    np.testing.assert_array_equal(found.ids_, matched(s, k, int(relaxation * k + 0.5)))
    assert found.counts_.sum() == (found.ids_ >= 0).sum() and found.counts_.max() == int(relaxation * k + 0.5)
    assert found.knowledge == "transductive" and found.get_params() == {"k": k, "relaxation": relaxation}
    with pytest.raises(ValueError, match="bias: expected one number for each of 60 items, got 2"):
        found.fit(queries, items, bias=[0.0, 1.0])
    for relaxation, error in (("2", TypeError), (True, TypeError), (10**400, ValueError)):
        with pytest.raises(error, match="^relaxation: expected a number"):
            GreedyMatching(relaxation=relaxation).fit(queries, items)
    with pytest.raises(ValueError, match="λ"):
        GreedyMatching(relaxation=-1.0).fit(queries, items)
    assert GreedyMatching(k=2**32 - 1).fit(queries, items[:3]).ids_.shape == (60, 3)
