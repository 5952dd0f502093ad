"""Double-precision reference of FNE (ACM MM 2023), Eq. 3-15 and sections 3.1-3.3 of the specification.

Written only from the equations. Inputs are rounded to f32 first, so that both sides start from equal numbers.

    python tests/reference/fne.py        # writes crates/fne/tests/golden/fne.json
"""

import json
from pathlib import Path

import numpy as np

rng = np.random.default_rng(20230808)


def f32(x):
    return np.asarray(x, np.float32).astype(np.float64)


def unit(*shape):
    x = rng.normal(size=shape)
    return f32(x / np.linalg.norm(x, axis=-1, keepdims=True))


# Eq. 4-10


def logit(s, p, mp, vp, mn, vn):
    sp, sn = max(np.sqrt(vp), 1e-4), max(np.sqrt(vn), 1e-4)
    return np.log(p) - np.log1p(-p) + np.log(sn) - np.log(sp) - ((s - mp) / sp) ** 2 / 2 + ((s - mn) / sn) ** 2 / 2


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e / (1 + e), 1 / (1 + e))


def posterior():
    s = f32([-1, -0.7, -0.2, 0, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.95, 1])
    out = []
    for p, mp, vp, mn, vn in [
        (1e-4, 0.65, 0.01, 0.2, 0.01),
        (1e-4, 0.55, 0.0225, 0.25, 0.0049),
        (1e-3, 0.5, 0.0036, 0.1, 0.0144),
        (0.3, 0.4, 0.02, 0.3, 0.01),
        (1e-5, 0.6, 0.0, 0.2, 0.0001),  # a variance of 0: the floor
    ]:
        x = logit(s, p, mp, vp, mn, vn)
        g = lambda m, v: {"mean": m, "variance": v}
        out.append(
            {"prior": p, "positive": g(mp, vp), "negative": g(mn, vn), "s": s.tolist(), "logit": x.tolist(), "p": sigmoid(x).tolist()}
        )
    return out


# Section 3.2


class Moments:
    def __init__(self):
        self.values, self.ss, self.n, self.sum = [], 0.0, 0, 0.0

    def add(self, xs):
        for x in xs:
            self.values.append(x)
            self.sum += x
            self.n += 1
        if self.n:
            mean = self.sum / self.n
            self.ss += sum((x - mean) ** 2 for x in xs)

    def official(self):
        return {"count": self.n, "mean": self.sum / self.n if self.n else 0.0, "variance": self.ss / (self.n - 1) if self.n > 1 else 0.0}

    def sample(self):
        v = self.values
        return {"count": self.n, "mean": float(np.mean(v)) if v else 0.0, "variance": float(np.var(v, ddof=1)) if len(v) > 1 else 0.0}


def taken(S):
    pos, neg = [], []
    b = len(S)
    off = np.where(np.eye(b, dtype=bool), 0.0, S)  # the diagonal becomes 0: a floor
    for i in range(b):
        if np.argmax(S[i]) == i and np.argmax(S[:, i]) == i:
            pos.append(S[i, i])
            neg += [off[i].max(), off[:, i].max()]
    return pos, neg


def statistics():
    steps = []
    run = {k: (Moments(), Moments()) for k in ["official", "never"]}
    for k, begin in enumerate([True, False, False, True, False]):
        b = [5, 3, 4, 6, 1][k]
        S = f32(rng.normal(0.15, 0.2, (b, b)) + 0.35 * np.eye(b))
        if begin:
            run["official"] = (Moments(), Moments())
        pos, neg = taken(S)
        for p, n in run.values():
            p.add(pos)
            n.add(neg)
        step = {"begin_epoch": begin, "b": b, "scores": S.tolist()}
        for name, (p, n) in run.items():
            step[name] = {"positive": p.official(), "negative": n.official()}
        p, n = run["official"]
        step["welford"] = {"positive": p.sample(), "negative": n.sample()}
        steps.append(step)
    return {"steps": steps}


# Eq. 11-13, section 3.3

OFFICIAL = dict(p=1e-4, lam=0.001, tau=0.5, alpha=0.5, cut=True, margin=0.2, gate=200, tie_easy=True)
PAPER = dict(OFFICIAL, lam=0.01, tau=1.0, cut=False, tie_easy=False)


def hinges(S, pos, X, margin):
    H = np.maximum(margin + S - pos[:, None], 0)
    H[X] = 0
    return H


