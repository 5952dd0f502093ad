"""Goldens of the pictures' transforms, from Pillow and from the specification in NumPy.

    python tests/reference/vision.py     (numpy, pillow; writes crates/itm-data/tests/golden/vision.json)

Resizes and crops are Pillow's own. The ten operations are written from their definitions: geometric operations in exact
fractions where possible (shears, translations), otherwise in double precision (rotation). Pillow's Equalize also checks
ours. Pixels are hexadecimal strings, row by row.
"""

import io
import json
import pathlib
from fractions import Fraction

import numpy as np
from PIL import Image, ImageOps

rng = np.random.default_rng(5)
BICUBIC, BILINEAR = Image.Resampling.BICUBIC, Image.Resampling.BILINEAR


def picture(w, h):
    """Smooth with noise and a few extreme pixels, on which kernels overshoot; the second channel's minimum is above 0."""
    y, x = np.mgrid[:h, :w]
    smooth = np.stack([9 * x + 3 * y, 200 - 8 * x + y, 60 + 5 * x * y / max(w, h)], -1)
    noisy = smooth + rng.normal(0, 12, smooth.shape)
    noisy[rng.random((h, w)) < 0.08] = 255
    noisy[rng.random((h, w)) < 0.08] = 0
    a = np.clip(noisy, 0, 255).astype(np.uint8)
    a[..., 1] = np.clip(a[..., 1], 21, 230)
    return a


def image(a):
    return {"width": a.shape[1], "height": a.shape[0], "pixels": np.ascontiguousarray(a).tobytes().hex()}


def resized(a, size, kernel):
    to = np.asarray(Image.fromarray(a).resize(size, kernel))
    return {"from": image(a), "bilinear": kernel == BILINEAR, "to": image(to)}


def resizes():
    out = []
    sizes = [(20, 17, 9, 31), (20, 17, 24, 24), (33, 5, 7, 5), (1, 1, 4, 3), (1, 9, 3, 2), (6, 4, 6, 4), (50, 39, 16, 16),
             (3, 40, 3, 7), (40, 3, 7, 3), (21, 22, 1, 1)]
    for w, h, ow, oh in sizes:
        a = picture(w, h)
        out.append(resized(a, (ow, oh), BICUBIC))
        if w > 1 < h:
            out.append(resized(a, (ow, oh), BILINEAR))
    picture(20, 17)  # the next pictures follow it in the stream of random numbers
    return out


def lookup(a, source, exact):
    """Bilinear with grey outside; halves are rounded up."""
    h, w, _ = a.shape
    out = np.empty_like(a)

    def at(x, y, c):
        return int(a[y, x, c]) if 0 <= x < w and 0 <= y < h else 128

    for y in range(h):
        for x in range(w):
            sx, sy = source(x, y)
            fx, fy = int(np.floor(float(sx))), int(np.floor(float(sy)))
            if exact:
                fx, fy = sx.__floor__(), sy.__floor__()
            ax, ay = sx - fx, sy - fy
            for c in range(3):
                v = ((1 - ax) * (1 - ay) * at(fx, fy, c) + ax * (1 - ay) * at(fx + 1, fy, c)
                     + (1 - ax) * ay * at(fx, fy + 1, c) + ax * ay * at(fx + 1, fy + 1, c))
                out[y, x, c] = (v + Fraction(1, 2)).__floor__() if exact else int(np.floor(v + 0.5))
    return out


def auto_contrast(a, wrap):
    out = a.copy()
    for c in range(3):
        low, high = int(a[..., c].min()), int(a[..., c].max())
        if high > low:
            for v in range(256):
                # As an unsigned byte -low becomes 256 - low.
                offset = (256 - low) % 256 if wrap else -low
                level = Fraction(255, high - low) * (v + offset)
                out[..., c][a[..., c] == v] = min(max(level.__floor__(), 0), 255)
    return out


