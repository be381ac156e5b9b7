// Batches of matrix products, each with its own shape and finish, in one launch.

#define PRODUCT_MEMBERS 16

// How a member's operands lie: a [M,K] and b [K,N]; or b [N,K] (dX = dY W^T); or a [K,M] (dW = X^T dY).
enum Kind { ROWS, TRANSPOSED, COLUMNS };

// A product, or a further term of the one before it: src/backend/cuda/ops/product.rs has the same fields.
struct ProductMember {
    const float* a;
    const float* b;
    float* with;
    float* out;
    u64 a_lane, b_lane, out_lane;  // floats from lane to lane; with's is out's
    u32 m, n, k;
    u32 first;   // its first block; all ones in a further term
    u32 across;  // tiles across
    u8 kind, finish;
    u8 more;     // whether the next member is added to out when this one is done
    u8 shape;    // of tiles: 0 square, 1 narrow, 2 flat
};
struct ProductBatch {
    u32 count, fours;  // members; whether all operands can be read in fours
    ProductMember members[PRODUCT_MEMBERS];
};
static_assert(sizeof(ProductMember) == 80 && sizeof(ProductBatch) == 8 + 80 * PRODUCT_MEMBERS, "as in ops/product.rs");

// The member whose tile this block forms.
__device__ __forceinline__ u32 member_of_block(const ProductBatch& batch) {
    u32 i = batch.count - 1;
    while (batch.members[i].first > blockIdx.x) --i;
    return i;
}

__device__ __forceinline__ Operands operands(const ProductMember& p, int lane) {
    const Operands o = {p.a + lane * p.a_lane, p.b + lane * p.b_lane, p.with + lane * p.out_lane, p.out + lane * p.out_lane,
                        p.kind == COLUMNS ? p.m : p.k, p.kind == TRANSPOSED ? p.k : p.n, p.n};
    return o;
}

template <class T>
__device__ __forceinline__ Spot spot(const ProductMember& p) {
    const u32 tile = blockIdx.x - p.first;
    const Spot s = {tile / p.across * T::BM, tile % p.across * T::BN, p.m, p.n};
    return s;
}

// ---- For few lanes, where one block's time is the product's: small tiles, whose chunks are shared by groups of threads.

#define SPLIT 4
// Operands are read in fours, 32 terms at a time, or one by one, 16 at a time.
template <bool FOUR>
struct SmallTile : Tile<32, 32, FOUR ? 32 : 16, 4, 4> {
    static constexpr int PART = (FOUR ? 32 : 16) * (32 + 4 + 32 + 4);
};

// A group forms every SPLIT-th chunk's sum; the first adds them in order.
template <bool A_COLUMNS, bool B_ROWS, bool FOUR>
__device__ __forceinline__ void small_sum(float (&total)[4][4], float* shared, const Operands& o, const Spot& s, u32 k) {
    typedef SmallTile<FOUR> T;
    const int t = threadIdx.x % T::THREADS, group = threadIdx.x / T::THREADS;
    float* own = shared + group * T::PART;
    auto sync = [group] { asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(T::THREADS) : "memory"); };
    const u32 chunks = (k + PRODUCT_CHUNK - 1) / PRODUCT_CHUNK;
    for (u32 round = 0; round < chunks; round += SPLIT) {
        float acc[4][4];
        const u32 from = (round + group) * PRODUCT_CHUNK;
        if (from < k) {
            chunk_sum<T, A_COLUMNS, B_ROWS, FOUR>(
                acc, o, s, from, min(from + PRODUCT_CHUNK, k), own, own + T::BK * T::A_LINE, t, sync);
        }
        if (group == 0) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) total[i][j] = round == 0 ? acc[i][j] : total[i][j] + acc[i][j];
            }
        }
        if (chunks == 1) break;
        if (group > 0 && from < k) {
            sync();
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                *reinterpret_cast<float4*>(own + 4 * (i * T::THREADS + t)) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
            }
        }
        __syncthreads();
        if (group == 0) {
#pragma unroll
            for (int g = 1; g < SPLIT; ++g) {
                if (round + g >= chunks) break;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float other[4];
                    take<4>(other, shared + g * T::PART + 4 * (i * T::THREADS + t));
#pragma unroll
                    for (int j = 0; j < 4; ++j) total[i][j] = total[i][j] + other[j];
                }
            }
        }
        __syncthreads();
    }
}

template <bool FOUR>
__device__ __forceinline__ void small_product(const ProductBatch& batch, float* shared, int lane) {
    u32 i = member_of_block(batch);
    const Spot s = spot<SmallTile<FOUR>>(batch.members[i]);
    Finish finish = (Finish)batch.members[i].finish;
    while (true) {
        const ProductMember& p = batch.members[i];
        Operands o = operands(p, lane);
        float total[4][4];
        switch (p.kind) {
            case ROWS: small_sum<false, false, FOUR>(total, shared, o, s, p.k); break;
            case TRANSPOSED: small_sum<false, true, FOUR>(total, shared, o, s, p.k); break;
            default: small_sum<true, false, FOUR>(total, shared, o, s, p.k);
        }
        if (threadIdx.x < SmallTile<FOUR>::THREADS) write_tile<SmallTile<FOUR>, FOUR>(total, o, s, finish, threadIdx.x);
        if (!p.more) return;
        ++i;
        finish = (Finish)batch.members[i].finish;
    }
}

extern "C" __global__ void __launch_bounds__(SPLIT * 64, 2) product_small(
    const int* lanes,  // [grid z]
    ProductBatch batch) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    __shared__ __align__(16) float shared[SPLIT * SmallTile<true>::PART];
    small_product<true>(batch, shared, lane);
}

