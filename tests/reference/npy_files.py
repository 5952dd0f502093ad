"""Small .npy files written by NumPy, for the tests of itm-data's reader.

Run: python tests/reference/npy_files.py   (writes crates/itm-data/tests/golden/npy/*.npy and values.json)
"""

import json
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

out = Path(__file__).resolve().parents[2] / "crates/itm-data/tests/golden/npy"
out.mkdir(parents=True, exist_ok=True)

# Exact in half precision, with the extremes of the smallest type that matter: subnormal, largest, negative zero.
floats = np.array([[0.5, -1.25, 65504.0], [5.9604644775390625e-08, -0.0, 3.140625]])
bytes_ = np.array([[-128, -1, 0], [1, 2, 127]], dtype=np.int8)
values = {}


def save(name, array, version=None):
    with open(out / f"{name}.npy", "wb") as f:
        npy.write_array(f, array, version=version, allow_pickle=False)
    if array.dtype.kind in "fiu" and np.isfinite(array).all():
        values[name] = {"shape": array.shape, "values": [float(v) for v in array.ravel()]}


save("f16", floats.astype("<f2"))
save("f32", floats.astype("<f4"))
save("f64", floats.astype("<f8"))
save("i8", bytes_)
save("u8", np.array([0, 1, 128, 255], dtype=np.uint8))
save("i32", np.array([0, 2, 1, 2**31 - 1], dtype="<i4"))
save("i64", np.array([0, 1, 1, 2**40], dtype="<i8"))
save("regions", np.arange(24, dtype="<f4").reshape(2, 3, 4))
save("scalar", np.array(7.0, dtype="<f4"))
save("empty", np.zeros((0, 4), dtype="<f4"))
save("version2", floats.astype("<f4"), version=(2, 0))
save("version3", floats.astype("<f4"), version=(3, 0))
save("fortran", np.asfortranarray(floats.astype("<f4")))
save("big_endian", floats.astype(">f4"))
save("unicode", np.array(["a", "bc"]))
save("nan", np.array([[1.0, 2.0], [3.0, np.nan]], dtype="<f4"))
save("overflow", np.array([[1.0, 1e300]]))  # finite in f64, not in f32
(out / "values.json").write_text(json.dumps(values, indent=1) + "\n")
