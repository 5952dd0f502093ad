"""Corrections against their formulas in NumPy, the manners of estimators, and reports."""

import errno
import json
import pickle

import itmatch
import numpy as np
import pytest
from conftest import unit_rows
from itmatch import hubness

BANK, ITEMS, QUERIES = unit_rows(60, 12, 0), unit_rows(25, 12, 1), unit_rows(33, 12, 2)
BANK_ITEMS = unit_rows(20, 12, 3)


def product(a, b):
    return a.astype(np.float64) @ b.astype(np.float64).T


def log_sum(values, axis):
    most = values.max(axis=axis, keepdims=True)
    return np.squeeze(most, axis) + np.log(np.exp(values - most).sum(axis=axis))


def nearest(z, k):
    return np.sort(z, axis=0)[::-1][:k]


def csls(z, s):
    return 2 * s - nearest(z, 5).mean(axis=0)


def softmax(z, s):
    return 9 * s - log_sum(9 * z, 0)


def nnn(z, s):
    return s - 0.6 * nearest(z, 8).mean(axis=0)


def qb_norm(z, s):
    active = np.isin(np.arange(s.shape[1]), z.argmax(axis=1))
    return np.where(active[s.argmax(axis=1)][:, None], softmax(z, s), 9 * s)


def db_norm(z, s):
    return 7 * s - log_sum(4 * z, 0) - log_sum(3 * product(BANK_ITEMS, ITEMS), 0)


def sinkhorn(z, s):
    f, x = np.zeros(len(z)), z / 0.2
    for _ in range(30):
        g = -log_sum(x + f[:, None], 0)
        f = -log_sum(x + g, 1) - np.log(len(z))
    return s / 0.2 - log_sum(x + f[:, None], 0)


def local_scaling(z, s):
    return np.log(np.maximum(1 - nearest(z, 4)[-1], 1e-12)) - 2 * np.log(1 - s)


def nicdm(z, s):
    return np.log((1 - nearest(z, 4)).mean(axis=0)) / 2 - np.log(1 - s)


def gaussian(z, s):
    from math import erfc, log

    def log_share(values):
        return np.vectorize(lambda x: log(erfc(-x / 2**0.5) / 2))(values)

    rows = (s - s.mean(axis=1, keepdims=True)) / s.std(axis=1, keepdims=True)
    return log_share(rows) + log_share((s - z.mean(axis=0)) / z.std(axis=0))


def counted(z, s):
    row = (s[:, None, :] < s[:, :, None]).sum(axis=2)
    column = (z[None, :, :] < s[:, None, :]).sum(axis=1)
    (m, p) = (s.shape[1], len(z))
    return (row * column + row / m) / (m * p)


CASES = [
    (hubness.Csls(k=5), csls, True),
    (hubness.InvertedSoftmax(beta=9.0), softmax, True),
    (hubness.Nnn(alpha=0.6, k=8), nnn, True),
    (hubness.QbNorm(beta=9.0), qb_norm, False),
    (hubness.QbNorm(beta=9.0, dynamic=False), softmax, True),
    (hubness.DbNorm(query_beta=4.0, item_beta=3.0), db_norm, True),
    (hubness.Sinkhorn(epsilon=0.2, iterations=200, tolerance=0.0), sinkhorn, True),
    (hubness.LocalScaling(k=4), local_scaling, False),
    (hubness.LocalScaling("nicdm", k=4), nicdm, False),
    (hubness.MutualProximity(), gaussian, False),
    (hubness.MutualProximity("empirical"), counted, False),
]


def fitted(estimator):
    again = type(estimator)(**estimator.get_params())
    more = {"bank_items": BANK_ITEMS} if isinstance(estimator, hubness.DbNorm) else {}
    return again.fit(BANK, ITEMS, **more)


