// The recurrence of RWKV-7, forward and backward.
//
// Only a short chain runs from token to token, and only along a row i of the state: forward the sum sa_i, backward the sum h_i. The
// sums down the columns need all rows, but no token waits for them; once sa, h and both states at the segments' ends are
// known, every segment of SEGMENT tokens is a matter of its own. Hence three kernels:
//   forward   rows, tokens ascending: y, sa, and the state before each segment
//   rows      rows, tokens descending: dv, h, and the state's gradient after each segment
//   columns   columns, all segments at once: both states again by the same operations, hence the same bits, and the other sums
//
// Four threads share a row or column, as S4 has four partial sums: thread q of the four holds elements q + 4 m, m = 0, 1, .. M - 1; a
// sum is a chain in each and a fold over the four. N <= 4 M; EXACT: N = 4 M, so that no term need be guarded. Tokens beyond a
// window's end are all zeros, which leave both states as they are.

// Folds S4's partial sums in four neighbouring threads; all four get the sum.
__device__ __forceinline__ float fold_state(float p) {
    p = p + __shfl_xor_sync(FULL_WARP, p, 2);
    return p + __shfl_xor_sync(FULL_WARP, p, 1);
}

// The same for four sums at once: thread q gets the sum of the q-th.
__device__ __forceinline__ float fold_states(float p0, float p1, float p2, float p3, u32 q) {
    const bool high = q & 2, odd = q & 1;
    const float even_sum = (high ? p2 : p0) + __shfl_xor_sync(FULL_WARP, high ? p0 : p2, 2);
    const float odd_sum = (high ? p3 : p1) + __shfl_xor_sync(FULL_WARP, high ? p1 : p3, 2);
    return (odd ? odd_sum : even_sum) + __shfl_xor_sync(FULL_WARP, odd ? even_sum : odd_sum, 1);
}

// A head's vectors of a few tokens in shared memory: element q + 4 m stands at q PART + m of a token's line, in the order in which
// threads read it, apart enough that the four threads find different banks.
template <int M>
struct Lines {
    static constexpr int PART = M + (M >= 16 ? 4 : 0);
    static constexpr int LINE = 4 * PART + 8;
};

// Brings TOKENS tokens of a vector from [.., C] to shared memory by way of registers, so that other work fits between.
template <int M, int TOKENS, int THREADS, bool EXACT>
struct Feed {
    static constexpr int FLOATS = (TOKENS * 4 * M + THREADS - 1) / THREADS, FOURS = (TOKENS * M + THREADS - 1) / THREADS;
    static constexpr bool WHOLE = TOKENS * M % THREADS == 0;
    float held[EXACT ? 4 * FOURS : FLOATS];

    // Where a thread's first number of a vector's first token lies.
    static __device__ __forceinline__ const float* begin(const float* from, u32 c) {
        return EXACT ? from + (size_t)(threadIdx.x / M) * c + 4 * (threadIdx.x % M) : from;
    }

    // Tokens first..first + TOKENS, of which those before `end` exist; `from` is `begin` moved on to token `first`. CONSTANT: by way of the
    // cache of what the kernel does not write.
    template <bool CONSTANT = false>
    __device__ __forceinline__ void fetch(const float* from, int first, int end, u32 c, u32 n) {
        if (EXACT) {
            const int t = first + (int)(threadIdx.x / M);
#pragma unroll
            for (int p = 0; p < FOURS; ++p) {
                const bool there = (WHOLE || threadIdx.x + p * THREADS < TOKENS * M) && (u32)(t + p * (THREADS / M)) < (u32)end;
                const float4 none = {0.0f, 0.0f, 0.0f, 0.0f};
                const float4* at = reinterpret_cast<const float4*>(from);
                const float4 four = there ? (CONSTANT ? __ldg(at) : *at) : none;
                held[4 * p] = four.x, held[4 * p + 1] = four.y, held[4 * p + 2] = four.z, held[4 * p + 3] = four.w;
                from += (size_t)(THREADS / M) * c;
            }
        } else {
#pragma unroll
            for (int p = 0; p < FLOATS; ++p) {
                const u32 e = threadIdx.x + p * THREADS, t = e / n;
                const float* at = from + (size_t)t * c + e % n;
                held[p] = e < TOKENS * n && (u32)(first + (int)t) < (u32)end ? (CONSTANT ? __ldg(at) : *at) : 0.0f;
            }
        }
    }

