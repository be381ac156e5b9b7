#!/usr/bin/env bash
# Compiles every CUDA kernel for the oldest and the newest chips, without a GPU, and fails where one spills registers or has more
# shared memory than a block may have. Needs NVRTC 11.8, the last that knows a Tesla K80 (sm_37):
#   pip install nvidia-cuda-nvrtc-cu11==11.8.89
# Where no NVRTC for sm_37 is at hand, says so loudly and succeeds, unless DIESWEEP_NEED_NVRTC is set.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0
cargo run --release --quiet -- kernels "$@" || status=$?
if [ "$status" -eq 3 ] && [ -z "${DIESWEEP_NEED_NVRTC:-}" ]; then
    echo '*****************************************************************' >&2
    echo '* SKIPPED: no NVRTC at hand compiles for sm_37, so the kernels   *' >&2
    echo '* were NOT checked. pip install nvidia-cuda-nvrtc-cu11==11.8.89  *' >&2
    echo '*****************************************************************' >&2
    exit 0
fi
exit "$status"
