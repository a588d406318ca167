// Attention on sixteen lanes (order: kernels.h). Included by lane_kernels.h.
//
// A share is some rows times some query heads of one key/value head. Two passes over blocks of 64 logical positions:
// the first keeps scores and finds each query's exact maximum, the second turns scores into weights and adds values.
// Within a block the rows take turns, so keys and values of a shared prefix are read from memory once per share and
// from the first cache afterwards. Scores that find no place in the scratch are computed again in the second pass, by
// the same function and so with the same bits: a share cannot fail for want of memory.
//
// Moves 8 * head_dim bytes of cache per visible position (shared prefix: once per share), does 4 * head_dim flops and
// one exp per query and visible position.

#if VECTOR_REGISTERS == 32
enum { KEYS_AT_ONCE = 16, COLUMNS_AT_ONCE = 4, QUERIES_AT_ONCE = 4 }; // 16 accumulators of 32 registers
#else
enum { KEYS_AT_ONCE = 4, COLUMNS_AT_ONCE = 2, QUERIES_AT_ONCE = 2 }; // 8 accumulators of 16 registers
#endif

enum { WORTH_COPYING = 4 }; // queries

// Rows of a cache, at one key/value head, for the positions of one block.
struct block_rows {
    const float *at[HM_POSITIONS];
    size_t count;
};

