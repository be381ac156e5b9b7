// Buffers that sums are added to.

// x = 0. One thread a value.
extern "C" __global__ void __launch_bounds__(256) clear(
    const int* lanes,  // [grid z]
    float* x,          // [L,n]
    u64 n) {
    const int lane = lanes[blockIdx.z];
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    if (lane < 0 || i >= n) return;
    x[lane * n + i] = 0.0f;
}
