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
        const float s = sigmoid_f(w0[of + i] + sw[at]);
        const float rate = sigmoid_f(a0[of + i] + a[at]);
        const float key = k0[at], value = v0[at];
        const float removal = (key * k_k[of + i]) * inv;
        sw[at] = s;
        w[at] = exp_f(-0.60653067f * s);
        a[at] = rate;
        if (first) {
            v[at] = value;
        } else {
            const float gate = sigmoid_f(v0p[of + i] + vs[at]);
            vs[at] = gate;
            v[at] = fmaf(vfirst[at] - value, gate, value);
        }
        kk[at] = removal;
        k[at] = key * fmaf(rate - 1.0f, k_a[of + i], 1.0f);
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
    const HeadNorm h = head_norm(y + base, r + base, k + base, r_k + of, n, j);
    for (u32 i = j; i < n; i += 32) {
        const float yhat = (y[base + i] - h.mean) * h.scale;
        const float yn = fmaf(yhat, ln_x_w[of + i], ln_x_b[of + i]);
        o[base + i] = fmaf(h.bonus, v[base + i], yn) * g[base + i];
    }
}

// Gradients through `time_mix_finish`. Overwrites dg, dr, dk, dv (their parts that pass the recurrence by), dy, and what
// the column sums need: dyb, yhat and dbonus.
extern "C" __global__ void __launch_bounds__(128) time_mix_finish_backward(
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
    float* dyb,           // [L,R,C]
    float* yhat,          // [L,R,C]
    float* dbonus,        // [L,R,H]
    unsigned rows, unsigned heads, unsigned n) {
    const int lane = lanes[blockIdx.z];
    const u32 item = blockIdx.x * 4 + threadIdx.x / 32, j = threadIdx.x % 32;
    if (lane < 0 || item >= rows * heads) return;
    const size_t base = ((size_t)lane * rows * heads + item) * n;
    const size_t of = (size_t)lane * arena + (item % heads) * n;
    const HeadNorm h = head_norm(y + base, r + base, k + base, r_k + of, n, j);
    float p = 0.0f, p1 = 0.0f, p2 = 0.0f;
    for (u32 i = j; i < n; i += 32) {
        const size_t at = base + i;
        const float hat = (y[at] - h.mean) * h.scale;
        const float yb = fmaf(h.bonus, v[at], fmaf(hat, ln_x_w[of + i], ln_x_b[of + i]));
        const float d = d_o[at] * g[at];
        dg[at] = d_o[at] * yb;
        dyb[at] = d;
        yhat[at] = hat;
        p = fmaf(d, v[at], p);
        const float gn = d * ln_x_w[of + i];
        p1 = p1 + gn;
        p2 = fmaf(gn, hat, p2);
    }
    const float db = fold_row(p);
    const float c1 = __fdiv_rn(fold_row(p1), (float)n);
    const float c2 = __fdiv_rn(fold_row(p2), (float)n);
    for (u32 i = j; i < n; i += 32) {
        const size_t at = base + i;
        const float d = d_o[at] * g[at];
        const float hat = (y[at] - h.mean) * h.scale;
        dv[at] = h.bonus * d;
        dr[at] = db * (k[at] * r_k[of + i]);
        dk[at] = db * (r[at] * r_k[of + i]);
        dy[at] = h.scale * fmaf(-hat, c2, d * ln_x_w[of + i] - c1);
    }
    if (j == 0) dbonus[(size_t)lane * rows * heads + item] = db;
}

// First half of the gradients of r_k, ln_x_w and ln_x_b: sums over chunks of 32 rows (S3). Overwrites chunks.
extern "C" __global__ void __launch_bounds__(128) time_mix_finish_columns(
    const int* lanes,     // [grid z]
    const float* r,       // [L,R,C]
    const float* k,       // [L,R,C]
    const float* dyb,     // [L,R,C]
    const float* yhat,    // [L,R,C]
    const float* dbonus,  // [L,R,H]
    float* chunks,        // [L,chunks,3,C]: of r_k, ln_x_w, ln_x_b
    unsigned rows, unsigned heads, unsigned n) {
    const int lane = lanes[blockIdx.z];
    const u32 c = heads * n, i = blockIdx.x * 128 + threadIdx.x;
    if (lane < 0 || i >= c) return;
    const u32 first = blockIdx.y * COLUMN_CHUNK, last = min(first + COLUMN_CHUNK, rows);
    float rk = 0.0f, w = 0.0f, b = 0.0f;
#pragma unroll 8
    for (u32 row = first; row < last; ++row) {
        const size_t line = (size_t)lane * rows + row, at = line * c + i;
        rk = fmaf(dbonus[line * heads + i / n], r[at] * k[at], rk);
        w = fmaf(dyb[at], yhat[at], w);
        b = b + dyb[at];
    }
    float* to = chunks + ((size_t)lane * gridDim.y + blockIdx.y) * 3 * c;
    to[i] = rk;
    to[c + i] = w;
    to[2 * c + i] = b;
}

