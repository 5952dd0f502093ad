#!/usr/bin/env python3
"""Our times and memory beside PyTorch's, row by row: `performance.py --python PYTHON`.

    python tests/performance.py --python python            # all rows; writes docs/performance.md between its markers
    python tests/performance.py --python python --rows vit-224,gelu --repeat 1

PYTHON is an interpreter with torch, and with transformers for its models. This script needs neither: it builds the benchmarks,
starts one process per measurement, and prints the tables. The rows come from `crates/itm-core/benches/encoders`,
`crates/fne/benches/paper_step.rs`, `crates/naaf/benches/naaf_step.rs`, `crates/tags-dc/benches/tags_step.rs`, and their twin
`tests/reference/performance.py`. A round runs our variants, the work that the row cannot avoid, and every variant of PyTorch, one
after the other. The best of all rounds counts. Exit code 2: a side cannot be built or started, or a row does not exist.
`--self-test` runs the examples below and in the functions.

By hand: ours 0.5 s against 1.0, the fastest of 1.0, 1.25 and 2.0; 300 MiB against 400, the least, of another variant. In bf16
0.3 s against 0.4 s, and 100 MiB against 200 MiB.

>>> def measured(variant, best, mib):
...     line = {"best": best, "median": 2 * best, "peak_bytes": mib * MIB, "start_bytes": MIB}
...     return Variant(None, variant).add(line)
>>> row = [measured("ours", 0.5, 300), measured("products", 0.375, 10), measured("own", 1.25, 400),
...     measured("transformers", 2.0, 500), measured("own-compiled", 1.0, 800), measured("ours-bf16", 0.3, 100),
...     measured("bf16-own-compiled", 0.4, 200), Variant(None, "own-compiled-fused").add({"error": "no | compiler"})]
>>> line_f32("vit", row)
'| vit | 500 | 1250 | 1000 | 0.50 | 300 | 400 | 0.75 | products 75 % |'
>>> line_bf16("vit", row)
'| vit | 300 | 400 | 0.75 | 100 | 200 | 0.50 | 0.60 |'
>>> text = render({"vit": row}, "command", 3)
>>> all(part in text for part in (line_bf16("vit", row), "* vit, own-compiled-fused: no \\\\| compiler",
...     "| vit | own | 1250 | 2500 | 400 | 1 |"))
True
>>> line_f32("gelu", [measured("eager", 0.00123, 5)])  # a side without a number leaves gaps
'| gelu | - | 1.23 | - | - | - | 5 | - | - |'

The best round stays, and a later failure does not erase it. A variant 1.3 times slower than the best of its kind is dropped.

>>> eager = measured("own", 1.0, 1).add({"best": 2.0}).add({"best": 0.5})
>>> slow, compiled = measured("transformers", 0.7, 1), measured("own-compiled", 3.0, 1)
>>> drop_hopeless([eager, slow, compiled])
>>> [v.seconds() for v in (eager, slow, compiled)], [v.in_the_race for v in (eager, slow, compiled)]
([0.5, 0.7, 3.0], [True, False, True])
>>> eager.add({"error": "stopped"}).in_the_race, eager.seconds()
(False, 0.5)
"""

import argparse
import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- performance: begin -->", "<!-- performance: end -->"
MIB = 1024 * 1024
# A variant of PyTorch this much slower than the best of its kind in one round is not run again.
HOPELESS = 1.3
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
# In the order of their rows: single encoders, FNE's whole step, NAAF's step and cross attention, a micro-step of TAGS-DC.
BENCHES = ["encoders", "paper_step", "naaf_step", "tags_step"]


class Refused(Exception):
    """A mistake of the user or of the machine, in one line."""


