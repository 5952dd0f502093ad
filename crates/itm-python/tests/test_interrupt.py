"""Ctrl-C ends a long call, and leaves the process as it was."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import os, signal, threading, time
import itmatch, numpy as np
rows = itmatch.unit(np.random.default_rng(0).normal(size=({rows}, 64)).astype(np.float32))
call = {call}
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and their children too
start = time.monotonic()
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    call()
    print("no interrupt")
except KeyboardInterrupt:
    seconds = time.monotonic() - start
    print("interrupted" if seconds < 60 else f"interrupted after {{seconds}} s")  # a busy machine takes some seconds
print(itmatch.search(np.eye(2), np.eye(2), 1).ids.tolist())
"""

GOLDEN = Path(__file__).parents[3] / "crates/itm-core/tests/golden/clip/clip"
CLIP = f"lambda: itmatch.embed.Embedder({str(GOLDEN)!r}, batch=1)."


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("rows", "call"),
    [
        (1_000_000, "lambda: itmatch.search(rows, rows, 10)"),
        (1_000_000, "lambda: itmatch.evaluate(rows, rows)"),
        (1_000_000, "lambda: itmatch.hubness.InvertedSoftmax().fit(rows, rows)"),
        (4_000, "lambda: itmatch.hubness.report(rows, rows, methods=['csls'], resamples=1_000_000)"),
        (500_000, "lambda fit=itmatch.hubness.MutualProximity().fit(rows[:9, :4], rows[:, :4]): fit.search(rows[:, :4], rows[:, :4], 10)"),
        (
            1,
            "lambda fit=itmatch.hubness.MutualProximity().fit(np.eye(3, 2), np.eye(2)),"
            " scores=np.tile(np.float32([0, 1]), (20_000_000, 1)): fit.transform(scores)",
        ),
        (1, CLIP + "images(200_000 * [np.zeros((3000, 3000, 3), np.uint8)])"),
        (1, CLIP + "texts(3_000_000 * ['the dog and the cat'])"),
    ],
)
def test_ctrl_c_ends_a_long_call(rows, call):
    """On few cores each call would take a minute or more: whoever waits for its end, or for a batch of it, runs into a limit."""
    code = CODE.format(rows=rows, call=call)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert out.stdout.splitlines() == ["interrupted", "[[0], [1]]"], out.stdout + out.stderr
    assert out.stderr == "" and out.returncode != -signal.SIGINT
