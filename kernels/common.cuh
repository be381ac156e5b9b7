// What every kernel shares: lanes, elementary functions, sums in the shapes that docs/arithmetic.md fixes.
//
// Conventions of all files here. The lane is the outermost dimension of every buffer. A kernel gets a list of lanes, one
// for each blockIdx.z; a negative entry is a lane at rest, whose blocks leave at once. Parameters, gradients and moments
// of a lane lie in one arena, so that a tensor of lane l begins at tensor + l * arena. Shapes on parameters: L lanes,
// R rows (windows times tokens), T tokens, C channels, H heads, N channels of a head, D low-rank width, F channel-mix
// width, V vocabulary. Compiled with --fmad=false: a multiply-add is fused exactly where fmaf stands.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef signed char i8;
typedef unsigned char u8;

#define ROW_PARTIALS 32
#define PRODUCT_CHUNK 128
#define COLUMN_CHUNK 32
#define SCALAR_PARTIALS 1024
#define FULL_WARP 0xffffffffu

// ---- Elementary functions: src/arith/functions.rs, word for word.

__device__ __forceinline__ float exp_f(float x) {
    const float z = fmaf(x, 1.44269504088896340736f, 12582912.0f);
    const float n = z - 12582912.0f;
    const float high = fmaf(n, -0.693359375f, x);
    const float low = n * 2.12194440e-4f;
    const float r = high + low;
    float p = 1.0f / 40320.0f;
    p = fmaf(r, p, 1.0f / 5040.0f);
    p = fmaf(r, p, 1.0f / 720.0f);
    p = fmaf(r, p, 1.0f / 120.0f);
    p = fmaf(r, p, 1.0f / 24.0f);
    p = fmaf(r, p, 1.0f / 6.0f);
    p = fmaf(r, p, 0.5f);
    float y = (high + fmaf(p, r * r, low)) + 1.0f;
    y = y * __int_as_float((int)((u32)__float_as_int(z) << 23) + 0x3f800000);
    y = x > 88.0f ? __int_as_float(0x7f800000) : y;
    return x < -87.0f ? 0.0f : y;
}

__device__ __forceinline__ float sigmoid_f(float x) {
    const float e = exp_f(-fabsf(x));
    const float numerator = x < 0.0f ? e : 1.0f;
    const float sum = 1.0f + e;
    const float lost = e - (sum - 1.0f);
    const float quotient = __fdiv_rn(numerator, sum);
    return fmaf(-quotient, lost, quotient);
}

__device__ __forceinline__ float tanh_f(float x) {
    const float z = x * x;
    float p = -5.70498872745e-3f;
    p = fmaf(z, p, 2.06390887954e-2f);
    p = fmaf(z, p, -5.37397155531e-2f);
    p = fmaf(z, p, 1.33314422036e-1f);
    p = fmaf(z, p, -3.33332819422e-1f);
    const float small = fmaf(z * p, x, x);
    const float magnitude = fabsf(x);
    const float large = copysignf(1.0f - __fdiv_rn(2.0f, exp_f(2.0f * magnitude) + 1.0f), x);
    return magnitude < 0.625f ? small : large;
}

__device__ __forceinline__ float log_f(float x) {
    const u32 bits = (u32)__float_as_int(x);
    const int exponent = (int)(bits - 0x3f3504f3u) >> 23;
    const float m = __int_as_float((int)(bits - ((u32)exponent << 23))) - 1.0f;
    const float e = (float)exponent;
    const float z = m * m;
    float p = 7.0376836292e-2f;
    p = fmaf(m, p, -1.1514610310e-1f);
    p = fmaf(m, p, 1.1676998740e-1f);
    p = fmaf(m, p, -1.2420140846e-1f);
    p = fmaf(m, p, 1.4249322787e-1f);
    p = fmaf(m, p, -1.6668057665e-1f);
    p = fmaf(m, p, 2.0000714765e-1f);
    p = fmaf(m, p, -2.4999993993e-1f);
    p = fmaf(m, p, 3.3333331174e-1f);
    float y = (p * m) * z;
    y = fmaf(e, -2.12194440e-4f, y);
    y = fmaf(z, -0.5f, y);
    return fmaf(e, 0.693359375f, m + y);
}

// ---- Sums.

// Folds the 32 partial sums of S2, one in each thread of a warp; every thread gets the sum. (Each step pairs j with
// j + h; which of the two is added to which does not change a bit.)
__device__ __forceinline__ float fold_row(float p) {
    for (int h = 16; h > 0; h >>= 1) p = p + __shfl_xor_sync(FULL_WARP, p, h);
    return p;
}

// Folds S5's 1024 partial sums, one in each thread of a block of 1024; thread 0 gets the sum.
__device__ __forceinline__ double fold_scalar(double* shared, double p) {
    shared[threadIdx.x] = p;
    __syncthreads();
    for (int h = SCALAR_PARTIALS / 2; h > 0; h >>= 1) {
        if (threadIdx.x < h) shared[threadIdx.x] = shared[threadIdx.x] + shared[threadIdx.x + h];
        __syncthreads();
    }
    return shared[0];
}

// ---- Random numbers: Philox4x32-10.

struct Philox {
    u32 o0, o1, o2, o3;
};

__device__ __forceinline__ Philox philox(u64 seed, u32 c0, u32 c1, u32 c2, u32 c3) {
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const u32 a_high = __umulhi(0xD2511F53u, c0), a_low = 0xD2511F53u * c0;
        const u32 b_high = __umulhi(0xCD9E8D57u, c2), b_low = 0xCD9E8D57u * c2;
        c0 = b_high ^ c1 ^ k0;
        c1 = b_low;
        c2 = a_high ^ c3 ^ k1;
        c3 = a_low;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    Philox out = {c0, c1, c2, c3};
    return out;
}
