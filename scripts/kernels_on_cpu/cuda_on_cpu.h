// CUDA kernels on a CPU, one block after another, each thread a fiber that runs until a barrier or an exchange within its warp. Numbers come out as on
// a GPU, since nothing here rounds otherwise; races between threads do not show, for which there is racecheck.
#pragma once
#include <ucontext.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <cstdint>
#include <vector>
#include <functional>
#include <algorithm>
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static
using std::min; using std::max;
struct U3 { unsigned x, y, z; };
static U3 threadIdx, blockIdx, blockDim, gridDim;
struct __attribute__((aligned(16))) float4 { float x, y, z, w; };
struct __attribute__((aligned(8))) float2 { float x, y; };
struct __attribute__((aligned(4))) char4 { signed char x, y, z, w; };
static inline float4 make_float4(float a, float b, float c, float d) { float4 r = {a, b, c, d}; return r; }
static inline char4 make_char4(int a, int b, int c, int d) { char4 r = {(signed char)a, (signed char)b, (signed char)c, (signed char)d}; return r; }
template <class T> static inline T __ldg(const T* p) { return *p; }
static inline float __int_as_float(int x) { float f; memcpy(&f, &x, 4); return f; }
static inline int __float_as_int(float x) { int f; memcpy(&f, &x, 4); return f; }
static inline double __longlong_as_double(long long x) { double f; memcpy(&f, &x, 8); return f; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline double __dsqrt_rn(double a) { return sqrt(a); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((uint64_t)a * b) >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)(((unsigned __int128)a * b) >> 64); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int min(unsigned a, int b) { return (int)std::min<long long>(a, b); }
static inline unsigned atomicAdd(unsigned* p, unsigned v) { unsigned o = *p; *p += v; return o; }

enum State { READY, AT_BARRIER, AT_WARP, DONE };
static const unsigned STACK = 65536;
struct Fiber {
    ucontext_t context;
    U3 thread;
    State state;
    char* stack;
};
static std::vector<Fiber> fibers;
static int current;
static ucontext_t outside;
static std::function<void()>* body;
static uint64_t box[1024];  // what each thread shows its warp

static void wait_as(State state) {
    fibers[current].state = state;
    swapcontext(&fibers[current].context, &outside);
    threadIdx = fibers[current].thread;
}
static inline void __syncthreads() { wait_as(AT_BARRIER); }
static inline void __syncwarp(unsigned = 0xffffffffu) { wait_as(AT_WARP); }

template <class T>
static inline T exchange(T value, int lane) {
    const int me = current;
    box[me] = 0;
    memcpy(&box[me], &value, sizeof value);
    wait_as(AT_WARP);
    T other;
    memcpy(&other, &box[(me & ~31) + lane], sizeof other);
    wait_as(AT_WARP);
    return other;
}
template <class T> static inline T __shfl_xor_sync(unsigned, T v, int h) { return exchange(v, (current & 31) ^ h); }
template <class T> static inline T __shfl_sync(unsigned, T v, int l) { return exchange(v, l & 31); }

static void entry() {
    threadIdx = fibers[current].thread;
    (*body)();
    fibers[current].state = DONE;
    swapcontext(&fibers[current].context, &outside);
}

static void start(unsigned threads) {
    while (fibers.size() < threads) fibers.push_back(Fiber{{}, {}, READY, (char*)malloc(STACK)});
    for (unsigned t = 0; t < threads; ++t) {
        Fiber& f = fibers[t];
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack, f.context.uc_stack.ss_size = STACK, f.context.uc_link = &outside;
        makecontext(&f.context, entry, 0);
        f.thread = {t, 0, 0}, f.state = READY;
    }
}

// Lets threads first..end go on that wait as `state`, if all of them do that have not ended. Whether any did.
static bool release(unsigned first, unsigned end, State state) {
    unsigned waiting = 0, done = 0;
    for (unsigned t = first; t < end; ++t) waiting += fibers[t].state == state, done += fibers[t].state == DONE;
    if (waiting == 0 || waiting + done != end - first) return false;
    for (unsigned t = first; t < end; ++t) if (fibers[t].state == state) fibers[t].state = READY;
    return true;
}

static void block(unsigned threads) {
    start(threads);
    while (true) {
        for (unsigned t = 0; t < threads; ++t) {
            if (fibers[t].state != READY) continue;
            current = (int)t;
            swapcontext(&outside, &fibers[t].context);
        }
        bool any = false;
        for (unsigned w = 0; w < threads; w += 32) any |= release(w, std::min(w + 32, threads), AT_WARP);
        if (any || release(0, threads, AT_BARRIER)) continue;
        for (unsigned t = 0; t < threads; ++t) {
            if (fibers[t].state == DONE) continue;
            fprintf(stderr, "threads of a block wait for each other in vain\n");
            exit(3);
        }
        return;
    }
}

static void launch(U3 grid, unsigned threads, std::function<void()> kernel) {
    gridDim = grid, blockDim = {threads, 1, 1}, body = &kernel;
    for (unsigned z = 0; z < grid.z; ++z) {
        for (unsigned y = 0; y < grid.y; ++y) {
            for (unsigned x = 0; x < grid.x; ++x) {
                blockIdx = {x, y, z};
                block(threads);
            }
        }
    }
}
