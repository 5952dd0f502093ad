"""CLIP's and SigLIP's forward passes in NumPy, from their equations, on the tensors of a file under transformers' names.

Part of `clip.py`: it checks that a model of `transformers` computes what the equations say.
"""

import math

import numpy as np

erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_pytorch_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
}


def unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Plain:
    def __init__(self, tensors, family, act, image_heads, text_heads):
        self.t = {name: np.asarray(v, np.float64) for name, v in tensors.items()}
        self.clip, self.phi = family == "clip", ACTIVATIONS[act]
        self.image_heads, self.text_heads, self.eps = image_heads, text_heads, 1e-5 if family == "clip" else 1e-6

    def linear(self, x, name):
        return x @ self.t[name + ".weight"].T + self.t[name + ".bias"]

    def norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.eps) * self.t[name + ".weight"] + self.t[name + ".bias"]

    @staticmethod
    def mix(q, k, v, heads, mask=0.0):
        def parts(x):
            return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)

        q, k, v = parts(q), parts(k), parts(v)
        out = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) + mask) @ v
        return out.swapaxes(1, 2).reshape(out.shape[0], out.shape[2], -1)

    def blocks(self, x, tower, heads, mask=0.0):
        i = 0
        while f"{tower}.encoder.layers.{i}.layer_norm1.weight" in self.t:
            at = f"{tower}.encoder.layers.{i}."
            y = self.norm(x, at + "layer_norm1")
            q, k, v = (self.linear(y, f"{at}self_attn.{m}_proj") for m in "qkv")
            x = x + self.linear(self.mix(q, k, v, heads, mask), at + "self_attn.out_proj")
            y = self.phi(self.linear(self.norm(x, at + "layer_norm2"), at + "mlp.fc1"))
            x = x + self.linear(y, at + "mlp.fc2")
            i += 1
        return x

    def image(self, pixels):
        """States as transformers gives them, and the projected rows."""
        at = "vision_model.embeddings."
        w = self.t[at + "patch_embedding.weight"]
        (b, _, height, width), p = pixels.shape, w.shape[-1]
        cut = pixels.reshape(b, 3, height // p, p, width // p, p).transpose(0, 2, 4, 1, 3, 5).reshape(b, -1, 3 * p * p)
        x = cut @ w.reshape(len(w), -1).T
        if self.clip:
            x = np.concatenate([np.broadcast_to(self.t[at + "class_embedding"], (b, 1, len(w))), x], 1)
            x = self.norm(x + self.t[at + "position_embedding.weight"], "vision_model.pre_layrnorm")
            x = self.blocks(x, "vision_model", self.image_heads)
            return x, self.norm(x[:, 0], "vision_model.post_layernorm") @ self.t["visual_projection.weight"].T
        x = x + self.t[at + "patch_embedding.bias"] + self.t[at + "position_embedding.weight"]
        x = self.norm(self.blocks(x, "vision_model", self.image_heads), "vision_model.post_layernorm")
        head = "vision_model.head."
        w, bias = (np.split(self.t[f"{head}attention.in_proj_{leaf}"], 3) for leaf in ("weight", "bias"))
        probe = np.broadcast_to(self.t[head + "probe"], (b, 1, x.shape[-1]))
        q, k, v = (side @ w[m].T + bias[m] for m, side in enumerate((probe, x, x)))
        a = self.linear(self.mix(q, k, v, self.image_heads), head + "attention.out_proj")[:, 0]
        y = self.phi(self.linear(self.norm(a, head + "layernorm"), head + "mlp.fc1"))
        return x, a + self.linear(y, head + "mlp.fc2")

    def text(self, ids, lengths):
        at = "text_model.embeddings."
        n = ids.shape[1]
        x = self.t[at + "token_embedding.weight"][ids] + self.t[at + "position_embedding.weight"][:n]
        mask = np.where(np.tri(n) > 0, 0.0, -np.inf) if self.clip else 0.0
        x = self.norm(self.blocks(x, "text_model", self.text_heads, mask), "text_model.final_layer_norm")
        if self.clip:
            return x, x[np.arange(len(x)), lengths - 1] @ self.t["text_projection.weight"].T
        return x, self.linear(x[:, -1], "text_model.head")

    def scores(self, pixels, ids, lengths):
        """All outputs under the golden file's names."""
        out = {}
        out["image.states"], out["image.projected"] = self.image(pixels)
        out["text.states"], out["text.projected"] = self.text(ids, lengths)
        out["image.unit"], out["text.unit"] = unit(out["image.projected"]), unit(out["text.projected"])
        if self.clip:
            out["image.normed"] = self.norm(out["image.states"][:, 0], "vision_model.post_layernorm")
        s = math.exp(self.t["logit_scale"].item()) * out["image.unit"] @ out["text.unit"].T
        if self.clip:
            own = np.diagonal(s)
            loss = np.mean([np.log(np.exp(m).sum(1)) - own for m in (s, s.T)])
        else:
            s = s + self.t["logit_bias"].item()
            loss = np.log1p(np.exp(-(2 * np.eye(len(s)) - 1) * s)).sum() / len(s)
        return out | {"logits_per_image": s, "loss": np.array([loss])}
