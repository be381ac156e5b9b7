#!/usr/bin/env bash
# Everything that needs a GPU, with a short table at the end:
#   scripts/check_gpu.sh [DIESWEEP [LIB_TESTS]]
# DIESWEEP is the binary and LIB_TESTS that of the library's tests; without them cargo builds both. An NVRTC 11.4 to 11.8 for a Tesla K80's
# code is found as every compiler is (DIESWEEP_CUDA_PATH). Logs are packed into
# check_gpu_logs.tar.gz in $OUT, or in /tmp.
set -uo pipefail
cd "$(dirname "$0")/.."
export DIESWEEP_NEED_GPU=1
work=$(mktemp -d)
out=$work/logs
mkdir "$out"
trap 'tar -C "$work" -czf "${OUT:-/tmp}/check_gpu_logs.tar.gz" logs; rm -rf "$work"' EXIT

if [ $# -ge 1 ]; then
    bin=$(realpath "$1")
else
    cargo build --quiet || exit 2
    bin=$PWD/target/debug/diesweep
fi
if [ $# -ge 2 ]; then
    tests=$(realpath "$2")
elif [ $# -eq 0 ]; then
    tests=$(cargo test --lib --no-run --message-format=json 2>/dev/null | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
else
    tests=
fi

table=()
failed=0
# check NAME BOUND COMMAND...: runs it with its output in a log; a row of the table says how it went and how long it took.
check() {
    local name=$1 log=$out/$1.log from=$SECONDS verdict
    shift
    if "$@" >"$log" 2>&1; then
        verdict=ok
    else
        verdict="FAILED, status $?"
        failed=1
        echo "== $name: $verdict; the end of its log:"
        tail -n "${TAIL:-12}" "$log"
    fi
    table+=("$(printf '%-34s %4d s  %s' "$name" $((SECONDS - from)) "$verdict")")
}
skip() {
    table+=("$(printf '%-34s         SKIPPED: %s' "$1" "$2")")
    echo "SKIPPED $1: $2"
}

# sanitize TOOL: the engine's tests and those of lanes under a tool of compute-sanitizer.
sanitize() {
    if command -v compute-sanitizer >/dev/null; then
        check "$1-engine" compute-sanitizer --tool "$1" --error-exitcode 9 "$tests" orders_of_blocks --test-threads=1
        check "$1-lanes" compute-sanitizer --tool "$1" --error-exitcode 9 "$tests" runs_in_lanes_give --test-threads=1
    else
        skip "$1" "no compute-sanitizer on the path"
    fi
}

# The sweep of the checks: two arms, two settings each, ten seeds.
sweep() {
    cat <<EOF
name = "$1"
seeds = { first = 1, count = 10 }
[base]
data = "builtin"
steps = ${STEPS:-400}
eval_every = 20
eval_batches = 2
test_batches = 4
$2
[[arm]]
name = "adamw"
opt = "adamw"
lr = [1e-3, 3e-3]
[[arm]]
name = "sr4"
opt = "sr4"
target_step = [0.003, 0.01]
[compare]
baseline = "adamw"
metric = "val_bpb"
[run]
checkpoint_every = 50
EOF
}
small='C = 64
n_head = 2
head_size = 32
n_rwkv = 1
n_attn = 1
ffn = 128
lora = 16
seq_len = 128'

run_sweep() { # NAME ARGS...: the sweep s into $work/NAME
    local name=$1
    shift
    (cd "$work" && "$bin" run s.toml --results "$name" --backend cuda --quiet "$@")
}
# Two folders without a run would be equal too.
same_tables() {
    [ "$(grep -c ',finished,' "$work/$1/s/comparison.csv")" -eq 40 ] && "$bin" diff "$work/$1/s" "$work/$2/s"
}

# Process $1 and all that come of it, the latest first.
descendants() {
    local child
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do descendants "$child"; done
    echo "$1"
}
# Kills the worker with SIGKILL, twice; the sweep must end by itself all the same.
kill_workers() {
    run_sweep killed --lanes 40 &
    local shell=$! n pid killed=0
    for n in 1 2; do
        sleep "${KILL_AFTER:-2}"
        for pid in $(descendants "$shell"); do
            if grep -qz '^worker$' "/proc/$pid/cmdline" 2>/dev/null && kill -9 "$pid"; then killed=$((killed + 1)); fi
        done
    done
    echo "killed $killed workers"
    wait "$shell" && [ "$killed" -ge 1 ]
}
# Kills controller and worker, and gives the command again.
kill_all_and_go_on() {
    run_sweep again --lanes 40 &
    local shell=$!
    sleep "${KILL_AFTER:-2}"
    # shellcheck disable=SC2046
    kill -9 $(descendants "$shell")
    wait "$shell" 2>/dev/null
    run_sweep again --lanes 7
}

check devices "$bin" devices
if [ -n "$tests" ]; then
    check tests-own-code "$tests" cuda --test-threads=1
else
    skip tests-own-code "no binary of the library's tests"
fi
check exact "$bin" parity --exact --steps "${EXACT_STEPS:-5}" --threads 8
if [ -n "$tests" ]; then
    if "$bin" kernels --target sm_37 >/dev/null 2>&1; then
        check tests-compute_37 env DIESWEEP_FORCE_ARCH=compute_37 "$tests" cuda --test-threads=1
    else
        skip tests-compute_37 "no NVRTC 11.4 to 11.8 at hand"
    fi
    sanitize memcheck
fi

sweep s "$small" >"$work/s.toml"
check sweep-one-lane run_sweep one --lanes 1
check sweep-40-lanes run_sweep many --lanes 40
check sweep-7-lanes run_sweep seven --lanes 7
check sweep-auto-lanes run_sweep auto --lanes auto
check same-40-lanes same_tables one many
check same-7-lanes same_tables one seven
check same-auto-lanes same_tables one auto
cpu_sweep() { (cd "$work" && "$bin" run s.toml --results cpu --backend cpu --quiet); }
check sweep-on-cpu cpu_sweep
check same-as-cpu same_tables one cpu
check sweep-worker-killed kill_workers
check same-worker-killed same_tables one killed
check sweep-all-killed kill_all_and_go_on
check same-all-killed same_tables one again

check bench "$bin" bench --backend cuda --lanes "${LANES:-1,4,16,64}"
cat "$out"/bench.log
# The slowest comes last: what runs out of time then is the least.
[ -n "$tests" ] && sanitize racecheck
echo
printf '%s\n' "${table[@]}"
[ "$failed" -eq 0 ] && echo "all checks hold" || echo "SOME CHECKS FAILED"
exit "$failed"
