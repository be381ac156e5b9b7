// Layer norm over rows of C channels with the token shift that reads it, forward and backward; and totals of column sums.
//
// Token shift: each of a block's inputs is u, the norm's output, mixed with the row before it in its window by a vector of channels.
// Where nothing is shifted there are 0 mixes.

// A row's mean, and 1/sqrt(variance + 1e-5).
struct RowNorm {
    float mean, scale;
};

__device__ __forceinline__ RowNorm row_norm(const float* from, u32 c, u32 j) {
    RowNorm out;
    float p = 0.0f;
    for (u32 i = j; i < c; i += 32) p = p + from[i];
    out.mean = __fdiv_rn(fold_row(p), (float)c);
    p = 0.0f;
    for (u32 i = j; i < c; i += 32) {
        const float d = from[i] - out.mean;
        p = fmaf(d, d, p);
    }
    const float variance = __fdiv_rn(fold_row(p), (float)c);
    out.scale = __fdiv_rn(1.0f, __fsqrt_rn(variance + 1e-5f));
    return out;
}

// y = xhat w + b with xhat = (x - mean) scale; shifted[k] = y + (y before - y) mix[k]. One warp a row, which also forms the row before
// once more; 4 rows a block. Overwrites y, mean, scale and shifted.
extern "C" __global__ void __launch_bounds__(128) layer_norm(
    const int* lanes,     // [grid z]
    const float* x,       // [L,R,C]
    const float* weight,  // [C] in the arena
    const float* bias,    // [C] in the arena
    const float* mix,     // mixes vectors [C] in the arena, mix_step floats apart
    u64 arena,
    float* y,             // [L,R,C]
    float* mean,          // [L,R]
    float* scale,         // [L,R]
    float* shifted,       // [L,mixes,R,C]
    unsigned rows, unsigned tokens, unsigned c, unsigned mixes, unsigned mix_step) {
    const int lane = lanes[blockIdx.z];
    const u32 row = blockIdx.x * 4 + threadIdx.x / 32, j = threadIdx.x % 32;
    if (lane < 0 || row >= rows) return;
    const size_t at = (size_t)lane * rows + row;
    const float* here = x + at * c;
    const bool follows = mixes > 0 && row % tokens != 0;
    const RowNorm own = row_norm(here, c, j);
    RowNorm before = {0.0f, 0.0f};
    if (follows) before = row_norm(here - c, c, j);
    if (j == 0) {
        mean[at] = own.mean;
        scale[at] = own.scale;
    }
    for (u32 i = j; i < c; i += 32) {
        const float w = __ldg(weight + lane * arena + i), b = __ldg(bias + lane * arena + i);
        const float u = fmaf((__ldg(here + i) - own.mean) * own.scale, w, b);
        y[at * c + i] = u;
        const float earlier = follows ? fmaf((__ldg(here - c + i) - before.mean) * before.scale, w, b) : 0.0f;
        const float s = earlier - u;
        for (u32 k = 0; k < mixes; ++k) {
            const float m = __ldg(mix + lane * arena + (size_t)k * mix_step + i);
            shifted[(((size_t)lane * mixes + k) * rows + row) * c + i] = fmaf(s, m, u);
        }
    }
}

// What the backward kernel below reads and writes of its lane.
struct NormBackward {
    const float *dshifted, *mix, *y, *x, *mean, *scale, *weight;
    float *du, *dx;
    u32 rows, tokens, c, mixes, mix_step;
};

// Gradient of y through the mixes, in their order; the next row's part last.
__device__ __forceinline__ float shift_gradient(const NormBackward& a, u32 row, u32 i) {
    const bool has_next = (row + 1) % a.tokens != 0;
    float own = 0.0f, next = 0.0f;
    for (u32 k = 0; k < a.mixes; ++k) {
        const float m = __ldg(a.mix + (size_t)k * a.mix_step + i);
        const float* d = a.dshifted + ((size_t)k * a.rows + row) * a.c + i;
        const float of_own = __ldg(d), of_next = has_next ? __ldg(d + a.c) : 0.0f;
        own = k == 0 ? of_own * (1.0f - m) : fmaf(of_own, 1.0f - m, own);
        next = k == 0 ? of_next * m : fmaf(of_next, m, next);
    }
    return has_next ? own + next : own;
}

// Sum (S3) over rows first..last of column i: for v < mixes of the v-th mix's gradient, then of the norm's weight, then of its bias.
__device__ __forceinline__ float norm_column(const NormBackward& a, u32 v, u32 i, u32 first, u32 last) {
    float sum = 0.0f;
    if (v < a.mixes) {
#pragma unroll 8
        for (u32 row = first; row < last; ++row) {
            const float* here = a.y + (size_t)row * a.c + i;
            const float before = row % a.tokens == 0 ? 0.0f : __ldg(here - a.c);
            sum = fmaf(__ldg(a.dshifted + ((size_t)v * a.rows + row) * a.c + i), before - __ldg(here), sum);
        }
    } else if (v == a.mixes) {
#pragma unroll 8
        for (u32 row = first; row < last; ++row) {
            const size_t at = (size_t)row * a.c + i;
            sum = fmaf(a.du[at], (__ldg(a.x + at) - __ldg(a.mean + row)) * __ldg(a.scale + row), sum);
        }
    } else {
#pragma unroll 8
        for (u32 row = first; row < last; ++row) sum = sum + a.du[(size_t)row * a.c + i];
    }
    return sum;
}

