"""The corrections of the crate `hubness`, each written from its equation; `hubness.py` makes golden values with them.

A direction is a matrix of queries (rows) by items (columns) as lists of Python floats. Whole columns are sorted and
sums are `math.fsum`, so equal multisets of scores give equal results. Each function returns the corrected matrix; larger is better.
"""

from math import exp, fsum, log, sqrt

import numpy as np
from scipy.special import log_ndtr


def lse(values):
    top = max(values)
    return top + log(fsum(exp(v - top) for v in values))


def mean(values):
    return fsum(values) / len(values)


def transposed(rows):
    return [list(column) for column in zip(*rows)]


def mean_of_largest(values, k):
    return mean(sorted(values, reverse=True)[:k])


def top(row, k):
    return sorted(range(len(row)), key=lambda j: (-row[j], j))[:k]


class View:
    """One direction: `s` [q, m], bank queries `zq` [b, m], bank items `zg` [h, m]."""

    def __init__(self, s, zq, zg):
        self.s, self.zq, self.zg = s, zq, zg

    def bank(self, source):
        return {"test": self.s, "query_bank": self.zq}[source]

    def same_item(self, a, b):
        return all(row[a] == row[b] for rows in (self.s, self.zq, self.zg) for row in rows)


def rescored(v, bias, scale=1.0):
    return [[scale * x - b for x, b in zip(row, bias)] for row in v.s]


def nns(v, source):
    return v.s


def csls(v, source, variant, k):
    r_item = [mean_of_largest(column, k) for column in transposed(v.s)]
    r_query = [mean_of_largest(row, k) for row in v.s]
    less = {
        "item": lambda q, j: r_item[j],
        "lample": lambda q, j: r_query[q] + r_item[j],
        "printed": lambda q, j: r_query[q],
    }[variant]
    return [[2 * x - less(q, j) for j, x in enumerate(row)] for q, row in enumerate(v.s)]


def log_sums(rows, beta):
    return [lse([beta * x for x in column]) for column in transposed(rows)]


def inverted_softmax(v, source, beta):
    return rescored(v, log_sums(v.s, beta), beta)


def is_exclusive(v, source, beta):
    others = lambda q, j: fsum(exp(beta * (row[j] - v.s[q][j])) for p, row in enumerate(v.s) if p != q)
    return [[1 / others(q, j) for j in range(len(row))] for q, row in enumerate(v.s)]


def nnn(v, source, alpha, k):
    return rescored(v, [alpha * mean_of_largest(c, k) for c in transposed(v.bank(source))])


def activated(v, rows, k):
    """For every query: is its best item among the k best of any bank row?"""
    hit = {j for row in rows for j in top(row, k)}
    return [top(row, 1)[0] in hit for row in v.s]


def qbnorm(v, source, beta, k, dynamic):
    zq = v.bank(source)
    bias = log_sums(zq, beta)
    active = activated(v, zq, k) if dynamic else [True] * len(v.s)
    return [[beta * x - (b if on else 0.0) for x, b in zip(row, bias)] for row, on in zip(v.s, active)]


def dual_is(v, source, b1, b2):
    lq, lg = log_sums(v.zq, b1), log_sums(v.zg, b2)
    return [[(b1 + b2) * x - q - g for x, q, g in zip(row, lq, lg)] for row in v.s]


def dual_dis(v, source, b1, b2, k):
    factors = [(b1, log_sums(v.zq, b1), activated(v, v.zq, k)), (b2, log_sums(v.zg, b2), activated(v, v.zg, k))]
    log_factor = lambda q, j, x: fsum(b * x - l[j] if on[q] else b * x for b, l, on in factors)
    return [[log_factor(q, j, x) for j, x in enumerate(row)] for q, row in enumerate(v.s)]


def potentials(x, eps, item_updates):
    p, m = len(x), len(x[0])
    f, g = [0.0] * p, [0.0] * m
    for update in range(item_updates):
        if update:
            f = [eps * (log(1 / p) - lse([(s + b) / eps for s, b in zip(row, g)])) for row in x]
        g = [eps * (log(1 / m) - lse([(x[i][j] + f[i]) / eps for i in range(p)])) for j in range(m)]
    return f, g


def sinkhorn(v, source, eps, item_updates):
    g = potentials(v.bank(source), eps, item_updates)[1]
    return rescored(v, [-b for b in g])


def mp_empirical(v, source):
    x = transposed(v.bank(source))
    below = lambda values, s: sum(y < s for y in values)
    cells = len(v.s[0]) * len(x[0])
    return [[below(row, s) * below(x[j], s) / cells for j, s in enumerate(row)] for row in v.s]