    __device__ __forceinline__ void store(float* to, u32 line, u32 n) const {
        if (EXACT) {
#pragma unroll
            for (int p = 0; p < FOURS; ++p) {
                const u32 e = threadIdx.x + p * THREADS;
                float* at = to + e / M * line + e % M;
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    if (WHOLE || e < TOKENS * M) at[q * Lines<M>::PART] = held[4 * p + q];
                }
            }
        } else {
#pragma unroll
            for (int p = 0; p < FLOATS; ++p) {
                const u32 e = threadIdx.x + p * THREADS, j = e % n;
                if (e < TOKENS * n) to[e / n * line + j % 4 * Lines<M>::PART + j / 4] = held[p];
            }
        }
    }
};

// A thread's elements of a vector, from shared memory.
template <int M>
struct Held {
    float at[M];
    __device__ __forceinline__ void read(const float* from) {
#pragma unroll
        for (int g = 0; g < M / 4; ++g) {
            const float4 four = reinterpret_cast<const float4*>(from)[g];
            at[4 * g] = four.x, at[4 * g + 1] = four.y, at[4 * g + 2] = four.z, at[4 * g + 3] = four.w;
        }
    }
};

#define EACH_TERM _Pragma("unroll") for (int m = 0; m < M; ++m) if (EXACT || m < terms)
#define EACH_ROW _Pragma("unroll") for (int z = 0; z < ROWS; ++z)

// Where a warp of the two kernels along the rows finds its part: ROWS rows a thread, 8 apart.
struct RowsPlace {
    u32 tokens, c, n, first_row;
};

// The five vectors along a row's elements and the numbers of the rows themselves, staged for one warp: two segments in shared memory,
// one more on its way. A token is a slot of five lines.
template <int M, int SEGMENT, int ROWS, bool EXACT>
struct RowsFeed {
    static constexpr int SLOT = 5 * Lines<M>::LINE, OWN = 8 * ROWS, OWN_PER = (SEGMENT * OWN + 31) / 32;
    Feed<M, SEGMENT, 32, EXACT> feeds[5];
    float own[OWN_PER];
    const float* from[5];
    const float* rows;
    int first;

    // Begins at token `at`.
    __device__ __forceinline__ RowsFeed(const float* const (&vectors)[5], const float* own_rows, int at, const RowsPlace& p) : first(at) {
        const long long skip = (long long)at * p.c;
#pragma unroll
        for (int v = 0; v < 5; ++v) from[v] = Feed<M, SEGMENT, 32, EXACT>::begin(vectors[v], p.c) + skip;
        rows = own_rows + skip + (size_t)(threadIdx.x / OWN) * p.c + p.first_row + threadIdx.x % OWN;
    }

    // Fetches a segment, and goes `direction` segments on.
    __device__ __forceinline__ void fetch(int direction, const RowsPlace& p) {
        const long long skip = (long long)direction * SEGMENT * p.c;
#pragma unroll
        for (int v = 0; v < 5; ++v) {
            feeds[v].fetch(from[v], first, (int)p.tokens, p.c, p.n);
            from[v] += skip;
        }
        const float* at = rows;
#pragma unroll
        for (int l = 0; l < OWN_PER; ++l) {
            const u32 e = threadIdx.x + 32 * l, t = (u32)(first + (int)(e / OWN));
            const bool there = e < SEGMENT * OWN && (EXACT || p.first_row + e % OWN < p.n) && t < p.tokens;
            own[l] = there ? *at : 0.0f;
            at += (size_t)(32 / OWN) * p.c;
        }
        rows += skip;
        first += direction * SEGMENT;
    }

