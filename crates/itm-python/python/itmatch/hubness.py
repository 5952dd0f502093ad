"""Hubs: a report, and corrections of scores that are fitted on a bank of queries.

Every correction has manners of scikit-learn's estimators: settings in the constructor, `fit`, attributes that end in an
underscore, `get_params`, `set_params`, pickles. `sklearn.base.clone` takes one, `check_is_fitted` does not.

>>> import numpy as np, itmatch
>>> bank = np.array([[0.9, 0.2], [0.8, 0.3]], dtype=np.float32)  # item 0 is a hub
>>> csls = itmatch.hubness.Csls(k=2).fit(bank, np.eye(2, dtype=np.float32))
>>> csls
<Csls(k=2), held_out>
>>> csls.search(np.array([[0.7, 0.6]]), np.eye(2), 1).ids.tolist()
[[1]]
>>> itmatch.search(np.array([[0.7, 0.6]]), np.eye(2), 1, bias=csls.item_bias_).ids.tolist()
[[1]]
"""

from __future__ import annotations

import html
import inspect
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _itmatch
from ._arrays import flag, judged, numbers, real, rows, several, string, true_pairs, vector
from ._hits import Hits
from ._scan import Scan, scan

if TYPE_CHECKING:
    from typing_extensions import Self  # of `typing` since CPython 3.11

__all__ = [
    "Auto",
    "Csls",
    "DbNorm",
    "GreedyMatching",
    "InvertedSoftmax",
    "LocalScaling",
    "MutualProximity",
    "Nnn",
    "NotFittedError",
    "QbNorm",
    "Report",
    "Scan",
    "Sinkhorn",
    "report",
    "scan",
]


class NotFittedError(ValueError, AttributeError):
    """A correction was used before `fit`."""


class _Estimator:
    """Settings, which a subclass names in its constructor."""

    @classmethod
    def _names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Changes settings; they hold from the next `fit` on."""
        for name, value in params.items():
            if name not in self._names():
                raise ValueError(f"{type(self).__name__}: expected one of {', '.join(self._names())}, got {name}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({settings})"


class _Correction(_Estimator):
    """`fit`, and what follows from it. The native method of the same name has the same settings."""

    def fit(
        self,
        bank_queries: ArrayLike,
        items: ArrayLike,
        *,
        bank_items: ArrayLike | None = None,
        transductive: bool = False,
    ) -> Self:
        """Fits on the scores of a bank of queries with the items that will be searched.

        The bank is held out: draw it from training data, never from queries that will be searched or on which settings are chosen.
        `transductive` says that it is the queries of the test themselves; results of one query then depend on the others. Only
        DbNorm takes `bank_items`, items of training data.
        """
        bank, items = rows("bank_queries", bank_queries), rows("items", items)
        more = None if bank_items is None else rows("bank_items", bank_items)
        if more is not None and not isinstance(self, DbNorm):
            raise ValueError("bank_items: expected none, because only DbNorm takes them, got some")
        method = getattr(_itmatch.Method, type(self).__name__)(**self._settings())
        self._fitted, made = method.fit(bank, items, more, flag("transductive", transductive))
        if made is not None:
            vars(self).update(n_iter_=made[0], row_error_=made[1])
        self.n_features_in_ = bank.shape[1]
        self.n_items_ = items.shape[0]
        return self

    def _settings(self) -> dict[str, Any]:
        """Each setting, checked by the kind of its default."""
        checks = {bool: flag, float: real, int: _count, str: string}
        defaults = inspect.signature(type(self)).parameters
        return {name: checks[type(defaults[name].default)](name, value) for name, value in self.get_params().items()}

    def _correction(self) -> _itmatch.Correction:
        try:
            return self.__dict__["_fitted"]
        except KeyError:
            raise NotFittedError(f"{type(self).__name__}: expected a call of fit first, got none") from None

    @property
    def knowledge(self) -> str:
        """What the correction has seen: held_out or transductive."""
        return self._correction().knowledge()

    @property
    def item_bias_(self) -> NDArray[np.float64]:
        """What each item loses, in units of the score: a search by `score - item_bias_` is the corrected search.

        A transductive inverted softmax with a `beta` of some hundreds can have finer differences than a bias holds: there `search` is exact.
        """
        try:
            return self._correction().biases()
        except NotFittedError:
            raise
        except ValueError as error:
            raise AttributeError(f"{type(self).__name__}: {error}") from None

    def transform(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Corrected scores: one row for each query, one column for each item."""
        return self._correction().transform(rows("scores", scores))

    def search(self, queries: ArrayLike, items: ArrayLike, k: int) -> Hits:
        """The `k` best items of each query under the correction, and their corrected scores (`itmatch.Hits`)."""
        fitted = self._correction()
        return Hits(*fitted.search(self._rows("queries", queries), self._rows("items", items), numbers("k", k)))

    def export(self, items: ArrayLike, centre: float | None = None) -> NDArray[np.float32]:
        """Item vectors with one more dimension, for an engine that finds the largest inner product.

        Search with a 1 behind each query: the result is the corrected ranking. A transductive inverted softmax with a `beta`
        of a hundred or more can have finer differences than float32 holds: there `search` is exact. Biases are measured from `centre`, by
        default their mean. All shards of one index must have one centre, for example `item_bias_.mean()` of the first.
        """
        return self._correction().export(self._rows("items", items), None if centre is None else real("centre", centre))

    def _rows(self, name: str, values: Any) -> NDArray[np.float32]:
        found = rows(name, values)
        if found.shape[1] != self.n_features_in_:
            raise ValueError(f"{name}: expected the width of the fit, {self.n_features_in_}, got {found.shape[1]}")
        return found

    def __repr__(self) -> str:
        call = super().__repr__()
        return f"<{call}, {self.knowledge}>" if "_fitted" in self.__dict__ else call


