"""How fast PyTorch and ONNX Runtime embed pictures and captions with CLIP ViT-B/32, and pictures with DINOv2 ViT-S/14, of random weights. Not part
of the tests.

    python tests/reference/embed_speed.py PICTURES CAPTIONS [--count 500] [--batch 32] [--workers 1] [--threads 1] [--only WAY] [--encoder dinov2]

PICTURES is a folder of JPEGs, CAPTIONS a text file, one a line. Needs torch, transformers, open_clip_torch (its tokenizer and its
merges), onnx, onnxruntime. Every way runs in its own process, so that its peak of memory is its own. `workers` processes decode and
resize (Pillow), `threads` compute: 1 + 1 and 0 + 2 are two ways to use two cores; run both. A row says pictures a second with
reading, pictures a second of the network alone (pixels in memory), captions a second cut to the longest of their batch and padded to
77, and the peak of memory with its workers (proportional set size, ten times a second). One batch
without reading before the clock starts, for compilation; run it twice for the files' cache.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ENCODERS = ["clip", "dinov2"]
WAYS = ["eager", "compiled", "bf16", "onnx"]
CONTEXT, END = 77, 49407


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("pictures", type=Path)
    parser.add_argument("captions", type=Path)
    for name, value in {"count": 500, "batch": 32, "workers": 1, "threads": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--encoder", choices=ENCODERS, default="clip")
    parser.add_argument("--in-process", action="store_true")
    return parser.parse_args()


class Pictures:
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        import numpy as np
        from clip_pictures import MEAN, STD, cut, floor, normalised, resized
        from PIL import Image

        return normalised(cut(resized(np.asarray(Image.open(self.paths[i]).convert("RGB")), 224), 224, floor), MEAN, STD)


def towers(way, batch, encoder):
    """Two functions, from a batch of pixels and of numbers to rows. DINOv2 reads no captions; its row is the class row beside the mean of the patches."""
    import torch
    from transformers import CLIPConfig, CLIPModel, Dinov2Config, Dinov2Model

    # `transformers` looks for a package `kernels` and finds kernels.py of this folder, which sets another default.
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    if encoder == "dinov2":
        model = Dinov2Model(Dinov2Config(hidden_size=384, num_attention_heads=6, image_size=518)).eval()

        class Image(torch.nn.Module):
            def forward(self, pixels):
                states = model(pixel_values=pixels).last_hidden_state
                rows = states[:, 0], states[:, 1:].mean(1)
                return torch.cat([torch.nn.functional.normalize(row) for row in rows], 1)

    else:
        # The row of a caption is the first maximum of its numbers, as with OpenAI's files.
        model = CLIPModel(CLIPConfig(text_config={"eos_token_id": 2})).eval()

        class Image(torch.nn.Module):
            def forward(self, pixels):
                return torch.nn.functional.normalize(model.get_image_features(pixel_values=pixels).pooler_output)

    class Text(torch.nn.Module):
        def forward(self, ids):
            return torch.nn.functional.normalize(model.get_text_features(input_ids=ids).pooler_output)

    image, text = Image(), Text()
    image.model = text.model = model
    if way == "compiled":
        return torch.compile(image, dynamic=False), torch.compile(text, dynamic=True)
    if way == "bf16":
        def cast(f):
            def run(x):
                with torch.autocast("cpu", torch.bfloat16):
                    return f(x)
            return run  # fmt: skip

        return cast(image), cast(text)
    if way == "onnx":
        pictures = exported(image, torch.zeros(batch, 3, 224, 224))
        return pictures, None if encoder == "dinov2" else exported(text, torch.full((batch, 12), END))
    return image, text


def exported(module, example):
    import onnxruntime
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        axes = {"x": {0: "b", 1: "l"} if example.ndim == 2 else {0: "b"}}
        torch.onnx.export(module, (example,), path, input_names=["x"], dynamic_axes=axes, dynamo=False, opset_version=17)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda x: torch.from_numpy(session.run(None, {"x": x.numpy()})[0])


def clocked(run, first, batches):
    run(first)
    done, start = 0, time.perf_counter()
    for batch in batches:
        run(batch)
        done += len(batch)
    return done / (time.perf_counter() - start)


class Memory:
    """The largest sum of memory of this process and those it started."""

    def __init__(self):
        self.peak = 0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            try:
                self.peak = max(self.peak, sum(map(self.of, self.family(os.getpid()))))
            except (OSError, StopIteration):
                pass  # one of them ended meanwhile
            time.sleep(0.1)

    def family(self, process):
        children = [Path(f"/proc/{process}/task/{t}/children") for t in os.listdir(f"/proc/{process}/task")]
        return [process, *(d for c in children for one in c.read_text().split() for d in self.family(int(one)))]

    @staticmethod
    def of(process):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def measure(args):
    import open_clip
    import torch

    torch.set_num_threads(args.threads)
    paths = sorted(p for p in args.pictures.iterdir() if p.suffix.lower() in (".jpg", ".jpeg"))[: args.count]
    loader = torch.utils.data.DataLoader(Pictures(paths), args.batch, num_workers=args.workers, drop_last=True)
    lines = [line for line in args.captions.read_text(encoding="utf-8").splitlines() if line.strip()][: 5 * args.count]
    ids = open_clip.get_tokenizer("ViT-B-32")(lines)
    parts = ids[: len(ids) // args.batch * args.batch].split(args.batch)
    short = [part[:, : int((part == END).int().argmax(1).max()) + 1] for part in parts]
    memory = Memory()
    with torch.no_grad():
        image, text = towers(args.only, args.batch, args.encoder)
        pixels = torch.zeros(args.batch, 3, 224, 224)
        row = {"way": args.only, "read and embed, pictures/s": clocked(image, pixels, loader)}
        row["network alone, pictures/s"] = clocked(image, pixels, [pixels] * max(1, len(paths) // args.batch // 4))
        if args.encoder == "clip":
            row["captions/s"] = clocked(text, short[0], short)
            row["captions/s at 77"] = clocked(text, parts[0], parts[: max(1, len(parts) // 8)])
    print(json.dumps(row | {"peak MB": memory.peak / 1024}))


def main():
    args = arguments()
    if args.in_process:
        return measure(args)
    print(f"{args.encoder}, {args.count} pictures of {args.pictures.name}, batch {args.batch}, {args.workers} workers, {args.threads} threads")
    for way in [args.only] if args.only else WAYS:
        sizes = [f"--{name}={getattr(args, name)}" for name in ("count", "batch", "workers", "threads")]
        command = [sys.executable, __file__, args.pictures, args.captions, *sizes, "--only", way, "--encoder", args.encoder, "--in-process"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{way}: failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        print("; ".join(f"{k} {v:.1f}" if isinstance(v, float) else v for k, v in row.items()), flush=True)


if __name__ == "__main__":
    main()
