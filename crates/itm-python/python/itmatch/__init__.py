"""Image-text matching: exact ranks in bounded memory, significance, and corrections for hubs.

Every function takes rows of embeddings: NumPy arrays of float16, float32 or float64, or anything that becomes one (`__array__`, or
`__dlpack__` in the memory of the CPU). Rows are used as they are, so scores are inner products; for cosines call `unit` first.
Aligned C-ordered float32 arrays are read where they lie, also from a memory map. Any other array is copied to float32.

A call lets other threads of Python run. Do not change an array during a call. A child process must be started by
multiprocessing's `spawn`: a fork of a process that has called itmatch has none of its threads, and the call says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _itmatch, embed, hubness
from ._arrays import cuts, numbers, rows, several, string, true_pairs, vector
from ._hits import Hits
from ._parts import Part, part

__all__ = ["Hits", "Part", "embed", "evaluate", "hubness", "part", "search", "significance", "unit"]
__version__ = _itmatch.__version__


def evaluate(
    images: ArrayLike,
    texts: ArrayLike,
    pairs: Any = None,
    *,
    relevance: Any = None,
    k: Sequence[int] = (1, 5, 10),
    protocol: str = "full",
    ties: str = "index",
) -> dict[str, float]:
    """Recalls and ranks of both directions, without the matrix of scores.

    `pairs` says which text belongs to which image:

    - None: the same number of texts for each image, in order;
    - an array or a list of integers: the image of each text;
    - a dict by image (or a list with a collection for each image): the texts that are true of each image. An entry of a dict is one text, a
      collection or a dict of grades (above 0 is true).
      A text may be true of several images, or of none. Keys may be numbers or their digits.

    `relevance` has all true pairs, in the same forms, where `pairs` are only the annotated ones. With it, or if a text of `pairs`
    is not true of exactly one image, mAP@R and R-precision are in the result.

    `protocol`: full, flickr_1k, coco_1k_folds, coco_first_1k, coco_5k. `ties`, the place of a true item among equal scores: index
    (the smaller index first), optimistic, pessimistic, expected.

    The result has plain numbers: for each direction (i2t, t2i) the recalls in percent, the median rank, rounded down (over folds the
    mean of their medians), and the mean rank (1 is best), and the number of queries that hit or miss by the order of equal scores
    alone; `rsum`, the sum of the recalls; the numbers of queries and folds. Ties that decide are a warning; `hubness.report` looks for odd rows too.

    >>> import numpy as np, itmatch
    >>> images = np.array([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]], dtype=np.float32)
    >>> found = itmatch.evaluate(images, np.eye(3, dtype=np.float32))
    >>> round(found["i2t_r1"], 1), found["t2i_r1"], found["i2t_median_rank"]
    (33.3, 100.0, 2.0)
    """
    images, texts = rows("images", images), rows("texts", texts)
    pairs = true_pairs("pairs", pairs, len(images), len(texts))
    if relevance is not None:
        relevance = true_pairs("relevance", relevance, len(images), len(texts))
    protocol, ties = string("protocol", protocol), string("ties", ties)
    found, lines = _itmatch.evaluate(images, texts, pairs, relevance, cuts(k), protocol, ties)
    for line in lines:
        warnings.warn(line, stacklevel=2)
    return found


def significance(
    a: Any,
    b: Any,
    pairs: Any = None,
    *,
    protocol: str = "full",
    ties: str = "index",
    replicates: int = 10_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Whether system `a` differs from system `b` on the same images and texts.

    A system is a tuple `(images, texts)`, or a list of such tuples, one for each seed of its training. The unit is the image with
    its texts: captions of one image are not independent. The result has the recalls of both, their differences with 95 % intervals
    (paired bootstrap), and the two-sided p of the rSum (paired randomisation; `exact` if all signs were tried). Options as in
    `evaluate`.

    >>> import numpy as np, itmatch
    >>> images, texts = np.eye(8, dtype=np.float32), np.eye(8, dtype=np.float32)
    >>> worse = texts[[1, 0, 3, 2, 5, 4, 6, 7]]
    >>> found = itmatch.significance((images, texts), (images, worse))
    >>> found["difference"]["i2t_r1"], found["p"], found["exact"]
    (75.0, 0.03125, True)
    """
    systems = []
    for name, system in (("a", a), ("b", b)):
        runs = [system] if isinstance(system, tuple) else several(name, system)
        if not all(isinstance(run, tuple) and len(run) == 2 for run in runs) or not runs:
            raise TypeError(f"{name}: expected (images, texts) or a list of such tuples, got something else")
        systems.append([(rows(f"{name}, images", v), rows(f"{name}, texts", w)) for v, w in runs])
    images, texts = systems[0][0]
    pairs = true_pairs("pairs", pairs, len(images), len(texts))
    protocol, ties = string("protocol", protocol), string("ties", ties)
    replicates, seed = numbers("replicates", replicates, 0), numbers("seed", seed, 0, 2**64)
    return _itmatch.significance(*systems, pairs, protocol, ties, replicates, seed)


def search(queries: ArrayLike, items: ArrayLike, k: int, bias: ArrayLike | None = None) -> Hits:
    """The `k` items with the largest inner product minus `bias`, one number per item; all items, if there are fewer.

    >>> import numpy as np, itmatch
    >>> queries, items = np.array([[1.0, 0.5]]), np.eye(2)
    >>> itmatch.search(queries, items, 1).ids.tolist(), itmatch.search(queries, items, 1, bias=[0.6, 0.0]).ids.tolist()
    ([[0]], [[1]])
    """
    if bias is not None:
        bias = vector("bias", bias, np.float64)
    found = _itmatch.search(rows("queries", queries), rows("items", items), numbers("k", k), bias)
    return Hits(*found)


def unit(values: ArrayLike) -> NDArray[np.float32]:
    """Rows of unit length, a copy; rows that are zero as float32 stay zero.

    >>> import itmatch
    >>> itmatch.unit([[3.0, -4.0], [0.0, 0.0]]).round(1).tolist()
    [[0.6000000238418579, -0.800000011920929], [0.0, 0.0]]
    """
    return _itmatch.unit(rows("rows", values))
