"""Recalls and ranks against NumPy, and what may be given as rows."""

import pickle
import threading
import time
from itertools import permutations

import itmatch
import numpy as np
import pytest
from conftest import grid_rows, unit_rows


def reference(scores, truths, k, ties):
    """Recalls, median and mean rank of one direction from the whole matrix; `truths[q]` are the true items of query q."""
    ranks, chances = [], []
    for row, true in zip(scores, truths):
        if not true:
            continue
        best = row[true].max()
        greater = int((row > best).sum())
        tied = np.flatnonzero(row == best)
        untrue = [item for item in tied if item not in true]
        own = [item for item in tied if item in true]
        before = sum(item < min(own) for item in untrue)
        if ties == "expected":
            ranks.append(greater + len(untrue) / (len(own) + 1))
            orders = list(permutations([0] * len(untrue) + [1] * len(own)))
            first = [greater + order.index(1) for order in orders]
            chances.append([np.mean([place < cut for place in first]) for cut in k])
            continue
        ranks.append(greater + {"index": before, "optimistic": 0, "pessimistic": len(untrue)}[ties])
        chances.append([ranks[-1] < cut for cut in k])
    return 100 * np.mean(chances, axis=0), np.floor(np.median(ranks)) + 1, np.mean(ranks) + 1


def check(found, scores, image_of, k, ties):
    truths = {"i2t": [[] for _ in scores], "t2i": [[image] for image in image_of]}
    for text, image in enumerate(image_of):
        truths["i2t"][image].append(text)
    total = 0
    for direction, matrix in (("i2t", scores), ("t2i", scores.T)):
        recalls, median, mean = reference(matrix, truths[direction], k, ties)
        total += recalls.sum()
        np.testing.assert_allclose([found[f"{direction}_r{cut}"] for cut in k], recalls, atol=1e-9)
        assert found[f"{direction}_median_rank"] == median
        np.testing.assert_allclose(found[f"{direction}_mean_rank"], mean)
    np.testing.assert_allclose(found["rsum"], total)


