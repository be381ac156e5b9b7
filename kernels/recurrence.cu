// The recurrence of RWKV-7, forward and backward. One block a lane, window and head.
//
// Four threads share a row of the state, as S4 has four partial sums: thread 4 i + q holds S[i][q + 4 m], m = 0, 1, ..; a sum
// over j is one chain in each of them and a fold over the four. The backward pass also needs sums over i, for which the same
// thread holds column i of the state and of its gradient: S[q + 4 m][i]. Both copies go through the same operations, hence
// hold the same bits. M: registers a thread needs for a row, N <= 4 M; EXACT: N = 4 M, so that no term need be guarded.

// Folds S4's partial sums in four neighbouring threads; all four get the sum.
__device__ __forceinline__ float fold_state(float p) {
    p = p + __shfl_xor_sync(FULL_WARP, p, 2);
    return p + __shfl_xor_sync(FULL_WARP, p, 1);
}

// Brings tokens of a head's vectors from [.., C] to shared memory, in two halves, so that the loads of the next tokens are under
// way while the last ones are worked on. A thread brings PER numbers of each vector. In shared memory channel q + 4 m stands at
// q M + m: in the order in which threads read it.
template <int M, int PER, bool EXACT>
struct Feed {
    float held[PER];

    __device__ __forceinline__ void fetch(const float* from, u32 count, u32 c, u32 n) {
        const u32 width = EXACT ? 4 * M : n;
#pragma unroll
        for (int p = 0; p < PER; ++p) {
            const u32 e = threadIdx.x + p * blockDim.x;
            held[p] = e < count * width ? from[(size_t)(e / width) * c + e % width] : 0.0f;
        }
    }

    __device__ __forceinline__ void store(float (*to)[4 * M], u32 count, u32 n) const {
        const u32 width = EXACT ? 4 * M : n;
#pragma unroll
        for (int p = 0; p < PER; ++p) {
            const u32 e = threadIdx.x + p * blockDim.x;
            const u32 t = e / width, j = e % width;
            if (e < count * width) to[t][(j % 4) * M + j / 4] = held[p];
        }
    }
};

// Four neighbouring numbers of shared memory at once.
struct Four {
    float at[4];
    __device__ __forceinline__ explicit Four(const float* from) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        at[0] = four.x, at[1] = four.y, at[2] = four.z, at[3] = four.w;
    }
};

#define EACH_TERM _Pragma("unroll") for (int m = 0; m < M; ++m) if (EXACT || m < terms)
// The same in groups of four terms m = 4 g + j, j = 0..3, for which vectors are read at once.
#define EACH_GROUP _Pragma("unroll") for (int g = 0; g < M / 4; ++g)
#define EACH_OF_GROUP _Pragma("unroll") for (int j = 0, m = 4 * g; j < 4; ++j, ++m) if (EXACT || m < terms)

