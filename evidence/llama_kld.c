// The base file of llama-perplexity --kl-divergence-base: whole rows of log-probabilities in 16 bits each.
//
// "_logits_", int32 n_ctx, n_vocab, n_chunk, int32 tokens[n_chunk][n_ctx]; then, chunk after chunk, a row for each of the
// places n_ctx/2 .. n_ctx-2 of the chunk, which scores the token behind its place. A row is float32 scale, float32 lowest,
// uint16 code[n_vocab], one code more when n_vocab is odd: ln p = lowest + scale * code. All is little-endian.
//
// What a code stands for. The writer takes the row's largest logit M, m = max(smallest logit, M - 16), and stores
// lowest = (m - M) - ln sum exp(l - M), scale = (M - m)/65535 and the nearest integer of (l - m) * (1/scale), or 0 for l <= m.
// So ln p is within half a step of lowest + scale * code, and code 0 stands for anything from -inf to half a step above
// lowest. Of the writer's float32 operations, with u = 2^-24: 1/scale, l - m and the product move a code by at most
// 3.1 u (M - m) in nats, m - M by u (M - m), the last subtraction by u |lowest|; that is added here. The exponentials, their
// sum and its logarithm are the engine's log-softmax, which the allowance is for.
#include "evidence/source_state.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAGIC = 8, HEADER = MAGIC + 3 * 4, ROW_HEADER = 8 };

struct kld {
    char *path;
    struct hm_map map;
    double allowance;
    size_t context, vocab, chunks;      // n_ctx, n_vocab, n_chunk
    size_t told;                        // vocabulary as the caller says, 0: not told
    size_t first, scored;               // of a chunk: the first place with a row; rows
    size_t rows_at, row_bytes, rows;    // rows that the file has, whole ones
    size_t next;                        // row
    size_t released;                    // bytes of the file whose pages were given back
    enum { CHUNK, ROW, END } stage;
    int32_t *prompt;                    // [first + 1]
    struct hm_evidence_entry *entry;    // [vocab]
    struct hm_source_sequence sequence;
    struct hm_source_token token;
    struct hm_finding finding[7];       // to be told after the event that was given last
    size_t findings, told_findings;
    char where[64];
};

static int32_t read_int32(const struct kld *k, size_t at)
{
    int32_t value;
    memcpy(&value, k->map.data + at, sizeof value);
    return value;
}

static hm_status read_size(const struct kld *k, size_t at, const char *name, int32_t least, size_t *out, struct hm_error *err)
{
    int32_t value = read_int32(k, at);
    if (value < least)
        return hm_fail(err, HM_FORMAT, "%s: byte %zu: %s: expected at least %d, found %d", k->path, at, name, least, value);
    *out = (size_t)value;
    return HM_OK;
}

static hm_status read_header(struct kld *k, struct hm_error *err)
{
    size_t tokens, bytes;
    if (k->map.size < MAGIC || memcmp(k->map.data, "_logits_", MAGIC) != 0)
        return hm_fail(err, HM_FORMAT, "%s: expected the magic _logits_, found something else", k->path);
    if (k->map.size < HEADER)
        return hm_fail(err, HM_FORMAT,
                       "%s: expected a header of %d bytes, found %zu (llama-perplexity writes no more when the text is shorter "
                       "than two contexts)",
                       k->path, HEADER, k->map.size);
    hm_status rc = read_size(k, MAGIC, "n_ctx", 2, &k->context, err);
    if (!rc) rc = read_size(k, MAGIC + 4, "n_vocab", 2, &k->vocab, err);
    if (!rc) rc = read_size(k, MAGIC + 8, "n_chunk", 0, &k->chunks, err);
    if (rc) return rc;
    if (!hm_mul_size(k->context, k->chunks, &tokens) || !hm_mul_size(tokens, 4, &bytes) || bytes > k->map.size - HEADER)
        return hm_fail(err, HM_FORMAT, "%s: expected the tokens of %zu chunks of %zu behind the header, found %zu bytes", k->path,
                       k->chunks, k->context, k->map.size - HEADER);
    k->first = k->context / 2;
    k->scored = k->context - 1 - k->first;
    k->rows_at = HEADER + bytes;
    k->row_bytes = ROW_HEADER + 2 * ((k->vocab + 1) / 2 * 2); // n_vocab is below 2^31
    k->rows = (k->map.size - k->rows_at) / k->row_bytes;
    if (k->rows > k->chunks * k->scored) k->rows = k->chunks * k->scored;
    return HM_OK;
}

