"""Golden of the regularised CCA baseline, in double precision, with another method than the crate.

    python tests/reference/cca.py        (numpy, scipy; writes crates/itm-core/tests/golden/cca.json)

Three small random problems: fewer image than text dimensions, the other way round, and rows of other encoders beside both. The crate decomposes
both covariances and scales; here Cholesky factors and a full SVD solve every grid point, which gives the same
scores (vectors differ by sign). Text features, selection and ranks are implemented again, with sorting instead of counting.
"""

import json
import pathlib
import re

import numpy as np
from scipy.linalg import cholesky, solve_triangular, svd

VOWELS = "aeiouy"


def stem(w):
    if len(w) > 4 and w.endswith("ies"):
        w = w[:-3] + "y"
    elif len(w) > 3 and re.search(r"[^sui]s$", w):
        w = w[:-1]
    m = re.fullmatch(r"(.{3,})ing", w) or re.fullmatch(r"(.{3,})ed", w)
    if m and any(v in m[1] for v in VOWELS):
        w = re.sub(r"([^lsz])\1$", r"\1", m[1])
    return re.sub(r"^(.{3,})e$", r"\1", w)


def terms(text):
    return {stem(w) for w in re.findall("[a-z0-9]+", text.lower())}


def tfidf(texts, vocabulary, idf):
    y = np.zeros((len(texts), len(vocabulary)))
    for i, text in enumerate(texts):
        for t in terms(text):
            if t in vocabulary:
                y[i, vocabulary[t]] = idf[vocabulary[t]]
    norm = np.linalg.norm(y, axis=1, keepdims=True)
    return y / np.where(norm > 0, norm, 1)


def images(x, signed):
    x = np.sign(x) * np.sqrt(np.abs(x)) if signed else np.sqrt(np.maximum(x, 0))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def rsum(s, owner):
    def recalls(s, truth):
        hits = np.zeros(3)
        for row, own in zip(s, truth):
            order = list(np.argsort(-row, kind="stable"))
            best = min(order.index(j) for j in own)
            hits += [best < k for k in (1, 5, 10)]
        return 100 * hits / len(truth)

    i2t = [[t for t, o in enumerate(owner) if o == i] for i in range(len(s))]
    return recalls(s, i2t).sum() + recalls(s.T, [[o] for o in owner]).sum()


def ridged(c, r):
    return c + r * np.trace(c) / len(c) * np.eye(len(c))


def fit_and_score(parts, signed, grid):
    train, val, test = (parts[k] for k in ("train", "val", "test"))
    owner = np.array(train["image_of_text"])
    df = {}
    for text in train["captions"]:
        for t in terms(text):
            df[t] = df.get(t, 0) + 1
    kept = sorted(t for t in df if df[t] >= 2)
    vocabulary = {t: k for k, t in enumerate(kept)}
    idf = np.array([np.log((1 + len(owner)) / (1 + df[t])) + 1 for t in kept])

    def inputs(part):
        x, y = images(np.array(part["features"]), signed), tfidf(part["captions"], vocabulary, idf)
        beside = part.get("image_rows"), part.get("text_rows")
        return [a if b is None else np.hstack([a, b]) for a, b in zip((x, y), beside)]

    x, y = inputs(train)
    mx, my = x.mean(0), y.mean(0)
    x, y = x - mx, y - my
    ybar = np.array([y[owner == i].mean(0) for i in range(len(x))])
    cxx, cyy, cxy = x.T @ x / len(x), y.T @ y / len(y), x.T @ ybar / len(x)

    def embed(part, wx, wy):
        a, b = inputs(part)
        a, b = (a - mx) @ wx, (b - my) @ wy
        a /= np.linalg.norm(a, axis=1, keepdims=True)
        b /= np.linalg.norm(b, axis=1, keepdims=True)
        return a @ b.T

    best = (-1,)
    for rx in grid["ridge_image"]:
        for ry in grid["ridge_text"]:
            lx, ly = cholesky(ridged(cxx, rx), lower=True), cholesky(ridged(cyy, ry), lower=True)
            t = solve_triangular(ly, solve_triangular(lx, cxy, lower=True).T, lower=True).T
            u, s, vt = svd(t)
            rank = int((s > 1e-6 * s[0]).sum())
            for p in grid["power"]:
                for d in sorted({min(d, rank) for d in grid["dims"]}):
                    wx = solve_triangular(lx.T, u[:, :d]) * s[:d] ** p
                    wy = solve_triangular(ly.T, vt[:d].T) * s[:d] ** p
                    value = rsum(embed(val, wx, wy), val["image_of_text"])
                    if value > best[0] + 1e-9:
                        best = (value, [rx, ry, p, d], s[:d].tolist(), embed(test, wx, wy))
    return dict(
        terms=len(kept), chosen=best[1], correlations=best[2], validation_rsum=best[0], scores=best[3].ravel().tolist()
    )


WORDS = "dogs dog running runs rides riding jumped jumping boxes box puppies puppy rolled rolling two a man's red".split()


def problem(rng, dx, words, topics, noise, signed):
    means, favourites = rng.normal(size=(topics, dx)), [rng.permutation(words)[:4] for _ in range(topics)]

    def part(n):
        features, captions, owner = [], [], []
        for i in range(n):
            topic = rng.integers(topics)
            x = means[topic] + noise * rng.normal(size=dx)
            x = x if signed else np.maximum(x, 0) + 1 / 64
            features.append((np.round(x * 64) / 64).tolist())  # exact in single precision
            for _ in range(rng.integers(1, 4)):  # an image has any number of captions
                own, other = rng.choice(favourites[topic], 2), rng.choice(words, 2)
                captions.append(" ".join([*own, *other]).capitalize() + ".")
                owner.append(i)
        return dict(features=features, captions=captions, image_of_text=owner)

    return dict(train=part(24), val=part(12), test=part(4))


def beside(rng, parts, dx, dy):
    """Unit rows that vary with the features and with the words, in single precision."""
    def rows(x, width):
        x = x @ rng.normal(size=(x.shape[1], width)) + 0.3 * rng.normal(size=(len(x), width))
        x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
        return x.astype(np.float64).tolist()

    vocabulary = {t: k for k, t in enumerate(sorted({t for w in WORDS for t in terms(w)}))}
    for part in parts.values():
        part["image_rows"] = rows(np.array(part["features"]), dx)
        part["text_rows"] = rows(tfidf(part["captions"], vocabulary, np.ones(len(vocabulary))), dy)


if __name__ == "__main__":
    grid = dict(ridge_image=[0.1, 1.0], ridge_text=[0.5, 2.0], power=[0.5, 1.0], dims=[2, 4, 99])
    golden = []
    for seed, dx, words, signed, given in [
        (3, 5, WORDS, False, None), (4, 20, WORDS[:8], True, None), (5, 6, WORDS, False, (3, 4))
    ]:
        rng = np.random.default_rng(seed)
        parts = problem(rng, dx, words, topics=4, noise=0.7, signed=signed)
        if given:
            beside(rng, parts, *given)
        golden.append(dict(grid=grid, **parts, want=fit_and_score(parts, signed, grid)))
        w = golden[-1]["want"]
        print("dx", dx, "dy", w["terms"], "chosen", w["chosen"], "val", round(w["validation_rsum"], 2))
    crate = pathlib.Path(__file__).parents[2] / "crates/itm-core/tests/golden/cca.json"
    crate.parent.mkdir(parents=True, exist_ok=True)
    crate.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
