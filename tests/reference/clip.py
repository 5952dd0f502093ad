"""Tiny random CLIP and SigLIP models, with their outputs, losses and gradients in double precision.

    python tests/reference/clip.py            writes crates/itm-core/tests/golden/clip/
    python tests/reference/clip.py --check D  reads the folders D/clip, D/clip_square, D/siglip that our code saved with
                                              `transformers`, and compares the unit rows with the goldens

Needs torch 2.9.0, transformers 5.23.0, open_clip_torch 3.3.0, torchvision, ftfy, regex. Models, as folders with f32 weights:

    clip            CLIPModel: text 16 wide, 2 heads, 2 layers, mlp 32, 16 positions; image 24 wide, 3 heads, 2 layers, mlp 48,
                    12 x 12 pixels, patch 4; joint width 12; quick_gelu; eos_token_id 2 in the config as in the first files
                    (the row of a caption is the first maximum of its numbers); with a tokenizer and preprocessor_config.json
    clip_square     text, image and joint width 16, mlp 64, exact GELU, 60 pieces, eos_token_id 59 (the row is the first 59); an
                    untransposed projection would load
    clip_sharded    the weights of `clip` in two bf16 shards with an index; the values are the same
    open_clip, open_clip_square   the same weights in open_clip's names; the second config has no quick_gelu and no mlp_ratio
    siglip          SiglipModel: both towers 24 wide, 3 heads, 2 layers, mlp 48; 8 positions, pad 1; GELU by tanh; scale 1.5, bias -3

Goldens `clip.safetensors`, `clip_square.safetensors`, `siglip.safetensors` (f32, lengths and ids i64):

    pixels [3, 3, 12, 12], ids [3, l] (padded with the end piece), lengths [3] with start and end piece
    image.states        [3, n, d]  CLIP: before post_layernorm; SigLIP: after it
    image.normed        [3, d]     CLIP only: post_layernorm of the class row
    text.states         [3, l, d]  after final_layer_norm, also behind the end piece
    image.projected, text.projected, image.unit, text.unit, logits_per_image [image, text], loss [1]
    d.NAME              gradient of the loss for every tensor of the file; those of k_proj.bias (and of the middle third of
                        SigLIP's in_proj_bias) are zero, as a number added to all scores of a query changes nothing
    gelu.image.unit, gelu.text.unit   `clip` only: the same weights with exact GELU
    eps.image.unit, eps.text.unit     `siglip` only: the same weights with layer_norm_eps 0.01 in both towers; 1e-5 for 1e-6
                        would move a unit row by 1.3e-6, too little to see
    wide.pixels, wide.states          `clip`, `siglip`: 16 x 20 pixels, positions resized (bicubic, by size, no antialias)

`clip_words.py` writes pieces.json and tokenizers, `clip_pictures.py` pictures.safetensors, `clip_others.py` a DINOv2, a sentence
encoder and a LoRA adapter; `clip_plain.py` has the equations in NumPy, `clip_models.py`
what all share. The captions of `clip` and `siglip` are the first three of
pieces.json. Every weight is random, also biases and layer norms: a multiple of 1/256, exact in bf16. Attention is the plain ("eager") one;
its softmax, which transformers computes in f32 whatever the model, is in double here.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, SiglipConfig, SiglipImageProcessorPil, SiglipModel

import clip_others
import clip_pictures
import clip_words
from clip_models import apart, drawn, gradients_of, in_double, randomise
from clip_pictures import MEAN, STD
from clip_plain import Plain

ROOT = Path(__file__).parents[2] / "crates/itm-core/tests/golden/clip"
SIDE, PATCH = 12, 4


def clip(square):
    wide = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 64 if square else 32}
    act = {"hidden_act": "gelu" if square else "quick_gelu"}
    pieces = 60 if square else len(clip_words.PIECES)
    special = {"bos_token_id": 58, "eos_token_id": 59, "pad_token_id": 59} if square else {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
    text = wide | act | special | {"vocab_size": pieces, "max_position_embeddings": 16}
    image = act | {"image_size": SIDE, "patch_size": PATCH}
    image |= wide if square else {"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 48}
    width = 16 if square else 12
    text, image = text | {"projection_dim": width}, image | {"projection_dim": width}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=image, projection_dim=width))
    model.logit_scale.data.fill_(2.0)
    return randomise(model, 2 if square else 1)


def siglip():
    tower = {"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 48}
    text = tower | {"vocab_size": len(clip_words.UNIGRAM), "max_position_embeddings": clip_words.SIGLIP_LENGTH, "projection_size": 24}
    model = SiglipModel(SiglipConfig(text_config=text, vision_config=tower | {"image_size": SIDE, "patch_size": PATCH}))
    model.logit_scale.data.fill_(1.5)
    model.logit_bias.data.fill_(-3.0)
    return randomise(model, 3)


def outputs(model, pixels, ids, lengths):
    """transformers' own outputs under the golden file's names."""
    is_clip = isinstance(model, CLIPModel)
    mask = {"attention_mask": (torch.arange(ids.shape[1])[None] < lengths[:, None]).long()} if is_clip else {}
    out = model(input_ids=ids, pixel_values=pixels.double(), return_loss=True, **mask)
    # CLIPModel itself puts the projected rows into `pooler_output` of its towers' outputs.
    image, text = out.vision_model_output, out.text_model_output
    normed = {"image.normed": model.vision_model(pixels.double()).pooler_output} if is_clip else {}
    # What lies behind the end piece is computed without the mask, as a reader that pads does.
    states = model.text_model(input_ids=ids).last_hidden_state
    real = torch.arange(ids.shape[1])[None] < lengths[:, None] if is_clip else torch.ones_like(ids, dtype=torch.bool)
    assert (states - text.last_hidden_state)[real].abs().max() < 1e-12, "padding changes a caption"
    return {
        "image.states": image.last_hidden_state, **normed, "text.states": states,
        "image.projected": image.pooler_output, "text.projected": text.pooler_output,
        "image.unit": out.image_embeds, "text.unit": out.text_embeds,
        "logits_per_image": out.logits_per_image, "loss": out.loss[None],
    }  # fmt: skip


def write_model(name, model, ids, lengths, act, heads):
    family = "clip" if isinstance(model, CLIPModel) else "siglip"
    model.save_pretrained(ROOT / name)
    file = load_file(ROOT / name / "model.safetensors")
    model = in_double(model)
    pixels = drawn(len(name), 3, 3, SIDE, SIDE)
    got = outputs(model, pixels, ids, lengths)
    plain = Plain(file, family, act, *heads).scores(pixels.double().numpy(), ids.numpy(), lengths.numpy())
    print(name, f"{len(file)} tensors, NumPy against transformers:", {k: f"{apart(v, plain[k]):.0e}" for k, v in got.items()})
    assert plain.keys() == got.keys() and all(apart(v, plain[k]) < 1e-11 for k, v in got.items())
    out = {"pixels": pixels, "ids": ids, "lengths": lengths} | {k: v.detach().float().contiguous() for k, v in got.items()}
    got["loss"].sum().backward()
    if name != "clip_square":
        wide = drawn(99, 1, 3, 16, 20)
        out |= {"wide.pixels": wide}
        with torch.no_grad():
            out["wide.states"] = model.vision_model(wide.double(), interpolate_pos_encoding=True).last_hidden_state.float()
    changes = {"clip": ("gelu", {"hidden_act": "gelu"}), "siglip": ("eps", {"layer_norm_eps": 1e-2})}
    if name in changes:
        prefix, change = changes[name]
        towers = {f"{tower}_config": getattr(model.config, f"{tower}_config").to_dict() | change for tower in ("text", "vision")}
        other = outputs(in_double(type(model).from_pretrained(ROOT / name, **towers)), pixels, ids, lengths)
        rows = {f"{prefix}.{k}": other[k].detach().float() for k in ("image.unit", "text.unit")}
        print(f"  {change} moves unit rows by", [f"{apart(v, out[k.removeprefix(f'{prefix}.')]):.1e}" for k, v in rows.items()])
        out |= rows
    gradients = gradients_of(model)
    assert {k[2:] for k in gradients} == set(file)
    print("  gradients that are zero everywhere:", [k for k, v in gradients.items() if not v.any()])
    out |= gradients
    save_file(out, ROOT / f"{name}.safetensors")
    return out


def write_sharded():
    model = CLIPModel.from_pretrained(ROOT / "clip")
    model.bfloat16().save_pretrained(ROOT / "clip_sharded", max_shard_size="30KB")
    again = CLIPModel.from_pretrained(ROOT / "clip_sharded", dtype=torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(CLIPModel.from_pretrained(ROOT / "clip").parameters(), again.parameters()))
    print("shards", sorted(p.name for p in (ROOT / "clip_sharded").iterdir()))


BLOCK = {"ln_1": "layer_norm1", "ln_2": "layer_norm2", "attn.out_proj": "self_attn.out_proj", "mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2"}


def open_clip_tensors(file):
    """The tensors of a file of transformers under open_clip's names."""
    out = {
        "logit_scale": file["logit_scale"],
        "visual.class_embedding": file["vision_model.embeddings.class_embedding"],
        "visual.conv1.weight": file["vision_model.embeddings.patch_embedding.weight"],
        "visual.positional_embedding": file["vision_model.embeddings.position_embedding.weight"],
        "visual.proj": file["visual_projection.weight"].T,
        "token_embedding.weight": file["text_model.embeddings.token_embedding.weight"],
        "positional_embedding": file["text_model.embeddings.position_embedding.weight"],
        "text_projection": file["text_projection.weight"].T,
    }
    for leaf in ("weight", "bias"):
        for ours, theirs in {"visual.ln_pre": "vision_model.pre_layrnorm", "visual.ln_post": "vision_model.post_layernorm", "ln_final": "text_model.final_layer_norm"}.items():
            out[f"{ours}.{leaf}"] = file[f"{theirs}.{leaf}"]
        for i in range(2):
            for ours, theirs in {"visual.": "vision_model", "": "text_model"}.items():
                to, at = f"{ours}transformer.resblocks.{i}.", f"{theirs}.encoder.layers.{i}."
                out[f"{to}attn.in_proj_{leaf}"] = torch.cat([file[f"{at}self_attn.{m}_proj.{leaf}"] for m in "qkv"])
                out |= {f"{to}{a}.{leaf}": file[f"{at}{b}.{leaf}"] for a, b in BLOCK.items()}
    return {k: v.contiguous() for k, v in out.items()}


