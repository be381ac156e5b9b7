// Runs the kernels of attention, norms, the recurrence and the time mix on a CPU at many shapes, in three lanes of which the middle one rests,
// and prints a digest of every array that they write. Arrays begin as NaNs that tell where they lie, so that what is not written shows too.
#include "cuda_on_cpu.h"

#include "kernels/common.cuh"
#include "kernels/product.cuh"
#include "kernels/norm.cu"
#include "kernels/recurrence.cu"
#include "kernels/time_mix.cu"
#include "kernels/attention.cu"

struct V : std::vector<float> {
    explicit V(size_t n = 0) : std::vector<float>(n + 16) {}
    operator float*() { return data(); }
};
struct Bytes : std::vector<u8> {
    explicit Bytes(size_t n) : std::vector<u8>(n + 16, 7) {}
    operator u8*() { return data(); }
};

static uint64_t seed = 1;

static V noise(size_t n, float scale = 1.0f) {
    V v(n);
    for (auto& x : v) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        x = scale * ((float)((int64_t)(seed >> 33) - (1ll << 30)) / (float)(1 << 30));
    }
    return v;
}

static V blank(size_t n) {
    V v(n);
    for (size_t i = 0; i < v.size(); ++i) v[i] = __int_as_float(0x7fc00000 + (int)(i % 1000));
    return v;
}

// One line an array: what it is of, its number, FNV-1a of its bytes.
static void tell(const char* title, std::initializer_list<const V*> arrays) {
    int number = 0;
    for (const V* array : arrays) {
        uint64_t digest = 14695981039346656037ull;
        const u8* bytes = reinterpret_cast<const u8*>(array->data());
        for (size_t i = 0; i < 4 * array->size(); ++i) digest = (digest ^ bytes[i]) * 1099511628211ull;
        printf("%s array %d: %016llx\n", title, number++, (unsigned long long)digest);
    }
}

static const int list[3] = {0, -1, 2};
static const unsigned L = 3;

// A layer norm's forward kernel, with rows of a warp where it takes several.
typedef void (*OneRow)(const int*, const float*, const float*, const float*, const float*, u64, float*, float*, float*, float*, u32, u32,
    u32, u32, u32);
typedef void (*SomeRows)(
    const int*, const float*, const float*, const float*, const float*, u64, float*, float*, float*, float*, u32, u32, u32, u32, u32, u32);

struct NormCase {
    u32 rows, tokens, c, mixes, step, each;
    u64 arena;
    V x, vectors, y, mean, scale, shifted;
};

static void forward(OneRow kernel, NormCase& a) {
    const float* w = a.vectors;
    launch({(a.rows + 3) / 4, 1, L}, 128, [&] {
        kernel(list, a.x, w, w + a.step, w + 2 * a.step, a.arena, a.y, a.mean, a.scale, a.shifted, a.rows, a.tokens, a.c, a.mixes, a.step);
    });
}

static void forward(SomeRows kernel, NormCase& a) {
    const float* w = a.vectors;
    launch({(a.rows + 4 * a.each - 1) / (4 * a.each), 1, L}, 128, [&] {
        kernel(list, a.x, w, w + a.step, w + 2 * a.step, a.arena, a.y, a.mean, a.scale, a.shifted, a.rows, a.tokens, a.c, a.mixes,
            a.step, a.each);
    });
}

static void norm(u32 rows, u32 tokens, u32 c, u32 mixes, bool onto, u32 each) {
    seed = 13;
    const u32 step = (c + 15) / 16 * 16, slots = 10, chunk_count = (rows + 31) / 32;
    const size_t all = (size_t)L * rows * c;
    NormCase a = {rows, tokens, c, mixes, step, each, 12 * step, noise(all), noise(L * 12 * step), blank(all), blank(L * rows),
        blank(L * rows), blank(all * mixes)};
    forward(layer_norm, a);
    V dshifted = noise(all * mixes), du = mixes ? blank(all) : noise(all), dx = noise(all),
        chunks = blank((size_t)L * chunk_count * slots * c);
    const float* w = a.vectors;
    launch({chunk_count, 1, L}, 128, [&] {
        layer_norm_backward(list, dshifted, w + 2 * step, a.y, a.x, a.mean, a.scale, w, a.arena, du, dx, chunks, rows, tokens, c, mixes,
            step, slots, 0, 7, onto);
    });
    char title[100];
    sprintf(title, "norm R %u T %u C %u mixes %u onto %d", rows, tokens, c, mixes, onto);
    tell(title, {&a.y, &a.mean, &a.scale, &a.shifted, &du, &dx, &chunks});
}

