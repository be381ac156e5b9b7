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

// One tile of out = A B, at row0 and col0, from terms from..to (from: a multiple of the chunk). A thread holds TM x TN outputs,
// strided over the tile so that neighbouring threads read neighbouring words. Terms beyond K are skipped, not added as zeros,
// which could turn a -0 into +0. A_COLUMNS: a is stored [K,M]; B_ROWS: b is stored [N,K].
template <int BM, int BN, int BK, int TM, int TN, bool A_COLUMNS, bool B_ROWS>
__device__ __forceinline__ void product_tile(
    Operands o, u32 row0, u32 col0, u32 m, u32 n, u32 from, u32 to, Finish finish) {
    constexpr int ACROSS = BN / TN, THREADS = (BM / TM) * ACROSS;
    __shared__ float as[BK][BM + 1];
    __shared__ float bs[BK][BN + 1];
    const int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
    float total[TM][TN] = {};
    for (u32 chunk = from; chunk < to; chunk += PRODUCT_CHUNK) {
        const u32 end = min(chunk + PRODUCT_CHUNK, to);
        float acc[TM][TN] = {};
        for (u32 k0 = chunk; k0 < end; k0 += BK) {
            const u32 terms = min((u32)BK, end - k0);
            __syncthreads();
            for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
                const u32 mm = A_COLUMNS ? i % BM : i / BK, kk = A_COLUMNS ? i / BM : i % BK;
                const u32 row = row0 + mm, col = k0 + kk;
                const bool in = row < m && kk < terms;
                as[kk][mm] = in ? o.a[A_COLUMNS ? (size_t)col * o.a_row + row : (size_t)row * o.a_row + col] : 0.0f;
            }
            for (int i = threadIdx.x; i < BN * BK; i += THREADS) {
                const u32 nn = B_ROWS ? i / BK : i % BN, kk = B_ROWS ? i % BK : i / BN;
                const u32 col = col0 + nn, row = k0 + kk;
                const bool in = col < n && kk < terms;
                bs[kk][nn] = in ? o.b[B_ROWS ? (size_t)col * o.b_row + row : (size_t)row * o.b_row + col] : 0.0f;
            }
            __syncthreads();
            auto step = [&](int kk) {
                float x[TM], y[TN];
#pragma unroll
                for (int i = 0; i < TM; ++i) x[i] = as[kk][ty + i * (BM / TM)];
#pragma unroll
                for (int j = 0; j < TN; ++j) y[j] = bs[kk][tx + j * ACROSS];
#pragma unroll
                for (int i = 0; i < TM; ++i) {
#pragma unroll
                    for (int j = 0; j < TN; ++j) acc[i][j] = fmaf(x[i], y[j], acc[i][j]);
                }
            };
            if (terms == BK) {
#pragma unroll
                for (int kk = 0; kk < BK; ++kk) step(kk);
            } else {
                for (u32 kk = 0; kk < terms; ++kk) step(kk);
            }
        }
#pragma unroll
        for (int i = 0; i < TM; ++i) {
#pragma unroll
            for (int j = 0; j < TN; ++j) total[i][j] = chunk == from ? acc[i][j] : total[i][j] + acc[i][j];
        }
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const u32 row = row0 + ty + i * (BM / TM), col = col0 + tx + j * ACROSS;
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
#define PRODUCT(NAME, BM, BN, BK, TM, TN, A_COLUMNS, B_ROWS)                                                         \
    extern "C" __global__ void __launch_bounds__((BM / TM) * (BN / TN)) NAME(                                        \
        const int* lanes, const float* a, const float* b, const float* base, float* out, u64 a_lane, u64 b_lane,     \
        u64 out_lane,                                                                                                \
        unsigned m, unsigned n, unsigned k, unsigned add) {                                                          \
        const int lane = lanes[blockIdx.z];                                                                          \
        if (lane < 0) return;                                                                                        \
        const Operands o = {a + lane * a_lane, b + lane * b_lane, base + lane * out_lane, out + lane * out_lane,     \
                            A_COLUMNS ? m : k, B_ROWS ? k : n, n};                                                   \
        product_tile<BM, BN, BK, TM, TN, A_COLUMNS, B_ROWS>(                                                         \
            o, blockIdx.y * BM, blockIdx.x * BN, m, n, 0, k, add ? ADD : SET);                                       \
    }
#define PRODUCTS(SIZE, BM, BN, BK, TM, TN)                              \
    PRODUCT(product_rows_##SIZE, BM, BN, BK, TM, TN, false, false)      \
    PRODUCT(product_transposed_##SIZE, BM, BN, BK, TM, TN, false, true) \
    PRODUCT(product_columns_##SIZE, BM, BN, BK, TM, TN, true, false)

PRODUCTS(wide, 64, 64, 16, 4, 4)
PRODUCTS(small, 32, 32, 32, 2, 2)
