// Tiles of matrix products of shape S1: k ascending with fused multiply-adds, in chunks of 128 that are added in order. Which tiles a
// product is cut into, and how many threads share it, changes no bit.

// What happens to a finished sum. `with` lies as out does; h is its value.
enum Finish {
    SET,             // out = sum
    ADD,             // out = h + sum; with may be out
    SETTLE,          // out = sum + 0, which gives a zero one sign
    RELU_SQUARED,    // out = rl = max(sum, 0); with = rl rl
    RELU_SLOPE,      // out = sum (h + h)
    TANH_SLOPE,      // out = sum (1 - h h)
    SIGMOID_SLOPE,   // out = sum (h (1 - h))
    TANH,            // out = tanh(sum)
    SIGMOID,         // out = sigmoid(sum)
};

// Places and leading dimensions (floats from row to row as stored) of a product's operands.
struct Operands {
    const float* a;
    const float* b;
    float* with;
    float* out;
    u32 a_row, b_row, out_row;
};

// The value of a finish but TANH and SIGMOID, which are long and stand outside of unrolled loops.
__device__ __forceinline__ float finished(Finish finish, float sum, float* with) {
    switch (finish) {
        case ADD: return *with + sum;
        case SETTLE: return sum + 0.0f;
        case RELU_SQUARED: {
            const float rl = sum > 0.0f ? sum : 0.0f;
            *with = rl * rl;
            return rl;
        }
        case RELU_SLOPE: return sum * (*with + *with);
        case TANH_SLOPE: return sum * fmaf(-*with, *with, 1.0f);
        case SIGMOID_SLOPE: return sum * (*with * (1.0f - *with));
        default: return sum;
    }
}

__device__ __forceinline__ float4 finished_four(Finish finish, float4 sum, float4* with) {
    float4 h = finish == RELU_SQUARED || finish == SETTLE ? sum : *with;
    const float4 out = {finished(finish, sum.x, &h.x), finished(finish, sum.y, &h.y), finished(finish, sum.z, &h.z), finished(finish, sum.w, &h.w)};
    if (finish == RELU_SQUARED) *with = h;
    return out;
}

// Tiles of BM x BN outputs, of which a thread holds TM x TN: rows in groups of up to 4 neighbours, the groups BM / (TM / 4) apart; columns
// likewise. BK terms at a time lie in shared memory.
template <int BM_, int BN_, int BK_, int TM_, int TN_>
struct Tile {
    static constexpr int BM = BM_, BN = BN_, BK = BK_, TM = TM_, TN = TN_;
    static constexpr int ACROSS = BN / TN, THREADS = (BM / TM) * ACROSS;
    static constexpr int ROW_GROUP = TM < 4 ? TM : 4, ROWS_APART = BM / (TM / ROW_GROUP);
    static constexpr int COLUMN_GROUP = TN < 4 ? TN : 4, COLUMNS_APART = BN / (TN / COLUMN_GROUP);
    static constexpr int A_LINE = BM + 4, B_LINE = BN + 4, SHARED = BK * (A_LINE + B_LINE);
    // Where, in the tile, output i, j of thread t lies.
    static __device__ __forceinline__ int row(int t, int i) {
        return i / ROW_GROUP * ROWS_APART + ROW_GROUP * (t / ACROSS) + i % ROW_GROUP;
    }
    static __device__ __forceinline__ int column(int t, int j) {
        return j / COLUMN_GROUP * COLUMNS_APART + COLUMN_GROUP * (t % ACROSS) + j % COLUMN_GROUP;
    }
};

// N neighbours in shared memory.
template <int N>
__device__ __forceinline__ void take(float* to, const float* from) {
    if (N == 4) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        to[0] = four.x, to[1 % N] = four.y, to[2 % N] = four.z, to[3 % N] = four.w;
    } else if (N == 2) {
        const float2 two = *reinterpret_cast<const float2*>(from);
        to[0] = two.x, to[1 % N] = two.y;
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = from[i];
    }
}

