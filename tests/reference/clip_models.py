"""What the parts of `clip.py` share: random weights, double precision, gradients under the names of the file."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import CLIPModel  # noqa: F401

# `transformers` looks for a package `kernels` and finds kernels.py of this folder, which sets another default.
torch.set_default_dtype(torch.float32)


def softmax(x, dim=-1, dtype=None):
    return x.softmax(dim)


def randomise(model, seed, spread=0.25):
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        if name in ("logit_scale", "logit_bias"):
            continue
        drawn = (torch.randn(p.shape, generator=g) * spread * 256).round().clamp(-255, 255) / 256
        norm = any(part in name.lower() for part in ("norm", "layrnorm")) and name.endswith("weight")
        p.data = 1 + (drawn * 128).round() / 128 if norm else drawn
    return model


def in_double(model):
    """`model` for evaluation in double precision. transformers computes the softmax in f32 whatever the model's type; here it is in double."""
    torch.nn.functional.softmax = softmax
    model = model.double().eval()
    model.set_attn_implementation("eager")
    return model


def tensors(model):
    """The tensors of `model` under the names of its file; modules have other names in transformers 5."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(Path(folder) / "model.safetensors")


def gradients_of(model):
    """After `backward`; takes the place of the weights. Sums that must be zero are made so."""
    for p in model.parameters():
        p.data = torch.zeros_like(p) if p.grad is None else p.grad
    return {f"d.{k}": torch.where(v.abs() < 1e-14, 0.0, v).float() for k, v in tensors(model).items()}


def drawn(seed, *shape):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 64).round() / 64


def apart(a, b):
    return float(np.abs(np.asarray(a.detach()) - np.asarray(b)).max())
