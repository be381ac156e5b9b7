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

// One tile of out = A B, at row0 and col0, from terms from..to (from: a multiple of the chunk). A thread holds TM x 4 outputs: rows in
// groups of up to 4 neighbours, the groups BM / (TM / 4) apart. BK terms at a time lie in shared memory; those of the next turn are on
// their way meanwhile. Terms beyond K are skipped, not added as zeros, which could turn a -0 into +0. A_COLUMNS: a is stored [K,M];
// B_ROWS: b is stored [N,K].
template <int BM, int BN, int BK, int TM, bool A_COLUMNS, bool B_ROWS>
__device__ __forceinline__ void product_tile(
    Operands o, u32 row0, u32 col0, u32 m, u32 n, u32 from, u32 to, Finish finish) {
    constexpr int ACROSS = BN / 4, THREADS = (BM / TM) * ACROSS;
    constexpr int A_LOADS = BM * BK / THREADS, B_LOADS = BN * BK / THREADS;
    constexpr int GROUP = TM < 4 ? TM : 4, GROUPS = TM / GROUP, APART = BM / GROUPS;
    __shared__ __align__(16) float as[BK][BM + 4];
    __shared__ __align__(16) float bs[BK][BN + 4];
    const int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
    // What a thread brings: from line `a_line` on, every A_STEP-th, at place `a_place` of a line as it is stored.
    constexpr int A_WIDE = A_COLUMNS ? BM : BK, A_STEP = THREADS / A_WIDE;
    constexpr int B_WIDE = B_ROWS ? BK : BN, B_STEP = THREADS / B_WIDE;
    const u32 a_place = threadIdx.x % A_WIDE, a_line = threadIdx.x / A_WIDE;
    const u32 b_place = threadIdx.x % B_WIDE, b_line = threadIdx.x / B_WIDE;
    float a_next[A_LOADS], b_next[B_LOADS];
    auto fetch = [&](u32 k0) {
        const u32 a_x = a_place + (A_COLUMNS ? row0 : k0), a_y = a_line + (A_COLUMNS ? k0 : row0);
        const u32 a_wide = A_COLUMNS ? m : to, a_high = A_COLUMNS ? to : m;
        const float* a = o.a + (size_t)a_y * o.a_row + a_x;
        const size_t a_jump = (size_t)A_STEP * o.a_row;
#pragma unroll
        for (int l = 0; l < A_LOADS; ++l) {
            a_next[l] = a_x < a_wide && a_y + l * A_STEP < a_high ? *a : 0.0f;
            a += a_jump;
        }
        const u32 b_x = b_place + (B_ROWS ? k0 : col0), b_y = b_line + (B_ROWS ? col0 : k0);
        const u32 b_wide = B_ROWS ? to : n, b_high = B_ROWS ? n : to;
        const float* b = o.b + (size_t)b_y * o.b_row + b_x;
        const size_t b_jump = (size_t)B_STEP * o.b_row;
#pragma unroll
        for (int l = 0; l < B_LOADS; ++l) {
            b_next[l] = b_x < b_wide && b_y + l * B_STEP < b_high ? *b : 0.0f;
            b += b_jump;
        }
    };
    float total[TM][4] = {}, acc[TM][4] = {};
    auto step = [&](int kk) {
        float x[TM];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            const float* at = &as[kk][g * APART + GROUP * ty];
            if (GROUP == 4) {
                const float4 four = *reinterpret_cast<const float4*>(at);
                x[g * GROUP] = four.x, x[g * GROUP + 1] = four.y;
                x[g * GROUP + GROUP / 2] = four.z, x[g * GROUP + GROUP - 1] = four.w;
            } else {
                const float2 two = *reinterpret_cast<const float2*>(at);
                x[0] = two.x, x[GROUP - 1] = two.y;
            }
        }
        const float4 y4 = *reinterpret_cast<const float4*>(&bs[kk][4 * tx]);
        const float y[4] = {y4.x, y4.y, y4.z, y4.w};
#pragma unroll
        for (int i = 0; i < TM; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(x[i], y[j], acc[i][j]);
        }
    };
    fetch(from);
    for (u32 k0 = from; k0 < to; k0 += BK) {
        __syncthreads();
#pragma unroll
        for (int l = 0; l < A_LOADS; ++l) {
            const u32 line = a_line + l * A_STEP;
            as[A_COLUMNS ? line : a_place][A_COLUMNS ? a_place : line] = a_next[l];
        }
#pragma unroll
        for (int l = 0; l < B_LOADS; ++l) {
            const u32 line = b_line + l * B_STEP;
            bs[B_ROWS ? b_place : line][B_ROWS ? line : b_place] = b_next[l];
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
        for (int i = 0; i < TM; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                total[i][j] = first ? acc[i][j] : total[i][j] + acc[i][j];
                acc[i][j] = 0.0f;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const u32 row = row0 + i / GROUP * APART + GROUP * ty + i % GROUP, col = col0 + 4 * tx + j;
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
#define PRODUCT(NAME, BM, BN, BK, TM, A_COLUMNS, B_ROWS)                                                             \
    extern "C" __global__ void __launch_bounds__(BM / TM * BN / 4, 3) NAME(                                             \
        const int* lanes, const float* a, const float* b, const float* base, float* out, u64 a_lane, u64 b_lane,     \
        u64 out_lane,                                                                                                \
        unsigned m, unsigned n, unsigned k, unsigned add) {                                                          \
        const int lane = lanes[blockIdx.z];                                                                          \
        if (lane < 0) return;                                                                                        \
        const Operands o = {a + lane * a_lane, b + lane * b_lane, base + lane * out_lane, out + lane * out_lane,     \
                            A_COLUMNS ? m : k, B_ROWS ? k : n, n};                                                   \
        product_tile<BM, BN, BK, TM, A_COLUMNS, B_ROWS>(                                                             \
            o, blockIdx.y * BM, blockIdx.x * BN, m, n, 0, k, add ? ADD : SET);                                       \
    }
#define PRODUCTS(SIZE, BM, BN, BK, TM)                              \
    PRODUCT(product_rows_##SIZE, BM, BN, BK, TM, false, false)      \
    PRODUCT(product_transposed_##SIZE, BM, BN, BK, TM, false, true) \
    PRODUCT(product_columns_##SIZE, BM, BN, BK, TM, true, false)

// Both have blocks of 128 threads. The small tile is for few lanes, where one block's time is the product's.
PRODUCTS(wide, 64, 64, 8, 8)
PRODUCTS(small, 32, 32, 64, 2)