@pytest.mark.parametrize(("estimator", "formula", "by_item"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_the_formula(estimator, formula, by_item):
    fit = fitted(estimator)
    scores = QUERIES @ ITEMS.T
    want = formula(product(BANK, ITEMS), scores.astype(np.float64))
    got = fit.transform(scores)
    # Sinkhorn's potentials are known up to a constant.
    shift = got.mean() - want.mean() if formula is sinkhorn else 0.0
    np.testing.assert_allclose(got - shift, want, rtol=1e-4, atol=1e-5)
    found = fit.search(QUERIES, ITEMS, 6)
    np.testing.assert_allclose(found.scores, np.sort(got, axis=1)[:, ::-1][:, :6], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(got, found.ids, axis=1), found.scores, rtol=1e-5, atol=1e-5)
    assert (found.ids != itmatch.search(QUERIES, ITEMS, 6).ids).any()
    assert fit.search(QUERIES[:0], ITEMS, 99).ids.shape == fit.transform(scores[:0]).shape == (0, 25)
    if not by_item:
        with pytest.raises(AttributeError, match="export: expected a correction with one number per item"):
            fit.item_bias_
        with pytest.raises(ValueError, match="export: expected a correction with one number per item"):
            fit.export(ITEMS)
        return
    again = itmatch.search(QUERIES, ITEMS, 6, bias=fit.item_bias_)
    np.testing.assert_array_equal(again.ids, found.ids)
    vectors = fit.export(ITEMS)
    engine = np.c_[QUERIES, np.ones(len(QUERIES))] @ vectors.T.astype(np.float64)
    np.testing.assert_array_equal(np.argsort(-engine, axis=1, kind="stable")[:, :6], found.ids)


def test_shards_are_the_whole():
    whole = hubness.Csls().fit(BANK, ITEMS)
    shards = [hubness.Csls().fit(BANK, part) for part in (ITEMS[:10], ITEMS[10:])]
    biases = np.concatenate([shard.item_bias_ for shard in shards])
    np.testing.assert_array_equal(biases, whole.item_bias_)
    centre = shards[0].item_bias_.mean()
    apart = [shard.export(part, centre) for shard, part in zip(shards, (ITEMS[:10], ITEMS[10:]))]
    np.testing.assert_array_equal(np.concatenate(apart), whole.export(ITEMS, centre))


def test_sinkhorn_says_where_it_stopped():
    s = product(BANK, ITEMS) / 0.2
    fit = hubness.Sinkhorn(epsilon=0.2, iterations=2, tolerance=0.0).fit(BANK, ITEMS)
    f = np.zeros(60)
    for _ in range(3):
        g = -log_sum(s + f[:, None], 0)
        shares, f = 60 * np.exp(s + f[:, None] + g - np.log(25)).sum(axis=1), -log_sum(s + g, 1) - np.log(60) + np.log(25)
    again = pickle.loads(pickle.dumps(fit))
    assert again.n_iter_ == fit.n_iter_ == 2
    assert again.row_error_ == fit.row_error_ == pytest.approx(np.abs(shares - 1).max(), rel=1e-4)


@pytest.mark.parametrize("estimator", [case[0] for case in CASES], ids=repr)
def test_pickles_and_settings(estimator):
    fit = fitted(estimator)
    again = pickle.loads(pickle.dumps(fit))
    scores = QUERIES @ ITEMS.T
    np.testing.assert_array_equal(again.transform(scores), fit.transform(scores))
    assert repr(again) == repr(fit) == f"<{estimator!r}, held_out>"
    assert again.get_params() == estimator.get_params()
    with pytest.raises(hubness.NotFittedError, match=f"{type(estimator).__name__}: expected a call of fit first"):
        estimator.transform(scores)


def test_knowledge():
    csls = hubness.Csls()
    assert not hasattr(csls, "knowledge")
    assert csls.fit(BANK, ITEMS).knowledge == "held_out" and csls.n_features_in_ == 12
    assert csls.fit(QUERIES, ITEMS, transductive=True).knowledge == "transductive"
    assert repr(pickle.loads(pickle.dumps(csls))) == "<Csls(k=10), transductive>"
    assert repr(csls.set_params(k=3)) == "<Csls(k=3), transductive>"


@pytest.mark.parametrize(
    ("call", "error", "line"),
    [
        (lambda: hubness.Csls(k=0).fit(BANK, ITEMS), ValueError, "^k: expected at least 1 neighbour, got 0$"),
        (lambda: hubness.Csls(k="a").fit(BANK, ITEMS), TypeError, "^k: expected a whole number, got 'a'$"),
        (lambda: hubness.Csls(k=True).fit(BANK, ITEMS), TypeError, "^k: expected a whole number, got True$"),
        (lambda: hubness.Csls(k=-1).fit(BANK, ITEMS), ValueError, "^k: expected a whole number of at least 0, got -1$"),
        (lambda: hubness.InvertedSoftmax(10**400).fit(BANK, ITEMS), ValueError, "^beta: expected a number of the range of float64, got one outside$"),
        (lambda: hubness.QbNorm(dynamic="no").fit(BANK, ITEMS), TypeError, "^dynamic: expected True or False, got 'no'$"),
        (lambda: hubness.Csls().fit(BANK, ITEMS, transductive=BANK[:1, :1]), TypeError, "^transductive: expected True or False, got array"),
        (lambda: hubness.Csls().fit(BANK, ITEMS, bank_items=ITEMS), ValueError, "^bank_items: expected none, because only DbNorm takes them, got some$"),
        (lambda: hubness.DbNorm().fit(BANK, ITEMS, bank_items=ITEMS[:, :3]), ValueError, "^bank_items: expected the width of items, 12, got 3$"),
        (lambda: hubness.Csls().fit(BANK, ITEMS).export(ITEMS, centre="a"), TypeError, "^centre: expected a number, got 'a'$"),
        (lambda: hubness.Csls().fit(BANK[:, :4], ITEMS), ValueError, "^items: expected the width of bank_queries, 4, got 12$"),
        (lambda: hubness.Csls().fit(BANK[:0], ITEMS), ValueError, "at least 1 query in the bank"),
        (lambda: hubness.Csls().set_params(beta=1), ValueError, "^Csls: expected one of k, got beta$"),
        (lambda: hubness.DbNorm().fit(BANK, ITEMS), ValueError, "^bank_items: expected held-out items, got none$"),
        (lambda: hubness.MutualProximity("beta").fit(BANK, ITEMS), ValueError, "^form: expected gaussian or empirical, got beta$"),
        (lambda: hubness.Csls().fit(BANK, ITEMS).transform(np.ones((2, 3))), ValueError, "^scores: expected one column for each of 25 items, got 3$"),
        (lambda: hubness.Csls().fit(BANK, ITEMS).search(QUERIES, ITEMS[:5], 2), ValueError, "expected the 25 that the correction was fitted for, got 5"),
        (lambda: hubness.Csls().fit(BANK, ITEMS).search(QUERIES[:, :2], ITEMS[:, :2], 1), ValueError, "^queries: expected the width of the fit, 12, got 2$"),
        (lambda: hubness.Csls().fit(BANK, ITEMS).export(ITEMS[:, :2]), ValueError, "^items: expected the width of the fit, 12, got 2$"),
        (lambda: hubness.Csls().fit(BANK, ITEMS).search(QUERIES, ITEMS, 0), ValueError, "^k: expected a whole number of at least 1, got 0$"),
    ],
)
def test_bad_input_is_one_line(call, error, line):
    with pytest.raises(error, match=line) as raised:
        call()
    assert len(str(raised.value).splitlines()) == 1


def test_report(sides, tmp_path):
    images, texts = sides
    names = [f"{number}.jpg" for number in range(40)]
    report = hubness.report(
        images, texts, methods=["csls", "is"], image_names=names, resamples=200, csls_k=np.int64(5), is_beta=[10, "auto"]
    )
    plain = itmatch.evaluate(images, texts)
    assert [row["method"] for row in report.rows][:2] == ["nns", "csls"] and len(report.rows) == 4
    nns, csls = report.rows[:2]
    assert nns["rsum"] == pytest.approx(plain["rsum"]) and nns["i2t"]["r1"] == pytest.approx(plain["i2t_r1"])
    assert csls["params"]["i2t"]["k"] == 5 and csls["setting"] == "transductive"
    lists = itmatch.search(texts, images, 10).ids
    worst = report.hubs["t2i"]["worst"][0]
    counts = np.bincount(lists.ravel(), minlength=40)
    assert worst["name"] == f"{counts.argmax()}.jpg" and counts.max() in worst.values()
    report.to_html(tmp_path / "hubs.html")
    page = (tmp_path / "hubs.html").read_text(encoding="utf-8")
    assert "<svg" in page and worst["name"] in page
    assert report._repr_html_().startswith("<iframe srcdoc=\"&lt;!")
    assert "CSLS" in str(report) and repr(report) == "<Report of 40 images, 120 texts, 4 methods>"
    again = pickle.loads(pickle.dumps(report))
    assert again.to_dict() == report.to_dict() and str(again) == str(report)
    json.dumps(report.to_dict())
    with pytest.raises(FileNotFoundError, match="hubs.html") as raised:
        report.to_html(tmp_path / "no" / "hubs.html")
    assert raised.value.errno == errno.ENOENT and raised.value.filename.endswith("hubs.html")
    note = "pairs guessed from the shapes: 40 images, 120 texts: 3 texts per image, in order"
    data = report.to_dict()["data"]
    assert data["pairs_note"] == data["notes"][0] == note
    assert hubness.report(images, texts, np.arange(120) // 3, methods=["csls"], resamples=0).to_dict()["data"]["pairs_note"] == "pairs as given"


def test_reports_of_banks_and_of_raw_rows(sides):
    images, texts = sides
    report = hubness.report(images, texts, methods="csls", banks=(BANK[:, :12].repeat(2, 1)[:, :16], texts[:30]), resamples=0)
    assert [row["setting"] for row in report.rows] == ["plain", "transductive", "held_out"]
    with pytest.raises(ValueError, match="method ls: expected cosines"):
        hubness.report(3 * images, texts, methods=["ls"], resamples=0)
    for more, line in (
        ({"is_beta": np.nan}, "^settings: expected finite numbers, or 'inf' for rgm_lambda, got NaN or an infinity$"),
        ({"banks": (images,)}, r"^banks: expected \(images, texts\), got 1 of them$"),
        ({"banks": (images[:, :3], texts)}, "^banks, images: expected the width of texts, 16, got 3$"),
        ({"banks": (images, texts[:, :3])}, "^banks, texts: expected the width of images, 16, got 3$"),
        ({"resamples": -1}, "^resamples: expected a whole number of at least 0, got -1$"),
        ({"seed": -1}, "^seed: expected a whole number of at least 0, got -1$"),
        ({"methods": ["cslss"]}, "^method: expected auto, gm, rgm, or one of nns, csls"),
        ({"csls_kk": 3}, "^settings: unknown field `csls_kk`"),
        ({"text_names": ["a", "b\ud800"]}, r"^text_names\[1\], character 1: expected a character of UTF-8, got '\\ud800'$"),
        ({"image_names": ["a"]}, "^names of images: expected 40, got 1$"),
        ({"resamples": 10**7}, "^resamples: expected 0 to 1000000, got 10000000$"),
    ):
        with pytest.raises(ValueError, match=line):
            hubness.report(images, texts, **({"resamples": 0} | more))
    for more, line in (
        ({"image_names": [1]}, r"^image_names\[0\]: expected a string, got 1$"),
        ({"text_names": 5}, "^text_names: expected a list, got 5$"),
        ({"methods": [None]}, r"^methods\[0\]: expected a string, got None$"),
    ):
        with pytest.raises(TypeError, match=line):
            hubness.report(images, texts, **more)


def test_odd_rows_are_warnings(sides):
    images, texts = sides[0].copy(), sides[1]
    images[3] = 0
    with pytest.warns(UserWarning, match="images: 1 row of zeros only"):
        hubness.report(images, texts, methods=["csls"], resamples=0)
