// Batches of matrix products on tensor cores, for chips of compute capability 8.0 and later: precision tf32 and tf32x3. Their arithmetic is in
// docs/arithmetic.md, section 6. Chunks of k are those of S1, and eights of a chunk are taken in order, so that the tiles change no bit.

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

// The nearest TF32 number, ties away from zero.
__device__ __forceinline__ u32 tf32_of(float x) {
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// acc += A B of 16 x 8 and 8 x 8 TF32 numbers, summed in fp32.
__device__ __forceinline__ void tensor_add(float (&acc)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Tiles of BM x BN outputs of four warps, DOWN of them below each other; a warp holds 16 x 8 outputs in each of TM x TN fragments.
template <int BM_, int BN_, int DOWN>
struct TensorTile {
    static constexpr int BM = BM_, BN = BN_, BK = 8, THREADS = 128, PAD = 8;
    static constexpr int TM = BM / DOWN / 16, TN = BN / (4 / DOWN) / 8;
    static constexpr int A_LINE = BM + PAD, B_LINE = BN + PAD;
    // First row and column of a thread's fragments; its value v of one lies at row + v / 2 * 8, column + v % 2.
    static __device__ __forceinline__ int row(int t) { return t / 32 % DOWN * (16 * TM) + t % 32 / 4; }
    static __device__ __forceinline__ int column(int t) { return t / 32 / DOWN * (8 * TN) + t % 4 * 2; }
};

// Adds eight terms, which lie in shared memory as [k, line].
template <class T, bool THREE>
__device__ __forceinline__ void add_eight(float (&acc)[T::TM][T::TN][4], const float* a, const float* b, int t) {
    const int k = t % 4;
    const float* x = a + k * T::A_LINE + T::row(t);
    const float* y = b + k * T::B_LINE + t / 32 / (T::BM / 16 / T::TM) * (8 * T::TN) + t % 32 / 4;
    u32 y_big[T::TN][2], y_small[T::TN][2];
#pragma unroll
    for (int j = 0; j < T::TN; ++j) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
            const float value = y[v * 4 * T::B_LINE + 8 * j];
            y_big[j][v] = tf32_of(value);
            if (THREE) y_small[j][v] = tf32_of(value - __int_as_float((int)y_big[j][v]));
        }
    }
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
        u32 x_big[4], x_small[4];
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            const float value = x[v / 2 * 4 * T::A_LINE + v % 2 * 8 + 16 * i];
            x_big[v] = tf32_of(value);
            if (THREE) x_small[v] = tf32_of(value - __int_as_float((int)x_big[v]));
        }
#pragma unroll
        for (int j = 0; j < T::TN; ++j) {
            if (THREE) {
                tensor_add(acc[i][j], x_small, y_big[j]);
                tensor_add(acc[i][j], x_big, y_small[j]);
            }
            tensor_add(acc[i][j], x_big, y_big[j]);
        }
    }
}

// The sums of a tile. Those of chunks before the last lie in `totals`, each thread's in its own places.
template <class T, bool THREE, bool A_COLUMNS, bool B_ROWS, bool FOUR>
__device__ __forceinline__ void tensor_sum(
    float (&acc)[T::TM][T::TN][4], float* shared, float4* totals, const Operands& o, const Spot& s, u32 k) {
    constexpr int BUFFER = T::BK * (T::A_LINE + T::B_LINE), B_AT = T::BK * T::A_LINE;
    const int t = threadIdx.x;
    Part<T::BM, T::BK, T::THREADS, !A_COLUMNS, FOUR, T::PAD> a;
    Part<T::BN, T::BK, T::THREADS, B_ROWS, FOUR, T::PAD> b;
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
                for (int j = 0; j < T::TN; ++j) acc[i][j][0] = acc[i][j][1] = acc[i][j][2] = acc[i][j][3] = 0.0f;
            }
        }
        add_eight<T, THREE>(acc, now, now + B_AT, t);
        if (next < k) store(other);
        float* swap = now;
        now = other;
        other = swap;
        if (k <= PRODUCT_CHUNK || (next < k && next % PRODUCT_CHUNK != 0)) continue;
        const bool first = k0 < PRODUCT_CHUNK, last = next >= k;
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int j = 0; j < T::TN; ++j) {
                float4* at = totals + (i * T::TN + j) * T::THREADS + t;
                if (!first) {
                    const float4 sum = *at;
                    acc[i][j][0] = sum.x + acc[i][j][0], acc[i][j][1] = sum.y + acc[i][j][1];
                    acc[i][j][2] = sum.z + acc[i][j][2], acc[i][j][3] = sum.w + acc[i][j][3];
                }
                if (!last) *at = make_float4(acc[i][j][0], acc[i][j][1], acc[i][j][2], acc[i][j][3]);
            }
        }
    }
}