extern "C" __global__ void __launch_bounds__(SPLIT * 64, 2) product_odd(
    const int* lanes,  // [grid z]
    ProductBatch batch) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    __shared__ __align__(16) float shared[SPLIT * SmallTile<false>::PART];
    small_product<false>(batch, shared, lane);
}

// ---- For many lanes: large tiles, operands read in fours, two buffers.

// Floats of two buffers.
#define WIDE_BUFFERS(BM, BN) (2 * 8 * (BM + BN + 8))

// The sums of a tile in registers. Those of chunks before the last lie in `totals`, each thread's in its own places.
template <class T, bool A_COLUMNS, bool B_ROWS>
__device__ __forceinline__ void wide_sum(
    float (&acc)[T::TM][T::TN], float* shared, float4* totals, const Operands& o, const Spot& s, u32 k) {
    constexpr int BUFFER = T::BK * (T::A_LINE + T::B_LINE), B_AT = T::BK * T::A_LINE;
    const int t = threadIdx.x;
    Carried<T::BM, T::BK, T::THREADS, !A_COLUMNS, true> a;
    Carried<T::BN, T::BK, T::THREADS, B_ROWS, true> b;
    auto fetch = [&](u32 k0) {
        a.fetch(o.a, o.a_row, s.row0, s.m, k0, k, t);
        b.fetch(o.b, o.b_row, s.col0, s.n, k0, k, t);
    };
    auto store = [&](float* to) {
        a.store(to, t);
        b.store(to + B_AT, t);
    };
    float *now = shared, *other = shared + BUFFER;
    fetch(0);
    __syncthreads();
    store(now);
    for (u32 k0 = 0; k0 < k; k0 += T::BK) {
        __syncthreads();
        const u32 next = k0 + T::BK;
        if (next < k) fetch(next);
        if (k0 % PRODUCT_CHUNK == 0) {
#pragma unroll
            for (int i = 0; i < T::TM; ++i) {
#pragma unroll
                for (int j = 0; j < T::TN; ++j) acc[i][j] = 0.0f;
            }
        }
        if (next <= k) {
#pragma unroll
            for (int kk = 0; kk < T::BK; ++kk) add_term<T>(acc, now + kk * T::A_LINE, now + B_AT + kk * T::B_LINE, t);
        } else {
#pragma unroll 1
            for (u32 kk = 0; kk < k - k0; ++kk) add_term<T>(acc, now + kk * T::A_LINE, now + B_AT + kk * T::B_LINE, t);
        }
        if (next < k) store(other);
        float* swap = now;
        now = other;
        other = swap;
        if (k <= PRODUCT_CHUNK || (next < k && next % PRODUCT_CHUNK != 0)) continue;
        // A chunk is whole: the first is the total so far, the others are added to it.
        const bool first = k0 < PRODUCT_CHUNK, last = next >= k;
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int j = 0; j < T::TN; j += 4) {
                float4* at = totals + (i * T::TN + j) / 4 * T::THREADS + t;
                if (!first) {
                    const float4 sum = *at;
                    acc[i][j] = sum.x + acc[i][j], acc[i][j + 1] = sum.y + acc[i][j + 1];
                    acc[i][j + 2] = sum.z + acc[i][j + 2], acc[i][j + 3] = sum.w + acc[i][j + 3];
                }
                if (!last) *at = make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
            }
        }
    }
}

template <class T>
__device__ __forceinline__ void wide_product(const ProductBatch& batch, u32 i, float* shared, float4* totals, int lane) {
    const Spot s = spot<T>(batch.members[i]);
    while (true) {
        const ProductMember& p = batch.members[i];
        const Operands o = operands(p, lane);
        float acc[T::TM][T::TN];
        switch (p.kind) {
            case ROWS: wide_sum<T, false, false>(acc, shared, totals, o, s, p.k); break;
            case TRANSPOSED: wide_sum<T, false, true>(acc, shared, totals, o, s, p.k); break;
            default: wide_sum<T, true, false>(acc, shared, totals, o, s, p.k);
        }
        write_tile<T, true>(acc, o, s, (Finish)p.finish, threadIdx.x);
        if (!p.more) return;
        ++i;
    }
}

extern "C" __global__ void __launch_bounds__(128, 4) product_wide(
    const int* lanes,  // [grid z]
    ProductBatch batch) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    __shared__ __align__(16) float shared[WIDE_BUFFERS(128, 64)];
    __shared__ float4 totals[128 * 64 / 4];
    const u32 i = member_of_block(batch);
    switch (batch.members[i].shape) {
        case 0: wide_product<Tile<128, 64, 8, 8, 8>>(batch, i, shared, totals, lane); break;
        case 1: wide_product<Tile<128, 32, 8, 8, 4>>(batch, i, shared, totals, lane); break;
        default: wide_product<Tile<32, 128, 8, 4, 8>>(batch, i, shared, totals, lane);
    }
}

extern "C" __global__ void __launch_bounds__(128, 5) product_medium(
    const int* lanes,  // [grid z]
    ProductBatch batch) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    __shared__ __align__(16) float shared[WIDE_BUFFERS(64, 64)];
    __shared__ float4 totals[64 * 64 / 4];
    const u32 i = member_of_block(batch);
    switch (batch.members[i].shape) {
        case 0: wide_product<Tile<64, 64, 8, 8, 4>>(batch, i, shared, totals, lane); break;
        case 1: wide_product<Tile<64, 32, 8, 4, 4>>(batch, i, shared, totals, lane); break;
        default: wide_product<Tile<32, 64, 8, 4, 4>>(batch, i, shared, totals, lane);
    }
}
