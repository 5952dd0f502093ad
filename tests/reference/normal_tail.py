"""The polynomial P of the normal distribution's tail in crates/itm-kernels/src/math.rs.

    python tests/reference/normal_tail.py    prints the coefficients, highest power first, and the largest relative error

Phi(-a) = exp(-a^2 / 2) r P(u), r = 1 / (a + K), u = (a - K) / (a + K), for 0 <= a <= 12.5. Least squares in the relative error
on Chebyshev points. The weights move to where the error is largest until the error is nearly the same everywhere.
"""

import numpy as np
from scipy.special import erfcx

K, DEGREE, LAST = 4.25, 7, 12.5


def main():
    end = (LAST - K) / (LAST + K)
    u = (end - 1) / 2 + (end + 1) / 2 * np.cos(np.linspace(0, np.pi, 20001))
    a = np.maximum(K * (1 + u) / (1 - u), 0)
    want = 0.5 * erfcx(a / np.sqrt(2)) * (a + K)
    powers = np.vander(u, DEGREE + 1) / want[:, None]
    weights = np.ones_like(u)
    for _ in range(100):
        c, *_ = np.linalg.lstsq(powers * weights[:, None], weights, rcond=None)
        error = np.abs(powers @ c - 1)
        weights *= (error / error.max() + 1e-3) ** 0.5
        weights /= weights.max()
    print([float(v) for v in c.astype(np.float32)], error.max())


if __name__ == "__main__":
    main()