template <class T>
__device__ __forceinline__ void write_tensor(const float (&acc)[T::TM][T::TN][4], const Operands& o, const Spot& s, Finish finish) {
    const u32 row0 = s.row0 + T::row(threadIdx.x), col0 = s.col0 + T::column(threadIdx.x);
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; ++j) {
#pragma unroll
            for (int v = 0; v < 4; ++v) {
                const u32 row = row0 + 16 * i + v / 2 * 8, col = col0 + 8 * j + v % 2;
                const u32 place = row * o.out_row + col;
                if (row < s.m && col < s.n) o.out[place] = finished(finish, acc[i][j][v], o.with + place);
            }
        }
    }
    if (finish < TANH) return;
#pragma unroll 1
    for (int i = 0; i < T::TM * T::TN * 4; ++i) {
        const u32 row = row0 + 16 * (i / (4 * T::TN)) + i % 4 / 2 * 8, col = col0 + 8 * (i / 4 % T::TN) + i % 2;
        float* at = o.out + row * o.out_row + col;
        if (row < s.m && col < s.n) *at = finish == TANH ? tanh_f(*at) : sigmoid_f(*at);
    }
}

template <class T, bool THREE>
__device__ __forceinline__ void tensor_tile(const ProductBatch& batch, u32 i, float* shared, float4* totals, int lane) {
    const Spot s = spot<T>(batch.members[i]);
    while (true) {
        const ProductMember& p = batch.members[i];
        const Operands o = operands(p, lane);
        float acc[T::TM][T::TN][4];
        switch (p.kind + 3 * batch.fours) {
            case ROWS: tensor_sum<T, THREE, false, false, false>(acc, shared, totals, o, s, p.k); break;
            case TRANSPOSED: tensor_sum<T, THREE, false, true, false>(acc, shared, totals, o, s, p.k); break;
            case COLUMNS: tensor_sum<T, THREE, true, false, false>(acc, shared, totals, o, s, p.k); break;
            case ROWS + 3: tensor_sum<T, THREE, false, false, true>(acc, shared, totals, o, s, p.k); break;
            case TRANSPOSED + 3: tensor_sum<T, THREE, false, true, true>(acc, shared, totals, o, s, p.k); break;
            default: tensor_sum<T, THREE, true, false, true>(acc, shared, totals, o, s, p.k);
        }
        write_tensor<T>(acc, o, s, (Finish)p.finish);
        if (!p.more) return;
        ++i;
    }
}

template <bool THREE>
__device__ __forceinline__ void tensor_product(const ProductBatch& batch, int lane) {
    __shared__ __align__(16) float shared[2 * 8 * (128 + 64 + 2 * 8)];
    __shared__ float4 totals[128 * 64 / 4];
    const u32 i = member_of_block(batch);
    switch (batch.members[i].shape) {
        case 0: tensor_tile<TensorTile<128, 64, 2>, THREE>(batch, i, shared, totals, lane); break;
        case 1: tensor_tile<TensorTile<128, 32, 4>, THREE>(batch, i, shared, totals, lane); break;
        default: tensor_tile<TensorTile<32, 64, 1>, THREE>(batch, i, shared, totals, lane);
    }
}

#else

// Older chips have none of this; the host refuses these precisions there.
template <bool THREE>
__device__ __forceinline__ void tensor_product(const ProductBatch&, int) {
    asm volatile("trap;");
}

#endif

extern "C" __global__ void __launch_bounds__(128, 3) product_tf32(
    const int* lanes,  // [grid z]
    ProductBatch batch) {
    const int lane = lanes[blockIdx.z];
    if (lane >= 0) tensor_product<false>(batch, lane);
}

extern "C" __global__ void __launch_bounds__(128, 3) product_tf32x3(
    const int* lanes,  // [grid z]
    ProductBatch batch) {
    const int lane = lanes[blockIdx.z];
    if (lane >= 0) tensor_product<true>(batch, lane);
}
