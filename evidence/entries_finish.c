// What the entries of a row mean together: the emitted token among them, sentinels, and which are the largest of the
// row. See entries.h.
#include "evidence/entries.h"

#include "evidence/match.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same_text(const char *a, size_t n, const char *b, size_t m)
{
    return a && b && n == m && memcmp(a, b, n) == 0;
}

static bool disjoint(struct hm_ival a, struct hm_ival b)
{
    return a.hi < b.lo || b.hi < a.lo;
}

// ---- Sentinels ----

// 0 and nothing but sentinels: only the argmax was logged.
static bool only_argmax(const struct hm_entries *e)
{
    return e->count >= 2 && e->sentinels == e->count - 1 && !e->note[0].sentinel && e->note[0].printed.lo <= 0 &&
           e->note[0].printed.hi >= 0;
}

static void leave_out_sentinels(struct hm_entries *e, struct hm_track *track, const char *where)
{
    size_t kept = 0, found = e->sentinels + (e->own_sentinel && e->sentinels == 0);
    if (found > 0 && track->sentinels == 0) snprintf(track->sentinel, sizeof track->sentinel, "%s", where);
    track->sentinels += found;
    if (only_argmax(e)) return;
    for (size_t i = 0; i < e->count; i++) {
        if (e->note[i].sentinel) continue;
        e->entry[kept] = e->entry[i];
        e->note[kept++] = e->note[i];
    }
    e->count = kept;
}

// ---- The emitted token ----

// 0 beside an empty list stands for a token that was not measured.
static void forget_unmeasured(struct hm_entries *e)
{
    if (!e->has_own || e->count > 0 || e->sentinels > 0 || e->own_printed.lo > 0 || e->own_printed.hi < 0) return;
    e->has_own = false;
    e->unmeasured = true;
}

// Its entry, HM_UNSEEN when it is not listed. Of several with its text the one with its number; a vague text without
// the same number names another token.
static size_t find_emitted(const struct hm_entries *e)
{
    const struct hm_name *name = &e->emitted;
    size_t by_text = HM_UNSEEN;
    bool vague = !hm_text_names_token(name->text, name->size);
    for (size_t i = 0; i < e->count; i++) {
        const struct hm_evidence_entry *entry = &e->entry[i];
        if (name->id >= 0 && entry->id >= 0) {
            if (name->id == entry->id) return i;
            continue;
        }
        if (!same_text(name->text, name->size, entry->text, entry->text_size)) continue;
        bool same = e->has_own && !disjoint(e->own_printed, e->note[i].printed);
        if (same) return i;
        if (by_text == HM_UNSEEN && !vague) by_text = i;
    }
    return by_text;
}

// What its entry and itself say of each other.
struct comparison {
    bool texts_differ, numbers_differ;
    bool joined; // the emitted text ends with its id's: llama.cpp tells a character's tokens with the last of them
};

static bool ends_with(const struct hm_name *name, const struct hm_evidence_entry *entry)
{
    return name->size > entry->text_size &&
           memcmp(name->text + name->size - entry->text_size, entry->text, entry->text_size) == 0;
}

static struct comparison compare_emitted(struct hm_entries *e, size_t at)
{
    struct hm_evidence_entry *entry = &e->entry[at];
    const struct hm_name *name = &e->emitted;
    struct comparison c = {.numbers_differ = e->has_own && disjoint(e->own_printed, e->note[at].printed)};
    if (name->id >= 0 && entry->id >= 0 && name->text && entry->text && name->exact == e->note[at].exact) {
        c.joined = name->exact && ends_with(name, entry);
        c.texts_differ = !c.joined && hm_text_names_token(entry->text, entry->text_size) && hm_text_names_token(name->text, name->size) &&
                         !same_text(name->text, name->size, entry->text, entry->text_size);
    }
    if (entry->id < 0) entry->id = name->id;
    if (c.numbers_differ) { // either may be right
        entry->value.lo = fmin(entry->value.lo, e->own.lo);
        entry->value.hi = fmax(entry->value.hi, e->own.hi);
    }
    return c;
}

