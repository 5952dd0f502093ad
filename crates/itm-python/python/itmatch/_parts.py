"""Parts of a pass that several processes or machines share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _itmatch
from ._arrays import cuts, numbers, real, rows, several, shown, string, true_pairs, vector
from ._hits import Hits


class Part:
    """What a rectangle of the scores gives (`itmatch.part`). Parts pickle, and join in any order."""

    def __init__(self, native: _itmatch.Part) -> None:
        self._native = native

    def join(self, other: Part) -> Part:
        """The union. Refuses other settings, rows and processors, and a score that both have seen."""
        if not isinstance(other, Part):
            raise TypeError(f"other: expected a part, got {shown(other)}")
        return Part(self._native.join(other._native))

    @property
    def covered(self) -> list[tuple[slice, slice]]:
        """Rows of images and of texts, for each rectangle."""
        return [(slice(*images), slice(*texts)) for images, texts in self._native.covered()]

    def finish(
        self,
        pairs: Any = None,
        pair_scores: ArrayLike | None = None,
        *,
        k: Sequence[int] = (1, 5, 10),
        ties: str = "index",
    ) -> Any:
        """The result of the whole, as one process gives it; refuses holes.

        Lists of `top_texts` and `top_images` are `Hits`, `pair_scores` and sums an array, moments two: mean and deviation. `ranks` needs the pairs and scores that the parts
        were made with, and gives the dict of `itmatch.evaluate` without mAP@R and R-precision, which need lists. Other parts take no arguments.
        """
        cut, ties = cuts(k), string("ties", ties)
        if self._native.has_ranks():
            if pair_scores is None:
                raise ValueError("pair_scores: expected the scores of the pairs, got none")
            images, texts = self._native.whole()
            pairs, scores = true_pairs("pairs", pairs, images, texts), vector("pair_scores", pair_scores, np.float32)
            found, lines = self._native.ranks(pairs, images, scores, cut, ties)
            for line in lines:
                warnings.warn(line, stacklevel=2)
            return found
        if pairs is not None or pair_scores is not None or cut != [1, 5, 10] or ties != "index":
            raise ValueError("finish: expected a part of ranks for pairs, pair_scores, k or ties, got another part")
        lists = self._native.lists()
        if lists is not None:
            return Hits(*lists)
        sums = self._native.sums()
        if sums is not None:
            return sums[0] if len(sums) == 1 else tuple(sums)
        return self._native.pair_scores()

    def to_bytes(self) -> bytes:
        """The bytes of a safetensors file, which `hubness merge` reads too."""
        return self._native.to_bytes()

    @staticmethod
    def from_bytes(data: bytes) -> Part:
        """Reads the bytes of a part."""
        return Part(_itmatch.Part.of_bytes(data))

    def __reduce__(self) -> tuple[Any, ...]:
        return Part.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"<Part of {len(self.covered)} rectangles>"


def part(
    images: ArrayLike,
    texts: ArrayLike,
    *,
    origin: tuple[int, int],
    whole: tuple[int, int],
    keep: str,
    k: int = 10,
    beta: float = 30.0,
    pairs: Any = None,
    pair_scores: ArrayLike | None = None,
) -> Part:
    """A part: the scores of some images with some texts.

    They begin at row `origin` (image, text) of a `whole` of so many images and texts. `keep`: top_texts or top_images (the `k` best
    items of every query), pair_scores (of the true pairs), ranks (needs `pair_scores`, finished first); sums_of_images or sums_of_texts
    (log sum exp(`beta` s) over the other side), moments_of_images or moments_of_texts, which begin and end at multiples of 4096 rows or at the end. `pairs` are the pairs of
    the whole, in the forms of `evaluate`.

    >>> import numpy as np, itmatch
    >>> images, texts = np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32)[::-1]
    >>> halves = [itmatch.part(images, texts[c:c + 2], origin=(0, c), whole=(4, 4), keep="top_texts", k=1) for c in (0, 2)]
    >>> halves[1].join(halves[0]).finish().ids.ravel().tolist()
    [3, 2, 1, 0]
    """
    images, texts = rows("images", images), rows("texts", texts)
    origin, whole = _place("origin", origin), _place("whole", whole)
    for name, value, keeps in (("pairs", pairs, ("pair_scores", "ranks")), ("pair_scores", pair_scores, ("ranks",))):
        if value is not None and string("keep", keep) not in keeps:
            raise ValueError(f"{name}: expected none, because only {' and '.join(keeps)} take them, got some")
    pairs = true_pairs("pairs", pairs, *whole) if string("keep", keep) in ("pair_scores", "ranks") else None
    scores = None if pair_scores is None else vector("pair_scores", pair_scores, np.float32)
    return Part(_itmatch.part(images, texts, origin, whole, keep, numbers("k", k), real("beta", beta), pairs, scores))


def _place(name: str, value: Any) -> tuple[int, int]:
    image, text = several(name, value, "images", "texts")
    return numbers(name, image, 0), numbers(name, text, 0)