def write_open_clip(square, golden):
    from open_clip.model import CLIP

    name = "open_clip_square" if square else "open_clip"
    (ROOT / name).mkdir(exist_ok=True)
    file = open_clip_tensors(load_file(ROOT / ("clip_square" if square else "clip") / "model.safetensors"))
    vision = {"image_size": SIDE, "layers": 2, "width": 16 if square else 24, "head_width": 8, "patch_size": PATCH}
    text = {"context_length": 16, "vocab_size": 60 if square else len(clip_words.PIECES), "width": 16, "heads": 2, "layers": 2}
    if not square:
        vision, text = vision | {"mlp_ratio": 2.0}, text | {"mlp_ratio": 2.0}
    cfg = {"embed_dim": 16 if square else 12, "vision_cfg": vision, "text_cfg": text} | ({} if square else {"quick_gelu": True})
    preprocess = {"mean": MEAN, "std": STD, "interpolation": "bicubic", "resize_mode": "shortest"}
    (ROOT / name / "open_clip_config.json").write_text(json.dumps({"model_cfg": cfg, "preprocess_cfg": preprocess}, indent=2) + "\n")
    save_file(file, ROOT / name / "open_clip_model.safetensors")
    model = CLIP(embed_dim=cfg["embed_dim"], vision_cfg=vision, text_cfg=text, quick_gelu=cfg.get("quick_gelu", False))
    model.load_state_dict(file, strict=True)
    model = model.double().eval()
    ids = torch.nn.functional.pad(golden["ids"], (0, 16 - golden["ids"].shape[1]))  # with 0, as open_clip's tokenizer
    with torch.no_grad():
        rows = {"image.unit": model.encode_image(golden["pixels"].double(), normalize=True), "text.unit": model.encode_text(ids, normalize=True)}
    print(name, f"{len(file)} tensors, open_clip against transformers:", {k: f"{apart(v, golden[k]):.0e}" for k, v in rows.items()})
    assert all(apart(v, golden[k]) < 1e-7 for k, v in rows.items())
    assert golden["lengths"].tolist() == (golden["ids"].argmax(1) + 1).tolist()