static struct hm_finding *add_finding(struct kld *k)
{
    return &k->finding[k->findings++];
}

// ---- Events ----

// Gives back pages that were read, so that a long file does not fill memory.
static void release(struct kld *k, size_t until)
{
    enum { STEP = 16 << 20 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), to = until / page * page;
    if (to < k->released + STEP) return;
    (void)madvise((void *)((uintptr_t)k->map.data + k->released), to - k->released, MADV_DONTNEED);
    k->released = to;
}

// The model sees its own begin-of-text token in the place of a chunk's first token, when it has one, but the file keeps the
// text's token. Chunk 0 begins with that token already, so another chunk's prompt is known only if it begins the same.
static void give_sequence(struct kld *k, struct hm_event *out)
{
    size_t chunk = k->next / k->scored, at = HEADER + 4 * chunk * k->context;
    for (size_t i = 0; i <= k->first; i++) k->prompt[i] = read_int32(k, at + 4 * i);
    bool seen = k->prompt[0] == read_int32(k, HEADER);
    k->sequence = (struct hm_source_sequence){.number = (uint32_t)chunk, .id = "", .model = "", .category = "",
                                              .prompt = seen ? k->prompt : NULL, .prompt_length = seen ? k->first + 1 : 0,
                                              .draft_tokens = -1, .accepted_tokens = -1};
    k->stage = ROW;
    *out = (struct hm_event){.kind = HM_EVENT_SEQUENCE, .sequence = &k->sequence};
}

// False: the row's two floats are not what a writer can have meant.
static bool read_row(struct kld *k, const uint8_t *row)
{
    float scale, lowest;
    memcpy(&scale, row, sizeof scale);
    memcpy(&lowest, row + sizeof scale, sizeof lowest);
    if (!(scale >= 0 && isfinite(scale)) || !isfinite(lowest)) return false;
    // Below 2^-100 the writer's 1/scale may overflow, and a code says nothing; the whole range is far below u.
    double range = 65536 * (double)scale, step = scale < 0x1p-100f ? range : scale / 2.0, size = fabs((double)lowest);
    // 4.11 and 1.01: u's own second order. The last term covers the roundings of doubles here and in the ends below.
    double slack = step + 0x1p-24 * (4.11 * range + 1.01 * size) + 0x1p-48 * (range + size);
    double allowance = k->allowance * (1 + 0x1p-48), eighth = allowance / 8; // hm_decimal_widen, for all entries in one pass
    for (size_t i = 0; i < k->vocab; i++) {
        uint16_t code;
        memcpy(&code, row + ROW_HEADER + 2 * i, sizeof code);
        double value = (double)scale * code + lowest; // the product is exact
        double wide = slack + allowance + eighth * (fabs(value) + slack);
        k->entry[i].value = (struct hm_ival){code ? value - wide : -INFINITY, value + wide};
    }
    return true;
}

// All logits of the row were equal.
static bool is_constant(const uint8_t *row)
{
    float scale;
    memcpy(&scale, row, sizeof scale);
    return scale == 0;
}

// Columns beyond the tokenizer of which the row says that they have probability.
static void look_at_padding(struct kld *k, const uint8_t *row)
{
    size_t beyond = 0;
    for (size_t i = k->told; i < k->vocab; i++) beyond += row[ROW_HEADER + 2 * i] != 0 || row[ROW_HEADER + 2 * i + 1] != 0;
    if (beyond)
        hm_finding_set(add_finding(k), HM_FINDING_PADDING, k->token.sequence, k->token.t, k->where,
                       "expected code 0 in the %zu columns beyond a vocabulary of %zu, found others in %zu", k->vocab - k->told,
                       k->told, beyond);
}

