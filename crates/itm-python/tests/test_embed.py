"""Rows of pictures and sentences against `tests/reference/clip_plain.py` (NumPy) and goldens of sentence-transformers."""

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import itmatch
from itmatch.embed import Embedder

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "crates/itm-core/tests/golden/clip"
sys.path.insert(0, str(ROOT / "tests/reference"))
from clip_plain import Plain, unit  # noqa: E402


def tensors(path):
    """The arrays of a safetensors file."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    kinds = {"F32": np.float32, "I64": np.int64, "U8": np.uint8}
    found = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            a, b = entry["data_offsets"]
            found[name] = np.frombuffer(data[start + a : start + b], kinds[entry["dtype"]]).reshape(entry["shape"])
    return found


def png(pixels):
    """A picture as the bytes of a PNG."""
    height, width, _ = pixels.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(lines.tobytes())) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def pictures():
    """Eight pictures of many sizes, and what CLIP and SigLIP read of them: Pillow's resize."""
    found = tensors(GOLDEN / "pictures.safetensors")
    read = {family: np.stack([found[f"p{k}.12.{family}"] for k in range(8)]) for family in ("clip", "siglip")}
    return [found[f"p{k}"] for k in range(8)], read


@pytest.mark.parametrize(("family", "act"), [("clip", "quick_gelu"), ("siglip", "gelu_pytorch_tanh")])
def test_rows_are_those_of_the_equations(pictures, family, act, tmp_path):
    arrays, read = pictures
    plain = Plain(tensors(GOLDEN / family / "model.safetensors"), family, act, 3, 2 if family == "clip" else 3)
    want = unit(plain.image(read[family].astype(np.float64))[1])
    files = [tmp_path / f"{k}.png" for k in range(8)]
    for file, array in zip(files, arrays):
        file.write_bytes(png(array))
    embedder = Embedder(GOLDEN / family, batch=3)
    rows = embedder.images(arrays)
    assert rows.dtype == np.float32 and rows.shape == (8, 12 if family == "clip" else 24)
    same = np.arange(8) != 6 if family == "siglip" else slice(None)  # 9 × 20: Pillow 13 has another order (vision/folder.rs)
    np.testing.assert_allclose(rows[same], want[same], atol=3e-6)
    np.testing.assert_allclose(rows, want, atol=5e-3)
    mixed = [files[0], str(files[1]), files[2].read_bytes(), memoryview(files[3].read_bytes()), *arrays[4:]]
    for same in (files, mixed, iter(arrays), [np.asfortranarray(a) for a in arrays]):
        np.testing.assert_array_equal(embedder.images(same), rows)

    pieces = json.loads((GOLDEN / "pieces.json").read_text())
    captions = [k for k in range(39) if k not in pieces["differ"] + pieces["beyond"]]
    ids = [pieces["transformers_16" if family == "clip" else "siglip_8"][k] for k in captions]
    want = [unit(plain.text(np.array([row]), np.array([len(row)]))[1])[0] for row in ids]
    texts = embedder.texts([pieces["captions"][k] for k in captions])
    np.testing.assert_allclose(texts, want, atol=3e-6)
    assert embedder.texts([]).shape == embedder.images([]).shape == (0, rows.shape[1])


def test_sentences_are_those_of_sentence_transformers():
    golden = json.loads((GOLDEN / "sentence.json").read_text())
    for batch in (1, 2, 32):
        rows = Embedder(GOLDEN / "sentence", batch=batch).texts(np.array(golden["sentences"]))
        np.testing.assert_allclose(rows, golden["rows"], atol=2e-6)