// acc += one term of the outer sum: line kk of A and of B.
template <class T>
__device__ __forceinline__ void add_term(
    float (&acc)[T::TM][T::TN], const float* a, const float* b, int t) {
    float x[T::TM], y[T::TN];
#pragma unroll
    for (int g = 0; g < T::TM / T::ROW_GROUP; ++g) take<T::ROW_GROUP>(x + g * T::ROW_GROUP, a + T::row(t, g * T::ROW_GROUP));
#pragma unroll
    for (int g = 0; g < T::TN / T::COLUMN_GROUP; ++g) take<T::COLUMN_GROUP>(y + g * T::COLUMN_GROUP, b + T::column(t, g * T::COLUMN_GROUP));
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; ++j) acc[i][j] = fmaf(x[i], y[j], acc[i][j]);
    }
}

// A part of an operand on its way to shared memory: BK terms of LINES rows (or columns) from `first` on. ALONG: it is stored [line, k], else
// [k, line]. What lies beyond `lines` or `to` comes as 0 and is not used. THREADS threads carry them, one by one or, FOUR, in
// fours, which asks for rows of a multiple of four floats, at addresses of a multiple of 16 bytes.
template <int LINES, int BK, int THREADS, bool ALONG, bool FOUR, int PAD = 4>
struct Carried {
    static constexpr int WIDTH = FOUR ? 4 : 1, WIDE = (ALONG ? BK : LINES) / WIDTH, HIGH = ALONG ? LINES : BK, STEP = THREADS / WIDE;
    static constexpr int TURNS = (HIGH + STEP - 1) / STEP;
    static_assert(WIDE * STEP == THREADS && (HIGH % STEP == 0 || HIGH < STEP), "threads carry whole rows");
    float held[TURNS * WIDTH];

    __device__ __forceinline__ void fetch(const float* from, u32 row, u32 first, u32 lines, u32 k0, u32 to, int t) {
        const u32 place = t % WIDE * WIDTH, high = t / WIDE;
        const u32 x = place + (ALONG ? k0 : first), y = high + (ALONG ? first : k0);
        const u32 x_end = ALONG ? to : lines, y_end = ALONG ? lines : to;
        u32 at = y * row + x;
#pragma unroll
        for (int l = 0; l < TURNS; ++l) {
            const bool there = x < x_end && y + l * STEP < y_end && (HIGH >= STEP || high < HIGH);
            if (FOUR) {
                const float4 none = {0.0f, 0.0f, 0.0f, 0.0f};
                const float4 four = there ? __ldg(reinterpret_cast<const float4*>(from + at)) : none;
                held[l * WIDTH] = four.x, held[l * WIDTH + 1 % WIDTH] = four.y;
                held[l * WIDTH + 2 % WIDTH] = four.z, held[l * WIDTH + 3 % WIDTH] = four.w;
            } else {
                held[l] = there ? __ldg(from + at) : 0.0f;
            }
            at += STEP * row;
        }
    }

    // Lays it down as [BK][LINES + PAD].
    __device__ __forceinline__ void store(float* to, int t) const {
        constexpr int LINE = LINES + PAD;
        const int place = t % WIDE * WIDTH, high = t / WIDE;
#pragma unroll
        for (int l = 0; l < TURNS; ++l) {
            const int other = high + l * STEP;
            if (HIGH < STEP && high >= HIGH) continue;
            if (ALONG) {
#pragma unroll
                for (int i = 0; i < WIDTH; ++i) to[(place + i) * LINE + other] = held[l * WIDTH + i];
            } else if (FOUR) {
                const float4 four = {held[l * WIDTH], held[l * WIDTH + 1 % WIDTH], held[l * WIDTH + 2 % WIDTH], held[l * WIDTH + 3 % WIDTH]};
                *reinterpret_cast<float4*>(to + other * LINE + place) = four;
            } else {
                to[other * LINE + place] = held[l];
            }
        }
    }
};

// Where a tile stands in its product.
struct Spot {
    u32 row0, col0, m, n;
};

