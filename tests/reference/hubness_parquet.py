"""Writes tables as pyarrow writes them, for the reader of hubness: python tests/reference/hubness_parquet.py"""

import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parents[2] / "crates/hubness/tests/golden/parquet"


def main():
    FOLDER.mkdir(exist_ok=True)
    rows = [[3.0, 4.0], [0.0, -2.0], [1.0, 0.0]]
    fixed = pa.array(rows, pa.list_(pa.float32(), 2))
    names = pa.array(["a.jpg", "b.jpg", "c.jpg"])
    pq.write_table(pa.table({"image": names, "image_embedding": fixed}), FOLDER / "images.parquet")
    texts = {
        "caption": pa.array(["one", "two", "drei Hünde"]),
        "text_embedding": pa.array(rows, pa.list_(pa.float64())),
        "half": pa.array(rows, pa.list_(pa.float16())),
        "ragged": pa.array([[1.0], [1.0, 2.0], [3.0]], pa.list_(pa.float32())),
        "missing": pa.array([[1.0], None, [3.0]], pa.list_(pa.float32())),
        "id": pa.array([7, 8, 9]),
    }
    # More than one row group, and each codec that writers choose.
    pq.write_table(pa.table(texts), FOLDER / "texts.parquet", row_group_size=2, compression="zstd")
    # 40 million repetitions of a zero in half a kilobyte.
    zeros = pa.ListArray.from_arrays([0, 40_000_000], pa.array(np.zeros(40_000_000, np.float32)))
    pq.write_table(pa.table({"e": zeros}), FOLDER / "one_row.parquet", compression="none")
    # Tables as clip-retrieval writes them, one for each file of embeddings; a caption comes twice.
    paths = ["in/a.jpg", "in/b.jpg", "in/c.jpg", "in/d.jpg"]
    captions, keys = ["a dog", "a dog", "a cat", "a bird"], ["k0", "k1", "k2", "k3"]
    for number, rows in enumerate([slice(0, 3), slice(3, 4)]):
        columns = {"image_path": paths[rows], "caption": captions[rows], "key": keys[rows]}
        pq.write_table(pa.table(columns), FOLDER / f"metadata_{number}.parquet", compression="snappy")


if __name__ == "__main__":
    main()