template <int M, int SEGMENT, bool EXACT>
__device__ __forceinline__ void recurrence_forward(
    const float* r, const float* w, const float* k, const float* v, const float* kk, const float* b,
    float* y, float* sa, float* states, u32 tokens, u32 c, u32 n) {
    constexpr int STEP = 16;
    __shared__ __align__(16) float rs[STEP][4 * M], ws[STEP][4 * M], ks[STEP][4 * M], as[STEP][4 * M], bs[STEP][4 * M], vs[STEP][4 * M];
    const u32 i = threadIdx.x / 4, q = threadIdx.x % 4;
    const bool mine = EXACT || i < n;
    const int terms = mine ? (int)((n + 3 - q) / 4) : 0;
    Feed<M, STEP / 4, EXACT> fr, fw, fk, fa, fb, fv;
    auto fetch = [&](u32 t0) {
        const u32 count = min((u32)STEP, tokens - t0);
        const size_t from = (size_t)t0 * c;
        fr.fetch(r + from, count, c, n);
        fw.fetch(w + from, count, c, n);
        fk.fetch(k + from, count, c, n);
        fa.fetch(kk + from, count, c, n);
        fb.fetch(b + from, count, c, n);
        fv.fetch(v + from, count, c, n);
    };
    float s[M] = {}, p_out = 0.0f;
    fetch(0);
    for (u32 t0 = 0; t0 < tokens; t0 += STEP) {
        const u32 count = min((u32)STEP, tokens - t0);
        __syncthreads();
        fr.store(rs, count, n);
        fw.store(ws, count, n);
        fk.store(ks, count, n);
        fa.store(as, count, n);
        fb.store(bs, count, n);
        fv.store(vs, count, n);
        __syncthreads();
        if (t0 + STEP < tokens) fetch(t0 + STEP);
        for (u32 t = 0; t < count; ++t) {
            if (states && (t0 + t) % SEGMENT == 0) {
                float* to = states + ((size_t)((t0 + t) / SEGMENT) * n + i) * n + q;
                EACH_TERM to[4 * m] = s[m];
            }
            float p = 0.0f;
            EACH_GROUP {
                const Four a4(&as[t][q * M + 4 * g]);
                EACH_OF_GROUP p = fmaf(s[m], -a4.at[j], p);
            }
            // The output of the token before is folded along with this one's sum, since each fold is a wait.
            const float out = fold_state(p_out), removed = fold_state(p);
            const size_t at = (size_t)(t0 + t) * c + i;
            if (mine && q == 0 && t0 + t > 0) y[at - c] = out;
            if (mine && q == 1) sa[at] = removed;
            const float vi = vs[t][(i % 4) * M + i / 4];
            p_out = 0.0f;
            EACH_GROUP {
                const Four k4(&ks[t][q * M + 4 * g]), b4(&bs[t][q * M + 4 * g]);
                const Four w4(&ws[t][q * M + 4 * g]), r4(&rs[t][q * M + 4 * g]);
                EACH_OF_GROUP {
                    s[m] = fmaf(vi, k4.at[j], fmaf(removed, b4.at[j], s[m] * w4.at[j]));
                    p_out = fmaf(s[m], r4.at[j], p_out);
                }
            }
        }
    }
    const float out = fold_state(p_out);
    if (mine && q == 0) y[(size_t)(tokens - 1) * c + i] = out;
}

