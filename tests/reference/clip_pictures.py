"""Pictures from bytes to the pixels that CLIP and SigLIP read.

Part of `clip.py`, which says how to run it. `pictures.safetensors`, for each picture pK and each size n in 12, 20:

    pK                  u8 [h, w, 3]: smooth, with noise and extreme pixels
    pK.n.resized        u8: shorter side n, longer side floor(n * long / short), Pillow's bicubic
    pK.n.floor          u8 [n, n, 3]: cut in the middle, offset floor(remainder / 2): transformers
    pK.n.even           the same with half of the remainder rounded to even: open_clip
    pK.n.squash         u8 [n, n, 3]: both sides n: SigLIP
    pK.n.clip, .siglip  f32 [3, n, n]: `floor` with CLIP's mean and deviation, `squash` with 0.5 (only n = 12)

The first two cuts are compared with CLIPImageProcessor (Pillow backend) and open_clip's `image_transform`, the last with
SiglipImageProcessor.
"""

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

SIZES = [(37, 53), (53, 37), (40, 43), (40, 51), (49, 36), (12, 12), (9, 20), (20, 1)]  # width, height
MEAN, STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
BICUBIC = Image.Resampling.BICUBIC


def picture(rng, w, h):
    y, x = np.mgrid[:h, :w]
    smooth = np.stack([90 + 70 * np.sin(x / 5 + y / 9), 4 * x + 2 * y, 200 - 3 * y + x * y / 20], -1)
    noisy = smooth + rng.normal(0, 12, smooth.shape)
    noisy[rng.random((h, w)) < 0.06] = 255
    noisy[rng.random((h, w)) < 0.06] = 0
    return np.clip(np.round(noisy), 0, 255).astype(np.uint8)


def resized(a, n):
    h, w, _ = a.shape
    size = (n, n * h // w) if w <= h else (n * w // h, n)
    return np.asarray(Image.fromarray(a).resize(size, BICUBIC))


def cut(a, n, offset):
    y, x = offset(a.shape[0] - n), offset(a.shape[1] - n)
    return np.ascontiguousarray(a[y : y + n, x : x + n])


def floor(r):
    return r // 2


def even(r):
    return round(r / 2)  # Python rounds a half to the even neighbour


def normalised(a, mean, std):
    return ((a / 255 - mean) / std).astype(np.float32).transpose(2, 0, 1)


def write_pictures(root):
    from open_clip.transform import PreprocessCfg, image_transform_v2
    from transformers import CLIPImageProcessorPil, SiglipImageProcessorPil

    rng, out, apart = np.random.default_rng(7), {}, {"clip": 0.0, "siglip": 0.0, "open_clip": 0.0}
    moved = 0
    for k, (w, h) in enumerate(SIZES):
        a = picture(rng, w, h)
        out[f"p{k}"] = a
        for n in (12, 20):
            r = resized(a, n)
            squash = np.asarray(Image.fromarray(a).resize((n, n), BICUBIC))
            floors, evens = cut(r, n, floor), cut(r, n, even)
            moved += (floors != evens).any()
            out |= {f"p{k}.{n}.resized": r, f"p{k}.{n}.floor": floors, f"p{k}.{n}.even": evens, f"p{k}.{n}.squash": squash}
            clip, siglip = normalised(floors, MEAN, STD), normalised(squash, 0.5, 0.5)
            if n == 12:
                out |= {f"p{k}.{n}.clip": clip, f"p{k}.{n}.siglip": siglip}
            image = Image.fromarray(a)
            with_clip = CLIPImageProcessorPil(size={"shortest_edge": n}, crop_size={"height": n, "width": n})
            with_siglip = SiglipImageProcessorPil(size={"height": n, "width": n}, resample=3, image_mean=[0.5] * 3, image_std=[0.5] * 3)
            transform = image_transform_v2(PreprocessCfg(size=(n, n), mean=tuple(MEAN), std=tuple(STD)), is_train=False)
            for name, got, want in [
                ("clip", with_clip(image, return_tensors="np")["pixel_values"][0], clip),
                ("siglip", with_siglip(image, return_tensors="np")["pixel_values"][0], siglip),
                ("open_clip", transform(image).numpy(), normalised(evens, MEAN, STD)),
            ]:
                apart[name] = max(apart[name], float(np.abs(got - want).max()))
    save_file({name: torch.tensor(np.ascontiguousarray(v)) for name, v in out.items()}, root / "pictures.safetensors")
    print(f"pictures: {len(SIZES)}; {moved} of {2 * len(SIZES)} cuts differ between the rules; largest difference to the programs {apart}")
