// The channel mix's activation. One thread a value.

// rl = h where h > 0, else +0, in place of h; act = rl rl. Overwrites act.
extern "C" __global__ void __launch_bounds__(256) relu_squared(
    const int* lanes,  // [grid z]
    float* h,          // [L,R,F] in place
    float* act,        // [L,R,F]
    u64 n) {           // R F
    const int lane = lanes[blockIdx.z];
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    if (lane < 0 || i >= n) return;
    const float rl = h[lane * n + i] > 0.0f ? h[lane * n + i] : 0.0f;
    h[lane * n + i] = rl;
    act[lane * n + i] = rl * rl;
}

// dh = dact (rl + rl), in place of dact.
extern "C" __global__ void __launch_bounds__(256) relu_squared_backward(
    const int* lanes,  // [grid z]
    float* d,          // [L,R,F] in place
    const float* rl,   // [L,R,F]
    u64 n) {           // R F
    const int lane = lanes[blockIdx.z];
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    if (lane < 0 || i >= n) return;
    d[lane * n + i] = d[lane * n + i] * (rl[lane * n + i] + rl[lane * n + i]);
}