template <int M, int SEGMENT, bool EXACT>
__device__ __forceinline__ void recurrence_backward(
    const float* r, const float* w, const float* k, const float* v, const float* kk, const float* b,
    const float* sa, const float* states, const float* dy,
    float* dr, float* dw, float* dk, float* dv, float* da, float* db, u32 tokens, u32 c, u32 n) {
    __shared__ __align__(16) float rs[SEGMENT][4 * M], ws[SEGMENT][4 * M], ks[SEGMENT][4 * M], as[SEGMENT][4 * M];
    __shared__ __align__(16) float bs[SEGMENT][4 * M], vs[SEGMENT][4 * M], removed[SEGMENT][4 * M], ds[SEGMENT][4 * M];
    __shared__ __align__(16) float hs[SEGMENT][4 * M];
    constexpr int HELD = SEGMENT > 1 ? M : 1;
    // Each thread's columns of the states before the segment's tokens after the first.
    __shared__ float kept[SEGMENT > 1 ? SEGMENT - 1 : 1][HELD][SEGMENT > 1 ? 16 * M : 1];
    const u32 i = threadIdx.x / 4, q = threadIdx.x % 4;
    const bool mine = EXACT || i < n;
    const int terms = mine ? (int)((n + 3 - q) / 4) : 0;
    const u32 own = (i % 4) * M + i / 4, others = q * M;
    float* mine_out = q == 0 ? dr : q == 1 ? db : q == 2 ? da : dw;
    float g_row[M] = {}, g_col[M] = {};
    const u32 segments = (tokens + SEGMENT - 1) / SEGMENT;
    Feed<M, SEGMENT / 4 + (SEGMENT % 4 != 0), EXACT> fr, fw, fk, fa, fb, fv, fs, fd;
    float start_next[HELD] = {};
    auto fetch = [&](u32 segment) {
        const u32 t0 = segment * SEGMENT, count = min((u32)SEGMENT, tokens - t0);
        const size_t from = (size_t)t0 * c;
        fr.fetch(r + from, count, c, n);
        fw.fetch(w + from, count, c, n);
        fk.fetch(k + from, count, c, n);
        fa.fetch(kk + from, count, c, n);
        fb.fetch(b + from, count, c, n);
        fv.fetch(v + from, count, c, n);
        fs.fetch(sa + from, count, c, n);
        fd.fetch(dy + from, count, c, n);
        if (SEGMENT > 1) EACH_TERM start_next[m % HELD] = states[((size_t)segment * n + q + 4 * m) * n + i];
    };
    // A large head has no registers for the next tokens.
    constexpr bool AHEAD = SEGMENT > 1;
    if (AHEAD) fetch(segments - 1);
    for (u32 segment = segments; segment-- > 0;) {
        const u32 t0 = segment * SEGMENT, count = min((u32)SEGMENT, tokens - t0);
        __syncthreads();
        if (!AHEAD) fetch(segment);
        fr.store(rs, count, n);
        fw.store(ws, count, n);
        fk.store(ks, count, n);
        fa.store(as, count, n);
        fb.store(bs, count, n);
        fv.store(vs, count, n);
        fs.store(removed, count, n);
        fd.store(ds, count, n);
        float first[HELD] = {}, after[HELD] = {};
        if (SEGMENT > 1) EACH_TERM first[m % HELD] = start_next[m % HELD];
        __syncthreads();
        if (AHEAD && segment > 0) fetch(segment - 1);
        // The segment's states once more, from the one that the forward pass kept. Where it kept them all, each is read when
        // it is used instead: a large head has no registers to spare.
        const float* start = states + ((size_t)segment * n + q) * n + i;
        auto next = [&](u32 t, int m, float state) {
            const float carried = fmaf(removed[t][others + m], bs[t][own], state * ws[t][own]);
            return fmaf(vs[t][others + m], ks[t][own], carried);
        };
        if (SEGMENT > 1) {
            EACH_TERM after[m % HELD] = first[m % HELD];
            for (u32 t = 0; t < count; ++t) {
                EACH_TERM {
                    if (t > 0) kept[t - 1][m % HELD][threadIdx.x] = after[m % HELD];
                    after[m % HELD] = next(t, m, after[m % HELD]);
                }
            }
        }
        // Along the rows: what is needed of other rows is not needed here, so that no thread waits for another.
        for (u32 t = count; t-- > 0;) {
            const float dy_own = ds[t][own];
            float pv = 0.0f, ph = 0.0f;
            EACH_GROUP {
                const Four r4(&rs[t][others + 4 * g]), k4(&ks[t][others + 4 * g]), b4(&bs[t][others + 4 * g]);
                EACH_OF_GROUP {
                    g_row[m] = fmaf(dy_own, r4.at[j], g_row[m]);
                    ph = fmaf(g_row[m], b4.at[j], ph);
                    pv = fmaf(g_row[m], k4.at[j], pv);
                }
            }
            const float h_own = fold_state(ph), dv_own = fold_state(pv);
            EACH_GROUP {
                const Four a4(&as[t][others + 4 * g]), w4(&ws[t][others + 4 * g]);
                EACH_OF_GROUP g_row[m] = fmaf(h_own, -a4.at[j], g_row[m] * w4.at[j]);
            }
            // All four threads hold the same.
            if (mine) hs[t][own] = h_own;
            if (mine && q == 0) dv[(size_t)(t0 + t) * c + i] = dv_own;
        }
        __syncthreads();
        // Down the columns.
        for (u32 t = count; t-- > 0;) {
            const float r_own = rs[t][own], w_own = ws[t][own], a_own = -as[t][own];
            float before[HELD] = {};
            if (SEGMENT > 1) EACH_TERM before[m % HELD] = t > 0 ? kept[t - 1][m % HELD][threadIdx.x] : first[m % HELD];
            float pr = 0.0f, pk = 0.0f, pb = 0.0f, pw = 0.0f, pa = 0.0f;
            EACH_GROUP {
                const Four d4(&ds[t][others + 4 * g]), v4(&vs[t][others + 4 * g]);
                const Four s4(&removed[t][others + 4 * g]), h4(&hs[t][others + 4 * g]);
                EACH_OF_GROUP {
                    const float old = SEGMENT > 1 ? before[m % HELD] : start[(size_t)4 * m * n];
                    g_col[m] = fmaf(d4.at[j], r_own, g_col[m]);
                    pr = fmaf(SEGMENT > 1 ? after[m % HELD] : next(t, m, old), d4.at[j], pr);
                    pk = fmaf(g_col[m], v4.at[j], pk);
                    pb = fmaf(g_col[m], s4.at[j], pb);
                    pw = fmaf(g_col[m], old, pw);
                    pa = fmaf(old, h4.at[j], pa);
                    g_col[m] = fmaf(h4.at[j], a_own, g_col[m] * w_own);
                    if (SEGMENT > 1) after[m % HELD] = old;
                }
            }
            const float r_sum = fold_state(pr), k_sum = fold_state(pk), b_sum = fold_state(pb);
            const float w_sum = fold_state(pw), a_sum = fold_state(pa);
            // Each thread stores one sum; the first also a second.
            const float sum = q == 0 ? r_sum : q == 1 ? b_sum : q == 2 ? a_sum : w_sum;
            const size_t at = (size_t)(t0 + t) * c + i;
            if (mine) mine_out[at] = sum;
            if (mine && q == 0) dk[at] = k_sum;
        }
    }
}

