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

// Channels of a row that a thread of its warp keeps: rows of up to 32 times as many are read once.
#define ROW_HELD 4
#define EACH_HELD _Pragma("unroll") for (int l = 0; l < ROW_HELD; ++l)

// A row of at most 32 ROW_HELD channels, xhat in place of x.
struct HeldRow {
    float at[ROW_HELD];

    __device__ __forceinline__ void read(const float* from, u32 c, u32 j) {
        EACH_HELD at[l] = j + 32 * l < c ? __ldg(from + j + 32 * l) : 0.0f;
    }

    __device__ __forceinline__ RowNorm normalize(u32 c, u32 j) {
        RowNorm out;
        float p = 0.0f;
        EACH_HELD if (j + 32 * l < c) p = p + at[l];
        out.mean = __fdiv_rn(fold_row(p), (float)c);
        p = 0.0f;
        EACH_HELD {
            at[l] = at[l] - out.mean;
            if (j + 32 * l < c) p = fmaf(at[l], at[l], p);
        }
        out.scale = __fdiv_rn(1.0f, __fsqrt_rn(__fdiv_rn(fold_row(p), (float)c) + 1e-5f));
        EACH_HELD at[l] = at[l] * out.scale;
        return out;
    }
};

// y = xhat w + b with xhat = (x - mean) scale; shifted[k] = y + (y before - y) mix[k]. One warp for `each` rows that follow one another, and
// for the row before them once more; 4 warps a block. Overwrites y, mean, scale and shifted.
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
    unsigned rows, unsigned tokens, unsigned c, unsigned mixes, unsigned mix_step, unsigned each) {
    const int lane = lanes[blockIdx.z];
    const u32 first = (blockIdx.x * 4 + threadIdx.x / 32) * each, j = threadIdx.x % 32;
    if (lane < 0 || first >= rows) return;
    const u32 last = min(first + each, rows);
    const size_t line = (size_t)lane * rows;
    weight += lane * arena, bias += lane * arena, mix += lane * arena;
    x += line * c, y += line * c, mean += line, scale += line, shifted += line * mixes * c;
    if (c <= 32 * ROW_HELD) {
        float w[ROW_HELD], b[ROW_HELD], before[ROW_HELD] = {};
        HeldRow next;
        next.read(x + (size_t)first * c, c, j);
        EACH_HELD {
            const u32 i = j + 32 * l;
            w[l] = i < c ? __ldg(weight + i) : 0.0f, b[l] = i < c ? __ldg(bias + i) : 0.0f;
        }
        if (mixes > 0 && first % tokens != 0) {
            HeldRow row;
            row.read(x + (size_t)(first - 1) * c, c, j);
            row.normalize(c, j);
            EACH_HELD before[l] = fmaf(row.at[l], w[l], b[l]);
        }
#pragma unroll 1
        for (u32 row = first; row < last; ++row) {
            HeldRow own = next;
            if (row + 1 < last) next.read(x + (size_t)(row + 1) * c, c, j);
            const RowNorm norm = own.normalize(c, j);
            if (j == 0) {
                mean[row] = norm.mean;
                scale[row] = norm.scale;
            }
            const bool follows = row % tokens != 0;
            float s[ROW_HELD];
            EACH_HELD {
                const u32 i = j + 32 * l;
                const float u = fmaf(own.at[l], w[l], b[l]);
                if (i < c) y[(size_t)row * c + i] = u;
                s[l] = (follows ? before[l] : 0.0f) - u;
                before[l] = u;
            }
#pragma unroll 2
            for (u32 k = 0; k < mixes; ++k) {
                EACH_HELD {
                    const u32 i = j + 32 * l;
                    if (i < c) shifted[((size_t)k * rows + row) * c + i] = fmaf(s[l], __ldg(mix + (size_t)k * mix_step + i), before[l]);
                }
            }
        }
        return;
    }
    for (u32 row = first; row < last; ++row) {
        const float* here = x + (size_t)row * c;
        const bool follows = mixes > 0 && row % tokens != 0;
        const RowNorm own = row_norm(here, c, j);
        RowNorm earlier = {0.0f, 0.0f};
        if (follows) earlier = row_norm(here - c, c, j);
        if (j == 0) {
            mean[row] = own.mean;
            scale[row] = own.scale;
        }
        for (u32 i = j; i < c; i += 32) {
            const float w = __ldg(weight + i), b = __ldg(bias + i);
            const float u = fmaf((__ldg(here + i) - own.mean) * own.scale, w, b);
            y[(size_t)row * c + i] = u;
            const float before = follows ? fmaf((__ldg(here - c + i) - earlier.mean) * earlier.scale, w, b) : 0.0f;
            for (u32 k = 0; k < mixes; ++k) {
                const float m = __ldg(mix + (size_t)k * mix_step + i);
                shifted[((size_t)k * rows + row) * c + i] = fmaf(before - u, m, u);
            }
        }
    }
}

