"""A tiny DINOv2, a sentence encoder and a LoRA adapter.

Part of `clip.py`, which says how to run it. Weights are f32, random, multiples of 1/256.

    dinov2/             Dinov2Model: 24 wide, 3 heads, 2 layers, mlp 48, 12 x 12 pixels, patch 4, layer scale random; no registers,
                        no SwiGLU; with a mask token, which an image never reads
    dinov2.safetensors  `pixels` [2, 3, 12, 12], `states` (last_hidden_state, after the last norm, class row first);
                        `wide.pixels` [1, 3, 16, 20], `wide.states`; `tall.pixels` [1, 3, 36, 4]: as many patches as its own size
                        in another shape. Positions: bicubic, a = -0.75, no antialias, align_corners false, by SIZE (what
                        transformers does, with antialias nowhere); `factor.wide.states`: by the factor (n + 0.1) / 3, as the
                        first code of DINOv2 does and older transformers did. `c`, `loss` = sum(c * states), `d.NAME`
    sentence/           sentence-transformers' layout: BertModel 16 wide, 2 heads, 2 layers, mlp 32, 16 positions; pooler and
                        `position_ids` in the file; mean over the pieces, unit length. tokenizer.json cuts to 8 and pads to 8 as
                        published files do (128), sentence_bert_config.json says 12 (256), which counts. No folder 2_Normalize
                        and no vocab.txt, as in a package of all-MiniLM-L6-v2
    sentence.json       `sentences`, `ids` (cut to 12), `rows` (unit), `cls.rows` and `max.rows` (other poolings, unit)
    lora/               an adapter in PEFT's layout for q and v of both text layers of `clip`: r 2, alpha 4
    lora.safetensors    `text.unit` with the adapter, for the captions of clip.safetensors; `d.NAME` of `loss` for its matrices,
                        the rest frozen; `loss` [1] as in clip.safetensors
"""

import json

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, CLIPModel, Dinov2Config, Dinov2Model

from clip_models import apart, drawn, gradients_of, in_double, randomise
from clip_plain import Plain


def plain_dinov2(file, pixels):
    """States at the model's own size: an ordinary pre-norm block whose output maps are multiplied by the layer scale."""
    t = {}
    for name, value in file.items():
        new = name.replace("encoder.layer.", "vision_model.encoder.layers.").replace("norm1", "layer_norm1").replace("norm2", "layer_norm2")
        for theirs, ours in {"attention.attention.query": "self_attn.q_proj", "attention.attention.key": "self_attn.k_proj",
                             "attention.attention.value": "self_attn.v_proj", "attention.output.dense": "self_attn.out_proj"}.items():  # fmt: skip
            new = new.replace(theirs, ours)
        for part, scale in {"attention.output.dense": "layer_scale1", "mlp.fc2": "layer_scale2"}.items():
            if part in name:
                by = file[f"{name.split(part)[0]}{scale}.lambda1"]
                value = value.double() * (by[:, None] if value.ndim == 2 else by)
        t[new] = value.double()
    plain = Plain(t, "dinov2", "gelu", 3, 0)
    p, b = plain.t, len(pixels)
    cut = pixels.double().numpy().reshape(b, 3, 3, 4, 3, 4).transpose(0, 2, 4, 1, 3, 5).reshape(b, 9, 48)
    x = cut @ p["embeddings.patch_embeddings.projection.weight"].reshape(24, -1).T + p["embeddings.patch_embeddings.projection.bias"]
    x = np.concatenate([np.broadcast_to(p["embeddings.cls_token"], (b, 1, 24)), x], 1) + p["embeddings.position_embeddings"]
    return plain.norm(plain.blocks(x, "vision_model", 3), "layernorm")


def write_dinov2(root):
    config = Dinov2Config(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, mlp_ratio=2, image_size=12, patch_size=4)
    model = randomise(Dinov2Model(config), 6)
    model.save_pretrained(root / "dinov2")
    file = load_file(root / "dinov2/model.safetensors")
    model = in_double(model)
    out = {"pixels": drawn(61, 2, 3, 12, 12), "wide.pixels": drawn(62, 1, 3, 16, 20), "tall.pixels": drawn(63, 1, 3, 36, 4)}
    states = {name: model(out[f"{name}pixels"].double()).last_hidden_state for name in ("", "wide.", "tall.")}
    print("dinov2", len(file), f"tensors, NumPy against transformers: {apart(states[''], plain_dinov2(file, out['pixels'])):.0e}")

    resize = torch.nn.functional.interpolate
    torch.nn.functional.interpolate = lambda x, size, **how: resize(x, scale_factor=tuple((n + 0.1) / 3 for n in size), **how)
    states["factor.wide."] = model(out["wide.pixels"].double()).last_hidden_state
    torch.nn.functional.interpolate = resize
    print(f"  by factor and by size differ by {apart(states['factor.wide.'], states['wide.'].detach()):.1e}")

    out |= {f"{name}states": s.detach().float() for name, s in states.items()} | {"c": drawn(64, *states[""].shape)}
    loss = (out["c"].double() * states[""]).sum()
    loss.backward()
    save_file(out | {"loss": loss.detach().float()[None]} | gradients_of(model), root / "dinov2.safetensors")


WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a dog cat the man in an hat run ##s ##ning runs is on grass . , red ##dish and cafe".split()
SENTENCES = ["A dog runs.", "the man in an reddish hat", "", "Café, cat and dog", " ".join(["the dog and the cat"] * 4)]


def sentence_tokenizer():
    number = {w: i for i, w in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordPiece(number, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.add_special_tokens(WORDS[:5])
    return tokenizer


def write_sentence(root):
    folder = root / "sentence"
    config = BertConfig(vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=16)
    model = randomise(BertModel(config), 8)
    model.save_pretrained(folder)
    file = load_file(folder / "model.safetensors")
    save_file(file | {"embeddings.position_ids": torch.arange(16)[None]}, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"} for i, (path, kind) in enumerate(kinds.items())]
    special = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"}
    for name, value in {
        "1_Pooling/config.json": pooling,
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": 12, "do_lower_case": False},
        "tokenizer_config.json": {"do_lower_case": True, **special, "tokenizer_class": "BertTokenizer", "model_max_length": 16},
    }.items():
        (folder / name).write_text(json.dumps(value, indent=2) + "\n")
    tokenizer = sentence_tokenizer()
    tokenizer.enable_truncation(12)
    ids = [tokenizer.encode(s).ids for s in SENTENCES]
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))

    model = in_double(model)
    rows = {"": [], "cls.": [], "max.": []}
    with torch.no_grad():
        for row in ids:  # one at a time: no padding
            states = model(torch.tensor([row])).last_hidden_state[0]
            for name, pooled in {"": states.mean(0), "cls.": states[0], "max.": states.max(0).values}.items():
                rows[name].append(torch.nn.functional.normalize(pooled, dim=0))

    from sentence_transformers import SentenceTransformer

    own = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    got = own.encode(SENTENCES, batch_size=len(SENTENCES))
    print(f"sentence: sentence-transformers in f32 differs by {apart(torch.stack(rows['']), got):.0e}; lengths {[len(r) for r in ids]}; cut to {own.max_seq_length}")
    numbers = {f"{name}rows": [[float(f"{v:.9g}") for v in row] for row in value] for name, value in rows.items()}
    (root / "sentence.json").write_text(json.dumps({"sentences": SENTENCES, "ids": ids} | numbers) + "\n")


def write_lora(root):
    from peft import LoraConfig, PeftModel, get_peft_model

    golden = load_file(root / "clip.safetensors")
    base = CLIPModel.from_pretrained(root / "clip")
    maps = [f"text_model.encoder.layers.{i}.self_attn.{m}_proj" for i in range(2) for m in "qv"]
    names = {name for name, _ in base.named_modules()}
    assert set(maps) <= names
    model = get_peft_model(base, LoraConfig(r=2, lora_alpha=4, target_modules=maps, lora_dropout=0.0))
    g = torch.Generator().manual_seed(10)
    for name, p in model.named_parameters():
        if "lora_" in name:
            p.data = (torch.randn(p.shape, generator=g) * 64).round() / 256
    model.save_pretrained(root / "lora")
    (root / "lora/README.md").unlink(missing_ok=True)
    config = json.loads((root / "lora/adapter_config.json").read_text())
    config |= {"base_model_name_or_path": "clip", "target_modules": sorted(config["target_modules"])}  # a set, and a folder of this machine
    (root / "lora/adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
    file = load_file(root / "lora/adapter_model.safetensors")

    def unit(model):
        rows = model.get_text_features(input_ids=golden["ids"]).pooler_output
        return rows / rows.norm(dim=1, keepdim=True)

    model = PeftModel.from_pretrained(CLIPModel.from_pretrained(root / "clip"), root / "lora", is_trainable=True)
    in_double(model.get_base_model())
    text = unit(model.get_base_model())
    # W + (alpha / r) B A, without PEFT.
    merged = CLIPModel.from_pretrained(root / "clip").double()
    for name in maps:
        a, b = (file[f"base_model.model.{name}.lora_{m}.weight"].double() for m in "AB")
        merged.get_submodule(name).weight.data += 4 / 2 * b @ a
    print(f"lora {len(file)} tensors: PEFT differs from the equation by {apart(text, unit(in_double(merged)).detach()):.0e}, from no adapter by {apart(text, golden['text.unit']):.1e}")

    with torch.no_grad():
        image = in_double(CLIPModel.from_pretrained(root / "clip")).get_image_features(pixel_values=golden["pixels"].double()).pooler_output
    logits = torch.exp(torch.tensor(2.0).double()) * image / image.norm(dim=1, keepdim=True) @ text.T
    own = torch.arange(3)
    loss = (torch.nn.functional.cross_entropy(logits, own) + torch.nn.functional.cross_entropy(logits.T, own)) / 2
    loss.backward()
    grads = {name.replace(".default", ""): p.grad for name, p in model.named_parameters() if p.requires_grad}
    assert set(grads) == set(file)
    out = {"text.unit": text.detach().float(), "loss": loss.detach().float()[None]}
    save_file(out | {f"d.{name}": v.float() for name, v in grads.items()}, root / "lora.safetensors")


def write_others(root):
    write_dinov2(root)
    write_sentence(root)
    write_lora(root)
