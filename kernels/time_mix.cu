// The time mix around its recurrence: what forms decay, keys and values from the products, and the norm, bonus and gate
// after it. One warp a row and head; 4 warps a block of 128 threads.

// Decay, keys and values. Overwrites all outputs, sw, a and vs in place of the products; in the first RWKV block
// (first != 0) v = v0, and vs, v0p and vfirst are not touched.
extern "C" __global__ void __launch_bounds__(128) time_mix_prepare(
    const int* lanes,    // [grid z]
    const float* w0,     // [C] in the arena
    const float* a0,     // [C] in the arena
    const float* v0p,    // [C] in the arena
    const float* k_k,    // [C] in the arena
    const float* k_a,    // [C] in the arena
    u64 arena,
    const float* k0,     // [L,R,C] xk W_k
    const float* v0,     // [L,R,C] xv W_v
    const float* vfirst, // [L,R,C]
    float* sw,           // [L,R,C] in: hw w2; out: sigmoid(w0 + hw w2)
    float* a,            // [L,R,C] in: ha a2; out: sigmoid(a0 + ha a2)
    float* vs,           // [L,R,C] in: hv v2; out: sigmoid(v0p + hv v2)
    float* w,            // [L,R,C] decay
    float* k,            // [L,R,C] key
    float* v,            // [L,R,C] value
    float* kk,           // [L,R,C] removal key
    float* b,            // [L,R,C] replacement key
    unsigned rows, unsigned heads, unsigned n, unsigned first) {
    const int lane = lanes[blockIdx.z];
    const u32 item = blockIdx.x * 4 + threadIdx.x / 32, j = threadIdx.x % 32;
    if (lane < 0 || item >= rows * heads) return;
    const u32 head = item % heads;
    const size_t base = ((size_t)lane * rows * heads + item) * n;
    const size_t of = (size_t)lane * arena + head * n;
    float p = 0.0f;
    for (u32 i = j; i < n; i += 32) {
        const float q = k0[base + i] * k_k[of + i];
        p = fmaf(q, q, p);
    }
    const float norm = fmaxf(__fsqrt_rn(fold_row(p)), 1e-12f);
    const float inv = __fdiv_rn(1.0f, norm);
    for (u32 i = j; i < n; i += 32) {
        const size_t at = base + i;
        // Everything is read before anything is written, so that the reads are under way at once.
        const float key = k0[at], value = v0[at], k_k_of = k_k[of + i], k_a_of = k_a[of + i];
        const float before_s = w0[of + i] + sw[at], before_a = a0[of + i] + a[at];
        const float before_gate = first ? 0.0f : v0p[of + i] + vs[at], far = first ? 0.0f : vfirst[at];
        const float s = sigmoid_f(before_s);
        const float rate = sigmoid_f(before_a);
        const float removal = (key * k_k_of) * inv;
        sw[at] = s;
        w[at] = exp_f(-0.60653067f * s);
        a[at] = rate;
        if (first) {
            v[at] = value;
        } else {
            const float gate = sigmoid_f(before_gate);
            vs[at] = gate;
            v[at] = fmaf(far - value, gate, value);
        }
        kk[at] = removal;
        k[at] = key * fmaf(rate - 1.0f, k_a_of, 1.0f);
        b[at] = removal * rate;
    }
}

// Norm over a head, bonus and gate: what both directions need of a row and head.
struct HeadNorm {
    float mean, scale, bonus;
};

__device__ __forceinline__ HeadNorm head_norm(
    const float* y, const float* r, const float* k, const float* r_k, u32 n, u32 j) {
    HeadNorm out;
    float p = 0.0f, bonus = 0.0f;
    for (u32 i = j; i < n; i += 32) p = p + y[i];
    out.mean = __fdiv_rn(fold_row(p), (float)n);
    p = 0.0f;
    for (u32 i = j; i < n; i += 32) {
        const float d = y[i] - out.mean;
        p = fmaf(d, d, p);
        bonus = fmaf(r[i] * k[i], r_k[i], bonus);
    }
    const float variance = __fdiv_rn(fold_row(p), (float)n);
    out.scale = __fdiv_rn(1.0f, __fsqrt_rn(variance + 64e-5f));
    out.bonus = fold_row(bonus);
    return out;
}

