"""Golden values of a bidirectional recurrent unit on packed sequences, by PyTorch in double precision.

    python tests/reference/bigru.py    writes crates/itm-kernels/tests/golden/bigru.json

Weights are in PyTorch's layout ([3h, i], [3h, h]) under PyTorch's names. The loss is sum(c * output) over real steps.
"""

import json
from pathlib import Path

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

B, L, I, H = 5, 5, 3, 17
LENGTHS = [3, 5, 1, 2, 4]


def rounded(shape, generator, scale):
    return torch.round(torch.randn(shape, generator=generator, dtype=torch.float64) * scale * 256) / 256


def main():
    generator = torch.Generator().manual_seed(11)
    gru = torch.nn.GRU(I, H, batch_first=True, bidirectional=True, dtype=torch.float64)
    with torch.no_grad():
        for p in gru.parameters():
            p.copy_(rounded(p.shape, generator, 0.5))
    x = rounded((B, L, I), generator, 0.5).requires_grad_()
    c = rounded((B, L, 2 * H), generator, 1.0)
    packed = pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    out, _ = pad_packed_sequence(gru(packed)[0], batch_first=True)
    real = (torch.arange(L)[None, :] < torch.tensor(LENGTHS)[:, None])[..., None]
    c = c * real
    (c * out).sum().backward()

    golden = {"sizes": [B, L, I, H], "lengths": LENGTHS, "c": c, "x": x, "out": out, "d_x": x.grad}
    for name, p in gru.named_parameters():
        golden |= {name: p, "d_" + name: p.grad}
    plain = {
        k: v if isinstance(v, list) else [float(f"{a:.9g}") for a in v.detach().ravel().tolist()]
        for k, v in golden.items()
    }
    path = Path(__file__).parents[2] / "crates/itm-kernels/tests/golden/bigru.json"
    path.write_text(json.dumps(plain, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
