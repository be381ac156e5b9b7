// A lane's course from step to step, without the host: which lanes train, with which rates, on which windows; and what a logged
// step tells. Each kernel here takes the list of all lanes, and writes the lists that the others take.

// What a step begins with. A lane that was halted, or has no step left before its limit, rests. 32 threads a lane.
extern "C" __global__ void __launch_bounds__(32) begin_step(
    const int* lanes,        // [grid z] all lanes
    const u8* halted,        // [L]
    const u64* limits,       // [L] first step that is not to be taken
    const u64* steps,        // [L] steps taken
    const float* table,      // [L,chunk,21] rates of the steps whose number is the same modulo chunk: of weights, of scales, and the
                             // factor of the scales' gradients
    int* training,           // [L] overwritten: the lane, or -1
    u64* step_numbers,       // [L] overwritten
    u64* numbers,            // [L] overwritten: the step's first window
    float* rates,            // [L,10] overwritten
    float* scale_rates,      // [L,10] overwritten
    float* scale_factors,    // [L] overwritten
    unsigned chunk, unsigned windows) {  // windows: of a step
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const u64 step = steps[lane];
    const bool goes = !halted[lane] && step < limits[lane];
    const u32 i = threadIdx.x;
    if (i == 0) {
        training[lane] = goes ? lane : -1;
        step_numbers[lane] = step;
        numbers[lane] = step * windows;
    }
    if (!goes) return;
    const float* row = table + ((size_t)lane * chunk + step % chunk) * 21;
    if (i < 10) {
        rates[10 * lane + i] = row[i];
        scale_rates[10 * lane + i] = row[10 + i];
    } else if (i == 10) {
        scale_factors[lane] = row[20];
    }
}

// Adds a batch's mean loss to its step's, and moves on to the next batch's windows.
extern "C" __global__ void __launch_bounds__(32) collect_loss(
    const int* lanes,    // [grid z]
    const double* sums,  // [L] sums of the batch's losses
    double* losses,      // [L] mean loss of the step once its last batch is collected
    u64* numbers,        // [L] moved on
    unsigned rows, unsigned windows, unsigned part, unsigned parts) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0 || threadIdx.x != 0) return;
    const double loss = (part == 0 ? 0.0 : losses[lane]) + __ddiv_rn(sums[lane], (double)rows);
    losses[lane] = part + 1 == parts ? __ddiv_rn(loss, (double)parts) : loss;
    numbers[lane] += windows;
}

// Judges a step by its loss and its gradient's norm: whether the run has diverged, whether the update is taken or skipped.
extern "C" __global__ void __launch_bounds__(32) judge_step(
    const int* lanes,        // [grid z] all lanes
    const double* losses,    // [L]
    const double* norms,     // [L]
    const double* ceilings,  // [L] losses above are diverged
    const u8* skips,         // [L] whether steps that are not finite are skipped
    const int* training,     // [L]
    int* updating,           // [L] overwritten: the lane, or -1
    u8* halted,              // [L] set where a run has diverged
    u64* steps,              // [L] counted up, but for a diverged step
    u64* skipped) {          // [L] counted up
    const int lane = lanes[blockIdx.z];
    if (lane < 0 || threadIdx.x != 0) return;
    updating[lane] = -1;
    if (training[lane] < 0) return;
    const double loss = losses[lane];
    const bool finite = isfinite(loss);
    if ((!finite && !skips[lane]) || loss > ceilings[lane]) {
        halted[lane] = 1;
        return;
    }
    steps[lane] += 1;
    if (skips[lane] && (!finite || !isfinite(norms[lane]))) {
        skipped[lane] += 1;
    } else {
        updating[lane] = lane;
    }
}

// Begins the next group of windows of an evaluation. A lane that is not due, or has no window left, rests.
extern "C" __global__ void __launch_bounds__(32) begin_group(
    const int* lanes,        // [grid z] all lanes
    const int* due,          // [L]
    const unsigned* counts,  // [L] windows to evaluate
    unsigned* groups,        // [L] groups begun, counted up
    int* scoring,            // [L] overwritten
    unsigned windows) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0 || threadIdx.x != 0) return;
    const u32 group = groups[lane];
    scoring[lane] = due[lane] >= 0 && group * windows < counts[lane] ? lane : -1;
    groups[lane] = group + 1;
}