template <class F, class R, class C>
static void recurrence(const char* name, F fwd, R rows, C cols, unsigned each, unsigned seg, unsigned n, unsigned tokens) {
    seed = 7;
    unsigned windows = 2, heads = 2, c = heads * n;
    size_t all = (size_t)L * windows * tokens * c, st = (size_t)L * windows * heads * ((tokens + seg - 1) / seg) * n * n;
    V r = noise(all), w = noise(all), k = noise(all), v = noise(all), kk = noise(all, 0.2f), b = noise(all, 0.2f), dy = noise(all);
    for (auto& x : w) x = 0.8f + 0.15f * x;
    V y = blank(all), sa = blank(all), states = blank(st), dv = blank(all), h = blank(all), g = blank(st);
    V dr = blank(all), dw = blank(all), dk = blank(all), da = blank(all), db = blank(all);
    launch({heads * ((n + 8 * each - 1) / (8 * each)), windows, L}, 32, [&] { fwd(list, r, w, k, v, kk, b, y, sa, states, windows,
        tokens, heads, n, 1); });
    launch({heads * ((n + 8 * each - 1) / (8 * each)), windows, L}, 32, [&] { rows(list, r, w, k, kk, b, dy, dv, h, g, windows, tokens,
        heads, n); });
    unsigned cw = n == 32 ? 32 : 16;
    launch({heads * ((n + cw - 1) / cw), windows * ((tokens + seg - 1) / seg), L}, 64, [&] { cols(list, r, w, k, v, kk, b, sa, h, dy,
        states, g, dr, dw, dk, da, db, windows, tokens, heads, n); });
    char title[100];
    sprintf(title, "recurrence_%s N %u T %u", name, n, tokens);
    tell(title, {&y, &sa, &states, &dv, &h, &g, &dr, &dw, &dk, &da, &db});
}

static void attention(unsigned tokens, unsigned heads, unsigned n, unsigned chunk, unsigned top) {
    seed = 9;
    unsigned windows = 2, c = heads * n, tiles = (tokens + 63) / 64, items = windows * heads;
    float scale = 1.0f / sqrtf((float)n);
    size_t all = (size_t)L * windows * tokens * c, sq = (size_t)L * items * tokens * tokens;
    unsigned chunks = (tokens + chunk - 1) / chunk;
    V q = noise(all), k = noise(all), v = noise(all), dy = noise(all), p = blank(sq), ds = blank(sq), y = blank(all), dq = blank(all),
        dk = blank(all), dv = blank(all);
    V means = blank((size_t)L * items * chunks * n), sc = blank((size_t)L * items * tokens * chunks);
    Bytes sees((size_t)L * items * tokens * chunks);
    if (chunk < tokens) {
        if (tokens / chunk) launch({tokens / chunk, items, L}, std::min(128u, (n + 31) / 32 * 32), [&] { attention_chunk_means(list, k,
            means, windows, tokens, heads, n, chunk); });
        launch({(tokens + 127) / 128, items, L}, 128, [&] { attention_choose(list, q, means, sc, sees, windows, tokens, heads, n, chunk,
            top); });
    }
    launch({(tokens + 31) / 32, items * tiles, L}, 128, [&] { attention_scores(list, q, k, p, windows, tokens, heads, n); });
    launch({(items * tokens + 3) / 4, 1, L}, 128, [&] { attention_softmax(list, sees, p, scale, items, tokens, chunk); });
    launch({(n + 31) / 32, items * tiles, L}, 128, [&] { attention_rows(list, p, v, y, windows, tokens, heads, n); });
    launch({(tokens + 31) / 32, items * tiles, L}, 128, [&] { attention_scores(list, dy, v, ds, windows, tokens, heads, n); });
    launch({(n + 31) / 32, items * tiles, L}, 128, [&] { attention_columns(list, p, dy, dv, windows, tokens, heads, n); });
    launch({(items * tokens + 3) / 4, 1, L}, 128, [&] { attention_softmax_backward(list, p, y, dy, ds, scale, windows, tokens, heads,
        n); });
    launch({(n + 31) / 32, items * tiles, L}, 128, [&] { attention_rows(list, ds, k, dq, windows, tokens, heads, n); });
    launch({(n + 31) / 32, items * tiles, L}, 128, [&] { attention_columns(list, ds, q, dk, windows, tokens, heads, n); });
    char title[100];
    sprintf(title, "attention T %u N %u chunk %u top %u", tokens, n, chunk, top);
    tell(title, {&y, &dq, &dk, &dv});
}

