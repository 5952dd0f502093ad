"""What the package promises as a whole."""

import multiprocessing
import subprocess
import sys

import itmatch
import numpy as np
import pytest


def test_it_imports_only_numpy():
    code = "import sys, itmatch; print({m.split('.')[0] for m in sys.modules} & {'sklearn', 'torch', 'scipy', 'pandas'})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
    assert itmatch.__version__.count(".") == 2


def test_types_of_a_users_file(tmp_path):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "user.py").write_text(
        "import itmatch, numpy as np\n"
        "H, x = itmatch.hubness, np.eye(3, dtype=np.float32)\n"
        "k: int = H.Csls(k=1).fit(x, x).set_params(k=2).k\n"
        "matching: H.GreedyMatching = H.GreedyMatching().set_params(k=1).fit(x, x)\n"
        "scores: dict[str, float] = H.Auto().fit(x, x, validation=(x, x, [0, 1, 2])).scores_\n"
        "ids = itmatch.part(x, x, origin=(0, 0), whole=(3, 3), keep='top_texts').finish().ids\n"
    )
    found = api.run(["--config-file=", "--strict", "--cache-dir", str(tmp_path), "--python-executable", sys.executable, str(tmp_path / "user.py")])
    assert found == ("Success: no issues found in 1 source file\n", "", 0)


def forked(channel):
    try:
        itmatch.search(np.eye(2), np.eye(2), 1)
        channel.put("no error")
    except RuntimeError as error:
        channel.put(str(error))


def spawned(channel):
    channel.put(itmatch.search(np.eye(2), np.eye(2), 1).ids.tolist())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(sys.platform != "linux", reason="fork")
def test_a_fork_is_refused_and_a_spawn_works():
    itmatch.search(np.eye(2), np.eye(2), 1)
    line = "itmatch: expected a new process (multiprocessing's `spawn`), got a fork of one that has called itmatch"
    for method, target, want in (("fork", forked, line), ("spawn", spawned, [[0], [1]])):
        context = multiprocessing.get_context(method)
        channel = context.Queue()
        process = context.Process(target=target, args=(channel,))
        process.start()
        assert channel.get(timeout=60) == want
        process.join()


def test_the_manners_of_scikit_learn():
    """Those checks that do not call `fit(X, y)`: a correction is fitted on two sets of rows."""
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    base = pytest.importorskip("sklearn.base")
    for name in ("Csls", "DbNorm", "InvertedSoftmax", "LocalScaling", "MutualProximity", "Nnn", "QbNorm", "Sinkhorn"):
        estimator = getattr(itmatch.hubness, name)()
        for check in ("check_no_attributes_set_in_init", "check_get_params_invariance", "check_set_params"):
            getattr(checks, check)(name, estimator)
        again = base.clone(estimator.fit(np.eye(30, 4), np.eye(6, 4), **({"bank_items": np.eye(30, 4)} if name == "DbNorm" else {})))
        assert again.get_params() == estimator.get_params() and not hasattr(again, "knowledge")
    for estimator in (itmatch.hubness.Auto(), itmatch.hubness.GreedyMatching()):
        for check in ("check_no_attributes_set_in_init", "check_get_params_invariance", "check_set_params"):
            getattr(checks, check)(type(estimator).__name__, estimator)
        assert base.clone(estimator).get_params() == estimator.get_params()