// Bytes of a group's windows, which lie where `offsets` says. One thread a row. Overwrites inputs and targets.
extern "C" __global__ void __launch_bounds__(256) gather_group(
    const int* lanes,        // [grid z]
    const u8* corpus,        // all bytes
    const u64* offsets,      // [L,capacity] first byte of each window
    const unsigned* groups,  // [L] groups begun
    u8* inputs,              // [L,R]
    u8* targets,             // [L,R]
    u64 length, unsigned capacity, unsigned rows, unsigned tokens, unsigned windows) {
    const int lane = lanes[blockIdx.z];
    const u32 row = blockIdx.x * 256 + threadIdx.x;
    if (lane < 0 || row >= rows) return;
    // Windows past the last read the corpus's beginning; nothing is kept of them.
    const u32 window = (groups[lane] - 1) * windows + row / tokens;
    const u64 from = (window < capacity ? offsets[(size_t)lane * capacity + window] : 0) + row % tokens;
    inputs[(size_t)lane * rows + row] = from < length ? corpus[from] : 0;
    targets[(size_t)lane * rows + row] = from + 1 < length ? corpus[from + 1] : 0;
}

// Keeps what a group's windows scored.
extern "C" __global__ void __launch_bounds__(32) keep_scores(
    const int* lanes,        // [grid z]
    const double* losses,    // [L,B] sums
    const unsigned* hits,    // [L,B]
    const unsigned* groups,  // [L] groups begun
    double* kept_losses,     // [L,capacity]
    unsigned* kept_hits,     // [L,capacity]
    unsigned capacity, unsigned windows) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    for (u32 w = threadIdx.x; w < windows; w += 32) {
        const u32 window = (groups[lane] - 1) * windows + w;
        if (window >= capacity) continue;
        kept_losses[(size_t)lane * capacity + window] = losses[(size_t)lane * windows + w];
        kept_hits[(size_t)lane * capacity + window] = hits[(size_t)lane * windows + w];
    }
}

// Sum (S5), least and largest of a lane's scales; and the counts of `panel_weights` at nothing. One block a lane.
extern "C" __global__ void __launch_bounds__(1024) panel_scales(
    const int* lanes,     // [grid z]
    const float* scales,  // [L,count]
    double* summary,      // [L,3] overwritten: sum, least, largest
    unsigned* counts,     // [L,5] overwritten with zeros
    unsigned count) {
    __shared__ double partial[SCALAR_PARTIALS];
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const float* from = scales + (size_t)lane * count;
    double p = 0.0, least = __longlong_as_double(0x7ff0000000000000ll), largest = -least;
    for (u32 i = threadIdx.x; i < count; i += SCALAR_PARTIALS) {
        p = p + (double)from[i];
        least = fmin(least, (double)from[i]);
        largest = fmax(largest, (double)from[i]);
    }
    const double sum = fold_scalar(partial, p);
    __syncthreads();
    partial[threadIdx.x] = least;
    __syncthreads();
    for (int h = SCALAR_PARTIALS / 2; h > 0; h >>= 1) {
        if (threadIdx.x < h) partial[threadIdx.x] = fmin(partial[threadIdx.x], partial[threadIdx.x + h]);
        __syncthreads();
    }
    if (threadIdx.x == 0) summary[3 * lane + 1] = partial[0];
    __syncthreads();
    partial[threadIdx.x] = largest;
    __syncthreads();
    for (int h = SCALAR_PARTIALS / 2; h > 0; h >>= 1) {
        if (threadIdx.x < h) partial[threadIdx.x] = fmax(partial[threadIdx.x], partial[threadIdx.x + h]);
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        summary[3 * lane] = sum;
        summary[3 * lane + 2] = partial[0];
    }
    if (threadIdx.x < 5) counts[5 * lane + threadIdx.x] = 0;
}

// Counts weights: changed since the last time, negative, positive, at either end, below the threshold. Whole numbers, so that the
// order of additions does not matter. One thread a weight; previous is replaced.
extern "C" __global__ void __launch_bounds__(256) panel_weights(
    const int* lanes,               // [grid z]
    const i8* q,                    // [L,count]
    const unsigned* lane_settings,  // [L,4]: clamp, theta, ..
    i8* previous,                   // [L,count] ternary values
    unsigned* counts,               // [L,5] added to
    unsigned count) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    const int clamp = (int)lane_settings[4 * lane], theta = (int)lane_settings[4 * lane + 1];
    const bool in = i < count;
    const size_t at = (size_t)lane * count + i;
    const int acc = in ? q[at] : 0, now = ternary_of(acc, theta), size = acc < 0 ? -acc : acc;
    const bool flags[5] = {in && previous[at] != now, now < 0, now > 0, in && size == clamp, in && size < theta};
    if (in) previous[at] = (i8)now;
#pragma unroll
    for (int f = 0; f < 5; ++f) {
        const u32 votes = __popc(__ballot_sync(FULL_WARP, flags[f]));
        if (threadIdx.x % 32 == 0 && votes > 0) atomicAdd(counts + 5 * lane + f, votes);
    }
}