// What the backward kernel below reads and writes of its lane.
struct NormBackward {
    const float *dshifted, *mix, *y, *x, *mean, *scale, *weight;
    float *du, *dx;
    u32 rows, tokens, c, mixes, mix_step;
};

// Down one column's rows first..last, all of one chunk: the gradient of y through the mixes, in their order, the next row's part last; and the
// sums (S3) of the gradients of the mixes, of the norm's weight and of its bias, in this order.
template <int MIXES>
__device__ __forceinline__ void norm_column(const NormBackward& a, u32 i, u32 first, u32 last, float (&sums)[MIXES + 2]) {
    float m[MIXES + 1], d[MIXES + 1], before = 0.0f;
    const size_t mix_apart = (size_t)a.rows * a.c;
    const float* from = a.dshifted + (size_t)first * a.c + i;
    u32 token = first % a.tokens;
#pragma unroll
    for (int k = 0; k < MIXES; ++k) {
        m[k] = __ldg(a.mix + (size_t)k * a.mix_step + i);
        d[k] = __ldg(from + k * mix_apart);
    }
#pragma unroll
    for (int k = 0; k < MIXES + 2; ++k) sums[k] = 0.0f;
    if (MIXES > 0 && token > 0) before = __ldg(a.y + (size_t)(first - 1) * a.c + i);
#pragma unroll 8
    for (u32 row = first; row < last; ++row) {
        const size_t at = (size_t)row * a.c + i;
        const float xhat = (__ldg(a.x + at) - __ldg(a.mean + row)) * __ldg(a.scale + row);
        float du;
        if (MIXES > 0) {
            const float here = __ldg(a.y + at), s = before - here;
            const bool has_next = token + 1 != a.tokens;
            float own = 0.0f, next = 0.0f;
            from += a.c;
#pragma unroll
            for (int k = 0; k < MIXES; ++k) {
                const float follows = row + 1 < a.rows ? __ldg(from + k * mix_apart) : 0.0f;
                own = k == 0 ? d[k] * (1.0f - m[k]) : fmaf(d[k], 1.0f - m[k], own);
                next = k == 0 ? follows * m[k] : fmaf(follows, m[k], next);
                sums[k] = fmaf(d[k], s, sums[k]);
                d[k] = follows;
            }
            du = has_next ? own + next : own;
            a.du[at] = du;
            before = has_next ? here : 0.0f;
            token = has_next ? token + 1 : 0;
        } else {
            du = a.du[at];
        }
        sums[MIXES] = fmaf(du, xhat, sums[MIXES]);
        sums[MIXES + 1] = sums[MIXES + 1] + du;
    }
}

