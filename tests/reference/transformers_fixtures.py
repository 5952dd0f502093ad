"""Tiny random ViT and BERT of `transformers`, with their outputs and gradients in double precision.

    python tests/reference/transformers_fixtures.py  writes crates/itm-core/tests/golden/hf/

    hf/vit, hf/bert     folders as `save_pretrained` writes them (f32 weights)
    hf/bert_bin         the same BERT in the old format: pytorch_model.bin, f16, `bert.` before every name, gamma and beta
    hf/vit.safetensors  per case: `images`, `out` (last hidden state), at 32 x 32, 48 x 32 and 44 x 36 pixels; the loss
                        sum(c * out) of the case 48 x 32 and its gradients `d.NAME`; position embeddings resized
    hf/bert.safetensors `ids`, `lengths`, `out` (also at padded positions), `c`, `d.NAME`
    hf/pieces           a vocabulary, captions and their numbers by BertTokenizer

Every weight is random, also biases and layer norms, and exact in f32; a quarter of the range, so that attention is far from
uniform. Attention is the plain ("eager") one.
"""

import json
import unicodedata
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertModel, BertTokenizer, ViTConfig, ViTModel

ROOT = Path(__file__).parents[2] / "crates/itm-core/tests/golden/hf"
SIZES = {"32x32": (2, 32, 32), "48x32": (1, 48, 32), "44x36": (1, 44, 36)}
LENGTHS = [7, 3, 1, 9]


def randomise(model, seed):
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        drawn = torch.randn(p.shape, generator=g) * 0.25
        norm = "norm" in name.lower() and name.endswith("weight")
        p.data = drawn + 1.0 if norm else drawn
    return model


def vit():
    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=32, patch_size=8
    )
    return randomise(ViTModel(config, add_pooling_layer=False), 1)


def bert():
    config = BertConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=40,
    )
    return randomise(BertModel(config), 2)


def in_double(model):
    model = model.double().eval()
    model.set_attn_implementation("eager")
    return model


def vit_states(model, images):
    return model(images.double(), interpolate_pos_encoding=True).last_hidden_state


def bert_states(model, ids, lengths):
    mask = torch.arange(ids.shape[1])[None] < lengths[:, None]
    return model(input_ids=ids, attention_mask=mask.long()).last_hidden_state


def drawn(g, *shape):
    return (torch.randn(shape, generator=g) * 64).round() / 64


def gradients(model, loss, kept):
    loss.backward()
    # In transformers 5 modules and files have different names; the files' names count.
    return {f"d.{file}": dict(model.named_parameters())[ours].grad.float() for file, ours in kept.items()}


def write_vit():
    model = vit()
    model.save_pretrained(ROOT / "vit")
    model = in_double(model)
    g = torch.Generator().manual_seed(3)
    out = {}
    for name, (b, h, w) in SIZES.items():
        images = drawn(g, b, 3, h, w)
        states = vit_states(model, images)
        out |= {f"{name}.images": images, f"{name}.out": states.detach().float()}
        if name == "48x32":
            c = drawn(g, *states.shape)
            loss = (c.double() * states).sum()
            out |= {"c": c, "loss": loss.detach().float()[None]}
            out |= gradients(model, loss, VIT_KEPT)
    # The older form of the interpolation gives a factor instead of a size, and the factor sets the kernel's step.
    positions = model.embeddings.position_embeddings.detach()[0, 1:].T.reshape(1, 32, 4, 4)
    for name, size in {"6x4": (6, 4), "3x7": (3, 7)}.items():
        factor = ((size[0] + 0.1) / 4, (size[1] + 0.1) / 4)
        for form, resize in {"size": {"size": size}, "factor": {"scale_factor": factor}}.items():
            got = torch.nn.functional.interpolate(positions, mode="bicubic", align_corners=False, **resize)
            out[f"{form}.{name}"] = got[0].flatten(1).T.float().contiguous()
    save_file(out, ROOT / "vit.safetensors")


VIT_KEPT = {
    "embeddings.patch_embeddings.projection.weight": "embeddings.patch_embeddings.projection.weight",
    "embeddings.cls_token": "embeddings.cls_token",
    "embeddings.position_embeddings": "embeddings.position_embeddings",
    "encoder.layer.0.attention.attention.key.weight": "layers.0.attention.k_proj.weight",
    "encoder.layer.0.layernorm_before.weight": "layers.0.layernorm_before.weight",
    "encoder.layer.1.intermediate.dense.weight": "layers.1.mlp.fc1.weight",
    "layernorm.bias": "layernorm.bias",
}
BERT_KEPT = {
    name: name
    for name in [
        "embeddings.word_embeddings.weight",
        "embeddings.position_embeddings.weight",
        "embeddings.token_type_embeddings.weight",
        "embeddings.LayerNorm.weight",
        "encoder.layer.0.attention.self.value.bias",
        "encoder.layer.0.attention.self.query.weight",
        "encoder.layer.1.output.dense.weight",
        "encoder.layer.1.attention.output.LayerNorm.bias",
    ]
}


