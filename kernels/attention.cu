// Causal attention, dense or sparse by chunks of positions (MoBA). Products follow S1 and are cut into tiles as in product.cuh;
// tiles that no query sees are left out. An item is a window and head; its shares p and their gradients are [T,T].

// Sum over the chunk's positions, divided by their number. One thread a channel. Overwrites means.
extern "C" __global__ void __launch_bounds__(128) attention_chunk_means(
    const int* lanes,  // [grid z]
    const float* k,    // [L,R,C]
    float* means,      // [L,B,H,T/chunk_size,N]
    unsigned windows, unsigned tokens, unsigned heads, unsigned n, unsigned chunk_size) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const u32 item = blockIdx.y, chunk = blockIdx.x, c = heads * n;
    const size_t row = ((size_t)lane * windows + item / heads) * tokens + chunk * chunk_size;
    const float* from = k + row * c + (item % heads) * n;
    float* to = means + (((size_t)lane * windows * heads + item) * gridDim.x + chunk) * n;
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        float sum = 0.0f;
        for (u32 t = 0; t < chunk_size; ++t) sum = sum + from[(size_t)t * c + i];
        to[i] = __fdiv_rn(sum, (float)chunk_size);
    }
}

// Which chunks a query sees: its own, and of the earlier ones the top_k with the largest scores, ties to the lower. One thread a
// query. Overwrites scores and seen.
extern "C" __global__ void __launch_bounds__(128) attention_choose(
    const int* lanes,    // [grid z]
    const float* q,      // [L,R,C]
    const float* means,  // [L,B,H,T/chunk_size,N]
    float* scores,       // [L,B,H,T,chunks]
    u8* seen,            // [L,B,H,T,chunks]
    unsigned windows, unsigned tokens, unsigned heads, unsigned n, unsigned chunk_size, unsigned top_k) {
    const int lane = lanes[blockIdx.z];
    const u32 t = blockIdx.x * 128 + threadIdx.x, item = blockIdx.y, c = heads * n;
    if (lane < 0 || t >= tokens) return;
    const u32 chunks = (tokens + chunk_size - 1) / chunk_size, whole = tokens / chunk_size, own = t / chunk_size;
    const size_t at = (size_t)lane * windows * heads + item;
    const float* query = q + (((size_t)lane * windows + item / heads) * tokens + t) * c + (item % heads) * n;
    float* score = scores + (at * tokens + t) * chunks;
    u8* sees = seen + (at * tokens + t) * chunks;
    for (u32 chunk = 0; chunk < chunks; ++chunk) {
        sees[chunk] = chunk == own;
        if (chunk >= own) continue;
        const float* mean = means + (at * whole + chunk) * n;
        float sum = 0.0f;
        for (u32 i = 0; i < n; ++i) sum = fmaf(query[i], mean[i], sum);
        score[chunk] = sum;
    }
    for (u32 taken = 0; taken < min(top_k, own); ++taken) {
        int best = -1;
        for (u32 chunk = 0; chunk < own; ++chunk) {
            if (!sees[chunk] && (best < 0 || score[chunk] > score[best])) best = (int)chunk;
        }
        sees[best] = 1;
    }
}

// Positions, and channels, of a tile. Blocks of 128 threads.
#define TILE 64
#define CHANNELS 32
typedef Tile<TILE, CHANNELS, 32, 4, 4> AttentionTile;

// A tile of such a product, with operands read in fours where their rows begin at multiples of 16 bytes.
template <bool A_COLUMNS, bool B_ROWS>
__device__ __forceinline__ void attention_tile(const Operands& o, const Spot& s, u32 from, u32 to, Finish finish, u32 n) {
    __shared__ __align__(16) float shared[AttentionTile::SHARED];
    if ((o.a_row | o.b_row | o.out_row | n) % 4 == 0) {
        product_tile<AttentionTile, A_COLUMNS, B_ROWS, true>(o, s, from, to, finish, shared);
    } else {
        product_tile<AttentionTile, A_COLUMNS, B_ROWS, false>(o, s, from, to, finish, shared);
    }
}

// out[i][j] = x_i . z_j over a head's channels, for the tiles (of CHANNELS keys) with keys j <= i. Grid y: query tiles of every item.
extern "C" __global__ void __launch_bounds__(128, 4) attention_scores(
    const int* lanes,  // [grid z]
    const float* x,    // [L,R,C] queries, or gradients of outputs
    const float* z,    // [L,R,C] keys, or values
    float* out,        // [L,B,H,T,T] tiles overwritten
    unsigned windows, unsigned tokens, unsigned heads, unsigned n) {
    const int lane = lanes[blockIdx.z];
    const u32 tiles = (tokens + TILE - 1) / TILE, item = blockIdx.y / tiles, c = heads * n;
    const u32 row0 = (blockIdx.y % tiles) * TILE, col0 = blockIdx.x * CHANNELS;
    if (lane < 0 || col0 >= row0 + TILE) return;
    const size_t head = ((size_t)lane * windows + item / heads) * tokens * c + (item % heads) * n;
    const size_t square = ((size_t)lane * windows * heads + item) * tokens * tokens;
    const Operands o = {x + head, z + head, nullptr, out + square, c, c, tokens};
    attention_tile<false, true>(o, Spot{row0, col0, tokens, tokens}, 0, n, SET, n);
}

