#!/usr/bin/env bash
# Compares the CUDA kernels of attention, norms, the recurrence and the time mix with those of another commit, bit by bit and without a GPU: both run on this
# machine's CPU, thread by thread, at many shapes (a few minutes; needs a C++ compiler and a CPU with FMA).
#   scripts/compare_kernels.sh COMMIT
# Exit code 1 where an array differs. Races between threads do not show here.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=${1:?usage: scripts/compare_kernels.sh COMMIT}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/theirs" "$work/ours"
git archive "$commit" kernels | tar -x -C "$work/theirs"
cp -r kernels "$work/ours"
running=()
for side in theirs ours; do
    # A multiply-add is fused exactly where the kernels say so.
    "${CXX:-g++}" -std=c++17 -O1 -mfma -ffp-contract=off -w -I scripts/kernels_on_cpu -I "$work/$side" \
        -o "$work/$side/digests" scripts/kernels_on_cpu/digests.cpp
    "$work/$side/digests" >"$work/$side.txt" &
    running+=($!)
done
for process in "${running[@]}"; do wait "$process"; done
lines=$(wc -l <"$work/ours.txt")
[ "$lines" -gt 0 ] || { echo "error: nothing was computed" >&2; exit 2; }
if diff "$work/theirs.txt" "$work/ours.txt"; then
    echo "$lines arrays, no bit differs from $commit"
else
    echo "kernels differ from those of $commit" >&2
    exit 1
fi