def weights(S, pos, X, seen, r):
    (npos, mp, sp), (_, mn, sn) = seen
    rho = np.exp(-r["alpha"] * (S - pos[:, None]) ** 2)
    if npos > r["gate"]:
        P = sigmoid(logit(S, r["p"], mp, sp**2, mn, sn**2))
        easy = P <= r["lam"] if r["tie_easy"] else P < r["lam"]
        rho = np.where(easy, rho, np.exp(-r["tau"] * P))
    rho[X] = 0
    if r["cut"]:
        rho[S <= mp - r["margin"]] = 0
    f = np.argmax(hinges(S, pos, X, r["margin"]), 1)
    for i in range(len(S)):
        if rho[i].sum() == 0:
            rho[i, f[i]] = 1
    return rho, f


def weight_cases():
    out = []
    for name, preset, n, mp in [
        ("nothing seen", "official", 0, 0.0),
        ("one pair", "official", 1, 0.35),
        ("at the gate", "official", 200, 0.5),
        ("above the gate", "official", 201, 0.5),
        ("late", "official", 5000, 0.55),
        ("rows without weight", "official", 300, 0.95),
        ("paper before the gate", "paper", 150, 0.5),
        ("paper", "paper", 700, 0.5),
    ]:
        b, n_columns = 4, 11
        S = f32(rng.normal(0.4, 0.2, (b, n_columns)))
        pos = f32(rng.uniform(0.4, 0.7, b))
        anchors = np.array([3, 8, 3, 5])
        candidates = np.array([3, 8, 3, 5, -100, 8, 1, 2, 3, -100, 9])
        if name == "rows without weight":
            S[2] = f32(rng.uniform(-0.6, -0.3, n_columns))  # also no active hinge
        X = anchors[:, None] == candidates[None]
        seen = (n, mp, 0.11), (2 * n, 0.27, 0.09)
        rho, f = weights(S, pos, X, seen, {"official": OFFICIAL, "paper": PAPER}[preset])
        out.append(
            dict(
                name=name, preset=preset, scores=S.tolist(), positive=pos.tolist(), anchors=anchors.tolist(),
                candidates=candidates.tolist(), seen_positive=list(seen[0]), seen_negative=list(seen[1]),
                weights=rho.tolist(), hardest=f.tolist(),
            )
        )  # fmt: skip
    return out


# Section 3.1 step 3


def warmup(v, w, margin, total, X):
    """Value and gradients of the in-batch loss; X marks pairs that are ignored in addition to each row's own pair."""
    b = len(v)
    S = v @ w.T
    d = np.diag(S)
    skip = np.eye(b, dtype=bool) | X
    rows = np.where(skip, 0, np.maximum(margin + S - d[:, None], 0))
    cols = np.where(skip, 0, np.maximum(margin + S - d[None], 0))
    G = np.zeros_like(S)
    value = 0.0
    for i in range(b):
        for j in range(b) if total else [np.argmax(rows[i])]:
            if rows[i, j] > 0:
                value += rows[i, j]
                G[i, j] += 1
                G[i, i] -= 1
        for j in range(b) if total else [np.argmax(cols[:, i])]:
            if cols[j, i] > 0:
                value += cols[j, i]
                G[j, i] += 1
                G[i, i] -= 1
    G /= b
    return value / b, G @ w, G.T @ v


def warmup_cases():
    out = []
    b, d = 5, 4
    v = unit(1, d) + 0.5 * unit(b, d)
    v[2] = v[0]  # one image, twice
    w = v + 0.4 * unit(b, d)
    v, w = (f32(x / np.linalg.norm(x, axis=1, keepdims=True)) for x in (v, w))
    ids = np.array([1, 2, 1, 3, 4])
    for total in [False, True]:
        for masked in [False, True]:
            X = (ids[:, None] == ids[None]) & masked
            value, gv, gw = warmup(v, w, 0.2, total, X)
            out.append(
                dict(total=total, masked=masked, b=b, d=d, ids=ids.tolist(), images=v.tolist(), texts=w.tolist(),
                     loss=value, images_grad=gv.tolist(), texts_grad=gw.tolist())
            )  # fmt: skip
    return out


# Section 3.1 step 4, Eq. 15


def bank_loss(v, w, vm, wm, pool_v, pool_w, ji, jt, online, in_batch, margin):
    b = len(v)
    gv, gw = np.zeros_like(v), np.zeros_like(w)
    value = 0.0
    for i in range(b):
        for a, ga, c, gc, pool, own, j in [
            (v, gv, w, gw, pool_w, w if online else wm, ji[i]),
            (w, gw, v, gv, pool_v, v if online else vm, jt[i]),
        ]:
            h = margin - a[i] @ own[i] + a[i] @ pool[j]
            if h > 0:
                value += h
                ga[i] += pool[j] - own[i]
                if online:
                    gc[i] -= a[i]
                if in_batch:
                    gc[j] += a[i]
    return value / b, gv / b, gw / b