def write_bert():
    model = bert()
    model.save_pretrained(ROOT / "bert")
    write_old_bert(model)
    model = in_double(model)
    g = torch.Generator().manual_seed(4)
    lengths = torch.tensor(LENGTHS)
    ids = torch.randint(5, 60, (len(LENGTHS), max(LENGTHS)), generator=g)
    ids[torch.arange(ids.shape[1])[None] >= lengths[:, None]] = 0
    states = bert_states(model, ids, lengths)
    c = drawn(g, *states.shape)
    loss = (c.double() * states).sum()
    out = {"ids": ids, "lengths": lengths, "out": states.detach().float(), "c": c, "loss": loss.detach().float()[None]}
    save_file(out | gradients(model, loss, BERT_KEPT), ROOT / "bert.safetensors")


def write_old_bert(model):
    folder = ROOT / "bert_bin"
    folder.mkdir(exist_ok=True)
    old = {}
    for name, value in model.state_dict().items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        old["bert." + name] = value.half()
    old["cls.predictions.bias"] = torch.zeros(60).half()
    torch.save(old, folder / "pytorch_model.bin")
    config = json.loads((ROOT / "bert/config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


CAPTIONS = [
    "", " ", "A dog runs.", "a man in an orange hat starring at something .", "Two young, White males are outside",
    "It's John's dog", "the dog isn't a cat", "naïve café façade", "Ångström Müller straße", "ＦＵＬＬ width",
    "a t-shirt/jacket", "one.two", "$5 + 3 = 8 %", "under_score and #hash @at", "running runner runs",
    "unrunnable " + "a" * 101, "a" * 100, "日本 dog 狗", "a\tdog\nruns", "zero\u200bwidth soft\u00adhyphen",
    "nul\x00 and \ufffd", "e\u0301te\u0301", "İstanbul", "Ωμέγα", "dog " * 40, "[CLS] dog [SEP] [MASK]", "[pad] dog",
    "“quoted” — dash… ellipsis", "emoji 🐶 dog", "x²+y²", "A.B.C.", "¿qué?", "ﬁne ligature", "\u00a0dog\u3000cat\u2028end",
]
WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] a dog cat the man in an hat run runs ##s ##ning ##ner two young male is isn it its"
    " john naive cafe café façade naïve A Two White It John one . , ' - / $ + = % _ # @ and under score t shirt jacket"
    " un ##run ##nable quoted fine ##fine full 5 3 8 ete été zero width soft hyphen mask cls sep pad 狗 ? ¿ que qué"
).split()


def write_pieces():
    folder = ROOT / "pieces"
    folder.mkdir(exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyzADTWIJ2²"
    words = list(dict.fromkeys(WORDS + list(letters) + [f"##{c}" for c in letters]))
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    vocabulary = {w: i for i, w in enumerate(words)}
    out = {"captions": CAPTIONS}
    for name, lower in {"uncased": True, "cased": False}.items():
        tokenizer = BertTokenizer(vocab=vocabulary, do_lower_case=lower)
        out[name] = [tokenizer(c)["input_ids"] for c in CAPTIONS]
        out[f"{name}_12"] = [tokenizer(c, truncation=True, max_length=12)["input_ids"] for c in CAPTIONS]
        plain = [pieces(c, vocabulary, lower) for c in CAPTIONS]
        special = [i for i, c in enumerate(CAPTIONS) if "[" not in c]  # how to read written special tokens is the library's choice
        assert all(out[name][i] == plain[i] for i in special), "not the plain algorithm"
    tokenizer.save_pretrained(folder / "cased")  # tokenizer.json and tokenizer_config.json
    (folder / "pieces.json").write_text(json.dumps(out, ensure_ascii=True, indent=0) + "\n")


def pieces(caption, vocabulary, lower):
    """Word pieces from their definition: clean, split into words, then the longest piece first."""
    chars = []
    for c in caption:
        if c in "\t\n\r" or unicodedata.category(c) == "Zs":
            chars.append(" ")
        elif ord(c) in (0, 0xFFFD) or unicodedata.category(c).startswith("C"):
            continue
        elif "\u4e00" <= c <= "\u9fff":
            chars.append(f" {c} ")
        else:
            chars.append(c)
    text = "".join(chars)
    if lower:
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn").lower()
    parted = []
    for c in text:
        code = ord(c)
        sign = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
        parted.append(f" {c} " if sign or unicodedata.category(c).startswith("P") else c)
    ids = [vocabulary["[CLS]"]]
    for word in "".join(parted).split():
        found, start = [], 0
        while start < len(word) and len(word) <= 100:
            ends = range(len(word), start, -1)
            piece = next((e for e in ends if ("##" if start else "") + word[start:e] in vocabulary), None)
            if piece is None:
                break
            found.append(vocabulary[("##" if start else "") + word[start:piece]])
            start = piece
        ids += found if start == len(word) else [vocabulary["[UNK]"]]
    return ids + [vocabulary["[SEP]"]]


if __name__ == "__main__":
    torch.set_num_threads(1)
    ROOT.mkdir(parents=True, exist_ok=True)
    write_vit()
    write_bert()
    write_pieces()