class Program:
    """One side of the comparison: how its processes are started."""

    def __init__(self, words, threads, limit):
        self.words, self.threads, self.limit = [str(word) for word in words], threads, limit

    def rows(self):
        """Names of the rows, each with its variants."""
        output, reason = self.output(["--list"])
        if reason:
            raise Refused(f"{self.words[0]}: expected a program that lists its rows, got {reason}")
        return [(line.split()[0], line.split()[1:]) for line in output.splitlines() if line.strip()]

    def measure(self, row, variant, seconds):
        """What one process measured, or an `error` that says why there is no number.

        >>> Program(["sh", "-c", "echo Traceback >&2; echo 'no module torch' >&2; exit 1"], 1, 9).measure("x", "y", 1)
        {'error': 'no module torch'}
        >>> Program(["no-such-program"], 1, 9).measure("x", "y", 1)
        {'error': "[Errno 2] No such file or directory: 'no-such-program'"}
        >>> Program(["sh", "-c", "sleep 20"], 1, 1).measure("x", "y", 1)
        {'error': 'not done after 1 s'}
        >>> Program(["echo", '{"best": 1, "threads": 3} '], 1, 9).measure("x", "y", 1)["error"]
        'a last line that is no measurement'
        >>> Program(["sh", "-c", "echo '{\\"best\\": 1, \\"threads\\": 3}'"], 1, 9).measure("x", "y", 1)
        {'error': '3 threads instead of 1'}
        """
        output, reason = self.output([row, variant, "--threads", str(self.threads), "--seconds", str(seconds)])
        line = {"error": reason} if reason else measurement(output)
        if "error" not in line and line.get("threads") != self.threads:
            return {"error": f"{line.get('threads')} threads instead of {self.threads}"}
        return line

    def output(self, words):
        """The output of a process, and why it failed: the last line of its errors, or that it took too long."""
        keys = ["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"]
        environment = os.environ | {key: str(self.threads) for key in keys}
        try:
            done = subprocess.run(self.words + words, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", timeout=self.limit)
        except subprocess.TimeoutExpired:
            return "", f"not done after {self.limit} s"
        except OSError as error:
            return "", str(error)
        if done.returncode == 0:
            return done.stdout, None
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        return "", lines[-1] if lines else f"exit code {done.returncode}"


def measurement(output):
    """The measurement in a program's output: its last line that is JSON.

    >>> measurement('warning\\n{"best": 1}\\n{"best": 0.5, "row": "x"}\\n')["best"]
    0.5
    >>> [measurement(text)["error"] for text in ("", '{"error": "no compiler"}', '{"row": "x"}')]
    ['no measurement', 'no compiler', 'a measurement without a time']
    """
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if not lines:
        return {"error": "no measurement"}
    try:
        line = json.loads(lines[-1])
    except ValueError:
        return {"error": "a last line that is no measurement"}
    return line if line.get("error") or line.get("best", 0) > 0 else {"error": "a measurement without a time"}


class Variant:
    """The best measurement of one variant of a row, or the reason why there is none."""

    def __init__(self, program, name):
        self.program, self.name, self.line, self.in_the_race = program, name, {"error": "not measured"}, True

    def add(self, line):
        """Adds a round. The fastest measurement stays; a later failure does not undo it."""
        self.in_the_race = "error" not in line
        if self.seconds() is None or line.get("best", float("inf")) < self.seconds():
            self.line = line
        return self

    def seconds(self):
        return self.line.get("best")

    def kind(self):
        """Its role in the comparison; `floor` is the work that the row cannot avoid."""
        if self.name in ("ours", "ours-bf16"):
            return self.name
        if self.name in ("products", "traffic"):
            return "floor"
        if self.name.startswith("bf16"):
            return "bf16"
        return "compiled" if "compiled" in self.name else "eager"


def drop_hopeless(variants):
    """Takes out of the race the variants of PyTorch that are much slower than the best of their kind."""
    for kind in ("eager", "compiled", "bf16"):
        of_kind = [v for v in variants if v.kind() == kind]
        best = min((v.seconds() for v in of_kind if v.seconds()), default=0)
        for variant in of_kind:
            variant.in_the_race &= variant.seconds() is not None and variant.seconds() <= HOPELESS * best


# The tables.


def best(row, *kinds):
    """The fastest variant of these kinds."""
    return min((v for v in row if v.kind() in kinds and v.seconds()), key=Variant.seconds, default=None)


def time(row, *kinds):
    fastest = best(row, *kinds)
    return fastest and fastest.seconds()


def least_memory(row, *kinds):
    return min((v.line["peak_bytes"] for v in row if v.kind() in kinds and v.line.get("peak_bytes")), default=None)


def line_f32(name, row):
    ours, theirs = time(row, "ours"), time(row, "eager", "compiled")
    memory = [least_memory(row, "ours"), least_memory(row, "eager", "compiled")]
    floor, least = best(row, "floor"), "-"
    if floor and ours:
        what = "products" if floor.name == "products" else "memory traffic"
        least = f"{what} {100 * floor.seconds() / ours:.0f} %"
    cells = [milliseconds(ours), milliseconds(time(row, "eager")), milliseconds(time(row, "compiled")), ratio(ours, theirs)]
    return table_line(name, *cells, *map(mebibytes, memory), ratio(*memory), least)


def line_bf16(name, row):
    ours, theirs = time(row, "ours-bf16"), time(row, "bf16")
    memory = [least_memory(row, "ours-bf16"), least_memory(row, "bf16")]
    cells = [milliseconds(ours), milliseconds(theirs), ratio(ours, theirs), *map(mebibytes, memory), ratio(*memory)]
    return table_line(name, *cells, ratio(ours, time(row, "ours")))


def render(rows, command, repeat):
    """The two tables, the reasons for their gaps, and every variant."""
    lines = [f"`{command}`: the best of {repeat} round(s).", "", "Both sides in f32:", ""]
    lines += ["| row | ours ms | PyTorch ms, eager | compiled | ratio | ours MiB | PyTorch MiB | ratio | what it cannot do without |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    lines += [line_f32(name, row) for name, row in rows.items()]
    lines += ["", "Both sides with products of bf16 operands, on this processor:", ""]
    lines += ["| row | ours ms | PyTorch ms | ratio | ours MiB | PyTorch MiB | ratio | ours, bf16 to f32 |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|"]
    lines += [line_bf16(name, row) for name, row in rows.items() if best(row, "bf16")]
    every = [(name, variant) for name, row in rows.items() for variant in row]
    failed = [(name, v.name, v.line["error"]) for name, v in every if v.seconds() is None]
    if failed:
        lines += ["", "Without a number:", ""]
        lines += [f"* {name}, {variant}: " + reason.replace("|", "\\|") for name, variant, reason in failed]
    lines += ["", "Every variant; `start` is what its process held before it built anything.", ""]
    lines += ["| row | variant | best ms | median ms | peak MiB | start MiB |", "|---|---|---:|---:|---:|---:|"]
    for name, variant in every:
        if variant.seconds() is not None:
            times = [variant.seconds(), variant.line.get("median")]
            memory = [variant.line.get("peak_bytes"), variant.line.get("start_bytes")]
            lines += [table_line(name, variant.name, *map(milliseconds, times), *map(mebibytes, memory))]
    return "\n".join(lines) + "\n"


def table_line(*cells):
    return "| " + " | ".join(cells) + " |"


def milliseconds(seconds):
    """
    >>> [milliseconds(s) for s in (None, 0.00123, 0.0123, 0.123)]
    ['-', '1.23', '12.3', '123']
    """
    if seconds is None:
        return "-"
    ms = 1e3 * seconds
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.2f}"


def mebibytes(size):
    return "-" if size is None else f"{size / MIB:.0f}"


def ratio(ours, theirs):
    return f"{ours / theirs:.2f}" if ours and theirs else "-"


def between_markers(page, text):
    """The page with another text between the markers.

    >>> page = f"# Title\\n{BEGIN}\\nold\\n{END}\\nrest\\n"
    >>> between_markers(page, "new\\n") == page.replace("old", "new")
    True
    >>> between_markers("no markers", "new")
    Traceback (most recent call last):
    performance.Refused: docs/performance.md: expected the line <!-- performance: begin --> before <!-- performance: end -->
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise Refused(f"docs/performance.md: expected the line {BEGIN} before {END}")
    return f"{before}{BEGIN}\n{text.rstrip()}\n{END}{after}"


# The machine.


def machine(rows, threads):
    """Processor, threads and versions in two lines, without a date and without the name of a machine."""

    def said(kinds, key):
        found = (v.line.get(key) for row in rows.values() for v in row if v.kind() in kinds)
        return next((value for value in found if value), "unknown")

    lock = (ROOT / "Cargo.lock").read_text()
    theirs = ("eager", "compiled")
    return (
        f"{processor()}, {CORES} cores, {threads} threads; our kernels chose {said(['ours'], 'isa')}.\n"
        f"{first_line('rustc', '--version')}, burn {locked(lock, 'burn')}, gemm {locked(lock, 'gemm')};"
        f" torch {said(theirs, 'torch')} ({said(theirs, 'blas')}), transformers {said(theirs, 'transformers')},"
        f" Python {said(theirs, 'python')}.\n"
    )


def processor():
    try:
        return named(Path("/proc/cpuinfo").read_text())
    except OSError:
        return first_line("sysctl", "-nmachdep.cpu.brand_string")


def named(cpuinfo):
    """The first processor of Linux' list, with family and model, because a virtual machine may hide the end of the name.

    >>> named("processor\\t: 0\\ncpu family\\t: 25\\nmodel\\t\\t: 17\\nmodel name\\t: AMD EPYC\\n\\nprocessor\\t: 1\\n")
    'AMD EPYC (family 25, model 17)'
    """
    def field(key):
        found = re.search(rf"^{key}\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
        return found[1].strip() if found else "unknown"

    return f"{field('model name')} (family {field('cpu family')}, model {field('model')})"


def locked(lock, name):
    """The version of a package in a lock file.

    >>> locked('name = "gemm-f32"\\nversion = "0.1"\\n\\nname = "gemm"\\nversion = "0.19.0"\\n', "gemm")
    '0.19.0'
    """
    found = re.search(rf'^name = "{name}"\nversion = "(.*)"', lock, re.MULTILINE)
    return found[1] if found else "unknown"


def first_line(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    return (done.stdout.splitlines() or ["unknown"])[0]


# The measurement.


def build():
    """Builds the benchmarks as `itm` is built, and returns their paths."""
    words = ["cargo", "build", "--release", "--features", "itm-core/burn,itm-kernels/flex,tags-dc/flex"]
    words += [word for package in ("itm-core", "fne", "naaf", "tags-dc") for word in ("--package", package)]
    words += [word for name in BENCHES for word in ("--bench", name)]
    done = subprocess.run(words + ["--message-format", "json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Refused("the benchmarks do not build")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    paths = {m["target"]["name"]: m["executable"] for m in messages if m.get("executable") and m["target"]["kind"] == ["bench"]}
    missing = [name for name in BENCHES if name not in paths]
    if missing:
        raise Refused(f"cargo names no executable of the benchmark {missing[0]}")
    return [paths[name] for name in BENCHES]


def check(wanted, known):
    """
    >>> check(["bert", "gpt"], ["vit", "bert"])
    Traceback (most recent call last):
    performance.Refused: --rows: expected some of vit, bert, got gpt
    """
    for name in wanted:
        if name not in known:
            raise Refused(f"--rows: expected some of {', '.join(known)}, got {name}")


def measure(name, variants, repeat, seconds):
    """All rounds of one row."""
    for round in range(1, repeat + 1):
        for variant in [v for v in variants if v.in_the_race]:
            line = variant.program.measure(name, variant.name, seconds)
            outcome = line.get("error") or f"{milliseconds(line['best'])} ms"
            # A run that is stopped leaves these lines.
            print(f"{name}: round {round} of {repeat}: {variant.name}: {outcome}", file=sys.stderr)
            variant.add(line)
        drop_hopeless(variants)


def run(args):
    torch = Program([args.python, ROOT / "tests/reference/performance.py"], args.threads, args.limit)
    torch_rows = torch.rows()  # before minutes of building
    check(args.rows, [name for name, _ in torch_rows])
    ours = [Program([path], args.threads, args.limit) for path in build()]
    our_rows = [(name, [Variant(side, v) for v in variants]) for side in ours for name, variants in side.rows()]
    if [name for name, _ in our_rows] != [name for name, _ in torch_rows]:
        raise Refused(f"the two sides have different rows: {[n for n, _ in our_rows]}, {[n for n, _ in torch_rows]}")
    rows = {}
    for (name, variants), (_, theirs) in zip(our_rows, torch_rows):
        if not args.rows or name in args.rows:
            rows[name] = variants + [Variant(torch, v) for v in theirs]
            measure(name, rows[name], args.repeat, args.seconds)
    text = machine(rows, args.threads) + "\n" + render(rows, command(args), args.repeat)
    print(text)
    if not args.rows:
        PAGE.write_text(between_markers(PAGE.read_text(), text))


def command(args):
    """The command line that gives this table, without the path of one machine's interpreter."""
    rows = f" --rows {','.join(args.rows)}" if args.rows else ""
    counts = f" --repeat {args.repeat} --threads {args.threads} --seconds {args.seconds}"
    return f"python tests/performance.py --python python{rows}{counts}"


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default="python3", help="an interpreter with torch, and with transformers for its models")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=[], help="only these, separated by commas")
    parser.add_argument("--repeat", type=positive, default=3, help="rounds; the best counts")
    parser.add_argument("--threads", type=positive, default=CORES, help="of both sides")
    parser.add_argument("--seconds", type=positive, default=4, help="for which a process repeats its step, at least three steps")
    parser.add_argument("--limit", type=positive, default=900, help="seconds after which a process is stopped")
    parser.add_argument("--self-test", action="store_true", help="run the examples in this file")
    args = parser.parse_args()
    if args.self_test:
        import performance  # so that exceptions have the module's name

        return 1 if doctest.testmod(performance).failed else 0
    try:
        run(args)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