// Gradients through `time_mix_prepare`. dr, dk and dv hold the parts that pass the recurrence by, and get the recurrence's
// added. Overwrites dk0, dv0, dz, da (of a's pre-activation), dzv and dq; dvfirst is added to, or, in the first RWKV block
// (first != 0), is read and is part of dv.
extern "C" __global__ void __launch_bounds__(128) time_mix_prepare_backward(
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
    float* dv,            // [L,R,C] added to
    float* dvfirst,       // [L,R,C]
    float* dk0,           // [L,R,C]
    float* dv0,           // [L,R,C]
    float* dz,            // [L,R,C]
    float* dza,           // [L,R,C]
    float* dzv,           // [L,R,C]
    float* dq,            // [L,R,C]
    unsigned rows, unsigned heads, unsigned n, unsigned first) {
    const int lane = lanes[blockIdx.z];
    const u32 item = blockIdx.x * 4 + threadIdx.x / 32, j = threadIdx.x % 32;
    if (lane < 0 || item >= rows * heads) return;
    const size_t base = ((size_t)lane * rows * heads + item) * n;
    const size_t of = (size_t)lane * arena + (item % heads) * n;
    float p = 0.0f, pc = 0.0f;
    for (u32 i = j; i < n; i += 32) {
        const size_t at = base + i;
        const float q = k0[at] * k_k[of + i];
        p = fmaf(q, q, p);
        const float dkk = fmaf(db_rec[at], a[at], -da_rec[at]);
        pc = fmaf(dkk, kk[at], pc);
    }
    const float norm = __fsqrt_rn(fold_row(p));
    const float inv = __fdiv_rn(1.0f, fmaxf(norm, 1e-12f));
    const float along = fold_row(pc), c = norm > 1e-12f ? along : 0.0f;
    for (u32 i = j; i < n; i += 32) {
        const size_t at = base + i;
        const float key = k0[at], rate = a[at], removal = kk[at];
        dr[at] = dr_rec[at] + dr[at];
        const float dkey = dk_rec[at] + dk[at];
        dk[at] = dkey;
        float dvalue = dv_rec[at] + dv[at];
        if (first) dvalue = dvalue + dvfirst[at];
        dv[at] = dvalue;
        const float f = fmaf(rate - 1.0f, k_a[of + i], 1.0f);
        const float dkk = fmaf(db_rec[at], rate, -da_rec[at]);
        const float da = fmaf(db_rec[at], removal, dkey * (key * k_a[of + i]));
        const float d = fmaf(-removal, c, dkk) * inv;
        dq[at] = d;
        dk0[at] = fmaf(d, k_k[of + i], dkey * f);
        if (first) {
            dv0[at] = dvalue;
        } else {
            const float gate = vs[at];
            dvfirst[at] = dvfirst[at] + dvalue * gate;
            dv0[at] = dvalue * (1.0f - gate);
            dzv[at] = (dvalue * (vfirst[at] - v0[at])) * (gate * (1.0f - gate));
        }
        dza[at] = da * (rate * (1.0f - rate));
        const float s = sw[at];
        dz[at] = ((dw_rec[at] * w[at]) * -0.60653067f) * (s * (1.0f - s));
    }
}

// First half of the gradients of k_k, k_a, w0, a0 and v0: sums over chunks of 32 rows (S3). Overwrites chunks; v0's are
// zero in the first RWKV block (first != 0), which does not read it.
extern "C" __global__ void __launch_bounds__(128) time_mix_prepare_columns(
    const int* lanes,  // [grid z]
    const float* k0,   // [L,R,C]
    const float* a,    // [L,R,C]
    const float* dk,   // [L,R,C]
    const float* dq,   // [L,R,C]
    const float* dz,   // [L,R,C]
    const float* dza,  // [L,R,C]
    const float* dzv,  // [L,R,C]
    float* chunks_k,   // [L,chunks,2,C]: of k_k, k_a
    float* chunks_w,   // [L,chunks,C]
    float* chunks_a,   // [L,chunks,C]
    float* chunks_v,   // [L,chunks,C]
    unsigned rows, unsigned c, unsigned first) {
    const int lane = lanes[blockIdx.z];
    const u32 i = blockIdx.x * 128 + threadIdx.x;
    if (lane < 0 || i >= c) return;
    const u32 begin = blockIdx.y * COLUMN_CHUNK, end = min(begin + COLUMN_CHUNK, rows);
    float kk = 0.0f, ka = 0.0f, w = 0.0f, rate = 0.0f, v = 0.0f;
#pragma unroll 8
    for (u32 row = begin; row < end; ++row) {
        const size_t at = ((size_t)lane * rows + row) * c + i;
        kk = fmaf(dq[at], k0[at], kk);
        ka = fmaf(dk[at], k0[at] * (a[at] - 1.0f), ka);
        w = w + dz[at];
        rate = rate + dza[at];
        if (!first) v = v + dzv[at];
    }
    const size_t chunk = (size_t)lane * gridDim.y + blockIdx.y;
    chunks_k[chunk * 2 * c + i] = kk;
    chunks_k[(chunk * 2 + 1) * c + i] = ka;
    chunks_w[chunk * c + i] = w;
    chunks_a[chunk * c + i] = rate;
    chunks_v[chunk * c + i] = v;
}