// The same of a head of at most 32 channels, of which each thread has one, or zeros where there is none (`in`).
__device__ __forceinline__ HeadNorm narrow_head_norm(float y, float r, float k, float r_k, u32 n, bool in) {
    HeadNorm out;
    out.mean = __fdiv_rn(fold_row(0.0f + y), (float)n);
    const float d = y - out.mean;
    float p = in ? fmaf(d, d, 0.0f) : 0.0f, bonus = fmaf(r * k, r_k, 0.0f);
    for (int h = 16; h > 0; h >>= 1) {
        p = p + __shfl_xor_sync(FULL_WARP, p, h);
        bonus = bonus + __shfl_xor_sync(FULL_WARP, bonus, h);
    }
    out.scale = __fdiv_rn(1.0f, __fsqrt_rn(__fdiv_rn(p, (float)n) + 64e-5f));
    out.bonus = bonus;
    return out;
}

// o = (groupnorm(y) + bonus v) g. Overwrites o.
extern "C" __global__ void __launch_bounds__(128) time_mix_finish(
    const int* lanes,     // [grid z]
    const float* ln_x_w,  // [C] in the arena
    const float* ln_x_b,  // [C] in the arena
    const float* r_k,     // [H,N] in the arena
    u64 arena,
    const float* y,       // [L,R,C]
    const float* r,       // [L,R,C]
    const float* k,       // [L,R,C]
    const float* v,       // [L,R,C]
    const float* g,       // [L,R,C]
    float* o,             // [L,R,C]
    unsigned rows, unsigned heads, unsigned n) {
    const int lane = lanes[blockIdx.z];
    const u32 item = blockIdx.x * 4 + threadIdx.x / 32, j = threadIdx.x % 32;
    if (lane < 0 || item >= rows * heads) return;
    const size_t base = ((size_t)lane * rows * heads + item) * n;
    const size_t of = (size_t)lane * arena + (item % heads) * n;
    if (n <= 32) {
        const bool in = j < n;
        const size_t at = base + (in ? j : 0), of_own = of + (in ? j : 0);
        const float y0 = __ldg(y + at), r0 = __ldg(r + at), k0 = __ldg(k + at), v0 = __ldg(v + at), g0 = __ldg(g + at);
        const float w0 = ln_x_w[of_own], b0 = ln_x_b[of_own], rk0 = r_k[of_own];
        const HeadNorm h = narrow_head_norm(in ? y0 : 0.0f, in ? r0 : 0.0f, in ? k0 : 0.0f, in ? rk0 : 0.0f, n, in);
        if (in) o[at] = fmaf(h.bonus, v0, fmaf((y0 - h.mean) * h.scale, w0, b0)) * g0;
        return;
    }
    const HeadNorm h = head_norm(y + base, r + base, k + base, r_k + of, n, j);
    for (u32 i = j; i < n; i += 32) {
        const float yhat = (y[base + i] - h.mean) * h.scale;
        const float yn = fmaf(yhat, ln_x_w[of + i], ln_x_b[of + i]);
        o[base + i] = fmaf(h.bonus, v[base + i], yn) * g[base + i];
    }
}

// What the backward kernel of `time_mix_finish` reads and writes of its lane.
struct FinishBackward {
    const float *ln_x_w, *ln_x_b, *r_k, *y, *r, *k, *v, *g, *d_o;
    float *dg, *dr, *dk, *dv, *dy, *heads_of;
    u32 heads, n;
};

// Gradients of one row and a head of at most 32 channels, `item`. One warp, whose threads read all before they write.
__device__ __forceinline__ void narrow_finish_item(const FinishBackward& a, u32 item, u32 j) {
    const u32 n = a.n;
    const bool in = j < n;
    const size_t at = (size_t)item * n + (in ? j : 0), of = (item % a.heads) * n + (in ? j : 0);
    const float y = __ldg(a.y + at), r = __ldg(a.r + at), k = __ldg(a.k + at), v = __ldg(a.v + at), g = __ldg(a.g + at);
    const float d_o = __ldg(a.d_o + at), w = __ldg(a.ln_x_w + of), b = __ldg(a.ln_x_b + of), r_k = __ldg(a.r_k + of);
    const HeadNorm h = narrow_head_norm(in ? y : 0.0f, in ? r : 0.0f, in ? k : 0.0f, in ? r_k : 0.0f, n, in);
    const float hat = (y - h.mean) * h.scale, d = d_o * g, gn = d * w;
    float p = in ? fmaf(d, v, 0.0f) : 0.0f, p1 = in ? 0.0f + gn : 0.0f, p2 = in ? fmaf(gn, hat, 0.0f) : 0.0f;
    for (int f = 16; f > 0; f >>= 1) {
        p = p + __shfl_xor_sync(FULL_WARP, p, f);
        p1 = p1 + __shfl_xor_sync(FULL_WARP, p1, f);
        p2 = p2 + __shfl_xor_sync(FULL_WARP, p2, f);
    }
    const float c1 = __fdiv_rn(p1, (float)n), c2 = __fdiv_rn(p2, (float)n);
    if (in) {
        a.dg[at] = d_o * fmaf(h.bonus, v, fmaf(hat, w, b));
        a.dv[at] = h.bonus * d;
        a.dr[at] = p * (k * r_k);
        a.dk[at] = p * (r * r_k);
        a.dy[at] = h.scale * fmaf(-hat, c2, gn - c1);
    }
    if (j < 3) a.heads_of[(size_t)item * 3 + j] = j == 0 ? h.mean : j == 1 ? h.scale : p;
}