// A list keyed by text keeps one token of those with one text: nothing is known of the others.
static bool lost_by_text(const struct hm_entries *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->entry[i].id < 0 && !e->note[i].exact && !hm_text_names_token(e->entry[i].text, e->entry[i].text_size)) return true;
    return false;
}

// ---- Order ----

static void swap(struct hm_entries *e, size_t i, size_t j)
{
    struct hm_evidence_entry entry = e->entry[i];
    struct hm_entry_note note = e->note[i];
    e->entry[i] = e->entry[j];
    e->note[i] = e->note[j];
    e->entry[j] = entry;
    e->note[j] = note;
}

// Moves entry `at` behind all others.
static void move_last(struct hm_entries *e, size_t at)
{
    for (; at + 1 < e->count; at++) swap(e, at, at + 1);
}

// Moves the first entry behind those that are above it.
static void move_down(struct hm_entries *e)
{
    for (size_t at = 0; at + 1 < e->count && e->note[at + 1].printed.hi > e->note[at].printed.hi; at++)
        swap(e, at, at + 1);
}

// Is an entry certainly not above this one, so that it is not the least?
static bool has_lower(const struct hm_entries *e, size_t at)
{
    for (size_t i = 0; i < e->count; i++)
        if (i != at && e->note[i].printed.hi <= e->note[at].printed.lo) return true;
    return false;
}

// Does entry i stand before entry j in descending order?
static bool before(const struct hm_entries *e, size_t i, size_t j)
{
    struct hm_ival a = e->note[i].printed, b = e->note[j].printed;
    if (a.hi != b.hi) return a.hi > b.hi;
    if (a.lo != b.lo) return a.lo > b.lo;
    return e->note[i].order < e->note[j].order;
}

static bool before_by_rank(const struct hm_entries *e, size_t i, size_t j)
{
    int64_t a = e->note[i].rank, b = e->note[j].rank;
    return a != b ? a < b : e->note[i].order < e->note[j].order;
}

// Heap sort, in place: a list may be a whole vocabulary, and two arrays move together.
static void sift(struct hm_entries *e, size_t root, size_t count,
                 bool (*first)(const struct hm_entries *, size_t, size_t))
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && first(e, child, child + 1)) child++;
        if (!first(e, root, child)) return;
        swap(e, root, child);
    }
}

static void sort(struct hm_entries *e, bool (*first)(const struct hm_entries *, size_t, size_t))
{
    bool sorted = true;
    for (size_t i = 1; i < e->count && sorted; i++) sorted = first(e, i - 1, i);
    if (sorted) return;
    for (size_t i = e->count / 2; i-- > 0;) sift(e, i, e->count, first);
    for (size_t n = e->count; n-- > 1;) {
        swap(e, 0, n);
        sift(e, 0, n, first);
    }
}

// Where the entry that was listed at `order` is now.
static size_t place_of(const struct hm_entries *e, size_t order)
{
    size_t at = 0;
    while (at < e->count && e->note[at].order != order) at++;
    return at < e->count ? at : HM_UNSEEN;
}

// Puts an emitted token that may be one more than the largest where it belongs; returns how many are the largest.
static size_t rank_with_emitted(struct hm_entries *e, size_t at)
{
    if (at == HM_UNSEEN) return e->count;
    if (!has_lower(e, at)) {
        move_last(e, at);
        return e->count - 1;
    }
    if (at == 0) move_down(e);
    return e->count;
}

static size_t rank_by_ranks(struct hm_entries *e)
{
    size_t ranked = 0;
    sort(e, before_by_rank);
    while (ranked < e->count && e->note[ranked].rank == (int64_t)ranked + 1) ranked++;
    return ranked;
}

static bool has_ranks(const struct hm_entries *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->note[i].rank < 1) return false;
    return true;
}

// Orders the entries; returns how many are the largest of the row.
static size_t rank(struct hm_entries *e, enum hm_entries_order order, size_t emitted, bool lost)
{
    if (order == HM_ORDER_TOP) return e->count;
    if (order == HM_ORDER_RANKS && has_ranks(e)) return rank_by_ranks(e);
    if (order != HM_ORDER_CHAT) sort(e, before);
    size_t ranked = rank_with_emitted(e, place_of(e, emitted));
    return lost ? 0 : ranked;
}