class Csls(_Correction):
    """Cross-domain similarity local scaling: `2 s - r`, with `r` the mean of an item's `k` largest scores in the bank."""

    def __init__(self, k: int = 10) -> None:
        self.k = k


class InvertedSoftmax(_Correction):
    """Inverted softmax: `beta s - log sum exp(beta s)` over the bank's queries."""

    def __init__(self, beta: float = 30.0) -> None:
        self.beta = beta


class Nnn(_Correction):
    """Nearest neighbour normalisation: `s - alpha r`, with `r` the mean of an item's `k` largest scores in the bank."""

    def __init__(self, alpha: float = 0.75, k: int = 128) -> None:
        self.alpha = alpha
        self.k = k


class QbNorm(_Correction):
    """Query-bank normalisation: the inverted softmax; if `dynamic`, only where a query's best item is among a bank query's `k`."""

    def __init__(self, beta: float = 20.0, k: int = 1, dynamic: bool = True) -> None:
        self.beta = beta
        self.k = k
        self.dynamic = dynamic


class DbNorm(_Correction):
    """Normalisation by two banks (Dual-IS; Dual-DIS if `dynamic`): `fit` needs `bank_items`. The settings suit cosines."""

    def __init__(
        self,
        query_beta: float = 20.0,
        item_beta: float = 10.0,
        query_k: int = 1,
        item_k: int = 1,
        dynamic: bool = False,
    ) -> None:
        self.query_beta = query_beta
        self.item_beta = item_beta
        self.query_k = query_k
        self.item_k = item_k
        self.dynamic = dynamic


class Sinkhorn(_Correction):
    """Entropic optimal transport between the bank's queries and the items.

    `n_iter_` has the iterations that were made, `row_error_` by how much of its equal share a bank query is off at most.
    """

    n_iter_: int
    row_error_: float

    def __init__(self, epsilon: float = 0.03, iterations: int = 20, tolerance: float = 1e-3) -> None:
        self.epsilon = epsilon
        self.iterations = iterations
        self.tolerance = tolerance


class LocalScaling(_Correction):
    """Local scaling (`form` local_scaling) or NICDM (nicdm), for cosines."""

    def __init__(self, form: str = "local_scaling", k: int = 10) -> None:
        self.form = form
        self.k = k


class MutualProximity(_Correction):
    """Mutual proximity, by normal distributions (`form` gaussian) or by counting (empirical: holds the bank's scores)."""

    def __init__(self, form: str = "gaussian") -> None:
        self.form = form


