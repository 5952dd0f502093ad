"""Two polynomials of the normal distribution in crates/itm-kernels/src/math.rs.

    python tests/reference/normal_tail.py    prints the coefficients, highest power first, and the largest relative errors

Phi(-a) = exp(-a^2 / 2) r P(u), r = 1 / (a + K), u = (a - K) / (a + K), for 0 <= a <= 12.5; and 2^f = 1 + f ln 2 + f^2 Q(f) for
|f| <= 1/2. Least squares in the relative error on Chebyshev points. The weights move to where the error is largest until the
error is nearly the same everywhere.
"""

import numpy as np
from scipy.special import erfcx

K, DEGREE, LAST = 4.25, 7, 12.5


def main():
    end = (LAST - K) / (LAST + K)
    u = (end - 1) / 2 + (end + 1) / 2 * np.cos(np.linspace(0, np.pi, 20001))
    a = np.maximum(K * (1 + u) / (1 - u), 0)
    want = 0.5 * erfcx(a / np.sqrt(2)) * (a + K)
    fit(np.vander(u, DEGREE + 1) / want[:, None], np.ones_like(u), 100)
    f = np.cos(np.linspace(0, np.pi, 20001)) / 2
    known = 1 + f * float(np.float32(np.log(2)))
    fit(np.vander(f, 4) * (f**2 / 2**f)[:, None], 1 - known / 2**f, 500)


def fit(powers, want, rounds):
    weights = np.ones_like(want)
    for _ in range(rounds):
        c, *_ = np.linalg.lstsq(powers * weights[:, None], want * weights, rcond=None)
        error = np.abs(powers @ c - want)
        weights *= (error / error.max() + 1e-3) ** 0.5
        weights /= weights.max()
    print([float(v) for v in c.astype(np.float32)], error.max())


if __name__ == "__main__":
    main()
