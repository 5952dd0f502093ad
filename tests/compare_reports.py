#!/usr/bin/env python3
"""Compares two report.json files and prints every path that differs: `compare_reports.py BEFORE AFTER`.

The files can be reports of `itm` or `hubness`, a `summary.json`, or any other JSON. Exit code 0: the same; 1: not
the same; 2: a file cannot be read. `--ignore PATH` ignores one more path, with `[]` for any place of a list.
`--renamed OLD=NEW` says that the key `OLD` of BEFORE is called `NEW` in AFTER, wherever it stands. `--self-test` runs the
examples below.

Numbers are compared as text, so the last bit counts, and -0.0 is not 0.0:

>>> before = {"seconds": 1.5, "rows": [{"name": "Full", "measured": {"rsum": 412.25, "seconds": 3.0}}]}
>>> after = {"seconds": 9.5, "rows": [{"name": "Full", "measured": {"rsum": 412.25, "seconds": 8.0}}]}
>>> differences(before, after)
[]
>>> after["rows"][0]["measured"]["rsum"] = 412.25000000000006
>>> differences(before, after)
['rows[0 Full].measured.rsum: 412.25, then 412.25000000000006']
>>> differences({"a": 0.0, "b": 1, "c": [1, 2], "d": None}, {"a": -0.0, "b": 1.0, "c": [1], "e": None})
['a: 0.0, then -0.0', 'b: 1, then 1.0', 'c[1]: 2, then nothing', 'd: null, then nothing', 'e: nothing, then null']
>>> differences({"seconds": 1.0}, {})  # a removed key is a difference, whatever its value
['seconds: 1.0, then nothing']
>>> differences({"rows": [{"name": "a"}]}, {"rows": {"name": "a"}})
['rows: [{"name": "a"}], then {"name": "a"}']
>>> before = {"rows": [{"loss": 1.0, "pooled": {"loss": 2.0}}]}
>>> differences(renamed(before, {"loss": "mean_loss"}), {"rows": [{"mean_loss": 1.0, "pooled": {"mean_loss": 3.0}}]})
['rows[0].pooled.mean_loss: 2.0, then 3.0']
>>> differences({"data": {"files": [{"name": "x"}]}}, {"data": {"files": [{"name": "y"}]}}, ["data.files[].name"])
[]
"""

import argparse
import doctest
import json
import sys

# Paths whose values may differ between two runs of one program on one machine, and why.
IGNORED = {
    "seconds": "wall clock of the run",
    "rows[].measured.seconds": "wall clock of a row",
    "peak_memory_bytes": "of the process",
    "commit": "the program's version is what the comparison is about",
    "command": "names the folder of the run",
    "settings.command": "names the folder of the run, in a report of hubness",
}
NOTHING = object()
LONGEST = 200  # characters of a printed value


def differences(before, after, ignored=()):
    """A line for each path whose values differ."""
    return list(walk(before, after, "", "", {*IGNORED, *ignored}))


def walk(before, after, path, pattern, ignored):
    """`path` is for the reader; `pattern` is the path without the places in lists."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            dot = "." if path else ""
            values = before.get(key, NOTHING), after.get(key, NOTHING)
            yield from walk(*values, f"{path}{dot}{key}", f"{pattern}{dot}{key}", ignored)
    elif isinstance(before, list) and isinstance(after, list):
        for k in range(max(len(before), len(after))):
            values = [part[k] if k < len(part) else NOTHING for part in (before, after)]
            yield from walk(*values, f"{path}[{k}{name(values[0])}]", f"{pattern}[]", ignored)
    elif written(before) != written(after):
        if pattern not in ignored or NOTHING in (before, after):
            yield f"{path}: {written(before)[:LONGEST]}, then {written(after)[:LONGEST]}"


def renamed(value, names):
    """The value with other names for its keys, at every depth."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(part, names) for key, part in value.items()}
    return [renamed(part, names) for part in value] if isinstance(value, list) else value


def name(value):
    """The name of a list's element, for the reader."""
    names = [value[key] for key in ("name", "row", "method") if key in value] if isinstance(value, dict) else []
    return f" {names[0]}" if names else ""


def written(value):
    return "nothing" if value is NOTHING else json.dumps(value, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", nargs="?")
    parser.add_argument("after", nargs="?")
    parser.add_argument("--ignore", action="append", default=[], metavar="PATH")
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        failed, tried = doctest.testmod()
        print(f"{tried} examples, {failed} failed")
        return int(failed > 0 or tried == 0)
    if args.after is None:
        parser.error("expected two files")
    names = dict(pair.split("=", 1) for pair in args.renamed if "=" in pair)
    if len(names) < len(args.renamed):
        parser.error("--renamed: expected OLD=NEW, each key once")
    reports = []
    for path in (args.before, args.after):
        try:
            with open(path, encoding="utf-8") as file:
                reports.append(json.load(file))
        except (OSError, ValueError) as error:
            print(f"{path}: expected a report, got {error}", file=sys.stderr)
            return 2
    before, after = reports
    found = differences(renamed(before, names), after, args.ignore)
    print("\n".join(found) if found else "the same, but for times, memory, commit and command line")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
