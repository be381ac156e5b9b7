// Gradient norm, AdamW, and SR4.

// Sums of squares (S5) of the gradients' pieces. One block of 1024 threads a piece. Overwrites sums.
extern "C" __global__ void __launch_bounds__(1024) gradient_pieces(
    const int* lanes,        // [grid z]
    const float* gradients,  // [L] arenas
    u64 arena,
    const unsigned* pieces,  // [pieces,2]: first float in the arena, floats
    double* sums,            // [L,pieces]
    unsigned count) {        // pieces
    __shared__ double partial[SCALAR_PARTIALS];
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const u32 first = pieces[2 * blockIdx.x], length = pieces[2 * blockIdx.x + 1];
    const float* from = gradients + lane * arena + first;
    double p = 0.0;
#pragma unroll 8
    for (u32 i = threadIdx.x; i < length; i += SCALAR_PARTIALS) {
        const double g = (double)from[i];
        p = p + g * g;
    }
    const double sum = fold_scalar(partial, p);
    if (threadIdx.x == 0) sums[(size_t)lane * count + blockIdx.x] = sum;
}

// The norm, from the pieces' sums in order, and the factor that clips it to `limits` (0: no limit). One thread a lane.
// Overwrites norms and factors.
extern "C" __global__ void __launch_bounds__(32) gradient_norm(
    const int* lanes,      // [grid z]
    const double* sums,    // [L,pieces]
    const double* limits,  // [L]
    double* norms,         // [L]
    float* factors,        // [L] 1 where nothing is clipped
    unsigned pieces) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0 || threadIdx.x != 0) return;
    double total = 0.0;
#pragma unroll 8
    for (u32 i = 0; i < pieces; ++i) total = total + sums[(size_t)lane * pieces + i];
    const double norm = __dsqrt_rn(total);
    norms[lane] = norm;
    factors[lane] = limits[lane] > 0.0 && norm > limits[lane] ? (float)__ddiv_rn(limits[lane], norm) : 1.0f;
}

// Up to four neighbours; whole: there are four, at an address of a multiple of 16 bytes.
__device__ __forceinline__ void take_four(float (&to)[4], const float* from, bool whole, int count) {
    if (whole) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
#pragma unroll
        for (int l = 0; l < 4; ++l) {
            if (l < count) to[l] = from[l];
        }
    }
}

__device__ __forceinline__ void give_four(float* to, const float (&from)[4], bool whole, int count) {
    if (whole) {
        *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
    } else {
#pragma unroll
        for (int l = 0; l < 4; ++l) {
            if (l < count) to[l] = from[l];
        }
    }
}

// The same for accumulators, at an address of a multiple of 4 bytes.
__device__ __forceinline__ void take_four(int (&to)[4], const i8* from, bool whole, int count) {
    if (whole) {
        const char4 four = *reinterpret_cast<const char4*>(from);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
#pragma unroll
        for (int l = 0; l < 4; ++l) {
            if (l < count) to[l] = from[l];
        }
    }
}

// What AdamW needs of a lane and step, each formed in f64 and rounded once by the host.
struct Rates {
    float beta1, rest1, beta2, rest2, correction1, correction2, lr, eps, keep_matrices, keep_vectors;
};

__device__ __forceinline__ float adamw_step(float p, float g, float* m, float* v, const Rates& r, float keep) {
    *m = fmaf(r.beta1, *m, r.rest1 * g);
    *v = fmaf(r.beta2, *v, (r.rest2 * g) * g);
    const float step = __fdiv_rn(__fdiv_rn(*m, r.correction1), __fsqrt_rn(__fdiv_rn(*v, r.correction2)) + r.eps);
    return fmaf(-r.lr, step, p * keep);
}

// One step over a flat arena. kinds tells of every 16 floats whether they are trained: bit 0 always, bit 1 only where the lane's
// own flag says that AdamW trains the ternary tensors too; bit 2: a matrix. One thread four values. In place.
extern "C" __global__ void __launch_bounds__(256) adamw(
    const int* lanes,          // [grid z]
    const float* gradients,    // [L] arenas
    const float* factors,      // [L] that the gradients are multiplied by first, where they are not 1
    const float* rates,        // [L,10]: see Rates
    const u8* kinds,           // [len/16]
    const u8* trains_ternary,  // [L]
    float* values,             // [L] arenas
    float* first,              // [L] arenas
    float* second,             // [L] arenas
    u64 arena, unsigned len) {
    const int lane = lanes[blockIdx.z];
    const u32 i = (blockIdx.x * 256 + threadIdx.x) * 4;
    if (lane < 0 || i >= len) return;
    const u8 kind = kinds[i / 16];
    if (!(kind & 1) && !((kind & 2) && trains_ternary[lane])) return;
    const size_t place = lane * arena + i;
    const bool whole = arena % 4 == 0 && i + 4 <= len;
    const int count = min(4u, len - i);
    float g[4] = {}, p[4] = {}, m[4] = {}, v[4] = {};
    take_four(g, gradients + place, whole, count);
    take_four(p, values + place, whole, count);
    take_four(m, first + place, whole, count);
    take_four(v, second + place, whole, count);
    const float* at = rates + 10 * lane;
    const Rates r = {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9]};
    const float factor = factors[lane], keep = kind & 4 ? r.keep_matrices : r.keep_vectors;