// acc = sum over the terms from..to, at most a chunk, of a tile. a_shared and b_shared: one buffer each, for these threads alone, which `sync` holds
// together. Terms beyond `to` are skipped, not added as zeros, which could turn a -0 into +0.
template <class T, bool A_COLUMNS, bool B_ROWS, bool FOUR, class Sync>
__device__ __forceinline__ void chunk_sum(
    float (&acc)[T::TM][T::TN], const Operands& o, const Spot& s, u32 from, u32 to, float* a_shared, float* b_shared, int t, Sync sync) {
    Carried<T::BM, T::BK, T::THREADS, !A_COLUMNS, FOUR> a;
    Carried<T::BN, T::BK, T::THREADS, B_ROWS, FOUR> b;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; ++j) acc[i][j] = 0.0f;
    }
    a.fetch(o.a, o.a_row, s.row0, s.m, from, to, t);
    b.fetch(o.b, o.b_row, s.col0, s.n, from, to, t);
    for (u32 k0 = from; k0 < to; k0 += T::BK) {
        sync();
        a.store(a_shared, t);
        b.store(b_shared, t);
        sync();
        const u32 next = k0 + T::BK;
        if (next < to) {
            a.fetch(o.a, o.a_row, s.row0, s.m, next, to, t);
            b.fetch(o.b, o.b_row, s.col0, s.n, next, to, t);
        }
        if (next <= to) {
#pragma unroll 8
            for (int kk = 0; kk < T::BK; ++kk) add_term<T>(acc, a_shared + kk * T::A_LINE, b_shared + kk * T::B_LINE, t);
        } else {
#pragma unroll 1
            for (u32 kk = 0; kk < to - k0; ++kk) add_term<T>(acc, a_shared + kk * T::A_LINE, b_shared + kk * T::B_LINE, t);
        }
    }
}

// Writes a tile's sums, one by one or in fours.
template <class T, bool FOUR>
__device__ __forceinline__ void write_tile(const float (&total)[T::TM][T::TN], const Operands& o, const Spot& s, Finish finish, int t) {
    const u32 col0 = s.col0 + T::column(t, 0);
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
        const u32 row = s.row0 + T::row(t, i);
        if (row >= s.m) continue;
        float* out = o.out + (size_t)row * o.out_row + col0;
        float* with = o.with + (size_t)row * o.out_row + col0;
#pragma unroll
        for (int j = 0; j < T::TN; j += 4) {
            const int at = T::column(0, j);
            if (FOUR) {
                if (col0 + at >= s.n) continue;
                float4 four = make_float4(total[i][j], total[i][j + 1], total[i][j + 2], total[i][j + 3]);
                if (finish != SET && finish < TANH) four = finished_four(finish, four, reinterpret_cast<float4*>(with + at));
                *reinterpret_cast<float4*>(out + at) = four;
            } else {
#pragma unroll
                for (int l = 0; l < 4; ++l) {
                    if (col0 + at + l < s.n) out[at + l] = finished(finish, total[i][j + l], with + at + l);
                }
            }
        }
    }
    if (finish < TANH) return;
#pragma unroll 1
    for (int i = 0; i < T::TM * T::TN; ++i) {
        const u32 row = s.row0 + T::row(t, i / T::TN), col = s.col0 + T::column(t, i % T::TN);
        float* at = o.out + (size_t)row * o.out_row + col;
        if (row < s.m && col < s.n) *at = finish == TANH ? tanh_f(*at) : sigmoid_f(*at);
    }
}

// One tile by one block, chunk after chunk. A_COLUMNS: a is stored [K,M]; B_ROWS: b is stored [N,K]. FOUR: operands are read in fours. from: a
// multiple of the chunk. shared: T::SHARED floats.
template <class T, bool A_COLUMNS, bool B_ROWS, bool FOUR>
__device__ __forceinline__ void product_tile(const Operands& o, const Spot& s, u32 from, u32 to, Finish finish, float* shared) {
    float total[T::TM][T::TN], acc[T::TM][T::TN];
    for (u32 k0 = from; k0 < to; k0 += PRODUCT_CHUNK) {
        chunk_sum<T, A_COLUMNS, B_ROWS, FOUR>(
            acc, o, s, k0, min(k0 + PRODUCT_CHUNK, to), shared, shared + T::BK * T::A_LINE, threadIdx.x, [] { __syncthreads(); });
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int j = 0; j < T::TN; ++j) total[i][j] = k0 == from ? acc[i][j] : total[i][j] + acc[i][j];
        }
    }
    write_tile<T, FOUR>(total, o, s, finish, threadIdx.x);
}
