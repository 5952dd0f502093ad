"""Golden of the CCA start of an encoder that reads words in order, in double precision.

    python tests/reference/start_words.py        (numpy, scipy; writes crates/itm-core/tests/golden/start_words.json)

A small random problem with maps from `start.py`. The vocabulary has numbers without a word, several forms of one stem, a form that
does not occur in training although its stem is known, words without a known stem, and a word of two stems.
"""

import json
import pathlib
import re

import numpy as np
from cca import WORDS, stem, terms
from start import problem, start


def spelled(captions):
    tokens = {w for text in captions for w in re.findall("[a-z0-9]+", text.lower())}
    return ["", "", *sorted(tokens), "jump", "man's", "zebra"]  # both stems of `man's` count


def word_rows(words, captions, stems, idf, wy):
    lengths = {}
    for k, text in enumerate(captions[:3000]):
        known = np.array([idf[stems.index(t)] for t in terms(text) if t in stems])
        if len(known):
            lengths[k] = np.sqrt(known @ known) / len(known)
    c = np.mean([1 / length for length in lengths.values()])
    rows = np.zeros((len(words), wy.shape[1]))
    for row, word in zip(rows, words):
        for token in re.findall("[a-z0-9]+", word):
            if stem(token) in stems:
                k = stems.index(stem(token))
                row += c * idf[k] * wy[k]
    return rows


if __name__ == "__main__":
    o = dict(ridge_image=1.0, ridge_text=2.0, power=0.5, dims=3, fill=0.3)
    features, captions, owner = problem(np.random.default_rng(7), 5, WORDS, images=24)
    want = start(features, captions, owner, o["ridge_image"], o["ridge_text"], o["power"], o["dims"])
    count = {t: sum(t in terms(text) for text in captions) for t in set().union(*map(terms, captions))}
    stems = sorted(t for t in count if count[t] >= 2)
    words = spelled(captions)
    wy = np.array(want["text_weight"]).reshape(len(stems), o["dims"])
    rows = word_rows(words, captions, stems, np.array(want["idf"]), wy)
    unknown = [word for word, row in zip(words, rows) if not row.any()]
    print(len(words), "numbers; zeros:", unknown)
    golden = dict(
        options=o,
        train=dict(features=features, captions=captions, image_of_text=owner),
        words=words,
        want=dict(image_weight=want["image_weight"], text_weight=rows.ravel().tolist(), text_bias=want["text_bias"]),
    )
    crate = pathlib.Path(__file__).parents[2] / "crates/itm-core/tests/golden/start_words.json"
    crate.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