#pragma unroll
    for (int l = 0; l < 4; ++l) p[l] = adamw_step(p[l], factor == 1.0f ? g[l] : g[l] * factor, m + l, v + l, r, keep);
    give_four(values + place, p, whole, count);
    give_four(first + place, m, whole, count);
    give_four(second + place, v, whole, count);
}

// A ternary tensor [rows,cols]: where its weights begin in the arena, in the accumulators and its scales in the scales.
struct Ternary {
    u32 start, rows, cols, base, scale;
};

__device__ __forceinline__ Ternary ternary_at(const u32* table, u32 i) {
    const u32* at = table + 5 * i;
    const Ternary out = {at[0], at[1], at[2], at[3], at[4]};
    return out;
}

__device__ __forceinline__ int ternary_of(int q, int theta) {
    return q >= theta ? 1 : q <= -theta ? -1 : 0;
}

// Weights that a block of 256 threads has in hand: from the block's first one in its tensor on.
#define SPAN 1024

// Four weights of a thread: where they begin in their tensor, the columns of their scales, and how many there are.
struct FourWeights {
    Ternary t;
    u32 tensor, i, column;
    int count;  // 0 or less: none
    bool whole;

    __device__ __forceinline__ FourWeights(const u32* table, const u32* spans, u64 q_lane, u64 scale_lane) {
        tensor = spans[2 * blockIdx.x];
        t = ternary_at(table, tensor);
        i = spans[2 * blockIdx.x + 1] + 4 * threadIdx.x;
        count = (int)min(4, (int)(t.rows * t.cols) - (int)i);
        column = i % t.cols;
        whole = (t.cols | t.base | t.scale | (u32)q_lane | (u32)scale_lane) % 4 == 0;
    }

    // Their scales; `from` are the tensor's.
    __device__ __forceinline__ void scales(float (&to)[4], const float* from) const {
        if (whole) {
            take_four(to, from + column, true, 4);
        } else {
#pragma unroll
            for (int l = 0; l < 4; ++l) {
                if (l < count) to[l] = from[(i + l) % t.cols];
            }
        }
    }
};

// Effective weights scale t. One thread four weights. Overwrites the tensors' places in the arena.
extern "C" __global__ void __launch_bounds__(256) sr4_weights(
    const int* lanes,       // [grid z]
    const unsigned* table,  // [tensors,5]
    const unsigned* spans,  // [grid x,2]: tensor, its first weight here
    const i8* q,            // [L,accumulators]
    const float* scales,    // [L,scales]
    const unsigned* lane_settings,  // [L,4]: clamp, theta, dither, on
    float* values,          // [L] arenas, of a multiple of four floats
    u64 arena, u64 q_lane, u64 scale_lane,
    unsigned tensors, unsigned span_count) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0 || !lane_settings[4 * lane + 3]) return;
    const FourWeights w(table, spans, q_lane, scale_lane);
    if (w.count <= 0) return;
    int acc[4] = {};
    float scale[4] = {};
    take_four(acc, q + lane * q_lane + w.t.base + w.i, w.whole, w.count);
    w.scales(scale, scales + lane * scale_lane + w.t.scale);
    const int theta = (int)lane_settings[4 * lane + 1];
#pragma unroll
    for (int l = 0; l < 4; ++l) scale[l] = scale[l] * (float)ternary_of(acc[l], theta);
    give_four(values + lane * arena + w.t.start + w.i, scale, w.whole, w.count);
}

// Gradients of the scales: column sums of gradient times t, in f64, rows ascending. One thread a column. Overwrites sgrad.
extern "C" __global__ void __launch_bounds__(128, 4) sr4_columns(
    const int* lanes,        // [grid z]
    const unsigned* table,   // [tensors,5]
    const i8* q,             // [L,accumulators]
    const float* gradients,  // [L] arenas
    const float* factors,    // [L]
    const unsigned* lane_settings,  // [L,4]
    float* sgrad,            // [L,scales]
    u64 arena, u64 q_lane, u64 scale_lane,
    unsigned tensors, unsigned widest) {  // columns of the widest tensor
    const int lane = lanes[blockIdx.z];
    const Ternary t = ternary_at(table, blockIdx.y);
    const u32 col = blockIdx.x * 128 + threadIdx.x;
    if (lane < 0 || col >= t.cols || !lane_settings[4 * lane + 3]) return;
    const int theta = (int)lane_settings[4 * lane + 1];
    const float* g = gradients + lane * arena + t.start + col;
    const i8* acc = q + lane * q_lane + t.base + col;
    const float factor = factors[lane];
    double sum = 0.0;
    // Many rows are under way at once: with few lanes the waits for memory are what takes the time.
#pragma unroll 32
    for (u32 row = 0; row < t.rows; ++row) {
        float value = __ldg(g + row * t.cols);
        if (factor != 1.0f) value = value * factor;
        sum = sum + (double)value * (double)ternary_of(__ldg(acc + row * t.cols), theta);
    }
    sgrad[lane * scale_lane + t.scale + col] = (float)sum;
}