// The same of a head of any width.
__device__ __forceinline__ void finish_item(const FinishBackward& a, u32 item, u32 j) {
    const u32 n = a.n;
    const size_t base = (size_t)item * n, of = (item % a.heads) * n;
    const HeadNorm h = head_norm(a.y + base, a.r + base, a.k + base, a.r_k + of, n, j);
    float p = 0.0f, p1 = 0.0f, p2 = 0.0f;
    for (u32 i = j; i < n; i += 32) {
        const size_t at = base + i;
        const float hat = (a.y[at] - h.mean) * h.scale;
        const float v = a.v[at], w = a.ln_x_w[of + i], d_o = a.d_o[at];
        const float yb = fmaf(h.bonus, v, fmaf(hat, w, a.ln_x_b[of + i]));
        const float d = d_o * a.g[at];
        a.dg[at] = d_o * yb;
        p = fmaf(d, v, p);
        const float gn = d * w;
        p1 = p1 + gn;
        p2 = fmaf(gn, hat, p2);
    }
    const float db = fold_row(p);
    const float c1 = __fdiv_rn(fold_row(p1), (float)n);
    const float c2 = __fdiv_rn(fold_row(p2), (float)n);
    for (u32 i = j; i < n; i += 32) {
        const size_t at = base + i;
        const float d = a.d_o[at] * a.g[at];
        const float hat = (a.y[at] - h.mean) * h.scale;
        const float k = a.k[at], r = a.r[at], r_k = a.r_k[of + i], w = a.ln_x_w[of + i];
        a.dv[at] = h.bonus * d;
        a.dr[at] = db * (k * r_k);
        a.dk[at] = db * (r * r_k);
        a.dy[at] = h.scale * fmaf(-hat, c2, d * w - c1);
    }
    if (j < 3) a.heads_of[(size_t)item * 3 + j] = j == 0 ? h.mean : j == 1 ? h.scale : db;
}

// Gradients through `time_mix_finish`, and the first half of those of r_k, ln_x_w and ln_x_b (S3). One block, of up to 1024 threads, a chunk
// of 32 rows. Overwrites dg, dr, dk, dv (their parts that pass the recurrence by), dy, heads_of and chunks.
extern "C" __global__ void __launch_bounds__(1024) time_mix_finish_backward(
    const int* lanes,     // [grid z]
    const float* ln_x_w,  // [C] in the arena
    const float* ln_x_b,  // [C] in the arena
    const float* r_k,     // [H,N] in the arena
    u64 arena,
    const float* y,       // [L,R,C]
    const float* r,       // [L,R,C]
    const float* k,       // [L,R,C]
    const float* v,       // [L,R,C]
    const float* g,       // [L,R,C]
    const float* d_o,     // [L,R,C]
    float* dg,            // [L,R,C]
    float* dr,            // [L,R,C]
    float* dk,            // [L,R,C]
    float* dv,            // [L,R,C]
    float* dy,            // [L,R,C]
    float* heads_of,      // [L,R,H,3] mean and scale of y, gradient of the bonus
    float* chunks,        // [L,chunks,vectors,C] from `slot` on: of r_k, ln_x_w, ln_x_b
    unsigned rows, unsigned heads, unsigned n, unsigned vectors, unsigned slot) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const u32 c = heads * n;
    const size_t all = (size_t)lane * rows * c, of = (size_t)lane * arena;
    const FinishBackward a = {ln_x_w + of, ln_x_b + of, r_k + of, y + all, r + all, k + all, v + all, g + all, d_o + all,
                              dg + all, dr + all, dk + all, dv + all, dy + all, heads_of + (size_t)lane * rows * heads * 3,
                              heads, n};
    const u32 first = blockIdx.x * COLUMN_CHUNK, last = min(first + COLUMN_CHUNK, rows);
    if (n <= 32) {
#pragma unroll 2
        for (u32 item = first * heads + threadIdx.x / 32; item < last * heads; item += blockDim.x / 32) {
            narrow_finish_item(a, item, threadIdx.x % 32);
        }
    } else {
        for (u32 item = first * heads + threadIdx.x / 32; item < last * heads; item += blockDim.x / 32) {
            finish_item(a, item, threadIdx.x % 32);
        }
    }
    __syncthreads();
    float* to = chunks + (((size_t)lane * gridDim.x + blockIdx.x) * vectors + slot) * c;
    for (u32 e = threadIdx.x; e < 3 * c; e += blockDim.x) {
        const u32 which = e / c, i = e % c;
        float sum = 0.0f;
#pragma unroll 8
        for (u32 row = first; row < last; ++row) {
            const size_t at = (size_t)row * c + i;
            const float* head = a.heads_of + ((size_t)row * heads + i / n) * 3;
            if (which == 0) {
                sum = fmaf(head[2], __ldg(a.r + at) * __ldg(a.k + at), sum);
            } else {
                const float d = __ldg(a.d_o + at) * __ldg(a.g + at);
                sum = which == 1 ? fmaf(d, (__ldg(a.y + at) - head[0]) * head[1], sum) : sum + d;
            }
        }
        to[e] = sum;
    }
}

