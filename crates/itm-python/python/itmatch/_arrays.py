"""What users have, as the native half takes it. Every refusal is one line: place, expected, got."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

CPU = (1, 3)  # kDLCPU, kDLCUDAHost


def rows(name: str, values: Any) -> NDArray[np.float32]:
    """Aligned C-ordered float32 rows: `values` itself, or a copy where it is anything else."""
    array = _array(name, values)
    if array.dtype.kind != "f" or array.dtype.itemsize not in (2, 4, 8):
        raise TypeError(f"{name}: expected float16, float32 or float64, got {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"{name}: expected rows and columns, got an array of shape {array.shape}")
    with np.errstate(over="ignore"):  # infinity is refused with its row and column
        # Not `ascontiguousarray`: Dask, Arrow and pickle 5 may hand over arrays that are not aligned.
        return np.require(array, np.float32, ["C", "A"])


def _array(name: str, values: Any) -> NDArray[Any]:
    try:
        if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack_device__"):
            kind = int(values.__dlpack_device__()[0])
            if kind not in CPU:
                raise BufferError(f"{_bytes(values)} bytes on a device: copy them to the CPU first")
            if not hasattr(values, "__array__"):
                return np.from_dlpack(values)
        return np.asarray(values)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise TypeError(f"{name}: expected an array in the memory of the CPU, got {line}") from None


def _bytes(values: Any) -> Any:
    return getattr(values, "nbytes", "some")


def numbers(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected a whole number, got {value!r}") from None
    if isinstance(value, bool) or not 1 <= number < 2**32:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return number


def true_pairs(name: str, pairs: Any, images: int, texts: int) -> NDArray[np.int64] | list[list[int]]:
    """The image of each text; if a text has several, or none, the images of each text."""
    if pairs is None:
        if images == 0 or texts % images:
            raise ValueError(f"{name}: expected a number of texts for each of {images} images, got {texts} texts: name the pairs")
        return np.arange(texts, dtype=np.int64) // max(texts // images, 1)
    if isinstance(pairs, (list, tuple)) and any(not np.isscalar(entry) for entry in pairs):
        if len(pairs) != images:
            raise ValueError(f"{name}: expected the texts of each of {images} images, got {len(pairs)} lists")
        pairs = dict(enumerate(pairs))
    if isinstance(pairs, Mapping):
        return _judged(name, pairs, texts)
    array = _array(name, pairs)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"{name}: expected whole numbers in one dimension, got {array.dtype} of shape {array.shape}")
    if len(array) != texts:
        raise ValueError(f"{name}: expected the image of each of {texts} texts, got {len(array)}")
    return np.require(array, np.int64, ["C", "A"])


def _judged(name: str, pairs: Mapping[Any, Any], texts: int) -> NDArray[np.int64] | list[list[int]]:
    images_of: list[list[int]] = [[] for _ in range(texts)]
    for key, found in pairs.items():
        image = _row(name, key)
        if isinstance(found, Mapping):
            found = [text for text, grade in found.items() if grade > 0]
        for text in found:
            text = _row(f"{name}, image {image}", text)
            if text >= texts:
                raise ValueError(f"{name}, image {image}: expected a text below {texts}, got {text}")
            images_of[text].append(image)
    if all(len(images) == 1 for images in images_of):
        return np.array([images[0] for images in images_of], dtype=np.int64)
    return images_of


def _row(name: str, value: Any) -> int:
    try:
        row = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a row number, got {value!r}") from None
    if row < 0:
        raise ValueError(f"{name}: expected a row number of at least 0, got {row}")
    return row
