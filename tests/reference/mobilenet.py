"""Golden of the convolutional network: a tiny graph with made-up weights, in double precision.

    python tests/reference/mobilenet.py  (numpy, safetensors; writes crates/itm-core/tests/golden/mobilenet/)

Convolutions are written as sums over places and taps. The graph has every operation: a first convolution with stride, an
expansion, depthwise kernels of stride 1 and 2 and of width 5, a sum, a pool, a classifier.
"""

import json
import pathlib

import numpy as np
from safetensors.numpy import save_file

rng = np.random.default_rng(8)
FOLDER = pathlib.Path(__file__).parents[2] / "crates/itm-core/tests/golden/mobilenet"

GRAPH, WEIGHTS = [], {}


def layer(op, source, name, out, inner, k, stride, relu6):
    shape = [out, inner, k, k]
    GRAPH.append({"op": op, "inputs": [source], "weights": name, "shape": shape, "stride": stride, "relu6": relu6,
                  "groups": out if op == "dw" else 1, "output": name})
    weight = rng.normal(0, 1.6 / np.sqrt(inner * k * k), shape)
    WEIGHTS[name + ".weight"] = weight.astype(np.float16)
    WEIGHTS[name + ".bias"] = rng.normal(0.3, 0.4, out).astype(np.float32)
    return name


def convolve(x, weight, bias, stride, groups):
    """x [c, h, w]; padding "same": the smaller half is before."""
    out, inner, k, _ = weight.shape
    _, h, w = x.shape
    oh, ow = -(-h // stride), -(-w // stride)
    ph, pw = max((oh - 1) * stride + k - h, 0), max((ow - 1) * stride + k - w, 0)
    padded = np.pad(x, [(0, 0), (ph // 2, ph - ph // 2), (pw // 2, pw - pw // 2)])
    y = np.zeros((out, oh, ow))
    for o in range(out):
        group = padded[o:o + 1] if groups > 1 else padded
        for i in range(oh):
            for j in range(ow):
                window = group[:, i * stride:i * stride + k, j * stride:j * stride + k]
                y[o, i, j] = (window * weight[o]).sum() + bias[o]
    return y


def run(pixels):
    values = {"input": pixels.astype(np.float64).transpose(2, 0, 1) / 127.5 - 1}
    for node in GRAPH:
        x = values[node["inputs"][0]]
        if node["op"] == "add":
            y = x + values[node["inputs"][1]]
        elif node["op"] == "mean":
            y = x.mean((1, 2), keepdims=True)
        else:
            weight = WEIGHTS[node["weights"] + ".weight"].astype(np.float64)
            bias = WEIGHTS[node["weights"] + ".bias"].astype(np.float64)
            y = convolve(x, weight, bias, node["stride"], node["groups"])
            y = np.clip(y, 0, 6) if node["relu6"] else y
        values[node["output"]] = y
    return values


def grid(feature_map, mean, components):
    """Windows of an adaptive average pool 6 x 6, then the projection."""
    c, h, w = feature_map.shape
    out = []
    for i in range(6):
        for j in range(6):
            rows = slice(int(np.floor(i * h / 6)), int(np.ceil((i + 1) * h / 6)))
            cols = slice(int(np.floor(j * w / 6)), int(np.ceil((j + 1) * w / 6)))
            out.append((feature_map[:, rows, cols].mean((1, 2)) - mean) @ components.T)
    return np.array(out)


def main():
    a = layer("conv", "input", "conv.00", 8, 3, 3, 2, True)
    a = layer("dw", a, "conv.01", 8, 1, 3, 1, True)
    a = layer("conv", a, "conv.02", 5, 8, 1, 1, False)
    b = layer("conv", a, "conv.03", 19, 5, 1, 1, True)  # one full register of channels and three more
    b = layer("dw", b, "conv.04", 19, 1, 5, 1, True)
    b = layer("conv", b, "conv.05", 5, 19, 1, 1, False)
    GRAPH.append({"op": "add", "inputs": [a, b], "output": "add.6"})
    c = layer("dw", "add.6", "conv.06", 5, 1, 3, 2, False)
    c = layer("conv", c, "conv.07", 11, 5, 1, 1, True)
    GRAPH.append({"op": "mean", "inputs": [c], "output": "global_pool"})
    layer("conv", "global_pool", "conv.08", 7, 11, 1, 1, False)

    mean = rng.normal(1, 1, 11).astype(np.float32)
    components = rng.normal(0, 1, (4, 11)).astype(np.float32)
    cases = []
    for h, w in [(26, 31), (28, 28), (9, 4), (1, 1)]:
        pixels = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
        values = run(pixels)
        feature_map = values["conv.07"]
        cases.append({
            "height": h, "width": w, "pixels": pixels.tobytes().hex(), "map": list(feature_map.shape[1:]),
            "values": np.round(feature_map.transpose(1, 2, 0), 6).ravel().tolist()[::5],
            "pooled": np.round(values["global_pool"], 6).ravel().tolist(),
            "logits": np.round(values["conv.08"], 6).ravel().tolist(),
            "grid": np.round(grid(feature_map, mean.astype(np.float64), components.astype(np.float64)), 5).ravel().tolist()[::3],
        })
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "graph.json").write_text(json.dumps(GRAPH) + "\n")
    save_file(WEIGHTS, FOLDER / "weights.safetensors")
    save_file({"mean": mean, "components": components}, FOLDER / "pca.safetensors")
    (FOLDER / "cases.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")


main()