@pytest.mark.parametrize("ties", ["index", "optimistic", "pessimistic", "expected"])
@pytest.mark.filterwarnings("ignore:.2.:UserWarning")
def test_numbers_are_numpy_s(ties):
    # Few equal scores for each true one, or the reference would try too many orders.
    images, texts = grid_rows(30, 24, 0), grid_rows(90, 24, 1)
    texts[:60] = np.repeat(images, 2, axis=0) + texts[:60]
    image_of = np.concatenate([np.arange(60) // 2, np.random.default_rng(2).integers(0, 30, 30)])
    found = itmatch.evaluate(images, texts, image_of, k=(1, 3, 20), ties=ties)
    check(found, images @ texts.T, image_of, (1, 3, 20), ties)
    assert (found["images"], found["texts"], found["folds"]) == (30, 90, 1)
    assert all(type(number) in (int, float) for number in found.values())
    assert pickle.loads(pickle.dumps(found)) == found
    for kind in (np.int8, np.int32, np.uint64, list):
        again = image_of.tolist() if kind is list else image_of.astype(kind)
        assert itmatch.evaluate(images, texts, again, k=(1, 3, 20), ties=ties) == found


def test_ties_that_decide_are_a_warning():
    with pytest.warns(UserWarning) as warned:
        found = itmatch.evaluate(np.ones((2, 2)), np.eye(2), k=[1])
    assert found["i2t_r1"] == 50.0 and found["i2t_decided_by_ties"] == 2
    assert [str(line.message) for line in warned] == [
        'i2t: 2 queries hit or miss by the order of equal scores alone (ties = "index")',
        't2i: 2 queries hit or miss by the order of equal scores alone (ties = "index")',
    ]
    assert all(line.filename == __file__ for line in warned)


def test_judged_pairs_and_map_at_r(sides):
    images, texts = sides
    rng = np.random.default_rng(3)
    judged = {image: rng.choice(120, size=rng.integers(0, 6), replace=False).tolist() for image in range(40)}
    found = itmatch.evaluate(images, texts, judged)
    order = np.argsort(-(images.astype(np.float64) @ texts.T), axis=1, kind="stable")
    precisions, hits = [], []
    for image, true in judged.items():
        if true:
            rel = np.isin(order[image], true)
            at = (np.cumsum(rel) / np.arange(1, 121) * rel)[: len(true)]
            precisions.append(at.sum() / len(true))
            hits.append(rel[:1].any())
    np.testing.assert_allclose(found["i2t_map_at_r"], 100 * np.mean(precisions))
    np.testing.assert_allclose(found["i2t_r1"], 100 * np.mean(hits))
    assert found["images"] == len(precisions)
    qrels = {str(image): {str(text): 2 for text in true} | {"7": 0} for image, true in judged.items() if 7 not in true}
    qrels |= {image: judged[image] for image in judged if 7 in judged[image]}
    assert itmatch.evaluate(images, texts, qrels) == found
    assert itmatch.evaluate(images, texts, list(judged.values())) == found
    annotated = itmatch.evaluate(images, texts, relevance=judged)
    assert annotated["i2t_map_at_r"] == found["i2t_map_at_r"]
    plain = itmatch.evaluate(images, texts)
    assert itmatch.evaluate(images, texts, k=(1, 5, 10, 1)) == plain
    one = itmatch.evaluate(images, texts[::3])
    for pairs in (range(40), {image: str(image) for image in range(40)}, [np.array(image) for image in range(40)]):
        assert itmatch.evaluate(images, texts[::3], pairs) == one
    assert annotated["rsum"] == plain["rsum"] and "i2t_map_at_r" not in plain


@pytest.mark.filterwarnings("ignore")
def test_folds():
    images, texts = unit_rows(5000, 8, 0), unit_rows(25000, 8, 1)
    texts += 2 * np.repeat(images, 5, axis=0)
    found = itmatch.evaluate(images, texts, protocol="coco_1k_folds")
    parts = [itmatch.evaluate(images[i : i + 1000], texts[5 * i : 5 * i + 5000]) for i in range(0, 5000, 1000)]
    np.testing.assert_allclose(found["rsum"], np.mean([part["rsum"] for part in parts]))
    assert found["folds"] == 5 and found["rsum"] > itmatch.evaluate(images, texts)["rsum"]


class Dlpack:
    """An array of another library, without `__array__`."""

    def __init__(self, array, kind=1):
        self.array, self.kind, self.nbytes = array, kind, array.nbytes

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


class Masked:
    """As variables of netCDF4."""

    def __array__(self, dtype=None, copy=None):
        return np.ma.masked_equal([[1.0, 2.0]], 2)


class Bfloat16:
    """What torch says of a tensor that NumPy has no type for."""

    def __array__(self, *_, **__):
        raise TypeError("Got unsupported ScalarType BFloat16")


def forms(rows, folder):
    yield "fortran", np.asfortranarray(rows)
    yield "strided", np.repeat(np.repeat(rows, 2, axis=0), 2, axis=1)[::2, ::2]
    yield "reversed", rows[::-1].copy()[::-1]
    misaligned = np.frombuffer(b"x" + rows.tobytes(), np.uint8)[1:].view(np.float32).reshape(rows.shape)
    assert not misaligned.flags.aligned and misaligned.flags.c_contiguous
    yield "misaligned", misaligned
    read_only = rows.copy()
    read_only.flags.writeable = False
    yield "read-only", read_only
    np.save(folder / "rows.npy", rows)
    yield "mapped", np.load(folder / "rows.npy", mmap_mode="r")
    yield "double", rows.astype(np.float64)
    yield "swapped", rows.astype(">f4")
    yield "list", rows.astype(np.float64).tolist()
    yield "dlpack", Dlpack(rows)


def test_every_form_of_the_same_rows(sides, tmp_path):
    images, texts = sides
    want = itmatch.evaluate(images, texts)
    for name, form in forms(images, tmp_path):
        assert itmatch.evaluate(form, texts) == want, name
    half = images.astype(np.float16)
    assert itmatch.evaluate(half, texts) == itmatch.evaluate(half.astype(np.float32), texts)


@pytest.mark.parametrize(
    ("images", "texts", "more", "error", "line"),
    [
        (np.ones((2, 3), int), np.ones((2, 3)), {}, TypeError, "images: expected float16, float32 or float64, got int64"),
        (np.ones((2, 3)), np.ones((2, 3), bool), {}, TypeError, "texts: expected float16, float32 or float64, got bool"),
        (np.array([[object()]]), np.ones((1, 1)), {}, TypeError, "images: expected float16, float32 or float64, got object"),
        ([[1.0], [1.0, 2.0]], np.ones((1, 1)), {}, TypeError, "images: expected float16, float32 or float64 in the memory of the CPU, got "),
        (Dlpack(np.ones((2, 3), np.float32), 2), np.ones((2, 3)), {}, TypeError, "24 bytes on a device: copy them to the CPU first"),
        (np.ones(3), np.ones((1, 3)), {}, ValueError, r"images: expected rows and columns, got an array of shape \(3,\)"),
        (np.ones((2, 3)), np.ones((2, 4)), {}, ValueError, "^texts: expected the width of images, 3, got 4$"),
        (np.ones((2, 3)), np.array([[1, 2, 3], [1, np.nan, 3]]), {}, ValueError, "^texts, row 1, column 1: expected a finite number, got NaN$"),
        (np.array([[1e300]]), np.ones((1, 1)), {}, ValueError, "^images, row 0, column 0: expected a finite number, got inf$"),
        (np.ones((2, 3)), np.ones((3, 3)), {}, ValueError, "^pairs: expected a number of texts for each of 2 images, got 3 texts: name the pairs$"),
        (np.ones((0, 3)), np.ones((0, 3)), {}, ValueError, "^images: expected at least 1 row, got 0$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": [0, 2]}, ValueError, "^pairs, text 1: expected an image below 2, got 2$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": [0, -1]}, ValueError, "^pairs: expected images counted from 0, got a negative number$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": np.array([0, 2**63], np.uint64)}, ValueError, "^pairs, value 1: expected a whole number below 9223372036854775808, got 9223372036854775808$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": [0.0, 1.0]}, TypeError, "^pairs: expected whole numbers in one dimension, got float64"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": [0]}, ValueError, "^pairs: expected the image of each of 2 texts, got 1$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": {0: [2]}}, ValueError, "^pairs, image 0: expected a whole number below 2, got 2$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": {"a.jpg": [0]}}, TypeError, "^pairs: expected a whole number, got 'a.jpg'$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": (np.eye(2) == 1).tolist()}, TypeError, "^pairs, image 0: expected a whole number, got True$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": {True: [0]}}, TypeError, "^pairs: expected a whole number, got True$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": {0: "12"}}, ValueError, "^pairs, image 0: expected a whole number below 2, got 12$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": {0: None}}, TypeError, "^pairs, image 0: expected a whole number, got None$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": {2**64: [0]}}, ValueError, "^pairs: expected a whole number below 2, got 18446744073709551616$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": {0: {0: np.nan}}}, ValueError, "^pairs, image 0, value 0: expected a finite number, got nan$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"pairs": {0: {0: "1"}}}, TypeError, "^pairs, image 0: expected numbers in one dimension, got <U1"),
        (np.ma.masked_equal([[1.0, 2.0]], 2), np.ones((1, 2)), {}, ValueError, "^images: expected float16, float32 or float64 without a mask, got masked values$"),
        ([np.ma.masked_equal([1.0, 2.0], 2)], np.ones((1, 2)), {}, ValueError, "^images: expected float16, float32 or float64 without a mask, got masked values$"),
        (Masked(), np.ones((1, 2)), {}, ValueError, "^images: expected float16, float32 or float64 without a mask, got masked values$"),
        (Bfloat16(), np.ones((2, 3)), {}, TypeError, "^images: expected float16, float32 or float64 in the memory of the CPU, got unsupported ScalarType BFloat16$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"protocol": "coco"}, ValueError, "^protocol: expected a name that is known, got unknown variant `coco`, expected one of `full`"),
        (np.ones((2, 3)), np.ones((2, 3)), {"protocol": "coco_5k"}, ValueError, r"^protocol coco_5k: expected 5000 images \(protocol full takes any number\), got 2$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"ties": "first"}, ValueError, "^ties: expected a name that is known, got unknown variant `first`"),
        (np.ones((2, 3)), np.ones((2, 3)), {"k": [0]}, ValueError, "^k: expected a whole number of at least 1, got 0$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"k": [1.5]}, TypeError, "^k: expected a whole number, got 1.5$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"k": np.eye(2)}, TypeError, "^k: expected a whole number, got array"),
        (np.ones((2, 3)), np.ones((2, 3)), {"k": [2**32]}, ValueError, "^k: expected a whole number below 4294967296, got 4294967296$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"k": 5}, TypeError, "^k: expected a list, got 5$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"k": ()}, ValueError, "^k: expected at least 1 number, got none$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"ties": None}, TypeError, "^ties: expected a string, got None$"),
        (np.ones((2, 3)), np.ones((2, 3)), {"protocol": 1}, TypeError, "^protocol: expected a string, got 1$"),
    ],
)
def test_bad_input_is_one_line(images, texts, more, error, line):
    with pytest.raises(error, match=line) as raised:
        itmatch.evaluate(images, texts, **more)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.filterwarnings("ignore")
