"""Lists of the best items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Hits(NamedTuple):
    """The best items of every query, the best first; equal scores by the smaller index."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]

    def as_hits(self) -> list[list[dict[str, Any]]]:
        """The form of sentence-transformers' `semantic_search`."""
        pairs = (zip(ids, scores) for ids, scores in zip(self.ids.tolist(), self.scores.tolist()))
        return [[{"corpus_id": id_, "score": score} for id_, score in query] for query in pairs]
