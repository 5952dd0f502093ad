"""Golden of the CCA start of two linear encoders, in double precision, with another method than the crate.

    python tests/reference/start.py        (numpy, scipy; writes crates/itm-core/tests/golden/start.json)

Two small random problems, one with fewer image than text dimensions and one the other way round; features are not centred,
so the bias of the images is not zero. Cholesky factors whiten both sides before a full SVD; the crate
decomposes the smaller covariance and a Gram matrix. The sign of a column is free, but both maps have the same sign.
"""

import json
import pathlib

import numpy as np
from cca import WORDS, ridged, terms, tfidf
from scipy.linalg import cholesky, solve_triangular, svd


def start(features, captions, owner, rx, ry, power, dims):
    owner = np.array(owner)
    df = {}
    for text in captions:
        for t in terms(text):
            df[t] = df.get(t, 0) + 1
    kept = sorted(t for t in df if df[t] >= 2)
    vocabulary = {t: k for k, t in enumerate(kept)}
    idf = np.array([np.log((1 + len(captions)) / (1 + df[t])) + 1 for t in kept])

    x, y = np.array(features), tfidf(captions, vocabulary, idf)
    mx, my = x.mean(0), y.mean(0)
    xc, yc = x - mx, y - my
    ybar = np.array([yc[owner == i].mean(0) for i in range(len(x))])
    lx = cholesky(ridged(xc.T @ xc / len(x), rx), lower=True)
    ly = cholesky(ridged(yc.T @ yc / len(y), ry), lower=True)
    t = solve_triangular(ly, solve_triangular(lx, xc.T @ ybar / len(x), lower=True).T, lower=True).T
    u, s, vt = svd(t)
    wx = solve_triangular(lx.T, u[:, :dims]) * s[:dims] ** power
    wy = solve_triangular(ly.T, vt[:dims].T) * s[:dims] ** power
    wx /= np.linalg.norm(xc @ wx, axis=1).mean()
    wy /= np.linalg.norm(yc @ wy, axis=1).mean()

    factors = []
    for text in captions:
        known = [idf[vocabulary[t]] for t in terms(text) if t in vocabulary]
        if known:
            factors.append(len(known) / np.sqrt(np.sum(np.square(known))))
    pooled = np.mean(factors) * idf[:, None] * wy
    maps = dict(image_weight=wx, image_bias=-wx.T @ mx, text_weight=wy, text_bias=-wy.T @ my, idf=idf, pooled=pooled)
    return {name: value.ravel().tolist() for name, value in maps.items()}


def problem(rng, dx, words, images):
    means, favourites = rng.normal(size=(4, dx)), [rng.permutation(words)[:4] for _ in range(4)]
    features, captions, owner = [], [], []
    for i in range(images):
        topic = rng.integers(4)
        x = means[topic] + 0.7 * rng.normal(size=dx) + 0.3
        features.append((np.round(x * 64) / 64).tolist())  # exact in single precision
        for _ in range(rng.integers(1, 4)):
            own, other = rng.choice(favourites[topic], 2), rng.choice(words, 2)
            captions.append(" ".join([*own, *other]).capitalize() + ".")
            owner.append(i)
    captions[-1] = "Unheard-of nothing"  # without a known term
    return features, captions, owner


if __name__ == "__main__":
    golden = []
    for seed, dx, words, options in [
        (5, 5, WORDS, dict(ridge_image=2.0, ridge_text=0.5, power=0.75, dims=3, fill=0.3)),
        (6, 14, WORDS[:8], dict(ridge_image=0.3, ridge_text=1.0, power=1.0, dims=4, fill=0.3)),
    ]:
        features, captions, owner = problem(np.random.default_rng(seed), dx, words, images=24)
        o = options
        want = start(features, captions, owner, o["ridge_image"], o["ridge_text"], o["power"], o["dims"])
        data = dict(features=features, captions=captions, image_of_text=owner)
        golden.append(dict(options=options, train=data, want=want))
        print("dx", dx, "dy", len(want["idf"]), "bias", np.round(want["image_bias"], 3))
    crate = pathlib.Path(__file__).parents[2] / "crates/itm-core/tests/golden/start.json"
    crate.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