    __device__ __forceinline__ void store(float* to, float* rows, u32 n) const {
#pragma unroll
        for (int v = 0; v < 5; ++v) feeds[v].store(to + v * Lines<M>::LINE, SLOT, n);
#pragma unroll
        for (int l = 0; l < OWN_PER; ++l) {
            if (threadIdx.x + 32 * l < SEGMENT * OWN) rows[threadIdx.x + 32 * l] = own[l];
        }
    }
};

// A thread's elements of a token's five vectors.
template <int M>
struct Token {
    Held<M> of[5];
    __device__ __forceinline__ void read(const float* slot) {
#pragma unroll
        for (int x = 0; x < 5; ++x) of[x].read(slot + x * Lines<M>::LINE);
    }
};

// AHEAD: the next token's elements are read, and the segment after the next is fetched, before they are needed; a large head has no
// registers for that. Loops over tokens are kept short, since instructions that do not fit a chip's first cache come slowly.
template <int M, int SEGMENT, int ROWS, bool EXACT>
__device__ __forceinline__ void recurrence_forward(
    const float* const (&vectors)[5],  // kk, w, k, b, r
    const float* v, float* y, float* sa, float* states, const RowsPlace& place) {
    constexpr int SLOT = 5 * Lines<M>::LINE, OWN = 8 * ROWS;
    constexpr bool AHEAD = EXACT || M <= 8;
    __shared__ __align__(16) float staged[2][SEGMENT * SLOT];
    __shared__ float values[2][SEGMENT * OWN];
    const u32 i = threadIdx.x / 4, q = threadIdx.x % 4, n = place.n, c = place.c;
    const int terms = (int)((n + 3 - q) / 4), tokens = (int)place.tokens;
    RowsFeed<M, SEGMENT, ROWS, EXACT> feed(vectors, v, 0, place);
    feed.fetch(1, place);
    feed.store(staged[0], values[0], n);
    if (AHEAD) feed.fetch(1, place);
    __syncwarp();
    Token<M> now, next;
    if (AHEAD) now.read(staged[0] + q * Lines<M>::PART);
    float s[ROWS][M] = {}, y_part[ROWS] = {};
    // Thread 0 of four stores the output of the token before, thread 1 the token's sum.
    int told = q == 0 ? -1 : 0;
    float* to = (q == 0 ? y : sa) + (long long)told * c + place.first_row + i;
    float* kept = states ? states + (size_t)(place.first_row + i) * n + q : nullptr;
    u32 half = 0;
    for (int t0 = 0; t0 < tokens; t0 += SEGMENT, half ^= 1) {
        __syncwarp();
        if (!AHEAD) feed.fetch(1, place);
        feed.store(staged[half ^ 1], values[half ^ 1], n);
        __syncwarp();
        if (AHEAD) feed.fetch(1, place);
        if (kept) {
            EACH_ROW {
                if (EXACT || place.first_row + i + 8 * z < n) {
                    EACH_TERM kept[(size_t)8 * z * n + 4 * m] = s[z][m];
                }
            }
            kept += (size_t)n * n;
        }
        const float* slot = staged[half] + q * Lines<M>::PART;
        const float* beyond = staged[half ^ 1] + q * Lines<M>::PART;
#pragma unroll 2
        for (int l = 0; l < SEGMENT; ++l) {
            if (!AHEAD) now.read(slot);
            slot = l + 1 == SEGMENT ? beyond : slot + SLOT;
            if (AHEAD) next.read(slot);
            EACH_ROW {
                const float vi = values[half][l * OWN + i + 8 * z];
                float p = 0.0f;
                EACH_TERM p = fmaf(s[z][m], -now.of[0].at[m], p);
                // The output of the token before is folded along with this one's sum, since each fold is a wait.
                const float removed = fold_state(p), out = fold_state(y_part[z]);
                const bool there = (u32)told < (u32)tokens && q < 2 && (EXACT || place.first_row + i + 8 * z < n);
                if (there) to[8 * z] = q == 0 ? out : removed;
                y_part[z] = 0.0f;
                EACH_TERM {
                    s[z][m] = fmaf(vi, now.of[2].at[m], fmaf(removed, now.of[3].at[m], s[z][m] * now.of[1].at[m]));
                    y_part[z] = fmaf(s[z][m], now.of[4].at[m], y_part[z]);
                }
            }
            ++told;
            to += c;
            if (AHEAD) now = next;
        }
    }
    // The last token's output, where no token beyond the end has told it.
    EACH_ROW {
        const float out = fold_state(y_part[z]);
        const u32 row = place.first_row + i + 8 * z;
        if (q == 0 && tokens % SEGMENT == 0 && (EXACT || row < n)) y[(size_t)(tokens - 1) * c + row] = out;
    }
}