static void give_token(struct kld *k, struct hm_event *out)
{
    size_t chunk = k->next / k->scored, r = k->next % k->scored, at = k->rows_at + k->next * k->row_bytes;
    const uint8_t *row = k->map.data + at;
    int32_t id = read_int32(k, HEADER + 4 * (chunk * k->context + k->first + r + 1));
    bool known = id >= 0 && (size_t)id < k->vocab;
    release(k, at);
    snprintf(k->where, sizeof k->where, "chunk %zu, row %zu", chunk, r);
    k->token = (struct hm_source_token){.sequence = (uint32_t)chunk, .t = (uint32_t)r, .token = known ? id : -1,
                                        .missing = HM_MISSING_LOGPROBS, .where = k->where};
    k->token.has_row = read_row(k, row);
    if (k->token.has_row)
        k->token.row = (struct hm_evidence){.unit = HM_UNIT_LOG_PROBABILITY, .entry = k->entry, .count = k->vocab,
                                            .emitted = known ? (size_t)id : HM_UNSEEN, .vocab = k->vocab};
    else
        hm_finding_set(add_finding(k), HM_FINDING_NOT_A_NUMBER, (int64_t)chunk, (int64_t)r, k->where,
                       "expected a finite scale of at least 0 and a finite lowest value, found others");
    if (k->token.has_row && is_constant(row)) // sanity cannot tell: codes of 0 have no lower bound
        hm_finding_set(add_finding(k), HM_FINDING_PADDING, (int64_t)chunk, (int64_t)r, k->where,
                       "expected different log-probabilities, found one for all %zu tokens", k->vocab);
    if (!known)
        hm_finding_set(add_finding(k), HM_FINDING_ID_RANGE, (int64_t)chunk, (int64_t)r, k->where,
                       "expected a token below %zu, found %d", k->vocab, id);
    if (k->next == 0 && k->told && k->told < k->vocab) look_at_padding(k, row);
    k->next++;
    k->stage = k->next == k->rows ? END : k->next % k->scored == 0 ? CHUNK : ROW;
    *out = (struct hm_event){.kind = HM_EVENT_TOKEN, .token = &k->token};
}

// What is wrong with the file as a whole.
static void look_at_sizes(struct kld *k)
{
    size_t expected = k->chunks * k->scored, rest = k->map.size - k->rows_at - k->rows * k->row_bytes;
    if (k->rows < expected)
        hm_finding_set(add_finding(k), HM_FINDING_LENGTH, -1, -1, "end of file",
                       "expected %zu rows of %zu bytes, found %zu and %zu bytes", expected, k->row_bytes, k->rows, rest);
    else if (rest)
        hm_finding_set(add_finding(k), HM_FINDING_LENGTH, -1, -1, "end of file",
                       "expected nothing behind %zu rows, found %zu bytes", expected, rest);
    if (k->told > k->vocab)
        hm_finding_set(add_finding(k), HM_FINDING_LENGTH, -1, -1, "header", "expected rows of %zu values, found n_vocab %zu",
                       k->told, k->vocab);
}

static hm_status next_event(void *state, struct hm_event *out, struct hm_error *err)
{
    struct kld *k = state;
    (void)err;
    if (k->told_findings == k->findings) k->findings = k->told_findings = 0;
    if (k->findings > k->told_findings)
        *out = (struct hm_event){.kind = HM_EVENT_FINDING, .finding = &k->finding[k->told_findings++]};
    else if (k->stage == CHUNK)
        give_sequence(k, out);
    else if (k->stage == ROW)
        give_token(k, out);
    else
        *out = (struct hm_event){.kind = HM_EVENT_END};
    if (out->kind == HM_EVENT_TOKEN && k->stage == END) look_at_sizes(k);
    return HM_OK;
}

static void close_reader(void *state)
{
    struct kld *k = state;
    free(k->prompt);
    free(k->entry);
    free(k->path);
    free(k);
}

hm_status hm_llama_kld_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                            struct hm_reader *out, struct hm_error *err)
{
    struct kld *k = hm_calloc(1, sizeof *k);
    if (k) k->path = strdup(path);
    if (!k || !k->path) {
        free(k);
        return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    }
    k->map = *map;
    k->allowance = options->allowance;
    k->told = options->vocab;
    hm_status rc = read_header(k, err);
    if (!rc && k->rows) { // each array is smaller than a row or the tokens of the file
        k->entry = hm_calloc(k->vocab, sizeof *k->entry);
        k->prompt = hm_calloc(k->first + 1, sizeof *k->prompt);
        if (!k->entry || !k->prompt) rc = hm_fail(err, HM_MEMORY, "%s: out of memory for rows of %zu values", path, k->vocab);
    }
    if (rc) {
        close_reader(k);
        return rc;
    }
    for (size_t i = 0; k->entry && i < k->vocab; i++) k->entry[i].id = (int32_t)i;
    k->stage = k->rows ? CHUNK : END;
    if (!k->rows) look_at_sizes(k);
    *out = (struct hm_reader){.state = k, .next = next_event, .close = close_reader};
    return HM_OK;
}