def equalize(a):
    out = a.copy()
    for c in range(3):
        histogram = np.bincount(a[..., c].ravel(), minlength=256)
        present = histogram[histogram > 0]
        step = int(present[:-1].sum()) // 255
        if step:
            below = np.concatenate([[0], np.cumsum(histogram)[:-1]])
            out[..., c] = np.clip((step // 2 + below) // step, 0, 255)[a[..., c]]
    assert (out == np.asarray(ImageOps.equalize(Image.fromarray(a)))).all()
    return out


def sharpen(a, wrap):
    out = a.copy()
    h, w, _ = a.shape
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            for c in range(3):
                window = a[y - 1:y + 2, x - 1:x + 2, c].astype(int)
                blurred = (Fraction(int(window.sum() + 4 * window[1, 1]), 13) + Fraction(1, 2)).__floor__()
                v = blurred + Fraction(136, 100) * (int(a[y, x, c]) - blurred)
                out[y, x, c] = int(v) % 256 if wrap else min(max(int(v), 0), 255)
    return out


def operations(a):
    h, w, _ = a.shape
    f = Fraction(21, 100)
    out = {
        ("Identity", ""): a,
        ("AutoContrast", ""): auto_contrast(a, False),
        ("AutoContrast", "wrap"): auto_contrast(a, True),
        ("Equalize", ""): equalize(a),
        ("Brightness", ""): np.minimum(a.astype(int) * 136 // 100, 255).astype(np.uint8),
        ("Sharpness", ""): sharpen(a, False),
        ("Sharpness", "wrap"): sharpen(a, True),
    }
    for name, s in [("Plus", 1), ("Minus", -1)]:
        # The source of (x', y') under (x, y) -> (x + s f y, y) and so on.
        out["ShearX", name] = lookup(a, lambda x, y: (x - s * f * y, Fraction(y)), True)
        out["ShearY", name] = lookup(a, lambda x, y: (Fraction(x), y - s * f * x), True)
        out["TranslateX", name] = lookup(a, lambda x, y: (Fraction(x + 7 * s), Fraction(y)), True)
        out["TranslateY", name] = lookup(a, lambda x, y: (Fraction(x), Fraction(y + 7 * s)), True)
        # Forward, rows downwards: x' = cos dx + sin dy, y' = -sin dx + cos dy turns counter-clockwise. Inverted here.
        angle = np.deg2rad(21 * s)
        forward = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        inverse, centre = np.linalg.inv(forward), np.array([w / 2, h / 2])
        out["Rotate", name] = lookup(a, lambda x, y: tuple(inverse @ (np.array([x, y]) - centre) + centre), False)
    return [{"operation": op, "variant": variant, "picture": image(b)} for (op, variant), b in out.items()]


def chain(a, left, top, width, height, flip, ops, size):
    """Cut, resize, mirror, operations; then (p/255 - mean)/std, channel first, in double precision."""
    part = Image.fromarray(a).crop((left, top, left + width, top + height)).resize((size, size), BICUBIC)
    b = np.asarray(part.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flip else part)
    for op, sign in ops:
        found = {(o["operation"], o["variant"]): o["picture"] for o in operations(b)}
        pixels = found[op, sign] if (op, sign) in found else found[op, ""]
        b = np.frombuffer(bytes.fromhex(pixels["pixels"]), np.uint8).reshape(size, size, 3)
    mean = np.array([0.48145466, 0.4578275, 0.40821073])
    std = np.array([0.26862954, 0.26130258, 0.27577711])
    floats = ((b / 255.0 - mean) / std).transpose(2, 0, 1)
    return {"crop": [left, top, width, height], "flip": flip, "operations": ops, "size": size, "picture": image(b),
            "floats": [round(float(v), 6) for v in floats.ravel()[:: 7]]}


def files():
    """Pictures that are not 8-bit RGB, as files, and their RGB values."""
    base = picture(8, 6)
    smooth = np.asarray(Image.fromarray(base).resize((8, 6), Image.Resampling.BOX, box=(0, 0, 2, 2)))
    rgb = Image.fromarray(smooth)
    sixteen = (smooth[..., 0].astype(np.uint16) * 257)

    def saved(img, kind, **more):
        buffer = io.BytesIO()
        img.save(buffer, kind, **more)
        return buffer.getvalue().hex()

    alpha = Image.fromarray(np.dstack([smooth, np.full(smooth.shape[:2], 9, np.uint8)]))
    grey = rgb.convert("L")
    thrice = np.repeat(np.asarray(grey)[..., None], 3, -1)
    def lossy(name, img, **more):
        """The pixels that Pillow reads; decoders may round differently."""
        data = saved(img, "JPEG", quality=95, **more)
        read = Image.open(io.BytesIO(bytes.fromhex(data))).convert("RGB")
        return {"name": name, "bytes": data, "picture": image(np.asarray(read)), "within": 3}

    return [
        {"name": "grey.png", "bytes": saved(grey, "PNG"), "picture": image(thrice), "within": 0},
        lossy("grey.jpg", grey),
        {"name": "alpha.png", "bytes": saved(alpha, "PNG"), "picture": image(smooth), "within": 0},
        {"name": "sixteen.png", "bytes": saved(Image.fromarray(sixteen), "PNG"),
         "picture": image(np.repeat(smooth[..., :1], 3, -1)), "within": 0},
        {"name": "palette.png", "bytes": saved(rgb.quantize(64), "PNG"),
         "picture": image(np.asarray(rgb.quantize(64).convert("RGB"))), "within": 0},
        lossy("cmyk.jpg", rgb.convert("CMYK")),
        lossy("rgb.jpg", rgb, subsampling=0),
        {"name": "pixel.png", "bytes": saved(Image.fromarray(base[:1, :1]), "PNG"), "picture": image(base[:1, :1]), "within": 0},
    ]


def main():
    a = picture(20, 17)
    b = picture(37, 26)  # enough pixels for a step above 0
    golden = {
        "resize": resizes(),
        "operations": [{"from": image(p), "to": operations(p)} for p in (a, b)],
        "chain": [
            chain(b, 3, 2, 30, 21, True, [], 14),
            chain(b, 0, 5, 25, 20, False, [("Sharpness", "Plus"), ("ShearY", "Minus")], 16),
            chain(a, 1, 1, 17, 13, True, [("Rotate", "Plus"), ("AutoContrast", "Minus")], 18),
        ],
        "files": files(),
    }
    path = pathlib.Path(__file__).parents[2] / "crates/itm-data/tests/golden/vision.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(path.stat().st_size, "bytes")


main()