template <int M, int SEGMENT, int ROWS, bool EXACT>
__device__ __forceinline__ void recurrence_rows(
    const float* const (&vectors)[5],  // b, r, w, kk, k
    const float* dy, float* dv, float* h, float* states, const RowsPlace& place) {
    constexpr int SLOT = 5 * Lines<M>::LINE, OWN = 8 * ROWS;
    constexpr bool AHEAD = EXACT || M <= 8;
    __shared__ __align__(16) float staged[2][SEGMENT * SLOT];
    __shared__ float outputs[2][SEGMENT * OWN];
    const u32 i = threadIdx.x / 4, q = threadIdx.x % 4, n = place.n, c = place.c;
    const int terms = (int)((n + 3 - q) / 4), tokens = (int)place.tokens;
    const int end = (tokens + SEGMENT - 1) / SEGMENT * SEGMENT;
    RowsFeed<M, SEGMENT, ROWS, EXACT> feed(vectors, dy, end - SEGMENT, place);
    feed.fetch(-1, place);
    feed.store(staged[0], outputs[0], n);
    if (AHEAD) feed.fetch(-1, place);
    __syncwarp();
    Token<M> now, next;
    if (AHEAD) now.read(staged[0] + (SEGMENT - 1) * SLOT + q * Lines<M>::PART);
    float g[ROWS][M] = {};
    // Thread 0 of four stores the value's gradient, thread 1 the token's sum.
    int told = end - 1;
    float* to = (q == 0 ? dv : h) + (long long)told * c + place.first_row + i;
    float* kept = states + (size_t)(end / SEGMENT) * n * n + (size_t)(place.first_row + i) * n + q;
    u32 half = 0;
    for (int t0 = end - SEGMENT; t0 >= 0; t0 -= SEGMENT, half ^= 1) {
        __syncwarp();
        if (!AHEAD) feed.fetch(-1, place);
        feed.store(staged[half ^ 1], outputs[half ^ 1], n);
        __syncwarp();
        if (AHEAD) feed.fetch(-1, place);
        kept -= (size_t)n * n;
        EACH_ROW {
            if (EXACT || place.first_row + i + 8 * z < n) {
                EACH_TERM kept[(size_t)8 * z * n + 4 * m] = g[z][m];
            }
        }
        const float* slot = staged[half] + (SEGMENT - 1) * SLOT + q * Lines<M>::PART;
        const float* beyond = staged[half ^ 1] + (SEGMENT - 1) * SLOT + q * Lines<M>::PART;
#pragma unroll 2
        for (int l = SEGMENT - 1; l >= 0; --l) {
            if (!AHEAD) now.read(slot);
            slot = l == 0 ? beyond : slot - SLOT;
            if (AHEAD) next.read(slot);
            EACH_ROW {
                const float d = outputs[half][l * OWN + i + 8 * z];
                float ph = 0.0f, pv = 0.0f;
                EACH_TERM {
                    g[z][m] = fmaf(d, now.of[1].at[m], g[z][m]);
                    ph = fmaf(g[z][m], now.of[0].at[m], ph);
                    pv = fmaf(g[z][m], now.of[4].at[m], pv);
                }
                const float of_h = fold_state(ph), of_v = fold_state(pv);
                const bool there = told < tokens && q < 2 && (EXACT || place.first_row + i + 8 * z < n);
                if (there) to[8 * z] = q == 0 ? of_v : of_h;
                EACH_TERM g[z][m] = fmaf(of_h, -now.of[3].at[m], g[z][m] * now.of[2].at[m]);
            }
            --told;
            to -= c;
            if (AHEAD) now = next;
        }
    }
}