def bank_cases():
    out = []
    b, d, k = 4, 5, 6
    for name in ["official", "paper", "no bank"]:
        # all rows are in a cone and pairs are close together, so that some hinges are active and some are not
        cone = unit(1, d)
        norm = lambda x: f32(x / np.linalg.norm(x, axis=1, keepdims=True))
        v = norm(cone + 0.9 * unit(b, d))
        w, vm, wm = norm(v + 0.5 * unit(b, d)), norm(v + 0.3 * unit(b, d)), norm(v + 0.4 * unit(b, d))
        bank_v, bank_w = norm(cone + 0.9 * unit(k, d)), norm(cone + 0.9 * unit(k, d))
        ids = np.array([7, 2, 7, 9])
        bank_ids = np.array([-100, 9, 4, 7, 5, -100])
        in_batch = name == "no bank"
        online = name != "official"
        if name == "official":
            pool_v, pool_w, cand = np.vstack([vm, bank_v]), np.vstack([wm, bank_w]), np.r_[ids, bank_ids]
        elif name == "paper":
            pool_v, pool_w, cand = bank_v, bank_w, bank_ids
        else:
            pool_v, pool_w, cand = v, w, ids
        X = ids[:, None] == cand[None]
        Si, St = v @ pool_w.T, w @ pool_v.T
        pi = np.sum(v * (w if online else wm), 1)
        pt = np.sum(w * (v if online else vm), 1)
        hi, ht = np.argmax(hinges(Si, pi, X, 0.2), 1), np.argmax(hinges(St, pt, X, 0.2), 1)
        ji, jt = hi, np.array([np.flatnonzero(~X[i])[-1] for i in range(b)])
        value, gv, gw = bank_loss(v, w, vm, wm, pool_v, pool_w, ji, jt, online, in_batch, 0.2)
        out.append(
            dict(
                name=name, b=b, d=d, k=k, ids=ids.tolist(), bank_ids=bank_ids.tolist(), images=v.tolist(), texts=w.tolist(),
                images_momentum=vm.tolist(), texts_momentum=wm.tolist(), bank_images=bank_v.tolist(), bank_texts=bank_w.tolist(),
                scores_i2t=Si.tolist(), scores_t2i=St.tolist(), positive_i2t=pi.tolist(), positive_t2i=pt.tolist(),
                hardest_i2t=hi.tolist(), hardest_t2i=ht.tolist(), drawn_i2t=ji.tolist(), drawn_t2i=jt.tolist(),
                loss=value, images_grad=gv.tolist(), texts_grad=gw.tolist(),
            )
        )  # fmt: skip
    return out


# Eq. 14 and the ring


def ema():
    m, target = 0.995, f32([1.0, -2.0, 0.25])
    theta = f32([0.0, 3.0, 0.25])
    online = [f32(rng.normal(size=3)) for _ in range(4)]
    steps, t = [], theta.copy()
    for o in online:
        t = m * t + (1 - m) * o
        steps.append({"online": o.tolist(), "momentum": t.tolist()})
    far = m**1000 * theta + (1 - m**1000) * target
    return dict(m=m, start=theta.tolist(), steps=steps, target=target.tolist(), after_1000=far.tolist())


def ring():
    k, ids, cursor, out = 12, [-100] * 12, 0, []
    for step in range(4):
        push = [100 + 5 * step + i for i in range(5)]
        for x in push:
            ids[cursor] = x
            cursor = (cursor + 1) % k
        out.append(dict(push=push, ids=list(ids), cursor=cursor))
    return out


def rounded(x):
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    if isinstance(x, list):
        return [rounded(v) for v in x]
    return float(f"{x:.15g}") if isinstance(x, float) else x


if __name__ == "__main__":
    golden = dict(
        posterior=posterior(), statistics=statistics(), weights=weight_cases(), warmup=warmup_cases(),
        bank=bank_cases(), ema=ema(), ring=ring(),
    )  # fmt: skip
    path = Path(__file__).parents[2] / "crates/fne/tests/golden/fne.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rounded(golden), separators=(",", ":")).replace('"},{', '"},\n{') + "\n")
    for case in golden["bank"]:
        print(case["name"], case["loss"], case["drawn_i2t"], case["drawn_t2i"], np.count_nonzero(case["images_grad"]))
    for case in golden["warmup"]:
        print(case["total"], case["masked"], case["loss"])
    for case in golden["weights"]:
        print(case["name"], [sum(w > 0 for w in row) for row in case["weights"]], case["hardest"])