def test_settings_pickle_and_a_process_reads_a_folder_once(pictures, tmp_path, monkeypatch):
    """The second embedder of a folder does not read it: it is not there any more."""
    arrays, _ = pictures
    shutil.copytree(GOLDEN / "clip", tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    embedder = Embedder("model", batch=3)
    rows, data = embedder.images(arrays), pickle.dumps(embedder.images)
    assert len(data) < 500
    monkeypatch.chdir("/")
    code = "import pickle, sys; images, arrays = pickle.load(sys.stdin.buffer); pickle.dump(images(arrays), sys.stdout.buffer)"
    worker = subprocess.run([sys.executable, "-c", code], input=pickle.dumps((embedder.images, arrays)), stdout=subprocess.PIPE, check=True)
    np.testing.assert_array_equal(pickle.loads(worker.stdout), rows)
    shutil.rmtree(tmp_path / "model")
    again = pickle.loads(data)
    np.testing.assert_array_equal(again(arrays), rows)
    assert repr(again.__self__) == f"Embedder({str(tmp_path / 'model')!r})" and again.__self__.batch == 3


def test_an_adapter_changes_the_rows_of_sentences(pictures):
    rows, golden = [], tensors(GOLDEN / "lora.safetensors")
    captions = json.loads((GOLDEN / "pieces.json").read_text())["captions"][:3]
    for adapter in (None, GOLDEN / "lora"):
        rows.append(Embedder(GOLDEN / "clip", adapter=adapter).texts(captions))
    np.testing.assert_allclose(rows[1], golden["text.unit"], atol=3e-6)
    assert np.abs(rows[0] - rows[1]).max() > 1e-2


def test_tensors_that_are_not_read_are_a_warning(tmp_path):
    shutil.copytree(GOLDEN / "sentence", tmp_path / "model")
    file = tmp_path / "model/model.safetensors"
    data = file.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:start])
    head["extra"] = {"dtype": "F32", "shape": [1], "data_offsets": [len(data) - start, len(data) - start + 4]}
    head = json.dumps(head).encode()
    file.write_bytes(struct.pack("<Q", len(head)) + head + data[start:] + bytes(4))
    with pytest.warns(UserWarning, match="not read: extra"):
        Embedder(tmp_path / "model")


def test_what_does_not_fit_is_one_line(pictures, tmp_path, monkeypatch):
    arrays, _ = pictures
    vit = tmp_path / "vit"
    shutil.copytree(GOLDEN / "dinov2", vit)
    shutil.copy(GOLDEN / "clip/preprocessor_config.json", vit)
    (tmp_path / "empty").mkdir()
    pickled = tmp_path / "pickled"
    shutil.copytree(GOLDEN / "clip", pickled)
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    changed = Embedder(GOLDEN / "clip")
    changed.batch = 0
    (tmp_path / "half.png").write_bytes(png(arrays[0])[:-30])
    clip = Embedder(GOLDEN / "clip", batch=2)
    dark = np.zeros((4, 4, 3), np.uint8)
    for call, kind, line in (
        (lambda: Embedder(tmp_path / "empty"), FileNotFoundError, "empty/config.json"),
        (lambda: Embedder("nobody/nothing"), ValueError, "^model: expected a folder with the model's files .`hf download NAME --local-dir DIR`., got nobody/nothing@main"),
        (lambda: Embedder("a\ud800"), ValueError, "^model, character 1: expected a character of UTF-8, got "),
        (lambda: Embedder(pickled), ValueError, "pytorch_model.bin: expected weights as .safetensors, got pickled ones$"),
        (lambda: Embedder(tmp_path / "none"), ValueError, 'none": expected a folder or org/name@revision, got neither'),
        (lambda: Embedder(vit).texts(["a dog"]), ValueError, "sentences: expected a model that reads captions, got .*vit"),
        (lambda: Embedder(GOLDEN / "sentence").images([dark]), ValueError, "pictures: expected a model that reads pictures, got .*sentence"),
        (lambda: clip.images([arrays[0], tmp_path / "half.png"]), ValueError, "half.png: expected a whole image, got a truncated or damaged file"),
        (lambda: clip.images([dark, dark, dark, b"no picture"]), ValueError, r"^pictures\[3\]: expected a JPEG, PNG or WebP image, got "),
        (lambda: clip.images([dark, tmp_path / "none.png"]), FileNotFoundError, "none.png"),
        (lambda: clip.images([dark, "a\ud800.jpg"]), ValueError, r"^pictures\[1\]: expected a path that the system can write, got 'a\\ud800.jpg'$"),
        (lambda: clip.texts(["a dog", "a \ud83d"]), ValueError, r"^sentences\[1\], character 2: expected a character of UTF-8, got '\\ud83d'$"),
        (lambda: changed.texts(["a dog"]), ValueError, "batch: expected a whole number of at least 1, got 0"),
        (lambda: changed.images([dark]), ValueError, "batch: expected a whole number of at least 1, got 0"),
        (lambda: clip.images([dark[:0]]), ValueError, r"pictures\[0\]: expected sides of 1 to 16384 pixels, got 4 × 0"),
        (lambda: clip.images([np.zeros((1, 20_000, 3), np.uint8)]), ValueError, r"pictures\[0\]: expected sides of 1 to 16384 pixels"),
        (lambda: clip.images([dark, dark[..., 0]]), TypeError, r"pictures\[1\]: expected a path, bytes or uint8 of shape \[height, width, 3\], got uint8 of shape \[4, 4\]"),
        (lambda: clip.images([dark.astype(np.float32)]), TypeError, r"pictures\[0\]: expected .*, got float32 of shape"),
        (lambda: clip.images("1.jpg"), TypeError, "pictures: expected a list of pictures, got one"),
        (lambda: clip.texts("a dog"), TypeError, "sentences: expected a list of sentences, got one"),
        (lambda: clip.texts(["a dog", 7]), TypeError, r"sentences\[1\]: expected a string, got 7"),
        (lambda: Embedder(GOLDEN / "clip", batch=0), ValueError, "batch: expected a whole number of at least 1, got 0"),
        (lambda: Embedder(GOLDEN / "clip", precision="f8"), ValueError, "precision: expected a name that is known, got unknown variant `f8`"),
        (lambda: Embedder(GOLDEN / "clip", adapter=vit), FileNotFoundError, "vit/adapter_config.json"),
    ):
        with pytest.raises(kind, match=line) as raised:
            call()
        assert len(str(raised.value).splitlines()) == 1
    assert clip.images([dark]).shape == (1, 12)