// out_i = sum over keys j of s[i][j] x_j. Grid y: query tiles of every item. Overwrites out.
extern "C" __global__ void __launch_bounds__(128, 4) attention_rows(
    const int* lanes,  // [grid z]
    const float* s,    // [L,B,H,T,T] shares, or gradients of scores
    const float* x,    // [L,R,C] values, or keys
    float* out,        // [L,R,C]
    unsigned windows, unsigned tokens, unsigned heads, unsigned n) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const u32 tiles = (tokens + TILE - 1) / TILE, item = blockIdx.y / tiles, c = heads * n;
    const u32 row0 = (blockIdx.y % tiles) * TILE;
    const size_t head = ((size_t)lane * windows + item / heads) * tokens * c + (item % heads) * n;
    const size_t square = ((size_t)lane * windows * heads + item) * tokens * tokens;
    const Operands o = {s + square, x + head, nullptr, out + head, tokens, c, c};
    attention_tile<false, false>(o, Spot{row0, blockIdx.x * CHANNELS, tokens, n}, 0, min(row0 + TILE, tokens), SETTLE, n);
}

// out_j = sum over queries i of s[i][j] x_i. Grid y: key tiles of every item. Overwrites out.
extern "C" __global__ void __launch_bounds__(128, 4) attention_columns(
    const int* lanes,  // [grid z]
    const float* s,    // [L,B,H,T,T] gradients of scores, or shares
    const float* x,    // [L,R,C] queries, or gradients of outputs
    float* out,        // [L,R,C]
    unsigned windows, unsigned tokens, unsigned heads, unsigned n) {
    const int lane = lanes[blockIdx.z];
    if (lane < 0) return;
    const u32 tiles = (tokens + TILE - 1) / TILE, item = blockIdx.y / tiles, c = heads * n;
    const u32 row0 = (blockIdx.y % tiles) * TILE, from = row0 / PRODUCT_CHUNK * PRODUCT_CHUNK;
    const size_t head = ((size_t)lane * windows + item / heads) * tokens * c + (item % heads) * n;
    const size_t square = ((size_t)lane * windows * heads + item) * tokens * tokens;
    const Operands o = {s + square, x + head, nullptr, out + head, tokens, c, c};
    attention_tile<true, false>(o, Spot{row0, blockIdx.x * CHANNELS, tokens, n}, from, tokens, SETTLE, n);
}

// Keys of a query's row that any of the products above reads: those up to the end of its own chunk.
__device__ __forceinline__ u32 keys_read(u32 t, u32 tokens) {
    return min(tokens, (t / PRODUCT_CHUNK + 1) * PRODUCT_CHUNK);
}

// Shares of a query's visible keys from its products with them, in place; all other keys that are read get +0. One warp a query.
extern "C" __global__ void __launch_bounds__(128) attention_softmax(
    const int* lanes,  // [grid z]
    const u8* seen,    // [L,B,H,T,chunks]; not read where attention is dense (chunk_size >= T)
    float* p,          // [L,B,H,T,T] in place
    float scale,       // 1/sqrt(N)
    unsigned items, unsigned tokens, unsigned chunk_size) {
    const int lane = lanes[blockIdx.z];
    const u32 query = blockIdx.x * 4 + threadIdx.x / 32, i = threadIdx.x % 32;
    if (lane < 0 || query >= items * tokens) return;
    const u32 t = query % tokens, chunks = (tokens + chunk_size - 1) / chunk_size;
    const bool dense = chunk_size >= tokens;
    const size_t at = (size_t)lane * items * tokens + query;
    float* row = p + at * tokens;
    const u8* sees = seen + (dense ? 0 : at * chunks);
    const float nothing = __int_as_float(0xff800000);
    float top = nothing;
    for (u32 j = i; j <= t; j += 32) {
        const float x = dense || sees[j / chunk_size] ? row[j] * scale : nothing;
        top = x > top ? x : top;
    }
    for (int h = 16; h > 0; h >>= 1) {
        const float other = __shfl_xor_sync(FULL_WARP, top, h);
        top = other > top ? other : top;
    }
    float sum = 0.0f;
    for (u32 j = i; j <= t; j += 32) {
        const float e = dense || sees[j / chunk_size] ? exp_f(row[j] * scale - top) : 0.0f;
        row[j] = e;
        sum = sum + e;
    }
    const float inverse = __fdiv_rn(1.0f, fold_row(sum));
    const u32 end = keys_read(t, tokens);
    for (u32 j = i; j < end; j += 32) row[j] = j <= t ? row[j] * inverse : 0.0f;
}

// Gradients of a query's scores from those of its shares, in place; keys after it that are read get +0. One warp a query.
extern "C" __global__ void __launch_bounds__(128) attention_softmax_backward(
    const int* lanes,  // [grid z]
    const float* p,    // [L,B,H,T,T]
    const float* y,    // [L,R,C]
    const float* dy,   // [L,R,C]
    float* ds,         // [L,B,H,T,T] in place
    float scale,       // 1/sqrt(N)
    unsigned windows, unsigned tokens, unsigned heads, unsigned n) {
    const int lane = lanes[blockIdx.z];
    const u32 query = blockIdx.x * 4 + threadIdx.x / 32, i = threadIdx.x % 32;
    if (lane < 0 || query >= windows * heads * tokens) return;
    const u32 t = query % tokens, item = query / tokens, c = heads * n;
    const size_t at = (((size_t)lane * windows + item / heads) * tokens + t) * c + (item % heads) * n;
    float along = 0.0f;
    for (u32 j = i; j < n; j += 32) along = fmaf(dy[at + j], y[at + j], along);
    along = fold_row(along);
    const size_t line = ((size_t)lane * windows * heads * tokens + query) * tokens;
    const u32 end = keys_read(t, tokens);
#pragma unroll 4
    for (u32 j = i; j < end; j += 32) ds[line + j] = j <= t ? (__ldg(p + line + j) * (ds[line + j] - along)) * scale : 0.0f;
}
