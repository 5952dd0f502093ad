"""Time of a training from a closed-form start in PyTorch, to compare with `itm reproduce fne-flickr8k --rows InfoNCE`.

The sizes of Flickr8k: 1,280 features, 3,268 stems (about ten per caption), width 256, batches of 128, 234 steps per epoch,
six epochs with a validation of 500 images and 2,500 captions after each. Weights and data are random, because the time does not
depend on them. The text side is an `embedding_bag`, the fastest form in PyTorch; Adam is PyTorch's default.

python tests/reference/start_step.py [threads]
"""

import math
import sys
import time

import torch
import torch.nn.functional as F

FEATURES, TERMS, WORDS, WIDTH, BATCH, STEPS, EPOCHS = 1280, 3268, 10, 256, 128, 234, 6


def main():
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    torch.manual_seed(0)
    image = torch.nn.Linear(FEATURES, WIDTH)
    text = torch.nn.Parameter(torch.randn(TERMS, WIDTH) * 0.05)
    bias = torch.nn.Parameter(torch.zeros(WIDTH))
    adam = torch.optim.Adam([*image.parameters(), text, bias], lr=3e-4)
    x = torch.randn(6000, FEATURES) * 0.03
    captions = torch.randint(0, TERMS, (30000, WORDS))
    values = torch.full((30000, WORDS), 1 / math.sqrt(WORDS))

    def texts(rows, training):
        weights = F.dropout(values[rows], 0.3, training)
        return F.normalize(F.embedding_bag(captions[rows], text, per_sample_weights=weights, mode="sum") + bias)

    def images(rows, training):
        return F.normalize(image(F.dropout(x[rows], 0.5, training)))

    began = time.time()
    for epoch in range(EPOCHS):
        order = torch.randperm(30000)
        for step in range(STEPS):
            for group in adam.param_groups:
                group["lr"] = 3e-4 * 0.5 * (1 + math.cos(math.pi * (epoch * STEPS + step) / (EPOCHS * STEPS)))
            rows = order[step * BATCH : (step + 1) * BATCH]
            pictures = rows // 5
            scores = images(pictures, True) @ texts(rows, True).T / 0.07
            same = (pictures[:, None] == pictures[None, :]) & ~torch.eye(BATCH, dtype=torch.bool)
            scores = scores.masked_fill(same, -torch.inf)
            target = torch.arange(BATCH)
            loss = (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2
            adam.zero_grad()
            loss.backward()
            adam.step()
            float(loss.detach())
        with torch.no_grad():
            scores = images(torch.arange(500), False) @ texts(torch.arange(2500), False).T
            own = scores[torch.arange(2500) // 5, torch.arange(2500)]
            (scores > own[None, :]).sum(0)
    seconds = time.time() - began
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads: {seconds:.1f} s a training, {1000 * seconds / EPOCHS / STEPS:.2f} ms per step")


if __name__ == "__main__":
    main()
