// Passing over records that nobody asked for: see hm_log_reader_pass_until. A line is recognised by its first fields,
// in the order and spelling of stamp_record.c; any other line is read as always.
#include "certify/log_reader_private.h"

#include <string.h>

void hm_log_reader_pass_until(struct hm_log_reader *r, int64_t sequence, int64_t t)
{
    r->until_sequence = sequence;
    r->until_t = t;
}

// Moves *text behind a word; false when it does not begin with it.
static bool take(const char **text, const char *end, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(end - *text) < n || memcmp(*text, word, n) != 0) return false;
    *text += n;
    return true;
}

// Moves *text behind `key` and a number of at most 15 digits.
static bool take_number(const char **text, const char *end, const char *key, int64_t *out)
{
    int digits = 0;
    *out = 0;
    if (!take(text, end, key)) return false;
    for (; *text < end && **text >= '0' && **text <= '9' && digits < 16; digits++)
        *out = 10 * *out + (*(*text)++ - '0');
    return digits > 0 && digits < 16;
}

static bool is_before(const struct hm_log_reader *r, int64_t t)
{
    return r->sequence < r->until_sequence || (r->sequence == r->until_sequence && t < r->until_t);
}

// `finish` can stand nowhere else: inside a text its quotes have backslashes.
static bool has_finish(const char *text, const char *end)
{
    static const char finish[] = ",\"finish\":\"";
    return memmem(text, (size_t)(end - text), finish, sizeof finish - 1) != NULL;
}

static bool pass_step(struct hm_log_reader *r, const char *text, const char *end)
{
    int64_t sequence, t, round;
    if (!take_number(&text, end, ",\"sequence\":", &sequence) || !take_number(&text, end, ",\"t\":", &t)) return false;
    if (t == 0 && take(&text, end, ",\"round\":null"))
        round = -1;
    else if (!take_number(&text, end, ",\"round\":", &round))
        return false;
    if (sequence != r->sequence || t != r->t + 1 || round != r->round || r->finished || !is_before(r, t) ||
        !take(&text, end, ","))
        return false;
    r->t = t;
    r->finished = has_finish(text - 1, end);
    r->steps++;
    return true;
}

static bool pass_node(struct hm_log_reader *r, const char *text, const char *end)
{
    int64_t sequence, round;
    if (!take_number(&text, end, ",\"sequence\":", &sequence) || !take_number(&text, end, ",\"round\":", &round))
        return false;
    if (sequence != r->sequence || round != r->round || !is_before(r, r->t) || !take(&text, end, ",")) return false;
    r->node_records++;
    return true;
}

static bool pass_row(struct hm_log_reader *r, const char *text, const char *end)
{
    int64_t index;
    if (!r->header.audit || !take_number(&text, end, ",\"index\":", &index)) return false;
    if (index <= r->index || !is_before(r, index) || !take(&text, end, ",")) return false;
    r->index = index;
    r->rows++;
    return true;
}

static bool pass_round(struct hm_log_reader *r, const char *text, const char *end)
{
    int64_t sequence, round, t;
    if (!take_number(&text, end, ",\"sequence\":", &sequence) || !take_number(&text, end, ",\"round\":", &round) ||
        !take_number(&text, end, ",\"t\":", &t))
        return false;
    if (sequence != r->sequence || round != r->round + 1 || t != r->t + 1 || !is_before(r, t) || !take(&text, end, ","))
        return false;
    const struct hm_reused line = r->line;
    r->line = r->held; // its memory is used for the next line
    r->held = line;
    r->held_size = r->line_size;
    r->held_line = r->line_number + 1;
    r->round = round;
    r->round_t = t;
    r->rounds++;
    return true;
}

bool hm_log_pass_over(struct hm_log_reader *r)
{
    bool asked = r->until_sequence != 0 || r->until_t != 0;
    if (!asked || !r->line_whole || r->line_size == 0 || r->state != HM_LOG_OPEN) return false; // an empty file has no line
    const char *text = r->line.data, *end = text + r->line_size;
    if (!take(&text, end, "{\"kind\":\"")) return false;
    if (take(&text, end, "step\"")) return pass_step(r, text, end);
    if (take(&text, end, "round\"")) return pass_round(r, text, end);
    if (take(&text, end, "node\"")) return pass_node(r, text, end);
    if (take(&text, end, "row\"")) return pass_row(r, text, end);
    return false;
}

void hm_log_swap_held(struct hm_log_reader *r)
{
    const struct hm_reused line = r->line;
    size_t size = r->line_size;
    r->line = r->held;
    r->line_size = r->held_size;
    r->held = line;
    r->held_size = size;
    r->delivering = !r->delivering;
    if (!r->delivering) r->held_size = 0;
}

// Its steps were passed over in part, and were before their round is parsed.
hm_status hm_log_parse_held(struct hm_log_reader *r, const struct hm_place *place)
{
    int64_t t = r->t;
    r->t = r->round_t - 1;
    r->round--;
    r->rounds--;
    hm_status rc = hm_log_parse_round(r, place);
    r->t = t;
    return rc;
}