class Auto(_Correction):
    """The best of nearest neighbours, CSLS and the inverted softmax on a validation set; then fitted as they are.

    `fit` needs `validation`: queries, items, and the true items of each query, in a list or in a dict by query: one item, a collection
    or a dict of grades (above 0 is true). Every candidate is fitted on the bank for the validation items, and the sum of its recalls
    at 1, 5 and 10 on the validation queries is its score; of equal scores the first candidate wins, and nearest neighbours come first.
    The bank must not hold validation queries.
    """

    def __init__(self) -> None:
        pass

    def fit(
        self,
        bank_queries: ArrayLike,
        items: ArrayLike,
        *,
        validation: tuple[ArrayLike, ArrayLike, Any] | None = None,
        bank_items: ArrayLike | None = None,
        transductive: bool = False,
    ) -> Self:
        queries, of, pairs = several("validation", validation, "queries", "items", "true items of each query")
        queries, of = rows("validation, queries", queries), rows("validation, items", of)
        truth = _truths(pairs, len(queries), len(of))
        bank = rows("bank_queries", bank_queries)
        found: dict[_Correction, float] = {}
        for candidate in _candidates():
            hits = candidate.fit(bank, of, bank_items=bank_items).search(queries, of, 10).ids
            right = [[item in true for item in best] for best, true in zip(hits.tolist(), truth)]
            found[candidate] = sum(100.0 * float(np.mean([any(row[:k]) for row in right])) for k in (1, 5, 10))
        best = max(found, key=found.__getitem__)  # the first of equal ones
        self.best_estimator_ = best.fit(bank, items, transductive=transductive)  # first, because it may refuse the items
        self.scores_ = {_name(candidate): score for candidate, score in found.items()}
        self.chosen_ = _name(best)
        self._fitted = best._fitted
        self.n_features_in_, self.n_items_ = best.n_features_in_, best.n_items_
        return self


def _candidates() -> list[_Correction]:
    ks = (100, 50, 30, 20, 10, 5, 3, 2, 1)
    betas = (2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 150.0, 200.0)
    return [Nnn(alpha=0.0, k=1), *(Csls(k) for k in ks), *(InvertedSoftmax(beta) for beta in betas)]


def _name(candidate: _Correction) -> str:
    if isinstance(candidate, Nnn):
        return "nns"
    return f"csls k={candidate.k}" if isinstance(candidate, Csls) else f"is beta={candidate.beta:g}"


def _count(name: str, value: Any) -> int:
    return numbers(name, value, 0)


def _truths(pairs: Any, queries: int, items: int) -> list[set[int]]:
    place = "validation, pairs"
    if not isinstance(pairs, Mapping):
        pairs = dict(enumerate(several(place, pairs)))
    if queries == 0:
        raise ValueError("validation, queries: expected at least 1 query, got 0")
    if len(pairs) != queries:
        raise ValueError(f"{place}: expected the true items of each of {queries} queries, got {len(pairs)}")
    truth: list[set[int]] = [set() for _ in range(queries)]
    for query, found in judged(place, "query", pairs, queries, items):
        truth[query].update(found)
    if not all(truth):
        raise ValueError(f"{place}, query {truth.index(set())}: expected a true item, got none")
    return truth


class GreedyMatching(_Estimator):
    """Relaxed greedy matching: an item serves at most `relaxation` times its fair share of the queries; pairs with high scores first.

    It matches queries that are all there: `fit` does it, and there is nothing to search or to export.

    >>> import numpy as np
    >>> scores = np.array([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]])  # item 0 is a hub
    >>> GreedyMatching(k=1, relaxation=1.0).fit(scores, np.eye(3)).ids_.ravel().tolist()
    [0, 1, 2]
    """

    knowledge = "transductive"

    def __init__(self, k: int = 10, relaxation: float = 2.0) -> None:
        self.k = k
        self.relaxation = relaxation

    def fit(self, queries: ArrayLike, items: ArrayLike, *, bias: ArrayLike | None = None) -> Self:
        """Matches; with `bias`, by score minus bias.

        `ids_` has the items of each query, best first, then -1, in `k` columns, or one for each item if there are fewer; `counts_` the
        queries of each item.
        """
        queries, items = rows("queries", queries), rows("items", items)
        if bias is not None:
            bias = vector("bias", bias, np.float64)
        self.ids_ = _itmatch.matching(queries, items, numbers("k", self.k), real("relaxation", self.relaxation), bias)
        self.counts_ = np.bincount(self.ids_[self.ids_ >= 0], minlength=len(items))
        self.n_features_in_, self.n_items_ = queries.shape[1], len(items)
        return self