// Gradient of a row's x from that of its y, added to what passes the norm by, or in its place. One warp.
__device__ __forceinline__ void norm_row(const NormBackward& a, u32 row, u32 j, bool onto) {
    const float m = a.mean[row], rs = a.scale[row];
    const size_t at = (size_t)row * a.c;
    float p1 = 0.0f, p2 = 0.0f;
    for (u32 i = j; i < a.c; i += 32) {
        const float g = a.du[at + i] * __ldg(a.weight + i);
        const float xhat = (__ldg(a.x + at + i) - m) * rs;
        p1 = p1 + g;
        p2 = fmaf(g, xhat, p2);
    }
    const float c1 = __fdiv_rn(fold_row(p1), (float)a.c);
    const float c2 = __fdiv_rn(fold_row(p2), (float)a.c);
    for (u32 i = j; i < a.c; i += 32) {
        const float g = a.du[at + i] * __ldg(a.weight + i);
        const float xhat = (__ldg(a.x + at + i) - m) * rs;
        a.dx[at + i] = (onto ? a.dx[at + i] : 0.0f) + rs * fmaf(-xhat, c2, g - c1);
    }
}

// From the gradients of the shifted rows, or where there are no mixes from that of y in du: the gradient of x, and the first half
// of those of mixes, weight and bias (S3). One block of 1024 threads a chunk of 32 rows. Overwrites du and chunks.
extern "C" __global__ void __launch_bounds__(1024) layer_norm_backward(
    const int* lanes,       // [grid z]
    const float* dshifted,  // [L,mixes,R,C]
    const float* mix,       // mixes vectors [C] in the arena, mix_step floats apart
    const float* y,         // [L,R,C]
    const float* x,         // [L,R,C]
    const float* mean,      // [L,R]
    const float* scale,     // [L,R]
    const float* weight,    // [C] in the arena
    u64 arena,
    float* du,              // [L,R,C] gradient of y
    float* dx,              // [L,R,C] added to where onto is not 0
    float* chunks,          // [L,chunks,vectors,C]
    unsigned rows, unsigned tokens, unsigned c, unsigned mixes, unsigned mix_step,
    unsigned vectors, unsigned mix_slot, unsigned norm_slot, unsigned onto) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const size_t line = (size_t)lane * rows, all = line * c;
    const NormBackward a = {dshifted + all * mixes, mix + lane * arena, y + all, x + all, mean + line, scale + line,
                            weight + lane * arena, du + all, dx + all, rows, tokens, c, mixes, mix_step};
    const u32 first = blockIdx.x * COLUMN_CHUNK, last = min(first + COLUMN_CHUNK, rows);
    if (mixes > 0) {
        for (u32 e = threadIdx.x; e < (last - first) * c; e += blockDim.x) {
            a.du[(size_t)first * c + e] = shift_gradient(a, first + e / c, e % c);
        }
        __syncthreads();
    }
    for (u32 row = first + threadIdx.x / 32; row < last; row += blockDim.x / 32) norm_row(a, row, threadIdx.x % 32, onto);
    float* to = chunks + ((size_t)lane * gridDim.x + blockIdx.x) * vectors * c;
    for (u32 e = threadIdx.x; e < (mixes + 2) * c; e += blockDim.x) {
        const u32 v = e / c, i = e % c;
        const u32 slot = v < mixes ? mix_slot + v : norm_slot + v - mixes;
        to[(size_t)slot * c + i] = norm_column(a, v, i, first, last);
    }
}

// Second half of every S3: the chunks' sums added in order, for all vectors of C channels. One thread a column. Overwrites the
// gradients, or adds to them where add is not 0.
extern "C" __global__ void __launch_bounds__(128) column_totals(
    const int* lanes,        // [grid z]
    const float* chunks,     // [L,chunks,vectors,C]
    const unsigned* starts,  // [vectors] where each begins in the arena
    float* gradients,        // [L] arenas
    u64 arena,
    unsigned chunk_count, unsigned vectors, unsigned c, unsigned add) {
    const int lane = lanes[blockIdx.z];
    const u32 i = blockIdx.x * 128 + threadIdx.x, v = blockIdx.y;
    if (lane < 0 || i >= c) return;
    const size_t all = (size_t)vectors * c;
    const float* from = chunks + (size_t)lane * chunk_count * all + (size_t)v * c + i;
    float total = from[0];
#pragma unroll 8
    for (u32 chunk = 1; chunk < chunk_count; ++chunk) total = total + from[chunk * all];
    float* to = gradients + lane * arena + starts[v] + i;
    *to = add ? *to + total : total;
}
