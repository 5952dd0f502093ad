"""Goldens of NAAF's boundary and of its schedule in double precision, from the corrected equations of the paper.

    python tests/reference/naaf.py > crates/naaf/tests/golden/naaf.json

A brute-force minimum of Eq. 3 checks the boundary. Inserting alpha* into Eq. 4 checks alpha*.
"""

import json
import math

import numpy as np

FLOOR = 1e-4


def phi(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def penalty(t, pos, neg, ln_alpha):
    """Eq. 3: alpha * P(mismatched > t) + P(matched < t)."""
    return math.exp(ln_alpha) * phi((neg[0] - t) / neg[1]) + phi((t - pos[0]) / pos[1])


def quadratic(pos, neg, ln_alpha):
    """beta 1 to 3 of Eq. 4, corrected."""
    (mp, sp), (mn, sn) = pos, neg
    b1 = sp**2 - sn**2
    b2 = 2 * (mp * sn**2 - mn * sp**2)
    b3 = (sp * mn) ** 2 - (sn * mp) ** 2 + 2 * (sp * sn) ** 2 * (math.log(sn) - math.log(sp) - ln_alpha)
    return b1, b2, b3


def boundary(pos, neg, ln_alpha):
    """The case table of the specification, column `default`, before the limits 0 and 1; None: keep."""
    (mp, sp), (mn, sn) = pos, neg
    sp, sn = max(sp, FLOOR), max(sn, FLOOR)
    b1, b2, b3 = quadratic((mp, sp), (mn, sn), ln_alpha)
    d = b2 * b2 - 4 * b1 * b3
    tiny = abs(b1) < 1e-8 * (sp**2 + sn**2)
    delta = mp - mn
    if delta > 0:
        if b1 == 0:
            return (mp + mn) / 2 + sp**2 * ln_alpha / delta
        L = math.log(sn) - math.log(sp) - ln_alpha
        r = delta**2 - 2 * b1 * L
        if r < 0:
            return None
        return mn + sn * (delta**2 - 2 * sp**2 * L) / (sn * delta + sp * math.sqrt(r))
    if tiny or d < 0:
        return None
    return (math.sqrt(d) - b2) / (2 * b1)


def brute(pos, neg, ln_alpha, low=-0.5, high=1.5):
    """The inner minimum of Eq. 3 on a fine grid around where its slope turns from negative to positive."""
    t = np.linspace(low, high, 400_001)

    def normal(x, m, s):
        return np.exp(-0.5 * ((x - m) / s) ** 2) / (s * math.sqrt(2 * math.pi))

    slope = normal(t, *pos) - math.exp(ln_alpha) * normal(t, *neg)
    up = np.flatnonzero((slope[:-1] < 0) & (slope[1:] >= 0))
    assert len(up) == 1, (pos, neg, ln_alpha, len(up))
    at = t[up[0]] + (t[1] - t[0]) * slope[up[0]] / (slope[up[0]] - slope[up[0] + 1])
    best = min((at + k * 1e-3 for k in range(-20, 21)), key=lambda t: penalty(t, pos, neg, ln_alpha))
    assert abs(best - at) < 1e-9, "no minimum of Eq. 3"
    return float(at)


def ln_alpha_star(pos, neg):
    (mp, sp), (mn, sn) = pos, neg
    delta = mp - mn
    if not sp * delta > 3 * (sp**2 - sn**2):
        return None
    return math.log(sn) - math.log(sp) + (delta - 3 * sp) ** 2 / (2 * sn**2) - 4.5


def official32(pos, neg, alpha):
    """The released form: single precision, 1e-8 in the logarithm, 1e-10 in the divisor; None: keep."""
    f = np.float32
    (mp, sp), (mn, sn) = (tuple(map(f, x)) for x in (pos, neg))
    a = f(alpha)
    with np.errstate(all="ignore"):
        b1 = sp * sp - sn * sn
        b2 = f(2) * (mp * sn * sn - mn * sp * sp)
        b3 = (sp * mn) ** 2 - (sn * mp) ** 2 + f(2) * (sp * sn) ** 2 * np.log(sn / (a * sp) + f(1e-8))
        d = b2 * b2 - f(4) * b1 * b3
        if not d > 0:
            return None
        return float((np.sqrt(d) - b2) / (f(2) * b1 + f(1e-10)))


CASES = {
    "matched_wider": ((0.5, 0.14), (0.25, 0.1), 2.0),
    "matched_narrower": ((0.5, 0.08), (0.25, 0.12), 2.0),
    "equal": ((0.6, 0.1), (0.2, 0.1), 2.0),
    "equal_alpha_one": ((0.6, 0.1), (0.2, 0.1), 1.0),
    "nearly_equal": ((0.6, 0.1), (0.2, 0.1 + 1e-7), 2.0),
    "alpha_three": ((0.45, 0.11), (0.2, 0.09), 3.0),
    "far": ((0.9, 0.02), (0.1, 0.02), 2.0),
    "below_zero": ((0.1, 0.08), (-0.4, 0.1), 2.0),
    "above_one": ((1.4, 0.1), (0.9, 0.1), 2.0),
    "swapped": ((0.2, 0.15), (0.25, 0.1), 2.0),
    "swapped_equal": ((0.2, 0.1), (0.25, 0.1), 2.0),
    "no_minimum": ((0.21, 0.2), (0.2, 0.1), 0.4),
    "no_finite_minimum": ((0.21, 0.1), (0.2, 0.2), 3.0),
    "no_spread": ((0.6, 0.0), (0.2, 0.1), 2.0),
}


def boundaries():
    out = {}
    for name, (pos, neg, alpha) in CASES.items():
        ln = math.log(alpha)
        t = boundary(pos, neg, ln)
        if t is not None and pos[1] > 0 and name != "far":
            floored = [(m, max(s, FLOOR)) for m, s in (pos, neg)]
            assert abs(brute(*floored, ln, -2, 3) - t) < 1e-6, (name, t)
        star = ln_alpha_star(pos, neg) if pos[1] > 0 else None
        if star is not None:
            back = boundary(pos, neg, star)
            assert abs(back - (pos[0] - 3 * pos[1])) < 1e-9, (name, back)
        out[name] = {
            "matched": pos,
            "mismatched": neg,
            "alpha": alpha,
            "t": t,
            "official": official32(pos, neg, alpha),
            "ln_alpha_star": star,
        }
    return out


class Schedule:
    """Section 3.1 of the specification, with the options of section 3.2."""

    def __init__(self, t=0.0, t_s=0.0, **options):
        self.t, self.t_s = t, t_s
        self.o = {
            "per": "caption",
            "smoothing": 0.7,
            "reset": True,
            "negative": "least",
            "pool": "max",
            "alpha": 2.0,
            "star": False,
        } | options

    def solve(self, P, N):
        pos, neg = [(float(np.mean(x)), float(np.std(x, ddof=1))) for x in (P, N)]
        sp, sn = max(pos[1], FLOOR), max(neg[1], FLOOR)
        ln = math.log(self.o["alpha"])
        raw = boundary(pos, neg, ln)
        three = pos[0] - 3 * sp
        if self.o["star"] and ln_alpha_star((pos[0], sp), (neg[0], sn)) is not None:
            raw = three
        if raw is None:
            return
        limit = lambda x: 0.0 if x < 0 or x > 1 else x
        a = self.o["smoothing"]
        self.t = a * limit(raw) + (1 - a) * self.t
        self.t_s = a * limit(three) + (1 - a) * self.t_s

    def batch(self, s, lengths, own, column):
        """s[i][c]: [words, regions]; column(c, t): scores of all images. Returns the t of each caption."""
        order = sorted(range(len(lengths)), key=lambda c: -lengths[c])
        P, N, count, used = [], [], 0, [0.0] * len(lengths)
        fixed = self.t
        for c in order:
            t = fixed if self.o["per"] == "batch" else self.t
            used[c] = t
            scores = column(c, t)
            places = [own[k] for k in order]
            best = max(places, key=lambda i: (scores[i], -places.index(i)))
            if best == own[c]:
                others = [i for i in places if i != own[c]]
                pick = min if self.o["negative"] == "least" else max
                k = pick(others, key=lambda i: (scores[i], places.index(i) if pick is min else -places.index(i)))
                P += list(s[own[c]][c].max(1))
                N += list(s[k][c].max(1) if self.o["pool"] == "max" else s[k][c].mean(1))
                count += lengths[c]
                if self.o["per"] == "caption" and count > 200:
                    self.solve(P, N)
            if self.o["per"] == "caption" and self.o["reset"] and count < 200:
                self.t = self.t_s = 0.0
        if self.o["per"] == "batch":
            if count > 200:
                self.solve(P, N)
            if self.o["reset"] and count < 200:
                self.t = self.t_s = 0.0
        return used


def simple_column(s, c, t):
    """The schedule only needs a score that depends on t: mean over words of max_j(s - t), and of its negative part."""
    out = []
    for i in range(len(s)):
        x = s[i][c].max(1) - t
        out.append(float(x.mean() + np.minimum(x, 0).mean()))
    return out


MASK64 = (1 << 64) - 1


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def unit(seed, position):
    return (mix((mix(seed) + position * 0x9E3779B97F4A7C15) & MASK64) >> 40) / 2**24


def made_up_scores(lengths, r):
    """s[i][c] of [words, regions]: depends only on the position, so the test makes the same values."""
    n = len(lengths)
    s = [[np.zeros((m, r)) for m in lengths] for _ in range(n)]
    for i in range(n):
        for c in range(n):
            for w in range(lengths[c]):
                for j in range(r):
                    u = unit(5, ((i * n + c) * 32 + w) * r + j)
                    s[i][c][w, j] = 0.05 + 0.35 * u
                    if i == c and j == 1:
                        s[i][c][w, j] = 0.42 + 0.2 * u
                    if i == 3 and c == 5:
                        s[i][c][w, j] = 0.8 + 0.1 * u  # caption 5 is ranked wrongly
    return s


def schedules():
    n, r = 24, 3
    lengths = [8 + (7 * k) % 9 for k in range(n)]
    s = made_up_scores(lengths, r)
    own = list(range(n))
    out = {"lengths": lengths, "regions": r, "runs": {}}
    for name, options in {
        "official": {},
        "smoothing_one": {"smoothing": 1.0},
        "hardest": {"negative": "hardest"},
        "mean_pool": {"pool": "mean"},
        "alpha_three": {"alpha": 3.0},
        "star": {"star": True},
        "per_batch": {"per": "batch"},
        "per_batch_no_reset": {"per": "batch", "reset": False},
    }.items():
        state = Schedule(t=0.21, t_s=0.05, **options)
        first = state.batch(s, lengths, own, lambda c, t: simple_column(s, c, t))
        after = [state.t, state.t_s]
        second = state.batch(s, lengths, own, lambda c, t: simple_column(s, c, t))
        out["runs"][name] = {"first": first, "after": after, "second": second, "end": [state.t, state.t_s]}
    return out


print(json.dumps({"boundary": boundaries(), "schedule": schedules()}))