// The factor s of each tensor: target_step over the mean (S5) of |gradient scale|, or 0. One block of 1024 threads a tensor.
// Overwrites steps.
extern "C" __global__ void __launch_bounds__(1024) sr4_magnitudes(
    const int* lanes,            // [grid z]
    const unsigned* table,       // [tensors,5]
    const float* gradients,      // [L] arenas
    const float* factors,        // [L]
    const float* scales,         // [L,scales]
    const double* target_steps,  // [L]
    const unsigned* lane_settings,  // [L,4]
    double* steps,               // [L,tensors]
    u64 arena, u64 scale_lane, unsigned tensors) {
    __shared__ double partial[SCALAR_PARTIALS];
    const int lane = lanes[blockIdx.z];
    if (lane < 0 || !lane_settings[4 * lane + 3]) return;
    const Ternary t = ternary_at(table, blockIdx.x);
    const float* g = gradients + lane * arena + t.start;
    const float* scale = scales + lane * scale_lane + t.scale;
    const float factor = factors[lane];
    const u32 n = t.rows * t.cols;
    double p = 0.0;
    u32 column = threadIdx.x % t.cols;
    const u32 on = SCALAR_PARTIALS % t.cols;
#pragma unroll 8
    for (u32 i = threadIdx.x; i < n; i += SCALAR_PARTIALS) {
        const float value = factor == 1.0f ? __ldg(g + i) : __ldg(g + i) * factor;
        p = p + (double)fabsf(value * __ldg(scale + column));
        column = column + on < t.cols ? column + on : column + on - t.cols;
    }
    const double mean = __ddiv_rn(fold_scalar(partial, p), (double)n);
    if (threadIdx.x != 0) return;
    const double s = __ddiv_rn(target_steps[lane], mean);
    const bool usable = mean != 0.0 && isfinite(mean) && isfinite(s);
    steps[(size_t)lane * tensors + blockIdx.x] = usable ? s : 0.0;
}

// Moves the accumulators. One thread four weights. In place.
extern "C" __global__ void __launch_bounds__(256) sr4_update(
    const int* lanes,          // [grid z]
    const unsigned* table,     // [tensors,5]
    const unsigned* spans,     // [grid x,2]: tensor, its first weight here
    const float* gradients,    // [L] arenas, of a multiple of four floats
    const float* factors,      // [L]
    const float* scales,       // [L,scales]
    const double* steps,       // [L,tensors]
    const u64* seeds,          // [L] of the dither
    const u64* step_numbers,   // [L]
    const unsigned* lane_settings,  // [L,4]: clamp, theta, dither, on
    i8* q,                     // [L,accumulators] in place
    u64 arena, u64 q_lane, u64 scale_lane,
    unsigned tensors, unsigned span_count) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0 || !lane_settings[4 * lane + 3]) return;
    const FourWeights w(table, spans, q_lane, scale_lane);
    const double s = steps[(size_t)lane * tensors + w.tensor];
    if (w.count <= 0 || s == 0.0) return;
    float g[4] = {}, scale[4] = {};
    int acc[4] = {};
    i8* at = q + lane * q_lane + w.t.base + w.i;
    take_four(g, gradients + lane * arena + w.t.start + w.i, w.whole, w.count);
    take_four(acc, at, w.whole, w.count);
    w.scales(scale, scales + lane * scale_lane + w.t.scale);
    const float factor = factors[lane];
    const int clamp = (int)lane_settings[4 * lane];
    const bool dither = lane_settings[4 * lane + 2];
    const u64 first = (u64)w.t.base + w.i, step = step_numbers[lane], seed = seeds[lane];
    // A move from one end of the accumulator's range to the other is as far as any goes.
    const float limit = (float)max(14, 2 * clamp);
#pragma unroll
    for (int l = 0; l < 4; ++l) {
        const float gq = (factor == 1.0f ? g[l] : g[l] * factor) * scale[l];
        const float x = (float)(-s * (double)gq);
        float u = 0.5f;
        if (dither) {
            const u64 index = first + l;
            const Philox o = philox(seed, (u32)index, (u32)(index >> 32), (u32)step, (u32)(step >> 32));
            u = (float)(o.o0 >> 8) * 5.9604644775390625e-8f;
        }
        const int next = acc[l] + (int)fminf(fmaxf(floorf(x + u), -limit), limit);
        acc[l] = next > clamp ? clamp : next < -clamp ? -clamp : next;
    }
    if (w.whole) {
        *reinterpret_cast<char4*>(at) = make_char4(acc[0], acc[1], acc[2], acc[3]);
    } else {
#pragma unroll
        for (int l = 0; l < 4; ++l) {
            if (l < w.count) at[l] = (i8)acc[l];
        }
    }
}
