// Token shift: each of a block's inputs is u, mixed with the row before it in its window by a vector of channels.

// out[k] = u + (previous - u) mix[k] for every mix. One thread a channel and row. Overwrites out.
extern "C" __global__ void __launch_bounds__(128) token_shift(
    const int* lanes,  // [grid z]
    const float* u,    // [L,R,C]
    const float* mix,  // mixes vectors [C] in the arena, mix_step floats apart
    u64 arena,
    float* out,        // [L,mixes,R,C]
    unsigned rows, unsigned tokens, unsigned c, unsigned mixes, unsigned mix_step) {
    const int lane = lanes[blockIdx.z];
    const u32 i = blockIdx.x * 128 + threadIdx.x, row = blockIdx.y;
    if (lane < 0 || i >= c) return;
    const float* here = u + ((size_t)lane * rows + row) * c + i;
    const float own = *here;
    const float before = row % tokens == 0 ? 0.0f : *(here - c);
    const float s = before - own;
    for (u32 k = 0; k < mixes; ++k) {
        const float x = mix[lane * arena + (size_t)k * mix_step + i];
        out[(((size_t)lane * mixes + k) * rows + row) * c + i] = fmaf(s, x, own);
    }
}

// Gradient of u through the mixes, in their order; the next row's part last. Overwrites du.
extern "C" __global__ void __launch_bounds__(128) token_shift_backward(
    const int* lanes,   // [grid z]
    const float* dout,  // [L,mixes,R,C]
    const float* mix,   // mixes vectors [C] in the arena, mix_step floats apart
    u64 arena,
    float* du,          // [L,R,C]
    unsigned rows, unsigned tokens, unsigned c, unsigned mixes, unsigned mix_step) {
    const int lane = lanes[blockIdx.z];
    const u32 i = blockIdx.x * 128 + threadIdx.x, row = blockIdx.y;
    if (lane < 0 || i >= c) return;
    const bool has_next = (row + 1) % tokens != 0;
    float own = 0.0f, next = 0.0f;
    for (u32 k = 0; k < mixes; ++k) {
        const float x = mix[lane * arena + (size_t)k * mix_step + i];
        const float* d = dout + (((size_t)lane * mixes + k) * rows + row) * c + i;
        own = k == 0 ? d[0] * (1.0f - x) : fmaf(d[0], 1.0f - x, own);
        if (has_next) next = k == 0 ? d[c] * x : fmaf(d[c], x, next);
    }
    du[((size_t)lane * rows + row) * c + i] = has_next ? own + next : own;
}

// First half of the gradients of the mixes: sums over chunks of 32 rows (S3) of dout (previous - u). Overwrites chunks.
extern "C" __global__ void __launch_bounds__(128) token_shift_columns(
    const int* lanes,   // [grid z]
    const float* dout,  // [L,mixes,R,C]
    const float* u,     // [L,R,C]
    float* chunks,      // [L,chunks,mixes,C]
    unsigned rows, unsigned tokens, unsigned c, unsigned mixes, unsigned chunk_count) {
    const int lane = lanes[blockIdx.z];
    const u32 i = blockIdx.x * 128 + threadIdx.x;
    if (lane < 0 || i >= c) return;
    const u32 chunk = blockIdx.y / mixes, k = blockIdx.y % mixes;
    const u32 first = chunk * COLUMN_CHUNK, last = min(first + COLUMN_CHUNK, rows);
    float sum = 0.0f;
#pragma unroll 8
    for (u32 row = first; row < last; ++row) {
        const float* here = u + ((size_t)lane * rows + row) * c + i;
        const float before = row % tokens == 0 ? 0.0f : *(here - c);
        sum = fmaf(dout[(((size_t)lane * mixes + k) * rows + row) * c + i], before - *here, sum);
    }
    chunks[(((size_t)lane * chunk_count + chunk) * mixes + k) * c + i] = sum;
}
