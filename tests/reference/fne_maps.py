"""Word-to-patch maps of the tiny ViT and BERT of `fne_training.py`, in double precision.

    python tests/reference/fne_maps.py          # writes crates/fne/tests/golden/maps.json

Encoders of `transformers`, read from the folders that `fne_training.py` wrote; projections from its `training.json`. For each
pair: the last hidden states of the patches (without the class token) and of the word pieces, projected or not. The state of a
word is the mean of the states of its pieces. A map is the cosines of one word with all patches.
"""

import json
from pathlib import Path

import torch
from transformers import BertModel, ViTModel

from fne_training import CAPTIONS, ROOT, cut, pixels, rounded

PAIRS = [  # image, caption, and the pieces [from, to) of each of its words
    (0, 1, [(1, 2), (2, 4), (4, 5)]),
    (3, 6, [(1, 3), (3, 4), (4, 6)]),
    (2, 3, [(1, 5), (5, 6)]),  # a truncated caption
]


def main():
    vit = ViTModel.from_pretrained(ROOT / "vit", add_pooling_layer=False).double().eval()
    bert = BertModel.from_pretrained(ROOT / "bert", add_pooling_layer=False).double().eval()
    stored = json.loads((ROOT / "training.json").read_text())["projections"]
    linear = {side: [torch.tensor(stored[side][k]).double() for k in ("weight", "bias")] for side in stored}
    pairs = []
    for image, caption, words in PAIRS:
        ids = cut(CAPTIONS[caption])
        with torch.no_grad():
            patches = vit(pixels([image])).last_hidden_state[0, 1:]
            pieces = bert(input_ids=torch.tensor([ids])).last_hidden_state[0]
        maps = {}
        for name in ("plain", "projected"):
            v, w = patches, pieces
            if name == "projected":
                v, w = v @ linear["image"][0] + linear["image"][1], w @ linear["text"][0] + linear["text"][1]
            w = torch.stack([w[a:b].mean(0) for a, b in words])
            maps[name] = (w @ v.T / w.norm(dim=1)[:, None] / v.norm(dim=1)[None]).flatten().tolist()
        pairs.append({"image": image, "caption": CAPTIONS[caption], "words": words, **maps})
    path = ROOT.parent / "maps.json"
    path.write_text(json.dumps(rounded(pairs), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