def moments(values):
    mu = mean(values)
    return mu, max(sqrt(mean([(x - mu) ** 2 for x in values])), 1e-6)


def mp_gaussian(v, source):
    rows, columns = [moments(r) for r in v.s], [moments(c) for c in transposed(v.bank(source))]
    log_p = lambda x, at: float(log_ndtr((x - at[0]) / at[1]))
    return [[log_p(x, rows[q]) + log_p(x, columns[j]) for j, x in enumerate(row)] for q, row in enumerate(v.s)]


def distances(rows, k, of_sorted):
    return [max(of_sorted(sorted(1 - x for x in row)[:k]), 1e-12) for row in rows]


def local_scaling(v, source, k):
    of_item = distances(transposed(v.bank(source)), k, lambda d: d[-1])
    return [[log(of_item[j]) - 2 * log(1 - x) for j, x in enumerate(row)] for row in v.s]


def nicdm(v, source, k):
    of_item = distances(transposed(v.bank(source)), k, mean)
    return [[log(of_item[j]) / 2 - log(1 - x) for j, x in enumerate(row)] for row in v.s]


METHODS = {f.__name__: f for f in (nns, csls, is_exclusive, nnn, qbnorm, dual_is, dual_dis, sinkhorn)}
METHODS |= {f.__name__: f for f in (mp_empirical, mp_gaussian, local_scaling, nicdm)} | {"is": inverted_softmax}


def check_identities():
    """Identities of the spec's section 0, and other results that two methods must agree on."""
    rng = np.random.default_rng(0)
    s, zq, zg = (rng.uniform(-0.4, 0.7, shape).tolist() for shape in ((9, 14), (11, 14), (8, 14)))
    v = View(s, zq, zg)
    near = lambda a, b, atol=1e-11: np.testing.assert_allclose(a, b, rtol=0, atol=atol)
    centred = lambda u: (np.asarray(u).T - np.mean(u, axis=1)).T  # a constant for each query changes no rank
    for k in (1, 4, 50):
        near(csls(v, "test", "item", k), 2 * np.array(nnn(v, "test", 0.5, k)))
        near(centred(csls(v, "test", "lample", k)), centred(csls(v, "test", "item", k)))
        near(centred(csls(v, "test", "printed", k)), centred(2 * np.array(s)))
    near(np.array(inverted_softmax(v, "test", 1e6)) / 1e6, nnn(v, "test", 1.0, 1), 1e-5)
    near(np.array(inverted_softmax(v, "test", 1e-7)) / 1e-7 + log(9) / 1e-7, nnn(v, "test", 1.0, 50), 1e-6)
    p = np.exp(inverted_softmax(v, "test", 30.0))
    np.testing.assert_allclose(p / (1 - p), is_exclusive(v, "test", 30.0), rtol=1e-9)
    near(p.sum(axis=0), 1)
    near(centred(np.array(sinkhorn(v, "test", 0.05, 1)) / 0.05), centred(inverted_softmax(v, "test", 20.0)))
    near(qbnorm(v, "test", 30.0, 1, False), inverted_softmax(v, "test", 30.0))
    near(qbnorm(v, "test", 30.0, 1, True), inverted_softmax(v, "test", 30.0))  # every best item is activated
    dynamic, off = (np.array(qbnorm(v, "query_bank", 20.0, 1, on)) for on in (True, False))
    assert 0 < sum(activated(v, zq, 1)) < len(s)
    for q, on in enumerate(activated(v, zq, 1)):
        near(dynamic[q], off[q] if on else 20.0 * np.array(s[q]))
    near(dual_dis(v, "both", 20.0, 10.0, 14), dual_is(v, "both", 20.0, 10.0))  # every item is activated too
    near(np.array(dual_is(v, "both", 20.0, 0.0)) + log(8), qbnorm(v, "query_bank", 20.0, 1, False))
    f, g = potentials(s, 0.05, 400)
    plan = np.exp((np.array(s) + np.array(f)[:, None] + g) / 0.05)
    near(plan.sum(axis=1), 1 / 9)
    near(plan.sum(axis=0), 1 / 14)
    queries, items, bank = (rng.normal(size=(n, 6)) for n in (9, 14, 11))
    w = View((queries @ items.T).tolist(), (bank @ items.T).tolist(), zg)
    for l in (0.5, 1.0):  # both sides centred; the mean item only adds a constant for each query
        normalised = (queries - l * bank.mean(axis=0)) @ (items - l * items.mean(axis=0)).T
        near(centred(normalised), centred(nnn(w, "query_bank", l, 11)))
