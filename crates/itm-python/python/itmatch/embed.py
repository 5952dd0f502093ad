"""Rows of pictures and of sentences by a published model."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _itmatch
from ._arrays import numbers, string

__all__ = ["Embedder"]


class Embedder:
    """The encoders of a folder: CLIP, SigLIP, ViT, DINOv2, BERT or sentence-transformers.

    `model` is a folder, or a name such as openai/clip-vit-base-patch32 that is in the cache of Hugging Face's programs. `adapter` is
    the folder of a LoRA of PEFT; `precision`: f32, or bf16 for the products; `batch` pictures or sentences are read at a time.

    A process reads a folder once, however many embedders have it. An embedder pickles as its settings, so that engines can send it to
    workers: each worker reads the folder at its first call.

        embedder = itmatch.embed.Embedder("clip-vit-base-patch32")
        images = embedder.images(["1.jpg", "2.jpg"])        # float32 [2, 512]
        texts = embedder.texts(["two dogs", "a man on a horse"])
        itmatch.search(texts, images, 1)

    The rows have the bits of `itm embed` with the same batch. They are unit rows, but for folders of sentence-transformers without a
    module Normalize; `itmatch.unit` makes unit rows of those.
    """

    def __init__(self, model: str | os.PathLike[str], *, adapter: str | os.PathLike[str] | None = None, precision: str = "f32", batch: int = 32) -> None:
        self.model = string("model", _absolute(model))
        self.adapter = None if adapter is None else _absolute(adapter)
        self.precision = precision
        self.batch = numbers("batch", batch)
        self._native()

    def images(self, pictures: Iterable[Any]) -> NDArray[np.float32]:
        """A row for each picture: a path or the bytes of a JPEG, PNG or WebP file, or an array of uint8 `[height, width, 3]`.

        Pixels are taken as stored: an EXIF rotation is not applied. A damaged picture is a ValueError with its name, or its place in
        `pictures`.
        """
        if isinstance(pictures, (str, bytes, os.PathLike)):
            raise TypeError("pictures: expected a list of pictures, got one")
        return self._native().images([_picture(k, picture) for k, picture in enumerate(pictures)], numbers("batch", self.batch))

    def texts(self, sentences: Iterable[str]) -> NDArray[np.float32]:
        """A row for each sentence. A sentence that is longer than the model reads is cut."""
        if isinstance(sentences, (str, bytes)):
            raise TypeError("sentences: expected a list of sentences, got one")
        return self._native().texts([string(f"sentences[{k}]", sentence) for k, sentence in enumerate(sentences)], numbers("batch", self.batch))

    def _native(self) -> _itmatch.Embedder:
        with _lock:
            return _opened(self.model, self.adapter, self.precision)

    def __repr__(self) -> str:
        return f"Embedder({self.model!r})"


_lock = threading.Lock()


@functools.lru_cache(maxsize=4)
def _opened(model: str, adapter: str | None, precision: str) -> _itmatch.Embedder:
    native = _itmatch.Embedder.open(model, adapter, precision)
    if unread := native.unread():
        warnings.warn(f"{model}: not read: {unread[0]} …", stacklevel=4)
    return native


def _absolute(model: str | os.PathLike[str]) -> str:
    """Workers may have another working folder. What is no folder may be a name."""
    path = os.fspath(model)
    return os.path.abspath(path) if os.path.isdir(path) else path


def _picture(number: int, picture: Any) -> Any:
    if isinstance(picture, (str, bytes, os.PathLike)):
        try:
            os.fsencode(picture)
        except UnicodeEncodeError:
            raise ValueError(f"pictures[{number}]: expected a path that the system can write, got {picture!r}") from None
        return picture
    if isinstance(picture, (bytearray, memoryview)):
        return bytes(picture)
    pixels = np.asarray(picture)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        expected = "a path, bytes or uint8 of shape [height, width, 3]"
        raise TypeError(f"pictures[{number}]: expected {expected}, got {pixels.dtype} of shape {list(pixels.shape)}")
    return np.require(pixels, np.uint8, ["C", "A"])