// What the backward kernel of `time_mix_prepare` reads and writes of its lane.
struct PrepareBackward {
    const float *k_k, *k_a, *k0, *v0, *vfirst, *sw, *a, *vs, *w, *kk;
    const float *dr_rec, *dw_rec, *dk_rec, *dv_rec, *da_rec, *db_rec;
    float *dr, *dk, *dv, *dvfirst, *dk0, *dv0, *dz, *dza, *dzv, *dq;
    u32 heads, n;
    bool first, last;
};

// Gradients of one row and head, `item`. One warp.
__device__ __forceinline__ void prepare_item(const PrepareBackward& x, u32 item, u32 j) {
    const size_t base = (size_t)item * x.n, of = (item % x.heads) * x.n;
    float p = 0.0f, pc = 0.0f;
    for (u32 i = j; i < x.n; i += 32) {
        const size_t at = base + i;
        const float q = __ldg(x.k0 + at) * __ldg(x.k_k + of + i);
        p = fmaf(q, q, p);
        const float dkk = fmaf(__ldg(x.db_rec + at), __ldg(x.a + at), -__ldg(x.da_rec + at));
        pc = fmaf(dkk, __ldg(x.kk + at), pc);
    }
    const float norm = __fsqrt_rn(fold_row(p));
    const float inv = __fdiv_rn(1.0f, fmaxf(norm, 1e-12f));
    const float along = fold_row(pc), c = norm > 1e-12f ? along : 0.0f;
    for (u32 i = j; i < x.n; i += 32) {
        const size_t at = base + i;
        // Everything is read before anything is written, so that the reads are under way at once.
        const bool others = !x.first;
        const float key = __ldg(x.k0 + at), rate = __ldg(x.a + at), removal = __ldg(x.kk + at), k_a = __ldg(x.k_a + of + i), k_k = __ldg(x.k_k + of + i);
        const float dr = __ldg(x.dr_rec + at) + x.dr[at], dkey = __ldg(x.dk_rec + at) + x.dk[at], dv = __ldg(x.dv_rec + at) + x.dv[at];
        const float db_rec = __ldg(x.db_rec + at), da_rec = __ldg(x.da_rec + at), dw_rec = __ldg(x.dw_rec + at), w = __ldg(x.w + at), s = __ldg(x.sw + at);
        const float dfar = x.last ? 0.0f : x.dvfirst[at];
        const float gate = others ? __ldg(x.vs + at) : 0.0f, far = others ? __ldg(x.vfirst + at) : 0.0f, own = others ? __ldg(x.v0 + at) : 0.0f;
        const float dvalue = x.first ? dv + dfar : dv;
        const float f = fmaf(rate - 1.0f, k_a, 1.0f);
        const float dkk = fmaf(db_rec, rate, -da_rec);
        const float da = fmaf(db_rec, removal, dkey * (key * k_a));
        const float d = fmaf(-removal, c, dkk) * inv;
        x.dr[at] = dr;
        x.dk[at] = dkey;
        x.dq[at] = d;
        x.dk0[at] = fmaf(d, k_k, dkey * f);
        if (x.first) {
            x.dv0[at] = dvalue;
        } else {
            x.dvfirst[at] = dfar + dvalue * gate;
            x.dv0[at] = dvalue * (1.0f - gate);
            x.dzv[at] = (dvalue * (far - own)) * (gate * (1.0f - gate));
        }
        x.dza[at] = da * (rate * (1.0f - rate));
        x.dz[at] = ((dw_rec * w) * -0.60653067f) * (s * (1.0f - s));
    }
}

