#!/usr/bin/env python3
"""Reads the four tables of results folders with pandas and with polars, without an option, and holds both against the cells that are there.

    scripts/check_tables.py [--program target/release/diesweep] [DIR ...]

Every column that is not of text must be read as numbers by both. Without folders it makes two: one with diverged and failed runs, arms that lack each other's axes,
and more rows than those by which polars tells a column's type, and one of which nothing has run. What is not installed is skipped.
"""

import argparse
import csv
import math
import os
import subprocess
import sys
import tempfile

TABLES = ["comparison.csv", "summary.csv", "comparisons.csv", "curves.csv"]
TEXT = {"arm", "status", "precision", "run_id", "die", "host", "started", "ended", "metric", "baseline", "seeds_unpaired", "split", "role"}

SWEEP = """
name = "{name}"
seeds = {{ first = 1, count = {seeds} }}
[base]
data = "builtin"
steps = {steps}
C = 16
n_head = 2
head_size = 8
n_rwkv = 1
n_attn = 1
ffn = 32
lora = 4
seq_len = 16
eval_every = 1
eval_batches = 1
test_batches = 2
diverge_above = 20
[[arm]]
name = "adamw"
opt = "adamw"
lr = [1e-3, 30000]
[[arm]]
name = "sr4"
opt = "sr4"
target_step = [0.003, 0.01]
decay = "matrices"
[compare]
baseline = "adamw"
"""


def readers():
    found = []
    try:
        import pandas

        found.append(("pandas " + pandas.__version__, lambda path: {name: (kind(values.dtype), values.tolist()) for name, values in pandas.read_csv(path).items()}))
        kind = lambda dtype: pandas.api.types.is_numeric_dtype(dtype)
    except ImportError as error:
        print(f"SKIPPED pandas: {error}")
    try:
        import polars

        found.append(("polars " + polars.__version__, lambda path: {series.name: (series.dtype.is_numeric(), series.to_list()) for series in polars.read_csv(path)}))
    except ImportError as error:
        print(f"SKIPPED polars: {error}")
    return found


def number(cell):
    return math.nan if cell in ("", None) else float(cell)


def check(path, name, read):
    """Holds what a reader gives against the file's cells; gives back what is wrong."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    header, rows = rows[0], rows[1:]
    try:
        table = read(path)
    except Exception as error:  # whatever a reader raises is what a user would see
        return [f"{name} cannot read {path}: {error}"]
    faults = []
    if list(table) != header:
        return [f"{name}: {path} has the columns {list(table)}"]
    for place, column in enumerate(header):
        numeric, values = table[column]
        # The only axis of text in a folder made here is `decay`; in others it is told by its cells.
        is_text = column in TEXT or any(not is_number(row[place]) for row in rows)
        if len(values) != len(rows):
            faults.append(f"{name}: {path} has {len(values)} rows, not {len(rows)}")
        elif rows and not is_text and not numeric:
            faults.append(f"{name}: {path} {column} is not read as numbers")
        elif rows and not is_text:
            pairs = ((number(row[place]), math.nan if value is None else float(value)) for row, value in zip(rows, values))
            if any(a != b and not (math.isnan(a) and math.isnan(b)) for a, b in pairs):
                faults.append(f"{name}: {path} {column} has other values than the file")
    return faults


def is_number(cell):
    try:
        number(cell)
        return True
    except ValueError:
        return False


def make(program, folder):
    dirs = []
    for name, seeds, steps in [("mixed", 30, 150), ("alone", 1, 3)]:
        path = os.path.join(folder, name + ".toml")
        with open(path, "w") as file:
            file.write(SWEEP.format(name=name, seeds=seeds, steps=steps))
        ended = subprocess.run([program, "run", path, "--results", folder, "--quiet"], capture_output=True, text=True)
        if ended.returncode != 0:
            sys.exit(f"{program} run {path}: {ended.stderr}")
        dirs.append(os.path.join(folder, name))
    return dirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/diesweep")
    parser.add_argument("dirs", nargs="*")
    args = parser.parse_args()
    found = readers()
    faults, files = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for directory in args.dirs or (make(args.program, folder) if found else []):
            for table in TABLES:
                path = os.path.join(directory, table)
                files += 1
                for name, read in found:
                    faults += check(path, name, read)
    for fault in faults:
        print(f"FAILED {fault}")
    if faults:
        sys.exit(1)
    if found:
        print(f"{files} tables read by {' and '.join(name for name, _ in found)}, every number as a number")


main()
