// Cross entropy over the bytes, its gradient, hits, and their totals.

#define VOCAB 256

// Loss in nats and hit of each row of logits against its target; where scale is not 0 the logits become their gradient times it.
// One warp a row. Overwrites nll and hits.
extern "C" __global__ void __launch_bounds__(256) cross_entropy(
    const int* lanes,   // [grid z]
    const u8* targets,  // [L,R]
    float* logits,      // [L,R,V] in place
    float* nll,         // [L,R]
    u8* hits,           // [L,R]
    float scale, unsigned rows) {
    const int lane = lanes[blockIdx.z];
    const u32 row = blockIdx.x * 8 + threadIdx.x / 32, i = threadIdx.x % 32;
    if (lane < 0 || row >= rows) return;
    const size_t at = (size_t)lane * rows + row;
    float* x = logits + at * VOCAB;
    float value[VOCAB / 32];
    float top = __int_as_float(0xff800000);
#pragma unroll
    for (int m = 0; m < VOCAB / 32; ++m) {
        value[m] = x[i + 32 * m];
        top = value[m] > top ? value[m] : top;
    }
    for (int h = 16; h > 0; h >>= 1) {
        const float other = __shfl_xor_sync(FULL_WARP, top, h);
        top = other > top ? other : top;
    }
    const int target = targets[at];
    // Whether an earlier byte has the largest logit too: then the prediction is that one.
    bool earlier = false;
    float sum = 0.0f, own = 0.0f;
#pragma unroll
    for (int m = 0; m < VOCAB / 32; ++m) {
        const int byte = (int)i + 32 * m;
        earlier = earlier || (byte < target && value[m] == top);
        if (byte == target) own = value[m];
        value[m] = exp_f(value[m] - top);
        sum = sum + value[m];
    }
    sum = fold_row(sum);
    own = __shfl_sync(FULL_WARP, own, target % 32);
    earlier = __any_sync(FULL_WARP, earlier);
    if (i == 0) {
        nll[at] = (log_f(sum) + top) - own;
        hits[at] = own == top && !earlier;
    }
    if (scale == 0.0f) return;
    const float inverse = __fdiv_rn(1.0f, sum);
#pragma unroll
    for (int m = 0; m < VOCAB / 32; ++m) {
        const int byte = (int)i + 32 * m;
        const float share = value[m] * inverse;
        x[byte] = byte == target ? (share - 1.0f) * scale : share * scale;
    }
}

// Sums (S5) and hits of groups of `count` rows. One block of 1024 threads a group. Overwrites both.
extern "C" __global__ void __launch_bounds__(1024) loss_totals(
    const int* lanes,  // [grid z]
    const float* nll,  // [L,groups,count]
    const u8* hits,    // [L,groups,count]
    double* losses,    // [L,groups]
    unsigned* correct, // [L,groups]
    unsigned groups, unsigned count) {
    __shared__ double partial[SCALAR_PARTIALS];
    __shared__ u32 right[32];
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const size_t group = (size_t)lane * groups + blockIdx.x;
    double p = 0.0;
    u32 found = 0;
    for (u32 i = threadIdx.x; i < count; i += SCALAR_PARTIALS) {
        p = p + (double)nll[group * count + i];
        found += hits[group * count + i];
    }
    const double sum = fold_scalar(partial, p);
    for (int h = 16; h > 0; h >>= 1) found += __shfl_xor_sync(FULL_WARP, found, h);
    if (threadIdx.x % 32 == 0) right[threadIdx.x / 32] = found;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 all = 0;
        for (int i = 0; i < 32; ++i) all += right[i];
        losses[group] = sum;
        correct[group] = all;
    }
}
