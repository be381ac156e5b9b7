#!/usr/bin/env python3
"""Times the tables of a large sweep: diesweep, polars and pandas, each in a process of its own, in turn.

    DIESWEEP_FOLDER=/tmp/large cargo test --lib a_folder_to_measure -- --ignored
    scripts/time_tables.py /tmp/large/test [--rounds 3] [--program target/release/diesweep]

diesweep writes all four tables (`export --format csv`), every log checked against its digest. polars reads the logs, groups them by configuration and step, and
writes the joined rows; pandas reads and joins them. Prints the median seconds, the largest memory of each, and ratios. What is not installed is skipped.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

POLARS = """
import glob, sys, polars as pl
frames = [pl.read_csv(p).with_columns(pl.lit(p.split("/")[-2]).alias("run")) for p in sorted(glob.glob(sys.argv[1] + "/runs/*/log.csv"))]
panel = ["churn", "pct_neg", "pct_zero", "pct_pos", "rail_pct", "dead_pct", "scale_mean", "scale_min", "scale_max"]
all = pl.concat([f.with_columns(pl.col(panel).cast(pl.Float64, strict=False), pl.col("grad_norm").cast(pl.Float64), pl.col("ETA_sec").cast(pl.Float64)) for f in frames], how="vertical_relaxed")
all.group_by(pl.col("run").str.extract("^(.*)_s"), "step").agg(pl.col("val_bpb").mean(), pl.col("val_bpb").std().alias("sd"))
all.write_csv(sys.argv[2] + "/curves.csv")
"""

PANDAS = """
import glob, sys, pandas as pd
paths = sorted(glob.glob(sys.argv[1] + "/runs/*/log.csv"))
all = pd.concat([pd.read_csv(p).assign(run=p.split("/")[-2]) for p in paths])
all.groupby([all["run"].str.extract("^(.*)_s")[0], "step"])["val_bpb"].agg(["mean", "std"])
"""


def timed(command):
    """Seconds and megabytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[:2]} ended with {process.returncode}")
    return seconds, usage.ru_maxrss / 1024


def installed(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", default="target/release/diesweep")
    parser.add_argument("--only", help="diesweep, polars or pandas")
    args = parser.parse_args()
    measured = {}
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(args.dir))) as out:
        contenders = {"diesweep": [args.program, "export", args.dir, "--format", "csv", "--output", out]}
        for name, text in [("polars", POLARS), ("pandas", PANDAS)]:
            if installed(name):
                contenders[name] = [sys.executable, "-c", text, args.dir, out]
            else:
                print(f"SKIPPED {name}: it is not here")
        for _ in range(args.rounds):
            for name, command in contenders.items():
                if args.only in (None, name):
                    measured.setdefault(name, []).append(timed(command))
    medians = {name: statistics.median(seconds for seconds, _ in runs) for name, runs in measured.items()}
    for name, runs in measured.items():
        ratio = f", {medians[name] / medians['diesweep']:.1f} times diesweep's" if name != "diesweep" and "diesweep" in medians else ""
        print(f"{name}: median {medians[name]:.2f} s of {', '.join(f'{s:.2f}' for s, _ in runs)}; at most {max(mb for _, mb in runs):.0f} MB{ratio}")


main()