// Sum (S3) over rows first..end of column i for the gradient of: 0 k_k, 1 k_a, 2 w0, 3 a0, 4 v0.
__device__ __forceinline__ float prepare_column(const PrepareBackward& x, u32 which, u32 i, u32 first, u32 end) {
    const u32 c = x.heads * x.n;
    const float* plain = which == 2 ? x.dz : which == 3 ? x.dza : x.dzv;
    float sum = 0.0f;
    if (which < 2) {
#pragma unroll 8
        for (u32 row = first; row < end; ++row) {
            const size_t at = (size_t)row * c + i;
            const float key = __ldg(x.k0 + at);
            sum = which == 0 ? fmaf(x.dq[at], key, sum) : fmaf(x.dk[at], key * (__ldg(x.a + at) - 1.0f), sum);
        }
    } else {
#pragma unroll 8
        for (u32 row = first; row < end; ++row) sum = sum + plain[(size_t)row * c + i];
    }
    return sum;
}

// Gradients through `time_mix_prepare`, and the first half of those of k_k, k_a, w0, a0 and v0 (S3). dr, dk and dv hold the parts
// that pass the recurrence by; dr and dk get the recurrence's added. Overwrites dk0, dv0, dz, dza (of a's pre-activation), dzv, dq and
// chunks; dvfirst is added to, or begun in the last RWKV block (last != 0); in the first (first != 0) it is read and is part of dv, and
// there is no v0. One block, of up to 1024 threads, a chunk of 32 rows.
extern "C" __global__ void __launch_bounds__(1024) time_mix_prepare_backward(
    const int* lanes,     // [grid z]
    const float* k_k,     // [C] in the arena
    const float* k_a,     // [C] in the arena
    u64 arena,
    const float* k0,      // [L,R,C]
    const float* v0,      // [L,R,C]
    const float* vfirst,  // [L,R,C]
    const float* sw,      // [L,R,C]
    const float* a,       // [L,R,C]
    const float* vs,      // [L,R,C]
    const float* w,       // [L,R,C]
    const float* kk,      // [L,R,C]
    const float* dr_rec,  // [L,R,C] from the recurrence, like the next five
    const float* dw_rec,
    const float* dk_rec,
    const float* dv_rec,
    const float* da_rec,
    const float* db_rec,
    float* dr,            // [L,R,C] added to
    float* dk,            // [L,R,C] added to
    float* dv,            // [L,R,C]
    float* dvfirst,       // [L,R,C]
    float* dk0,           // [L,R,C]
    float* dv0,           // [L,R,C]
    float* dz,            // [L,R,C]
    float* dza,           // [L,R,C]
    float* dzv,           // [L,R,C]
    float* dq,            // [L,R,C]
    float* chunks,        // [L,chunks,vectors,C]
    unsigned rows, unsigned heads, unsigned n, unsigned vectors,
    unsigned k_slot, unsigned w_slot, unsigned a_slot, unsigned v_slot, unsigned first, unsigned last) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const u32 c = heads * n;
    const size_t all = (size_t)lane * rows * c, of = (size_t)lane * arena;
    const PrepareBackward x = {
        k_k + of, k_a + of, k0 + all, v0 + all, vfirst + all, sw + all, a + all, vs + all, w + all, kk + all,
        dr_rec + all, dw_rec + all, dk_rec + all, dv_rec + all, da_rec + all, db_rec + all,
        dr + all, dk + all, dv + all, dvfirst + all, dk0 + all, dv0 + all, dz + all, dza + all, dzv + all, dq + all,
        heads, n, first != 0, last != 0};
    const u32 begin = blockIdx.x * COLUMN_CHUNK, end = min(begin + COLUMN_CHUNK, rows);
    for (u32 item = begin * heads + threadIdx.x / 32; item < end * heads; item += blockDim.x / 32) {
        prepare_item(x, item, threadIdx.x % 32);
    }
    __syncthreads();
    float* to = chunks + ((size_t)lane * gridDim.x + blockIdx.x) * vectors * c;
    for (u32 e = threadIdx.x; e < (first ? 4 : 5) * c; e += blockDim.x) {
        const u32 which = e / c, i = e % c;
        const u32 slot = which < 2 ? k_slot + which : which == 2 ? w_slot : which == 3 ? a_slot : v_slot;
        to[(size_t)slot * c + i] = prepare_column(x, which, i, begin, end);
    }
}