def test_other_threads_run():
    images = unit_rows(4000, 256, 0)
    count, end = [0], threading.Event()

    def counting():
        while not end.is_set():
            count[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=counting)
    thread.start()
    while not count[0]:
        time.sleep(0.001)
    # A call that kept the lock would let the count stand still; one switch at its ends is not many.
    before = count[0]
    itmatch.hubness.report(images, images, methods=["csls"], resamples=0)
    counted = count[0] - before
    end.set()
    thread.join()
    assert counted > 100, counted


def test_search_is_argsort():
    queries, items = grid_rows(50, 6, 0), grid_rows(300, 6, 1)
    scores = (queries @ items.T).astype(np.float64)
    bias = np.random.default_rng(2).integers(0, 5, 300) / 2
    for biased, more in ((scores, {}), (scores - bias, {"bias": bias})):
        order = np.argsort(-biased, axis=1, kind="stable")[:, :7]
        found = itmatch.search(queries, items, 7, **more)
        np.testing.assert_array_equal(found.ids, order)
        np.testing.assert_array_equal(found.scores, np.take_along_axis(biased, order, axis=1))
    assert found.as_hits()[3][0] == {"corpus_id": int(order[3, 0]), "score": float(found.scores[3, 0])}
    assert itmatch.search(queries, items[:3], 7).ids.shape == (50, 3)
    for more in ({}, {"bias": bias}):
        assert itmatch.search(queries[:0], items, 7, **more).scores.shape == (0, 7)
    for bad, error, line in (
        ([0.0, 1.0], ValueError, "bias: expected one number for each of 300 items, got 2"),
        (300 * ["1"], TypeError, "bias: expected numbers in one dimension, got <U1 of shape"),
        (300 * [1j], TypeError, "bias: expected numbers in one dimension, got complex128 of shape"),
        (np.zeros((300, 1)), TypeError, r"bias: expected numbers in one dimension, got float64 of shape \(300, 1\)"),
        (Bfloat16(), TypeError, "bias: expected numbers in the memory of the CPU, got unsupported ScalarType BFloat16"),
        ([0.0, np.nan], ValueError, "bias, value 1: expected a finite number, got nan"),
    ):
        for call in (lambda: itmatch.search(queries, items, 7, bias=bad), lambda: itmatch.hubness.GreedyMatching().fit(queries, items, bias=bad)):
            with pytest.raises(error, match=line):
                call()


