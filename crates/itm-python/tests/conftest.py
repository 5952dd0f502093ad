import numpy as np
import pytest


def unit_rows(rows, width, seed):
    values = np.random.default_rng(seed).normal(size=(rows, width))
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


def grid_rows(rows, width, seed):
    """Small whole numbers: scores are exact in f32, and many are equal."""
    return np.random.default_rng(seed).integers(-2, 3, size=(rows, width)).astype(np.float32)


@pytest.fixture
def sides():
    """40 images and 3 texts near each; image 0 is a hub."""
    images = unit_rows(40, 16, 0)
    texts = np.repeat(images, 3, axis=0) + 0.9 * unit_rows(120, 16, 1) + 0.4 * images[0]
    return images, (texts / np.linalg.norm(texts, axis=1, keepdims=True)).astype(np.float32)