// Overwrites y, sa and, where states is not null, the state before every SEGMENT-th token; b = kk a, the removal key is -kk.
#define RECURRENCE(NAME, M, SEGMENT, EXACT)                                                                               \
    extern "C" __global__ void __launch_bounds__(16 * M, 1) recurrence_forward_##NAME(                                       \
        const int* lanes, const float* r, const float* w, const float* k, const float* v, const float* kk,                \
        const float* b, float* y, float* sa, float* states, unsigned windows, unsigned tokens, unsigned heads,            \
        unsigned n) {                                                                                                     \
        const int lane = lanes[blockIdx.z];                                                                               \
        if (lane < 0) return;                                                                                             \
        const u32 c = heads * n, segments = (tokens + SEGMENT - 1) / SEGMENT;                                             \
        const size_t window = (size_t)lane * windows + blockIdx.y;                                                        \
        const size_t at = window * tokens * c + blockIdx.x * n;                                                           \
        float* kept = states ? states + (window * heads + blockIdx.x) * segments * n * n : nullptr;                       \
        recurrence_forward<M, SEGMENT, EXACT>(                                                                            \
            r + at, w + at, k + at, v + at, kk + at, b + at, y + at, sa + at, kept, tokens, c, n);                        \
    }                                                                                                                     \
    extern "C" __global__ void __launch_bounds__(16 * M, 1) recurrence_backward_##NAME(                                      \
        const int* lanes, const float* r, const float* w, const float* k, const float* v, const float* kk,                \
        const float* b, const float* sa, const float* states, const float* dy, float* dr, float* dw, float* dk,           \
        float* dv, float* da, float* db, unsigned windows, unsigned tokens, unsigned heads, unsigned n) {                 \
        const int lane = lanes[blockIdx.z];                                                                               \
        if (lane < 0) return;                                                                                             \
        const u32 c = heads * n, segments = (tokens + SEGMENT - 1) / SEGMENT;                                             \
        const size_t window = (size_t)lane * windows + blockIdx.y;                                                        \
        const size_t at = window * tokens * c + blockIdx.x * n;                                                           \
        const float* kept = states + (window * heads + blockIdx.x) * segments * n * n;                                    \
        recurrence_backward<M, SEGMENT, EXACT>(                                                                           \
            r + at, w + at, k + at, v + at, kk + at, b + at, sa + at, kept, dy + at, dr + at, dw + at, dk + at, dv + at,  \
            da + at, db + at, tokens, c, n);                                                                              \
    }

RECURRENCE(upto16, 4, 8, false)
RECURRENCE(upto32, 8, 8, false)
RECURRENCE(upto64, 16, 2, false)
RECURRENCE(upto128, 32, 1, false)
RECURRENCE(of32, 8, 8, true)
RECURRENCE(of64, 16, 2, true)