def test_weights_that_are_not_finite_give_no_rows(tmp_path):
    shutil.copytree(GOLDEN / "clip", tmp_path / "model")
    file = tmp_path / "model/model.safetensors"
    data = bytearray(file.read_bytes())
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for tower in ("visual", "text"):
        at = start + json.loads(data[8:start])[f"{tower}_projection.weight"]["data_offsets"][0]
        data[at : at + 4] = struct.pack("<f", float("nan"))
    file.write_bytes(data)
    embedder = Embedder(tmp_path / "model")
    for call in (lambda: embedder.images([np.zeros((4, 4, 3), np.uint8)]), lambda: embedder.texts(["a dog"])):
        with pytest.raises(ValueError, match="model: expected finite values of the model, got NaN"):
            call()


@pytest.mark.skipif("ITM_BIN" not in os.environ, reason="ITM_BIN names no binary `itm`")
def test_the_binary_writes_the_same_bits(pictures, tmp_path):
    arrays, _ = pictures
    captions = [f"the dog and {k} cats, {'a hat ' * (k % 7)}" for k in range(2100)]
    (tmp_path / "pictures").mkdir()
    for k, array in enumerate(arrays):
        (tmp_path / f"pictures/{k}.png").write_bytes(png(array))
    (tmp_path / "captions.txt").write_text("\n".join(captions))
    for family in ("clip", "siglip"):
        words = ["--model", GOLDEN / family, "--images", "pictures", "--captions", "captions.txt", "--out", family, "--batch", "3"]
        subprocess.run([os.environ["ITM_BIN"], "embed", *words], cwd=tmp_path, check=True)
        embedder = Embedder(GOLDEN / family, batch=3)
        np.testing.assert_array_equal(embedder.images(sorted((tmp_path / "pictures").iterdir())), np.load(tmp_path / family / "image.npy"))
        np.testing.assert_array_equal(embedder.texts([c.strip() for c in captions]), np.load(tmp_path / family / "text.npy"))


@pytest.mark.filterwarnings("ignore")
def test_the_example_under_dask(pictures, tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    arrays, _ = pictures
    (tmp_path / "pictures").mkdir()
    for k in range(20):
        (tmp_path / f"pictures/{k:02}.png").write_bytes(png(arrays[k % 8]))
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import dask_embed

    words = ["--model", GOLDEN / "clip", "--images", tmp_path / "pictures", "--out", tmp_path / "rows.npy", "--batch", 3, "--batches", 2]
    assert dask_embed.main([str(word) for word in words])
    assert "20 pictures in 4 tasks, 2 workers: equal to one process" in capsys.readouterr().out
    assert np.load(tmp_path / "rows.npy").shape == (20, 12)
