#!/usr/bin/env bash
# Everything that needs a GPU: the engine and whole runs in lanes against the CPU, byte by byte, with the die's own code and, where an
# NVRTC for it is at hand (DIESWEEP_CUDA_PATH), with a Tesla K80's; compute-sanitizer's memcheck and racecheck on a small model; step times.
set -euo pipefail
cd "$(dirname "$0")/.."
export DIESWEEP_NEED_GPU=1

echo "== the die's own code"
cargo test --lib cuda -- --test-threads=1
echo "== a K80's code (compute_37)"
if cargo run --quiet -- kernels --target sm_37 >/dev/null; then
    DIESWEEP_FORCE_ARCH=compute_37 cargo test --lib cuda -- --test-threads=1
else
    echo "SKIPPED: no NVRTC 11.4 to 11.8 at hand; set DIESWEEP_CUDA_PATH" >&2
fi
echo "== sanitizer"
if command -v compute-sanitizer >/dev/null; then
    tests=$(cargo test --lib --no-run --message-format=json 2>/dev/null | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
    for tool in memcheck racecheck; do
        compute-sanitizer --tool "$tool" --error-exitcode 9 "$tests" orders_of_blocks_give_the_bytes_of_the_cpu --test-threads=1
    done
else
    echo "SKIPPED: no compute-sanitizer on the path" >&2
fi
echo "== speed"
cargo test --lib speed_of_the_default_model -- --ignored --nocapture