static void time_mix(unsigned heads, unsigned n, unsigned rows, bool first, bool last, unsigned threads) {
    seed = 11;
    unsigned c = heads * n;
    size_t arena = 16 * c, all = (size_t)L * rows * c;
    unsigned chunks = (rows + 31) / 32, vectors = 10;
    V ar = noise(L * arena);
    const float* A = ar;
    V k0 = noise(all), v0 = noise(all), vf = noise(all), sw = noise(all), a = noise(all), vs = noise(all), w = blank(all),
        k = blank(all), v = blank(all), kk = blank(all), b = blank(all);
    launch({(rows * heads + 3) / 4, 1, L}, 128, [&] { time_mix_prepare(list, A, A + c, A + 2 * c, A + 3 * c, A + 4 * c, arena, k0, v0,
        vf, sw, a, vs, w, k, v, kk, b, rows, heads, n, first); });
    V y = noise(all), r = noise(all), g = noise(all), o = blank(all), d_o = noise(all);
    launch({(rows * heads + 3) / 4, 1, L}, 128, [&] { time_mix_finish(list, A + 5 * c, A + 6 * c, A + 7 * c, arena, y, r, k, v, g, o,
        rows, heads, n); });
    V dg = blank(all), dr = blank(all), dk = blank(all), dv = blank(all), dy = blank(all), ho = blank((size_t)L * rows * heads * 3),
        ch = blank((size_t)L * chunks * vectors * c);
    launch({chunks, 1, L}, threads, [&] { time_mix_finish_backward(list, A + 5 * c, A + 6 * c, A + 7 * c, arena, y, r, k, v, g, d_o, dg,
        dr, dk, dv, dy, ho, ch, rows, heads, n, vectors, 2); });
    V rec[6]; for (auto& x : rec) x = noise(all);
    V dvf = noise(all), dk0 = blank(all), dv0 = blank(all), dz = blank(all), dza = blank(all), dzv = blank(all), dq = blank(all);
    V fin_dr = dr, fin_dk = dk;
    launch({chunks, 1, L}, threads, [&] { time_mix_prepare_backward(list, A + 3 * c, A + 4 * c, arena, k0, v0, vf, sw, a, vs, w, kk,
        rec[0], rec[1], rec[2], rec[3], rec[4], rec[5], dr, dk, dv, dvf, dk0, dv0, dz, dza, dzv, dq, ch, rows, heads, n, vectors, 5, 7,
        8, 9, first, last); });
    char title[100];
    sprintf(title, "time mix N %u first %d last %d", n, first, last);
    tell(title, {&sw, &a, &vs, &w, &k, &v, &kk, &b, &o, &dg, &fin_dr, &fin_dk, &dr, &dk, &dv, &dy, &ho, &ch, &dvf, &dk0, &dv0, &dz, &dza,
        &dzv, &dq});
}

#define RECURRENCE(ROWS, COLUMNS, EACH, SEGMENT, N, T) \
    recurrence(#ROWS, recurrence_forward_##ROWS, recurrence_rows_##ROWS, recurrence_columns_##COLUMNS, EACH, SEGMENT, N, T)

int main() {
    for (u32 each : {1u, 4u}) {
        for (u32 c : {6u, 33u, 128u, 132u, 200u}) {
            for (u32 mixes : {0u, 1u, 6u}) {
                norm(70, 35, c, mixes, mixes != 0, each);
                norm(37, 37, c, mixes, mixes == 0, each);
                norm(64, 1, c, mixes, true, each);
            }
        }
    }
    for (u32 threads : {256u, 1024u}) {
        for (u32 n : {3u, 16u, 32u, 33u, 64u}) {
            for (int ends = 0; ends < 4; ++ends) time_mix(3, n, 45, ends & 1, ends & 2, threads);
        }
    }
    const u32 shapes[][5] = {{37, 2, 8, 37, 0}, {100, 2, 16, 16, 1}, {100, 2, 16, 7, 2}, {100, 3, 32, 40, 9}, {200, 2, 32, 200, 0},
                             {133, 1, 33, 133, 0}, {300, 1, 64, 300, 0}, {260, 1, 20, 33, 3}, {1, 1, 8, 1, 0}, {129, 1, 32, 129, 0}};
    for (const auto& s : shapes) attention(s[0], s[1], s[2], s[3], s[4]);
    RECURRENCE(of32, of32, 1, 8, 32, 37);
    RECURRENCE(of32x2, of32, 2, 8, 32, 37);
    RECURRENCE(of32x4, of32, 4, 8, 32, 37);
    RECURRENCE(of32, of32, 1, 8, 32, 64);
    RECURRENCE(of32, of32, 1, 8, 32, 1);
    RECURRENCE(of64, of64, 1, 4, 64, 37);
    RECURRENCE(upto16, upto16, 1, 8, 13, 37);
    RECURRENCE(upto16, upto16, 1, 8, 16, 37);
    RECURRENCE(upto32, upto32, 1, 8, 20, 37);
    RECURRENCE(upto64, upto64, 1, 4, 40, 37);
    RECURRENCE(upto128, upto128, 1, 2, 100, 37);
    RECURRENCE(upto128, upto128, 1, 2, 128, 20);
}
