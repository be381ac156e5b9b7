// Bytes of a batch's windows, and the embedding.

// Inputs and targets of the windows whose numbers follow the lane's next one; the corpus lies on the die. One thread a row.
// Overwrites inputs and targets.
extern "C" __global__ void __launch_bounds__(256) gather_windows(
    const int* lanes,    // [grid z]
    const u8* corpus,    // the split's bytes
    const u64* seeds,    // [L]
    const u64* numbers,  // [L] number of the first window
    u8* inputs,          // [L,R]
    u8* targets,         // [L,R]
    u64 length,          // bytes of the split
    unsigned split, unsigned rows, unsigned tokens) {
    const int lane = lanes[blockIdx.z];
    const u32 row = blockIdx.x * 256 + threadIdx.x;
    if (lane < 0 || row >= rows) return;
    const u64 number = numbers[lane] + row / tokens;
    const Philox o = philox(seeds[lane], (u32)number, (u32)(number >> 32), split, 0x44415441u);
    const u64 x = (u64)o.o0 | ((u64)o.o1 << 32);
    const u8* from = corpus + __umul64hi(x, length - tokens) + row % tokens;
    inputs[(size_t)lane * rows + row] = from[0];
    targets[(size_t)lane * rows + row] = from[1];
}

// x = emb[byte]. One block a row. Overwrites x.
extern "C" __global__ void __launch_bounds__(128) embed(
    const int* lanes,  // [grid z]
    const u8* inputs,  // [L,R]
    const float* emb,  // [V,C] in the arena
    u64 arena,
    float* x,          // [L,R,C]
    unsigned rows, unsigned c) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const size_t row = (size_t)lane * rows + blockIdx.x;
    const float* from = emb + lane * arena + (size_t)inputs[row] * c;
    for (u32 i = threadIdx.x; i < c; i += 128) x[row * c + i] = from[i];
}

// Gradient of emb: for each byte the sum of dx over the rows that hold it, ascending. One block a byte. Overwrites demb, or adds
// to it where add is not 0.
extern "C" __global__ void __launch_bounds__(128) embed_backward(
    const int* lanes,  // [grid z]
    const u8* inputs,  // [L,R]
    const float* dx,   // [L,R,C]
    float* demb,       // [V,C] in the arena
    u64 arena, unsigned rows, unsigned c, unsigned add) {
    __shared__ u32 found[1024];
    __shared__ u32 count;
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const u8 byte = (u8)blockIdx.x;
    const u8* in = inputs + (size_t)lane * rows;
    // Channels beyond the block's threads are taken in turns, each over all rows.
    for (u32 i0 = 0; i0 < c; i0 += 128) {
        const u32 i = i0 + threadIdx.x;
        float sum = 0.0f;
        for (u32 row0 = 0; row0 < rows; row0 += 1024) {
            __syncthreads();
            // One warp lists the rows in order; a ballot ranks 32 of them at once.
            if (threadIdx.x < 32) {
                u32 n = 0;
                for (u32 r = row0; r < min(row0 + 1024, rows); r += 32) {
                    const bool hit = r + threadIdx.x < rows && in[r + threadIdx.x] == byte;
                    const u32 all = __ballot_sync(FULL_WARP, hit);
                    if (hit) found[n + __popc(all & ((1u << threadIdx.x) - 1))] = r + threadIdx.x;
                    n += __popc(all);
                }
                if (threadIdx.x == 0) count = n;
            }
            __syncthreads();
            if (i < c) {
                for (u32 f = 0; f < count; ++f) sum = sum + dx[((size_t)lane * rows + found[f]) * c + i];
            }
        }
        if (i < c) {
            float* to = demb + lane * arena + (size_t)byte * c + i;
            *to = add ? *to + sum : sum;
        }
    }
}