// Where a block of the columns finds its part: a window's segment, and columns of a head from first_column on.
struct ColumnsPlace {
    u32 segment, tokens, c, n, first_column;
};

#define EACH_COLUMN _Pragma("unroll") for (int z = 0; z < COLUMNS; ++z)

// What a block of 64 threads adds up: 16 COLUMNS columns; a thread's lie 16 apart.
template <int M, int SEGMENT, int COLUMNS, bool EXACT>
__device__ __forceinline__ void recurrence_columns(
    const float* const (&rows)[4],     // v, sa, dy, h: along the columns' elements
    const float* const (&columns)[5],  // r, w, k, kk, b: of the columns themselves
    const float* states, const float* gradients,  // of the segment, [N,N]
    float* const (&out)[5],            // dr, db, da, dw, dk
    const ColumnsPlace& place) {
    constexpr int THREADS = 64, LINE = Lines<M>::LINE, WIDE = 16 * COLUMNS;
    __shared__ __align__(16) float staged[4][SEGMENT * LINE];
    __shared__ float own[5][SEGMENT * WIDE];
    const u32 l = threadIdx.x / 4, q = threadIdx.x % 4, n = place.n, c = place.c;
    const int first = (int)(place.segment * SEGMENT), terms = (int)((n + 3 - q) / 4);
    // Each thread's states before the segment's tokens.
    __shared__ float4 kept[SEGMENT][COLUMNS * M / 4][THREADS];
    // Everything is read before anything is laid down, so that all reads are under way at once.
    constexpr int OWN = (SEGMENT * WIDE + THREADS - 1) / THREADS;
    Feed<M, SEGMENT, THREADS, EXACT> feeds[4];
    float numbers[5][OWN];
#pragma unroll
    for (int x = 0; x < 4; ++x) {
        feeds[x].template fetch<true>(feeds[x].begin(rows[x], c) + (size_t)first * c, first, (int)place.tokens, c, n);
    }
#pragma unroll
    for (int x = 0; x < 5; ++x) {
#pragma unroll
        for (int p = 0; p < OWN; ++p) {
            const u32 e = threadIdx.x + p * THREADS, j = place.first_column + e % WIDE;
            const int t = first + (int)(e / WIDE);
            const bool there = e < SEGMENT * WIDE && t < (int)place.tokens && (EXACT || j < n);
            numbers[x][p] = there ? __ldg(columns[x] + (size_t)t * c + j) : 0.0f;
        }
    }
    float state[COLUMNS][M] = {}, g[COLUMNS][M] = {};
    EACH_COLUMN {
        const u32 j = place.first_column + l + 16 * z;
        if (EXACT || j < n) {
            EACH_TERM {
                state[z][m] = __ldg(states + (q + 4 * m) * n + j);
                g[z][m] = __ldg(gradients + (q + 4 * m) * n + j);
            }
        }
    }
#pragma unroll
    for (int x = 0; x < 4; ++x) feeds[x].store(staged[x], LINE, n);
#pragma unroll
    for (int x = 0; x < 5; ++x) {
#pragma unroll
        for (int p = 0; p < OWN; ++p) {
            if (threadIdx.x + p * THREADS < SEGMENT * WIDE) own[x][threadIdx.x + p * THREADS] = numbers[x][p];
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < SEGMENT; ++t) {
        Held<M> v, removed;
        v.read(&staged[0][t * LINE + q * Lines<M>::PART]);
        removed.read(&staged[1][t * LINE + q * Lines<M>::PART]);
        EACH_COLUMN {
#pragma unroll
            for (int f = 0; f < M / 4; ++f) {
                const float* s4 = state[z] + 4 * f;
                kept[t][z * M / 4 + f][threadIdx.x] = make_float4(s4[0], s4[1], s4[2], s4[3]);
            }
            const u32 at = t * WIDE + l + 16 * z;
            const float w = own[1][at], k = own[2][at], b = own[4][at];
            EACH_TERM state[z][m] = fmaf(v.at[m], k, fmaf(removed.at[m], b, state[z][m] * w));
        }
    }
    float* to = (q == 0 ? out[0] : q == 1 ? out[1] : q == 2 ? out[2] : out[3]);
    to += (size_t)(first + SEGMENT - 1) * c + place.first_column + l;
    float* to_k = out[4] + (size_t)(first + SEGMENT - 1) * c + place.first_column + l;
#pragma unroll 1
    for (int t = SEGMENT - 1; t >= 0; --t, to -= c, to_k -= c) {
        Held<M> v, removed, d, h;
        v.read(&staged[0][t * LINE + q * Lines<M>::PART]);
        removed.read(&staged[1][t * LINE + q * Lines<M>::PART]);
        d.read(&staged[2][t * LINE + q * Lines<M>::PART]);
        h.read(&staged[3][t * LINE + q * Lines<M>::PART]);
        EACH_COLUMN {
            const u32 at = t * WIDE + l + 16 * z;
            const float r = own[0][at], w = own[1][at], a = -own[3][at];
            float pr = 0.0f, pk = 0.0f, pb = 0.0f, pw = 0.0f, pa = 0.0f;
            float before[M];
#pragma unroll
            for (int f = 0; f < M / 4; ++f) {
                const float4 four = kept[t][z * M / 4 + f][threadIdx.x];
                before[4 * f] = four.x, before[4 * f + 1] = four.y, before[4 * f + 2] = four.z, before[4 * f + 3] = four.w;
            }
            EACH_TERM {
                g[z][m] = fmaf(d.at[m], r, g[z][m]);
                pr = fmaf(state[z][m], d.at[m], pr);
                pk = fmaf(g[z][m], v.at[m], pk);
                pb = fmaf(g[z][m], removed.at[m], pb);
                pw = fmaf(g[z][m], before[m], pw);
                pa = fmaf(before[m], h.at[m], pa);
                g[z][m] = fmaf(h.at[m], a, g[z][m] * w);
                state[z][m] = before[m];
            }
            const float sum = fold_states(pr, pb, pa, pw, q), of_k = fold_state(pk);
            if (first + t < (int)place.tokens && (EXACT || place.first_column + l + 16 * z < n)) {
                to[16 * z] = sum;
                if (q == 0) to_k[16 * z] = of_k;
            }
        }
    }
}

// Overwrites y, sa and, where keep is not 0, the states before each segment; b = kk a, the removal key is -kk. One warp a lane,
// window, head and 8 ROWS rows.
#define RECURRENCE_ROWS(NAME, M, SEGMENT, ROWS, EXACT)                                                                    \
    extern "C" __global__ void __launch_bounds__(32) recurrence_forward_##NAME(                                           \
        const int* lanes, const float* r, const float* w, const float* k, const float* v, const float* kk,                \
        const float* b, float* y, float* sa, float* states, unsigned windows, unsigned tokens, unsigned heads,            \
        unsigned n, unsigned keep) {                                                                                      \
        const int lane = lanes[blockIdx.z];                                                                               \
        if (lane < 0) return;                                                                                             \
        const u32 head = blockIdx.x % heads, c = heads * n, segments = (tokens + SEGMENT - 1) / SEGMENT;                  \
        const size_t window = (size_t)lane * windows + blockIdx.y, at = window * tokens * c + head * n;                   \
        const RowsPlace place = {tokens, c, n, blockIdx.x / heads * 8 * ROWS};                                            \
        const float* const vectors[5] = {kk + at, w + at, k + at, b + at, r + at};                                        \
        float* kept = keep ? states + (window * heads + head) * segments * n * n : nullptr;                               \
        recurrence_forward<M, SEGMENT, ROWS, EXACT>(vectors, v + at, y + at, sa + at, kept, place);                       \
    }                                                                                                                     \
    extern "C" __global__ void __launch_bounds__(32) recurrence_rows_##NAME(                                              \
        const int* lanes, const float* r, const float* w, const float* k, const float* kk, const float* b,                \
        const float* dy, float* dv, float* h, float* gradients, unsigned windows, unsigned tokens, unsigned heads,        \
        unsigned n) {                                                                                                     \
        const int lane = lanes[blockIdx.z];                                                                               \
        if (lane < 0) return;                                                                                             \
        const u32 head = blockIdx.x % heads, c = heads * n, segments = (tokens + SEGMENT - 1) / SEGMENT;                  \
        const size_t window = (size_t)lane * windows + blockIdx.y, at = window * tokens * c + head * n;                   \
        const RowsPlace place = {tokens, c, n, blockIdx.x / heads * 8 * ROWS};                                            \
        const float* const vectors[5] = {b + at, r + at, w + at, kk + at, k + at};                                        \
        float* kept = gradients + (window * heads + head) * segments * n * n;                                             \
        recurrence_rows<M, SEGMENT, ROWS, EXACT>(vectors, dy + at, dv + at, h + at, kept, place);                         \
    }

