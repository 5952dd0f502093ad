"""What users have, as the native half takes it. Every refusal is one line: place, expected, got."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

CPU = (1, 3)  # kDLCPU, kDLCUDAHost


def rows(name: str, values: Any) -> NDArray[np.float32]:
    """Aligned C-ordered float32 rows: `values` itself, or a copy where it is anything else."""
    expected = "float16, float32 or float64"
    array = _array(name, values, expected)
    if array.dtype.kind != "f" or array.dtype.itemsize not in (2, 4, 8):
        raise TypeError(f"{name}: expected {expected}, got {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"{name}: expected rows and columns, got an array of shape {array.shape}")
    with np.errstate(over="ignore"):  # infinity is refused with its row and column
        # Not `ascontiguousarray`: Dask, Arrow and pickle 5 may hand over arrays that are not aligned.
        return np.require(array, np.float32, ["C", "A"])


def vector(name: str, values: Any, kind: type[np.number[Any]]) -> NDArray[Any]:
    """Finite numbers in one dimension; whole numbers if `kind` is."""
    whole = issubclass(kind, np.integer)
    expected = "whole numbers" if whole else "numbers"
    array = _array(name, values, expected)
    if array.dtype.kind not in ("iu" if whole else "biuf") or array.ndim != 1:
        raise TypeError(f"{name}: expected {expected} in one dimension, got {array.dtype} of shape {array.shape}")
    for at in np.flatnonzero(array >= 2**63) if whole and array.dtype.kind == "u" else ():
        raise ValueError(f"{name}, value {at}: expected a whole number below {2**63}, got {array[at]}")
    with np.errstate(over="ignore"):  # infinity is refused here
        array = np.require(array, kind, ["C", "A"])
    for at in np.flatnonzero(~np.isfinite(array)):
        raise ValueError(f"{name}, value {at}: expected a finite number, got {array[at]}")
    return array


def _array(name: str, values: Any, expected: str) -> NDArray[Any]:
    try:
        if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack_device__"):
            kind = int(values.__dlpack_device__()[0])
            if kind not in CPU:
                raise BufferError(f"{_bytes(values)} bytes on a device: copy them to the CPU first")
            if not hasattr(values, "__array__"):
                return np.from_dlpack(values)
        array = np.asanyarray(values)
        parts = values if isinstance(values, (list, tuple)) else [array]
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise TypeError(f"{name}: expected {expected} in the memory of the CPU, got {line.removeprefix('Got ')}") from None
    if any(map(np.ma.is_masked, parts)):  # `asarray` drops masks
        raise ValueError(f"{name}: expected {expected} without a mask, got masked values")
    return np.asarray(array)


def _bytes(values: Any) -> Any:
    return getattr(values, "nbytes", "some")


def numbers(name: str, value: Any, least: int = 1, below: int = 2**32) -> int:
    """A whole number from `least` on, below `below`."""
    try:
        if _is_bool(value):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected a whole number, got {shown(value)}") from None
    if not least <= number < below:
        bound = f"of at least {least}" if number < least else f"below {below}"
        raise ValueError(f"{name}: expected a whole number {bound}, got {number}")
    return number


def string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}, character {error.start}: expected a character of UTF-8, got {value[error.start]!r}") from None
    return value


def real(name: str, value: Any) -> float:
    try:
        if _is_bool(value) or isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}: expected a number of the range of float64, got one outside") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a number, got {shown(value)}") from None


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: expected True or False, got {shown(value)}")
    return bool(value)


def several(name: str, values: Any, *parts: str) -> list[Any]:
    """The values of a collection; one for each of `parts`, if there are any."""
    expected = f"({', '.join(parts)})" if parts else "a list"
    if _is_one(values):
        raise TypeError(f"{name}: expected {expected}, got {shown(values)}")
    values = list(values)
    if parts and len(values) != len(parts):
        raise ValueError(f"{name}: expected {expected}, got {len(values)} of them")
    return values


def cuts(k: Any) -> list[int]:
    """The k of recalls, each once."""
    found = list(dict.fromkeys(numbers("k", cut) for cut in several("k", k)))
    if not found:
        raise ValueError("k: expected at least 1 number, got none")
    return found


def true_pairs(name: str, pairs: Any, images: int, texts: int) -> NDArray[np.int64] | list[list[int]]:
    """The image of each text; if a text has several, or none, the images of each text."""
    if pairs is None:
        if images == 0:
            raise ValueError("images: expected at least 1 row, got 0")
        if texts % images:
            raise ValueError(f"{name}: expected a number of texts for each of {images} images, got {texts} texts: name the pairs")
        return np.arange(texts, dtype=np.int64) // max(texts // images, 1)
    if isinstance(pairs, (list, tuple)) and not all(map(_is_one, pairs)):
        if len(pairs) != images:
            raise ValueError(f"{name}: expected the texts of each of {images} images, got {len(pairs)} lists")
        pairs = dict(enumerate(pairs))
    if isinstance(pairs, Mapping):
        images_of: list[list[int]] = [[] for _ in range(texts)]
        for image, found in judged(name, "image", pairs, images, texts):
            for text in found:
                images_of[text].append(image)
        if any(len(found) != 1 for found in images_of):
            return images_of
        pairs = np.array([found[0] for found in images_of], dtype=np.int64)
    array = vector(name, pairs, np.int64)
    if len(array) != texts:
        raise ValueError(f"{name}: expected the image of each of {texts} texts, got {len(array)}")
    return array


def judged(name: str, query: str, pairs: Mapping[Any, Any], queries: int, items: int) -> Iterator[tuple[int, list[int]]]:
    """Each key with its true items: one, a collection, or a dict of grades."""
    for key, found in pairs.items():
        row = _row(name, key, queries)
        place = f"{name}, {query} {row}"
        if isinstance(found, Mapping):
            found = [item for item, grade in zip(found, vector(place, list(found.values()), np.float64)) if grade > 0]
        yield row, [_row(place, item, items) for item in ([found] if _is_one(found) else found)]


def _row(name: str, value: Any, below: int) -> int:
    digits = isinstance(value, str) and value.isdecimal()
    return numbers(name, int(value) if digits else value, 0, below)


def _is_bool(value: Any) -> bool:
    """Booleans of torch and of NumPy 1 are indices too. The name of a dtype takes long to make, so common numbers skip it."""
    return isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.generic)) and "bool" in str(getattr(value, "dtype", ""))


def _is_one(value: Any) -> bool:
    """Whether it is one value: a number (also an array without dimensions), a string or bytes."""
    if isinstance(value, (str, bytes)):
        return True
    try:
        iter(value)
    except TypeError:
        return True
    return False


def shown(value: Any) -> str:
    """In one line."""
    return " ".join(repr(value).split())