class Report:
    """What `report` found. In a notebook it shows itself; `print` gives the text of a terminal."""

    def __init__(self, native: _itmatch.Report) -> None:
        self._native = native
        self._data = json.loads(native.json())

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict for each method, nearest neighbours first."""
        return self._data["rows"]

    @property
    def hubs(self) -> dict[str, Any]:
        """The hubs of nearest neighbours for each direction: measures, the worst items by name, histograms."""
        return self._data["hubs"]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as `hubness report --json`."""
        return self._data

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one page with plots."""
        self._native.write_html(os.fspath(path))

    def _repr_html_(self) -> str:
        page = html.escape(self._native.html())
        return f'<iframe srcdoc="{page}" width="100%" height="700" style="border:0"></iframe>'

    def __str__(self) -> str:
        return self._native.text(100)

    def __repr__(self) -> str:
        data = self._data["data"]
        return f"<Report of {data['images']} images, {data['texts']} texts, {len(self.rows)} methods>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (self._native.json(),)


def _read(text: str) -> Report:
    return Report(_itmatch.Report.of_json(text))


def report(
    images: ArrayLike,
    texts: ArrayLike,
    pairs: Any = None,
    *,
    methods: Sequence[str] = (),
    banks: tuple[ArrayLike, ArrayLike] | None = None,
    image_names: Sequence[str] | None = None,
    text_names: Sequence[str] | None = None,
    seed: int = 0,
    resamples: int = 10_000,
    **settings: Any,
) -> Report:
    """Nearest neighbours and corrections side by side: recalls with intervals and tests, hubs by name. As `hubness report`.

    `methods` are names such as "csls", "is", "csls+rgm", "auto"; by default all that the input allows. `banks` are held-out rows
    (images, texts): corrections are fitted on them too. Further keywords are the settings of the corrections (`csls_k`, `is_beta`,
    ...): numbers, lists of numbers, or "auto". Rows are used as they are; methods for cosines need rows of unit length.

    >>> import numpy as np, itmatch
    >>> rows = itmatch.unit(np.random.default_rng(0).normal(size=(20, 8)))
    >>> found = itmatch.hubness.report(rows, rows, methods=["csls"], resamples=100)
    >>> [(row["method"], row["setting"]) for row in found.rows]
    [('nns', 'plain'), ('csls', 'transductive')]
    """
    images, texts = rows("images", images), rows("texts", texts)
    guessed, pairs = pairs is None, true_pairs("pairs", pairs, len(images), len(texts))
    note = _guessed(len(images), len(texts)) if guessed else None
    if banks is not None:
        bank_images, bank_texts = several("banks", banks, "images", "texts")
        banks = (rows("banks, images", bank_images), rows("banks, texts", bank_texts))
    names = (_strings("image_names", image_names), _strings("text_names", text_names))
    methods = _strings("methods", [methods] if isinstance(methods, str) else methods) or []
    try:
        settings_ = json.dumps(settings, default=_number, allow_nan=False)
    except ValueError:
        raise ValueError("settings: expected finite numbers, or 'inf' for rgm_lambda, got NaN or an infinity") from None
    seed, resamples = numbers("seed", seed, 0, 2**64), numbers("resamples", resamples, 0)
    found = Report(_itmatch.report(images, texts, pairs, note, banks, names, methods, settings_, seed, resamples))
    for line in found.to_dict()["data"]["warnings"]:
        warnings.warn(line, stacklevel=2)
    return found


def _strings(name: str, values: Any) -> list[str] | None:
    return None if values is None else [string(f"{name}[{k}]", value) for k, value in enumerate(several(name, values))]


def _guessed(images: int, texts: int) -> str:
    """As the command line says it."""
    counts = ((images, "image"), (texts, "text"), (texts // images, "text"))
    return "pairs guessed from the shapes: {}, {}: {} per image, in order".format(*(f"{n} {what}{'s' * (n != 1)}" for n, what in counts))


def _number(value: Any) -> Any:
    """A number of NumPy."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