// Overwrites the sums down the columns. 64 threads a lane, window, segment, head and 16 COLUMNS columns.
#define RECURRENCE_COLUMNS(NAME, M, SEGMENT, COLUMNS, EXACT)                                                              \
    extern "C" __global__ void __launch_bounds__(64) recurrence_columns_##NAME(                                           \
        const int* lanes, const float* r, const float* w, const float* k, const float* v, const float* kk,                \
        const float* b, const float* sa, const float* h, const float* dy, const float* states, const float* gradients,    \
        float* dr, float* dw, float* dk, float* da, float* db, unsigned windows, unsigned tokens, unsigned heads,         \
        unsigned n) {                                                                                                     \
        const int lane = lanes[blockIdx.z];                                                                               \
        if (lane < 0) return;                                                                                             \
        const u32 head = blockIdx.x % heads, c = heads * n, segments = (tokens + SEGMENT - 1) / SEGMENT;                  \
        const u32 segment = blockIdx.y % segments;                                                                        \
        const size_t window = (size_t)lane * windows + blockIdx.y / segments, at = window * tokens * c + head * n;        \
        const size_t kept = ((window * heads + head) * segments + segment) * n * n;                                       \
        const ColumnsPlace place = {segment, tokens, c, n, blockIdx.x / heads * 16 * COLUMNS};                            \
        const float* const rows[4] = {v + at, sa + at, dy + at, h + at};                                                  \
        const float* const columns[5] = {r + at, w + at, k + at, kk + at, b + at};                                        \
        float* const out[5] = {dr + at, db + at, da + at, dw + at, dk + at};                                              \
        recurrence_columns<M, SEGMENT, COLUMNS, EXACT>(rows, columns, states + kept, gradients + kept, out, place);       \
    }

RECURRENCE_ROWS(upto16, 4, 8, 1, false)
RECURRENCE_ROWS(upto32, 8, 8, 1, false)
RECURRENCE_ROWS(upto64, 16, 4, 1, false)
RECURRENCE_ROWS(upto128, 32, 2, 1, false)
RECURRENCE_ROWS(of32, 8, 8, 1, true)
RECURRENCE_ROWS(of32x2, 8, 8, 2, true)
RECURRENCE_ROWS(of32x4, 8, 8, 4, true)
RECURRENCE_ROWS(of64, 16, 4, 1, true)
RECURRENCE_COLUMNS(upto16, 4, 8, 1, false)
RECURRENCE_COLUMNS(upto32, 8, 8, 1, false)
RECURRENCE_COLUMNS(upto64, 16, 4, 1, false)
RECURRENCE_COLUMNS(upto128, 32, 2, 1, false)
RECURRENCE_COLUMNS(of32, 8, 8, 2, true)
RECURRENCE_COLUMNS(of64, 16, 4, 1, true)
