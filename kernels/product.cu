// Matrix products of shape S1: k ascending with fused multiply-adds, in chunks of 128 that are added in order.

// What happens to a finished product.
enum Finish { SET, ADD, SETTLE };  // out = ab; out = base + ab; out = ab + 0, which gives a zero one sign

// Places and leading dimensions (floats from row to row as stored) of a product's operands.
struct Operands {
    const float* a;
    const float* b;
    const float* base;  // may be out
    float* out;
    u32 a_row, b_row, out_row;
};

// One tile of out = A B, at row0 and col0, from terms from..to (from: a multiple of the chunk). A thread holds 4 x 4 neighbouring
// outputs. BK terms at a time lie in shared memory; those of the next turn are on their way meanwhile. Terms beyond K are skipped, not
// added as zeros, which could turn a -0 into +0. A_COLUMNS: a is stored [K,M]; B_ROWS: b is stored [N,K].
template <int BM, int BN, int BK, bool A_COLUMNS, bool B_ROWS>
__device__ __forceinline__ void product_tile(
    Operands o, u32 row0, u32 col0, u32 m, u32 n, u32 from, u32 to, Finish finish) {
    constexpr int ACROSS = BN / 4, THREADS = (BM / 4) * ACROSS;
    constexpr int A_LOADS = BM * BK / THREADS, B_LOADS = BN * BK / THREADS;
    __shared__ __align__(16) float as[BK][BM + 4];
    __shared__ __align__(16) float bs[BK][BN + 4];
    const int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
    float a_next[A_LOADS], b_next[B_LOADS];
    auto fetch = [&](u32 k0) {
#pragma unroll
        for (int l = 0; l < A_LOADS; ++l) {
            const int i = threadIdx.x + l * THREADS;
            const u32 row = row0 + (A_COLUMNS ? i % BM : i / BK), k = k0 + (A_COLUMNS ? i / BM : i % BK);
            const size_t at = A_COLUMNS ? (size_t)k * o.a_row + row : (size_t)row * o.a_row + k;
            a_next[l] = row < m && k < to ? o.a[at] : 0.0f;
        }
#pragma unroll
        for (int l = 0; l < B_LOADS; ++l) {
            const int i = threadIdx.x + l * THREADS;
            const u32 col = col0 + (B_ROWS ? i / BK : i % BN), k = k0 + (B_ROWS ? i % BK : i / BN);
            const size_t at = B_ROWS ? (size_t)col * o.b_row + k : (size_t)k * o.b_row + col;
            b_next[l] = col < n && k < to ? o.b[at] : 0.0f;
        }
    };
    float total[4][4] = {}, acc[4][4] = {};
    auto step = [&](int kk) {
        const float4 x4 = *reinterpret_cast<const float4*>(&as[kk][4 * ty]);
        const float4 y4 = *reinterpret_cast<const float4*>(&bs[kk][4 * tx]);
        const float x[4] = {x4.x, x4.y, x4.z, x4.w}, y[4] = {y4.x, y4.y, y4.z, y4.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(x[i], y[j], acc[i][j]);
        }
    };
    fetch(from);
    for (u32 k0 = from; k0 < to; k0 += BK) {
        __syncthreads();
#pragma unroll
        for (int l = 0; l < A_LOADS; ++l) {
            const int i = threadIdx.x + l * THREADS;
            as[A_COLUMNS ? i / BM : i % BK][A_COLUMNS ? i % BM : i / BK] = a_next[l];
        }
#pragma unroll
        for (int l = 0; l < B_LOADS; ++l) {
            const int i = threadIdx.x + l * THREADS;
            bs[B_ROWS ? i % BK : i / BN][B_ROWS ? i / BK : i % BN] = b_next[l];
        }
        __syncthreads();
        const u32 next = k0 + BK;
        if (next < to) fetch(next);
        if (next <= to) {
#pragma unroll
            for (int kk = 0; kk < BK; ++kk) step(kk);
        } else {
            for (u32 kk = 0; kk < to - k0; ++kk) step(kk);
        }
        if (next < to && next % PRODUCT_CHUNK != 0) continue;
        // A chunk is whole: the first is the total so far, the others are added to it.
        const bool first = k0 < from + PRODUCT_CHUNK;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                total[i][j] = first ? acc[i][j] : total[i][j] + acc[i][j];
                acc[i][j] = 0.0f;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const u32 row = row0 + 4 * ty + i, col = col0 + 4 * tx + j;
            if (row < m && col < n) {
                const size_t place = (size_t)row * o.out_row + col;
                const float sum = total[i][j];
                o.out[place] = finish == ADD ? o.base[place] + sum : finish == SETTLE ? sum + 0.0f : sum;
            }
        }
    }
}

// out[l] = a[l] b[l], or base[l] + a[l] b[l] where add is not 0, for every lane; lane strides in floats, base's is out's. Three kinds: rows
// (a [M,K], b [K,N]), transposed (a [M,K], b [N,K]: dX = dY W^T) and columns (a [K,M], b [K,N]: dW = X^T dY).
#define PRODUCT(NAME, BM, BN, BK, A_COLUMNS, B_ROWS)                                                                 \
    extern "C" __global__ void __launch_bounds__(BM * BN / 16) NAME(                                                 \
        const int* lanes, const float* a, const float* b, const float* base, float* out, u64 a_lane, u64 b_lane,     \
        u64 out_lane,                                                                                                \
        unsigned m, unsigned n, unsigned k, unsigned add) {                                                          \
        const int lane = lanes[blockIdx.z];                                                                          \
        if (lane < 0) return;                                                                                        \
        const Operands o = {a + lane * a_lane, b + lane * b_lane, base + lane * out_lane, out + lane * out_lane,     \
                            A_COLUMNS ? m : k, B_ROWS ? k : n, n};                                                   \
        product_tile<BM, BN, BK, A_COLUMNS, B_ROWS>(                                                                 \
            o, blockIdx.y * BM, blockIdx.x * BN, m, n, 0, k, add ? ADD : SET);                                       \
    }
#define PRODUCTS(SIZE, BM, BN, BK)                              \
    PRODUCT(product_rows_##SIZE, BM, BN, BK, false, false)      \
    PRODUCT(product_transposed_##SIZE, BM, BN, BK, false, true) \
    PRODUCT(product_columns_##SIZE, BM, BN, BK, true, false)

PRODUCTS(wide, 64, 64, 16)
PRODUCTS(small, 32, 32, 16)
