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
// own flag says that AdamW trains the ternary tensors too; bit 2: a matrix. One thread a value. In place.
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
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (lane < 0 || i >= len) return;
    const u8 kind = kinds[i / 16];
    if (!(kind & 1) && !((kind & 2) && trains_ternary[lane])) return;
    const float* at = rates + 10 * lane;
    const Rates r = {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9]};
    const size_t place = lane * arena + i;
    const float factor = factors[lane];
    const float g = factor == 1.0f ? gradients[place] : gradients[place] * factor;
    values[place] = adamw_step(values[place], g, first + place, second + place, r, kind & 4 ? r.keep_matrices : r.keep_vectors);
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

// Effective weights scale t. One thread a weight, grid y: tensors. Overwrites the tensors' places in the arena.
extern "C" __global__ void __launch_bounds__(256) sr4_weights(
    const int* lanes,       // [grid z]
    const unsigned* table,  // [tensors,5]
    const i8* q,            // [L,accumulators]
    const float* scales,    // [L,scales]
    const unsigned* lane_settings,  // [L,4]: clamp, theta, dither, on
    float* values,          // [L] arenas
    u64 arena, u64 q_lane, u64 scale_lane,
    unsigned tensors, unsigned largest) {  // weights of the largest tensor
    const int lane = lanes[blockIdx.z];
    const Ternary t = ternary_at(table, blockIdx.y);
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (lane < 0 || i >= t.rows * t.cols || !lane_settings[4 * lane + 3]) return;
    const int sign = ternary_of(q[lane * q_lane + t.base + i], (int)lane_settings[4 * lane + 1]);
    values[lane * arena + t.start + i] = scales[lane * scale_lane + t.scale + i % t.cols] * (float)sign;
}

// Gradients of the scales: column sums of gradient times t, in f64, rows ascending. One thread a column. Overwrites sgrad.
extern "C" __global__ void __launch_bounds__(128) sr4_columns(
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
#pragma unroll 8
    for (u32 row = 0; row < t.rows; ++row) {
        float value = g[(size_t)row * t.cols];
        if (factor != 1.0f) value = value * factor;
        sum = sum + (double)value * (double)ternary_of(acc[(size_t)row * t.cols], theta);
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
    for (u32 i = threadIdx.x; i < n; i += SCALAR_PARTIALS) {
        const float value = factor == 1.0f ? g[i] : g[i] * factor;
        p = p + (double)fabsf(value * scale[i % t.cols]);
    }
    const double mean = __ddiv_rn(fold_scalar(partial, p), (double)n);
    if (threadIdx.x != 0) return;
    const double s = __ddiv_rn(target_steps[lane], mean);
    const bool usable = mean != 0.0 && isfinite(mean) && isfinite(s);
    steps[(size_t)lane * tensors + blockIdx.x] = usable ? s : 0.0;
}

// Moves the accumulators. One thread a weight, grid y: tensors. In place.
extern "C" __global__ void __launch_bounds__(256) sr4_update(
    const int* lanes,          // [grid z]
    const unsigned* table,     // [tensors,5]
    const float* gradients,    // [L] arenas
    const float* factors,      // [L]
    const float* scales,       // [L,scales]
    const double* steps,       // [L,tensors]
    const u64* seeds,          // [L] of the dither
    const u64* step_numbers,   // [L]
    const unsigned* lane_settings,  // [L,4]: clamp, theta, dither, on
    i8* q,                     // [L,accumulators] in place
    u64 arena, u64 q_lane, u64 scale_lane,
    unsigned tensors, unsigned largest) {  // weights of the largest tensor
    const int lane = lanes[blockIdx.z];
    const Ternary t = ternary_at(table, blockIdx.y);
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (lane < 0 || i >= t.rows * t.cols || !lane_settings[4 * lane + 3]) return;
    const double s = steps[(size_t)lane * tensors + blockIdx.y];
    if (s == 0.0) return;
    const float g = gradients[lane * arena + t.start + i];
    const float factor = factors[lane];
    const float value = factor == 1.0f ? g : g * factor;
    const float gq = value * scales[lane * scale_lane + t.scale + i % t.cols];
    const float x = (float)(-s * (double)gq);
    float u = 0.5f;
    if (lane_settings[4 * lane + 2]) {
        const u64 index = (u64)t.base + i, step = step_numbers[lane];
        const Philox o = philox(seeds[lane], (u32)index, (u32)(index >> 32), (u32)step, (u32)(step >> 32));
        u = (float)(o.o0 >> 8) * 5.9604644775390625e-8f;
    }
    const int clamp = (int)lane_settings[4 * lane];
    // A move from one end of the accumulator's range to the other is as far as any goes.
    const float limit = (float)max(14, 2 * clamp);
    const float moved = fminf(fmaxf(floorf(x + u), -limit), limit);
    i8* at = q + lane * q_lane + t.base + i;
    const int next = *at + (int)moved;
    *at = (i8)(next > clamp ? clamp : next < -clamp ? -clamp : next);
}
