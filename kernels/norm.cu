// Layer norm over rows of C channels, forward and backward. One warp a row; 8 rows a block of 256 threads.

// y = xhat w + b with xhat = (x - mean) scale. Overwrites y, mean and scale.
extern "C" __global__ void __launch_bounds__(256) layer_norm(
    const int* lanes,     // [grid z]
    const float* x,       // [L,R,C]
    const float* weight,  // [C] in the arena
    const float* bias,    // [C] in the arena
    u64 arena,
    float* y,             // [L,R,C]
    float* mean,          // [L,R]
    float* scale,         // [L,R] 1/sqrt(variance + 1e-5)
    unsigned rows, unsigned c) {
    const int lane = lanes[blockIdx.z];
    const u32 row = blockIdx.x * 8 + threadIdx.x / 32, j = threadIdx.x % 32;
    if (lane < 0 || row >= rows) return;
    const size_t at = (size_t)lane * rows + row;
    const float* from = x + at * c;
    float p = 0.0f;
    for (u32 i = j; i < c; i += 32) p = p + from[i];
    const float m = __fdiv_rn(fold_row(p), (float)c);
    p = 0.0f;
    for (u32 i = j; i < c; i += 32) {
        const float d = from[i] - m;
        p = fmaf(d, d, p);
    }
    const float variance = __fdiv_rn(fold_row(p), (float)c);
    const float rs = __fdiv_rn(1.0f, __fsqrt_rn(variance + 1e-5f));
    const float* w = weight + lane * arena;
    const float* b = bias + lane * arena;
    for (u32 i = j; i < c; i += 32) y[at * c + i] = fmaf((from[i] - m) * rs, w[i], b[i]);
    if (j == 0) {
        mean[at] = m;
        scale[at] = rs;
    }
}

// Gradient of x, added to dx, which holds the gradient that passes the norm by.
extern "C" __global__ void __launch_bounds__(256) layer_norm_backward(
    const int* lanes,     // [grid z]
    const float* dy,      // [L,R,C]
    const float* x,       // [L,R,C]
    const float* mean,    // [L,R]
    const float* scale,   // [L,R]
    const float* weight,  // [C] in the arena
    u64 arena,
    float* dx,            // [L,R,C] added to
    unsigned rows, unsigned c) {
    const int lane = lanes[blockIdx.z];
    const u32 row = blockIdx.x * 8 + threadIdx.x / 32, j = threadIdx.x % 32;
    if (lane < 0 || row >= rows) return;
    const size_t at = (size_t)lane * rows + row;
    const float m = mean[at], rs = scale[at];
    const float* w = weight + lane * arena;
    float p1 = 0.0f, p2 = 0.0f;
    for (u32 i = j; i < c; i += 32) {
        const float g = dy[at * c + i] * w[i];
        const float xhat = (x[at * c + i] - m) * rs;
        p1 = p1 + g;
        p2 = fmaf(g, xhat, p2);
    }
    const float c1 = __fdiv_rn(fold_row(p1), (float)c);
    const float c2 = __fdiv_rn(fold_row(p2), (float)c);
    for (u32 i = j; i < c; i += 32) {
        const float g = dy[at * c + i] * w[i];
        const float xhat = (x[at * c + i] - m) * rs;
        dx[at * c + i] = dx[at * c + i] + rs * fmaf(-xhat, c2, g - c1);
    }
}

// First half of the gradients of weight and bias: sums over chunks of 32 rows (S3). One thread a column and chunk.
// Overwrites chunks.
extern "C" __global__ void __launch_bounds__(128) layer_norm_columns(
    const int* lanes,    // [grid z]
    const float* dy,     // [L,R,C]
    const float* x,      // [L,R,C]
    const float* mean,   // [L,R]
    const float* scale,  // [L,R]
    float* chunks,       // [L,chunks,2,C]: of dy xhat, of dy
    unsigned rows, unsigned c) {
    const int lane = lanes[blockIdx.z];
    const u32 i = blockIdx.x * 128 + threadIdx.x;
    if (lane < 0 || i >= c) return;
    const u32 first = blockIdx.y * COLUMN_CHUNK, last = min(first + COLUMN_CHUNK, rows);
    float dw = 0.0f, db = 0.0f;
#pragma unroll 8
    for (u32 row = first; row < last; ++row) {
        const size_t at = (size_t)lane * rows + row;
        const float d = dy[at * c + i];
        dw = fmaf(d, (x[at * c + i] - mean[at]) * scale[at], dw);
        db = db + d;
    }
    float* to = chunks + ((size_t)lane * gridDim.y + blockIdx.y) * 2 * c;
    to[i] = dw;
    to[c + i] = db;
}

// Second half of every S3: the chunks' sums added in order, for `count` vectors of `width` columns, which go to `out`
// `step` floats apart. Overwrites out, or adds to it where add is not 0.
extern "C" __global__ void __launch_bounds__(128) column_totals(
    const int* lanes,     // [grid z]
    const float* chunks,  // [L,chunks,count,width]
    float* out,           // count vectors in the arena
    u64 arena,
    unsigned chunk_count, unsigned count, unsigned width, unsigned step, unsigned add) {
    const int lane = lanes[blockIdx.z];
    const u32 i = blockIdx.x * 128 + threadIdx.x;
    if (lane < 0 || i >= width) return;
    const u32 which = blockIdx.y;
    const size_t all = (size_t)count * width;
    const float* from = chunks + (size_t)lane * chunk_count * all + (size_t)which * width + i;
    float total = from[0];
    for (u32 chunk = 1; chunk < chunk_count; ++chunk) total = total + from[chunk * all];
    float* to = out + lane * arena + (size_t)which * step + i;
    *to = add ? *to + total : total;
}