template <int MIXES>
__device__ __forceinline__ void norm_columns(const NormBackward& a, u32 first, u32 last, float* to, u32 mix_slot, u32 norm_slot) {
    for (u32 i = threadIdx.x; i < a.c; i += blockDim.x) {
        float sums[MIXES + 2];
        norm_column<MIXES>(a, i, first, last, sums);
#pragma unroll
        for (int k = 0; k < MIXES + 2; ++k) to[(size_t)(k < MIXES ? mix_slot + k : norm_slot + k - MIXES) * a.c + i] = sums[k];
    }
}

// Gradients of the x of ROWS rows, `apart` rows apart, from those of their y, added to what passes the norm by, or in its place. One warp,
// and at most 32 ROW_HELD channels.
template <int ROWS>
__device__ __forceinline__ void held_rows(const NormBackward& a, u32 row, u32 apart, u32 last, u32 j, bool onto) {
    float g[ROWS][ROW_HELD], xhat[ROWS][ROW_HELD], passing[ROWS][ROW_HELD], p1[ROWS], p2[ROWS], rs[ROWS];
#pragma unroll
    for (int z = 0; z < ROWS; ++z) {
        const u32 r = row + z * apart < last ? row + z * apart : row;
        const float m = __ldg(a.mean + r);
        rs[z] = __ldg(a.scale + r);
        EACH_HELD {
            const u32 i = j + 32 * l;
            const size_t at = (size_t)r * a.c + i;
            const bool in = i < a.c;
            g[z][l] = in ? a.du[at] * __ldg(a.weight + i) : 0.0f;
            xhat[z][l] = in ? (__ldg(a.x + at) - m) * rs[z] : 0.0f;
            passing[z][l] = in && onto ? a.dx[at] : 0.0f;
        }
    }
#pragma unroll
    for (int z = 0; z < ROWS; ++z) {
        p1[z] = 0.0f, p2[z] = 0.0f;
        EACH_HELD {
            if (j + 32 * l < a.c) {
                p1[z] = p1[z] + g[z][l];
                p2[z] = fmaf(g[z][l], xhat[z][l], p2[z]);
            }
        }
    }
    for (int h = 16; h > 0; h >>= 1) {
#pragma unroll
        for (int z = 0; z < ROWS; ++z) {
            p1[z] = p1[z] + __shfl_xor_sync(FULL_WARP, p1[z], h);
            p2[z] = p2[z] + __shfl_xor_sync(FULL_WARP, p2[z], h);
        }
    }
#pragma unroll
    for (int z = 0; z < ROWS; ++z) {
        const float c1 = __fdiv_rn(p1[z], (float)a.c), c2 = __fdiv_rn(p2[z], (float)a.c);
        EACH_HELD {
            const u32 i = j + 32 * l;
            if (i < a.c && row + z * apart < last) {
                a.dx[(size_t)(row + z * apart) * a.c + i] = passing[z][l] + rs[z] * fmaf(-xhat[z][l], c2, g[z][l] - c1);
            }
        }
    }
}

// The same for one row of any width.
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
// of those of mixes, weight and bias (S3). One block a chunk of 32 rows. Overwrites du and chunks. There are 0, 1 or 6 mixes.
extern "C" __global__ void __launch_bounds__(128, 3) layer_norm_backward(
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
    float* to = chunks + ((size_t)lane * gridDim.x + blockIdx.x) * vectors * c;
    switch (mixes) {
        case 0: norm_columns<0>(a, first, last, to, mix_slot, norm_slot); break;
        case 1: norm_columns<1>(a, first, last, to, mix_slot, norm_slot); break;
        default: norm_columns<6>(a, first, last, to, mix_slot, norm_slot);
    }
    __syncthreads();
    const u32 warps = blockDim.x / 32, j = threadIdx.x % 32;
    if (c <= 32 * ROW_HELD) {
        for (u32 row = first + threadIdx.x / 32; row < last; row += 4 * warps) held_rows<4>(a, row, warps, last, j, onto);
    } else {
        for (u32 row = first + threadIdx.x / 32; row < last; row += warps) norm_row(a, row, j, onto);
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