// ---- The row ----

// Texts that name no token are dropped: rows are matched by what is left.
static void forget_vague_texts(struct hm_entries *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->entry[i].id < 0 && !hm_text_names_token(e->entry[i].text, e->entry[i].text_size))
            e->entry[i].text = NULL, e->entry[i].text_size = 0;
}

// What would make the row better, or make it one.
static enum hm_missing missing(const struct hm_entries *e, size_t ranked, bool lost)
{
    if (e->count == 0 || e->not_a_number) return e->unmeasured ? HM_MISSING_MEASURED : HM_MISSING_LOGPROBS;
    return lost ? HM_MISSING_IDS : ranked == 0 ? HM_MISSING_TOP : HM_MISSING_MORE_TOP;
}

static void fill_row(struct hm_entries *e, struct hm_source_token *token, size_t ranked, size_t emitted)
{
    // In a processed row -9999 is a token that was filtered out, and so are all that are not listed.
    bool filtered = e->options->processed && e->sentinels > 0 && ranked > 0 && !e->note[e->count - 1].sentinel;
    token->has_row = e->count > 0 && !e->not_a_number;
    token->row = (struct hm_evidence){
        .unit = HM_UNIT_LOG_PROBABILITY,
        .entry = e->entry,
        .count = e->count,
        .ranked = ranked,
        .emitted = emitted,
        .vocab = e->options->vocab,
        .processed = e->options->processed,
        .support = filtered ? e->count : 0,
    };
}

hm_status hm_entries_finish(struct hm_entries *e, enum hm_entries_order order, struct hm_track *track,
                            struct hm_events *events, struct hm_error *err)
{
    struct hm_source_token *token = &events->token;
    struct comparison differs = {0};
    hm_status rc = HM_OK;
    leave_out_sentinels(e, track, events->where);
    forget_unmeasured(e);
    size_t listed = e->count, at = e->has_emitted ? find_emitted(e) : HM_UNSEEN;
    bool lost = (order == HM_ORDER_CHAT || order == HM_ORDER_MAP) && lost_by_text(e);
    if (at != HM_UNSEEN) differs = compare_emitted(e, at);
    for (size_t i = 0; i < e->count; i++) e->note[i].order = i;
    size_t ranked = rank(e, order, at, lost);
    at = place_of(e, at);
    bool absent = e->has_emitted && at == HM_UNSEEN;
    if (absent && e->has_own) {
        struct hm_evidence_entry own = {
            .id = e->emitted.id, .text = e->emitted.text, .text_size = e->emitted.size, .value = e->own};
        rc = hm_entries_push(e, own, (struct hm_entry_note){.printed = e->own_printed}, err);
        if (rc) return rc;
        at = e->count - 1;
    }
    forget_vague_texts(e);
    token->token = e->emitted.id;
    token->text = e->emitted.text;
    token->text_size = e->emitted.size;
    fill_row(e, token, ranked, at);
    token->missing = missing(e, ranked, lost);
    track->joined += differs.joined;
    hm_track_token(track, events);
    if (e->not_a_number)
        hm_events_token_finding(events, HM_FINDING_NOT_A_NUMBER, "expected a number, found %s", e->bad_number);
    if (e->bad_id)
        hm_events_token_finding(events, HM_FINDING_ID_RANGE, "expected an id of the vocabulary, found %s", e->bad);
    if (absent && listed > 0 && !e->has_own)
        hm_events_token_finding(events, HM_FINDING_TOKEN_ABSENT,
                                "the emitted token is not among the %zu listed, and has no number of its own", listed);
    if (differs.numbers_differ)
        hm_events_token_finding(
            events, HM_FINDING_TOKEN_DIFFERS, "the emitted token's log-probability is about %.6g, its entry's %.6g",
            e->own_printed.lo / 2 + e->own_printed.hi / 2, e->note[at].printed.lo / 2 + e->note[at].printed.hi / 2);
    if (differs.texts_differ)
        hm_events_token_finding(events, HM_FINDING_TOKEN_DIFFERS,
                                "the emitted token's text is not the text of its id in the list");
    return HM_OK;
}
