"""A scan for planted hubs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _itmatch
from ._arrays import numbers, real, rows


class Scan:
    """What `scan` found: `alerts`, `summary`, `counts`; `admit` is the gate for new items. It keeps a copy of the queries, and does not pickle."""

    def __init__(self, native: _itmatch.Scan, queries: NDArray[np.float32], false_alarms: float, alerts: int | None) -> None:
        self._native = native
        self._queries = queries.copy()  # `admit` reads them later
        self._budget = (false_alarms, alerts)

    @property
    def alerts(self) -> list[dict[str, Any]]:
        """The suspicious items, the most suspicious first: item, count (N_k), first (N_1), z, clusters, capture, score, false_alarms."""
        return json.loads(self._native.alerts(*self._budget))

    @property
    def summary(self) -> dict[str, Any]:
        """Numbers of queries, items and clusters; the median, deviation, 99.9th percentile and maximum of N_k."""
        return json.loads(self._native.summary())

    @property
    def counts(self) -> NDArray[np.uint32]:
        """N_k of every item."""
        return self._native.counts()

    def admit(self, items: ArrayLike) -> list[dict[str, Any]]:
        """Judges new items, each alone against the collection: the keys of an alert, `refused`, and `sentence`, which says why."""
        found, lines = self._native.admit(self._queries, rows("items", items), *self._budget)
        return [{**verdict, "sentence": line} for verdict, line in zip(json.loads(found), lines)]

    def __repr__(self) -> str:
        of = self.summary
        return f"<Scan of {of['items']} items over {of['queries']} queries, {len(self.alerts)} alerts>"


def scan(
    queries: ArrayLike,
    items: ArrayLike,
    *,
    k: int = 10,
    false_alarms: float = 0.1,
    alerts: int | None = None,
) -> Scan:
    """Items that answer suspiciously many queries of a bank: hubs that were planted.

    N_k(j) is how many queries have item j among their `k` best. Its robust z-score is `(N_k - median) / (1.4826 MAD)` over all items;
    where MAD is 0, the deviation is 1.2533 times the mean distance to the median. Queries are in clusters (k-means, at most 32). `spread`
    is the entropy of an item's queries over the clusters, divided by its maximum; `capture` the largest share of one cluster's queries
    that have the item first. An item's score is `z max(spread, capture)`: a planted hub answers queries from everywhere, or nearly all
    queries of one cluster, a natural hub some queries of few.

    An alert is an item whose score `false_alarms` natural items are expected to reach, by the tail of all scores; or, with `alerts`, one
    of the items with the largest scores above 0, at most `alerts` of them.

    >>> import numpy as np, itmatch
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.normal(size=(10, 24)).repeat(50, axis=0)
    >>> queries, items = (itmatch.unit(topics + rng.normal(size=(500, 24)) + shift) for shift in (0.7, 0.0))
    >>> found = itmatch.hubness.scan(queries, np.vstack([items, itmatch.unit(np.ones((1, 24)))]))
    >>> [alert["item"] for alert in found.alerts]
    [500]
    >>> found.admit(itmatch.unit(np.ones((1, 24))))[0]["refused"]
    True
    """
    queries, items = rows("queries", queries), rows("items", items)
    most = None if alerts is None else numbers("alerts", alerts)
    found = Scan(_itmatch.scan(queries, items, numbers("k", k)), queries, real("false_alarms", false_alarms), most)
    found.alerts  # refuses a bad budget here
    return found