static size_t visible_length(const struct hm_visible *visible)
{
    return (size_t)visible->prefix + visible->tail_length;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static const float *query_at(const struct hm_attention_share *share, size_t row, size_t head)
{
    return share->q + (share->first_row + row) * share->q_stride + (share->first_head + head) * share->shape->head_dim;
}

static float *out_at(const struct hm_attention_share *share, size_t row, size_t head)
{
    const struct hm_attention_shape *shape = share->shape;
    return share->out + ((share->first_row + row) * shape->heads + share->first_head + head) * shape->head_dim;
}

// Finds the cache rows of positions start .. start + 63, as far as the query row sees them. When enough queries will
// use them they are copied side by side: rows of a cache often lie a multiple of 4 KiB apart, where the first cache
// holds a dozen of them at a time.
static void find_rows(const struct hm_attention_share *share, size_t row, const float *cache, size_t start,
                      size_t queries, struct block_rows *out)
{
    const struct hm_visible *visible = &share->visible[share->first_row + row];
    const struct hm_attention_shape *shape = share->shape;
    size_t head_dim = shape->head_dim, width = shape->kv_heads * head_dim, length = visible_length(visible);
    const float *column = cache + share->first_head / (shape->heads / shape->kv_heads) * head_dim;
    out->count = start < length ? smaller(length - start, HM_POSITIONS) : 0;
    for (size_t i = 0; i < out->count; i++) {
        size_t position = start + i;
        size_t slot = position < visible->prefix ? position : visible->tail[position - visible->prefix];
        out->at[i] = column + slot * width;
    }
    if (queries < WORTH_COPYING) return;
    for (size_t i = 0; i < out->count; i++)
        out->at[i] = memcpy(share->block + i * head_dim, out->at[i], head_dim * sizeof(float));
}

// Sixteen scores; key: sixteen rows.
INLINE lanes sixteen_scores(const float *const *key, const float *q, size_t head_dim, float scale)
{
    size_t whole = head_dim / 16 * 16;
    lanes part[16];
    for (int first = 0; first < 16; first += KEYS_AT_ONCE) {
        lanes sum[KEYS_AT_ONCE];
        for (int p = 0; p < KEYS_AT_ONCE; p++) sum[p] = lanes_set(0);
        for (size_t i = 0; i < whole; i += 16) {
            lanes query = lanes_load(q + i);
            for (int p = 0; p < KEYS_AT_ONCE; p++) sum[p] = lanes_fma(query, lanes_load(key[first + p] + i), sum[p]);
        }
        for (int p = 0; p < KEYS_AT_ONCE; p++) part[first + p] = sum[p];
    }
    if (whole < head_dim)
        for (int p = 0; p < 16; p++) {
            float lane[16];
            lanes_store(lane, part[p]);
            for (size_t i = whole; i < head_dim; i++) lane[i - whole] = fmaf(q[i], key[p][i], lane[i - whole]);
            part[p] = lanes_load(lane);
        }
    return lanes_mul(lanes_fold16(part), lanes_set(scale));
}

// score[0 .. 63]: scores of the block's rows; what lies behind `count` repeats the last row.
static void block_scores(const struct block_rows *keys, const float *q, size_t head_dim, float scale, float *score)
{
    for (size_t first = 0; first < keys->count; first += 16) {
        if (first + 16 <= keys->count) {
            lanes_store(score + first, sixteen_scores(keys->at + first, q, head_dim, scale));
            continue;
        }
        const float *key[16];
        for (size_t p = 0; p < 16; p++) key[p] = keys->at[smaller(first + p, keys->count - 1)];
        lanes_store(score + first, sixteen_scores(key, q, head_dim, scale));
    }
}

// The larger of most and score[0 .. count). Lanes behind `count` repeat a score (block_scores), so whole lanes will do.
static float block_max(const float *score, size_t count, float most)
{
    lanes larger = lanes_set(most);
    for (size_t i = 0; i < count; i += 16) larger = lanes_max(larger, lanes_load(score + i));
    float lane[16];
    lanes_store(lane, larger);
    for (int i = 0; i < 16; i++) most = lane[i] > most ? lane[i] : most;
    return most;
}

// Weighted sums of the block's value rows for `queries` queries, `columns` vectors of columns from `column` on, added
// to their totals.
INLINE void add_values_tile(const struct block_rows *values, float weight[][HM_POSITIONS], float *const *total,
                            size_t column, const int queries, const int columns)
{
    lanes sum[QUERIES_AT_ONCE][COLUMNS_AT_ONCE];
    for (int t = 0; t < queries; t++)
        for (int c = 0; c < columns; c++) sum[t][c] = lanes_set(0);
    for (size_t j = 0; j < values->count; j++) {
        const float *row = values->at[j] + column;
        lanes value[COLUMNS_AT_ONCE];
        for (int c = 0; c < columns; c++) value[c] = lanes_load(row + 16 * c);
        for (int t = 0; t < queries; t++) {
            lanes w = lanes_set(weight[t][j]);
            for (int c = 0; c < columns; c++) sum[t][c] = lanes_fma(w, value[c], sum[t][c]);
        }
    }
    for (int t = 0; t < queries; t++)
        for (int c = 0; c < columns; c++) {
            float *to = total[t] + column + 16 * c;
            lanes_store(to, lanes_add(lanes_load(to), sum[t][c]));
        }
}

// Sums of weights and all columns, for a number of queries the compiler knows.
INLINE void add_values(const struct block_rows *values, float weight[][HM_POSITIONS], float *sum, float *const *total,
                       size_t head_dim, const int queries)
{
    float block_sum[QUERIES_AT_ONCE] = {0};
    for (size_t j = 0; j < values->count; j++) // one chain per query: side by side, they hide each other's latency
        for (int t = 0; t < queries; t++) block_sum[t] = block_sum[t] + weight[t][j];
    for (int t = 0; t < queries; t++) sum[t] = sum[t] + block_sum[t];

    size_t column = 0;
    for (; column + 16 * COLUMNS_AT_ONCE <= head_dim; column += 16 * COLUMNS_AT_ONCE)
        add_values_tile(values, weight, total, column, queries, COLUMNS_AT_ONCE);
    for (; column + 16 <= head_dim; column += 16) add_values_tile(values, weight, total, column, queries, 1);
    for (; column < head_dim; column++)
        for (int t = 0; t < queries; t++) {
            float last = 0;
            for (size_t j = 0; j < values->count; j++) last = fmaf(weight[t][j], values->at[j][column], last);
            total[t][column] = total[t][column] + last;
        }
}

static void add_block(const struct block_rows *values, float weight[][HM_POSITIONS], float *sum, float *const *total,
                      size_t head_dim, size_t queries)
{
    switch (queries) {
    case 1: add_values(values, weight, sum, total, head_dim, 1); break;
    case 2: add_values(values, weight, sum, total, head_dim, 2); break;
#if VECTOR_REGISTERS == 32
    case 3: add_values(values, weight, sum, total, head_dim, 3); break;
    case 4: add_values(values, weight, sum, total, head_dim, 4); break;
#endif
    default: break;
    }
}

// State of a share: per query (row * heads + head) its maximum, its sum of weights, and the scores that fit.
struct queries {
    float *most, *sum, *score;
    size_t kept; // scores per query, a multiple of the block
};

// The scores of one query and block: where they are kept, or in `spare`.
static float *score_place(const struct queries *queries, size_t query, size_t start, float *spare)
{
    return start < queries->kept ? queries->score + query * queries->kept + start : spare;
}

static void find_maxima(const struct hm_attention_share *share, const struct queries *queries, size_t longest,
                        size_t common)
{
    const struct hm_attention_shape *shape = share->shape;
    struct block_rows keys;
    float spare[HM_POSITIONS];
    for (size_t start = 0; start < longest; start += HM_POSITIONS)
        for (size_t row = 0; row < share->rows; row++) {
            if (start + HM_POSITIONS > common)
                find_rows(share, row, share->keys, start, share->heads, &keys);
            else if (row == 0)
                find_rows(share, row, share->keys, start, share->rows * share->heads, &keys);
            for (size_t head = 0; head < share->heads; head++) {
                size_t query = row * share->heads + head;
                float *score = score_place(queries, query, start, spare);
                block_scores(&keys, query_at(share, row, head), shape->head_dim, shape->scale, score);
                queries->most[query] = block_max(score, keys.count, queries->most[query]);
            }
        }
}

// weight[0 .. count) of a query and block.
static void find_weights(const struct hm_attention_share *share, const struct queries *queries, size_t row, size_t head,
                         size_t start, size_t count, float weight[HM_POSITIONS])
{
    const struct hm_attention_shape *shape = share->shape;
    size_t query = row * share->heads + head;
    float spare[HM_POSITIONS];
    const float *score = score_place(queries, query, start, spare);
    if (score == spare) {
        struct block_rows keys;
        find_rows(share, row, share->keys, start, 1, &keys); // no copy: `block` holds values
        block_scores(&keys, query_at(share, row, head), shape->head_dim, shape->scale, spare);
    }
    lanes most = lanes_set(queries->most[query]);
    for (size_t i = 0; i < count; i += 16) lanes_store(weight + i, lanes_exp(lanes_sub(lanes_load(score + i), most)));
}

// One block of values for the queries of rows row .. row + rows - 1, which all see the same slots in it.
static void add_block_of_rows(const struct hm_attention_share *share, const struct queries *queries, size_t row,
                              size_t rows, size_t start)
{
    struct block_rows values;
    find_rows(share, row, share->values, start, rows * share->heads, &values);
    if (values.count == 0) return;
    size_t first = row * share->heads, end = first + rows * share->heads;
    for (size_t query = first; query < end; query += QUERIES_AT_ONCE) {
        float weight[QUERIES_AT_ONCE][HM_POSITIONS], *total[QUERIES_AT_ONCE];
        size_t group = smaller(end - query, QUERIES_AT_ONCE);
        for (size_t t = 0; t < group; t++) {
            size_t r = (query + t) / share->heads, h = (query + t) % share->heads;
            find_weights(share, queries, r, h, start, values.count, weight[t]);
            total[t] = out_at(share, r, h);
        }
        add_block(&values, weight, queries->sum + query, total, share->shape->head_dim, group);
    }
}

static void divide_by_sums(const struct hm_attention_share *share, const struct queries *queries)
{
    for (size_t query = 0; query < share->rows * share->heads; query++) {
        float *out = out_at(share, query / share->heads, query % share->heads);
        for (size_t i = 0; i < share->shape->head_dim; i++) out[i] = out[i] / queries->sum[query];
    }
}

static void attention(const struct hm_attention_share *share)
{
    size_t count = share->rows * share->heads, longest = 0, common = SIZE_MAX;
    for (size_t row = 0; row < share->rows; row++) {
        const struct hm_visible *visible = &share->visible[share->first_row + row];
        size_t length = visible_length(visible);
        longest = length > longest ? length : longest;
        common = smaller(common, visible->prefix);
    }
    struct queries queries = {
        .most = share->scratch, .sum = share->scratch + count, .score = share->scratch + 2 * count};
    size_t blocks = (longest + HM_POSITIONS - 1) / HM_POSITIONS;
    queries.kept = smaller((share->scratch_floats / count - 2) / HM_POSITIONS, blocks) * HM_POSITIONS;
    for (size_t query = 0; query < count; query++) {
        queries.most[query] = -INFINITY;
        queries.sum[query] = 0;
        memset(out_at(share, query / share->heads, query % share->heads), 0, share->shape->head_dim * sizeof(float));
    }

    find_maxima(share, &queries, longest, common);
    size_t start = 0;
    for (; start + HM_POSITIONS <= common; start += HM_POSITIONS)
        add_block_of_rows(share, &queries, 0, share->rows, start);
    for (; start < longest; start += HM_POSITIONS)
        for (size_t row = 0; row < share->rows; row++) add_block_of_rows(share, &queries, row, 1, start);
    divide_by_sums(share, &queries);
}
