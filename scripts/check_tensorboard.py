#!/usr/bin/env python3
"""Reads what `diesweep export --tensorboard` writes with the tensorboard package, and holds every scalar against the runs' logs.

    scripts/check_tensorboard.py DIR [--program target/release/diesweep]

Without tensorboard the check is skipped.
"""

import argparse
import csv
import math
import os
import struct
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
except ImportError as error:
    print(f"SKIPPED check_tensorboard: {error}")
    sys.exit(0)

GROUPS = {
    "log": ["train_bpb", "val_bpb", "val_acc", "grad_norm", "lr"],
    "time": ["step_sec", "tok_per_sec", "elapsed_sec", "ETA_sec"],
    "ternary": ["churn", "pct_neg", "pct_zero", "pct_pos", "rail_pct", "dead_pct", "scale_mean", "scale_min", "scale_max"],
}


def as_float(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def check_run(board, log):
    with open(log, newline="") as file:
        rows = list(csv.DictReader(file))
    events = EventAccumulator(board, size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    tags, values = set(events.Tags()["scalars"]), 0
    for group, columns in GROUPS.items():
        for column in columns:
            want = [(int(row["step"]), as_float(float(row[column]))) for row in rows if row[column] != ""]
            got = [(event.step, event.value) for event in events.Scalars(f"{group}/{column}")] if f"{group}/{column}" in tags else []
            if len(want) != len(got) or any(s != t or not same(a, b) for (s, a), (t, b) in zip(want, got)):
                sys.exit(f"{board}: {group}/{column} is not what {log} holds")
            values += len(want)
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    settings = HParamsPluginData.FromString(content).session_start_info.hparams
    if not {"arm", "seed"} <= set(settings):
        sys.exit(f"{board}: its settings are {dict(settings)}")
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--program", default="target/release/diesweep")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as board:
        subprocess.run([args.program, "export", args.dir, "--tensorboard", board], check=True, stdout=subprocess.DEVNULL)
        runs = sorted(os.listdir(board))
        values = sum(check_run(os.path.join(board, run), os.path.join(args.dir, "runs", run, "log.csv")) for run in runs)
    print(f"{values} scalars of {len(runs)} runs are those of their logs")


main()