def test_significance_is_the_enumeration(sides):
    images, texts = unit_rows(14, 6, 0), unit_rows(28, 6, 1)
    texts += np.repeat(images, 2, axis=0)
    other = texts + 0.7 * unit_rows(28, 6, 2)
    found = itmatch.significance((images, texts), (images, other), replicates=500)

    def hits(texts):
        scores = images.astype(np.float64) @ texts.T
        order = np.argsort(-scores, axis=1, kind="stable") // 2
        first = np.argmax(order == np.arange(14)[:, None], axis=1)
        i2t = sum((first < k) / 14 for k in (1, 5, 10))
        back = np.argsort(np.argsort(-scores.T, axis=1, kind="stable"), axis=1)
        rank = back[np.arange(28), np.arange(28) // 2]
        return 100 * (i2t + sum((rank < k).reshape(14, 2).sum(axis=1) / 28 for k in (1, 5, 10)))

    a, b = hits(texts), hits(other)
    np.testing.assert_allclose([found["a"]["rsum"], found["b"]["rsum"]], [a.sum(), b.sum()])
    np.testing.assert_allclose(found["difference"]["rsum"], (a - b).sum())
    differences = (a - b)[np.abs(a - b) > 1e-9]
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(differences))).reshape(len(differences), -1)
    extreme = np.abs(differences @ signs) >= abs(differences.sum()) - 1e-9
    assert found["exact"] and found["differing_images"] == len(differences) > 3
    np.testing.assert_allclose(found["p"], extreme.mean())
    low, high = found["ci95"]["rsum"]
    assert low < found["difference"]["rsum"] < high
    same = itmatch.significance([(images, texts)], [(images, texts)], replicates=10)
    assert same["p"] == 1.0 and same["ci95"]["rsum"] == (0.0, 0.0)
    with pytest.raises(TypeError, match="a: expected \\(images, texts\\) or a list of such tuples"):
        itmatch.significance(images, (images, texts))
    with pytest.raises(TypeError, match="^b: expected a list, got 5$"):
        itmatch.significance((images, texts), 5)
    for more in ({"seed": -1}, {"replicates": -1}):
        with pytest.raises(ValueError, match="expected a whole number of at least 0, got -1"):
            itmatch.significance((images, texts), (images, other), **more)