def padded(rows, pad):
    width = max(map(len, rows))
    return torch.tensor([row + [pad] * (width - len(row)) for row in rows]), torch.tensor([len(row) for row in rows])


def write_models():
    tokenizer = clip_words.clip_tokenizer()
    ids, lengths = padded([tokenizer(c, truncation=True, max_length=16)["input_ids"] for c in clip_words.BATCH], len(clip_words.PIECES) - 1)
    golden = write_model("clip", clip(False), ids, lengths, "quick_gelu", (3, 2))
    g = torch.Generator().manual_seed(5)
    ids, lengths = padded([[58, *torch.randint(0, 58, (n,), generator=g).tolist(), 59] for n in (4, 1, 9)], 59)
    square = write_model("clip_square", clip(True), ids, lengths, "gelu", (2, 2))
    rows = [clip_words.siglip_row(c) for c in clip_words.BATCH]
    write_model("siglip", siglip(), torch.tensor([row for _, row in rows]), torch.tensor([len(real) for real, _ in rows]), "gelu_pytorch_tanh", (3, 3))
    write_sharded()
    write_open_clip(False, golden)
    write_open_clip(True, square)
    CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}).save_pretrained(ROOT / "clip")
    half = [0.5] * 3
    SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE}, resample=3, image_mean=half, image_std=half).save_pretrained(ROOT / "siglip")


def check(folder):
    for name, kind in {"clip": CLIPModel, "clip_square": CLIPModel, "siglip": SiglipModel}.items():
        golden = load_file(ROOT / f"{name}.safetensors")
        model, info = kind.from_pretrained(folder / name, output_loading_info=True)
        got = outputs(in_double(model), golden["pixels"], golden["ids"], golden["lengths"])
        print(name, {k: list(v) for k, v in info.items() if v}, {k: f"{apart(got[k], golden[k]):.1e}" for k in got})


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--check"]:
        check(Path(sys.argv[2]))
    else:
        ROOT.mkdir(parents=True, exist_ok=True)
        write_models()
        clip_words.write_pieces(ROOT)
        clip_pictures.write_pictures(ROOT)
        clip_others.write_others(ROOT)
