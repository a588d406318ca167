// The fork of a prompt, and what class it is: see compare.h and docs/compare.md "Forks".
#include "evidence/compare.h"

#include "bounds/ival_math.h"
#include "evidence/leading.h"
#include "evidence/match.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

const char *hm_fork_class_name(enum hm_fork_class c)
{
    static const char *const names[HM_FORK_CLASSES] = {"none", "tie", "explained", "unexplained", "undecided"};
    return (unsigned)c < HM_FORK_CLASSES ? names[c] : "unknown";
}

// ---- intervals with infinite ends

static const struct hm_ival nothing = {-INFINITY, INFINITY}, some = {0, INFINITY};

// x - y. -inf is a value here, that of a masked token, and only the difference of two of them says nothing.
static struct hm_ival minus(struct hm_ival x, struct hm_ival y)
{
    double low = x.lo == y.hi && isinf(x.lo) ? -INFINITY : hm_ival_sub(hm_ival_point(x.lo), hm_ival_point(y.hi)).lo;
    double high = x.hi == y.lo && isinf(x.hi) ? INFINITY : hm_ival_sub(hm_ival_point(x.hi), hm_ival_point(y.lo)).hi;
    if (x.lo > -INFINITY && y.hi == -INFINITY) low = INFINITY;
    if (x.hi == -INFINITY && y.lo > -INFINITY) high = -INFINITY;
    return (struct hm_ival){low, high};
}

static struct hm_ival at_least_zero(struct hm_ival x)
{
    return (struct hm_ival){x.lo > 0 ? x.lo : 0, x.hi > 0 ? x.hi : 0};
}

static struct hm_ival half_of(struct hm_ival x)
{
    return (struct hm_ival){x.lo / 2, x.hi / 2};
}

// ---- one side

static void copy_text(char out[HM_FORK_TEXT], const char *text, size_t size)
{
    hm_text_copy(out, HM_FORK_TEXT, text, text ? size : 0);
}

static void name_place(const struct hm_evidence *row, size_t place, int32_t *id, char text[HM_FORK_TEXT])
{
    *id = -1;
    text[0] = 0;
    if (place == HM_UNSEEN) return;
    if (row->logits) {
        *id = (int32_t)place;
        return;
    }
    *id = row->entry[place].id;
    copy_text(text, row->entry[place].text, row->entry[place].text_size);
}

struct value {
    struct hm_ival value;
    size_t place; // entry or id; HM_UNSEEN: not listed
};

static struct value value_at(const struct hm_evidence *row, size_t place)
{
    return (struct value){row->logits ? hm_ival_point(row->logits[place]) : row->entry[place].value, place};
}

// What the row says of a token that it may not list.
static struct value value_of(const struct hm_evidence *row, const struct hm_token_name *token,
                             const struct hm_leading *leading)
{
    bool sure = false;
    if (row->logits) {
        if (token->id >= 0 && (size_t)token->id < row->vocab) return value_at(row, (size_t)token->id);
        return (struct value){{-INFINITY, leading->first_value.hi}, HM_UNSEEN};
    }
    size_t place = hm_evidence_find(row, token, &sure);
    if (place != HM_UNSEEN) return value_at(row, place);
    return (struct value){{-INFINITY, sure ? leading->unseen : leading->first_value.hi}, HM_UNSEEN};
}

static struct value own_value(const struct hm_evidence *row, const struct hm_token_name *token,
                              const struct hm_leading *leading)
{
    size_t places = row->logits ? row->vocab : row->count;
    return row->emitted < places ? value_at(row, row->emitted) : value_of(row, token, leading);
}

static void need(struct hm_fork_side *side, enum hm_missing missing)
{
    side->lacks = true;
    side->missing = missing;
}

static struct hm_token_name name_of(const struct hm_source_token *token)
{
    return (struct hm_token_name){token->token, token->text, token->text_size};
}

// Fills one side; returns the two values.
static void look(const struct hm_source_token *self, const struct hm_source_token *other, struct hm_fork_side *side,
                 struct value *own, struct value *others)
{
    *side = (struct hm_fork_side){.token = self->token, .first = -1, .second = -1, .has_row = self->has_row};
    side->gap = side->radius = side->lead = side->behind = some;
    *own = *others = (struct value){nothing, HM_UNSEEN};
    copy_text(side->token_text, self->text, self->text_size);
    if (!self->has_row) {
        need(side, self->missing);
        return;
    }
    const struct hm_evidence *row = &self->row;
    struct hm_token_name name = name_of(self), other_name = name_of(other);
    struct hm_leading all = hm_evidence_leading(row, HM_LEADING_ALL, HM_UNSEEN);
    *own = own_value(row, &name, &all);
    *others = value_of(row, &other_name, &all);
    struct hm_leading rest = hm_evidence_leading(row, HM_LEADING_ALL, own->place);
    struct hm_ival ahead = minus(own->value, rest.first_value); // of the best of the others
    name_place(row, all.first, &side->first, side->first_text);
    name_place(row, all.second, &side->second, side->second_text);
    if (!side->token_text[0] && own->place != HM_UNSEEN && !row->logits)
        copy_text(side->token_text, row->entry[own->place].text, row->entry[own->place].text_size);
    side->gap = at_least_zero(minus(all.first_value, all.second_value));
    side->lead = minus(own->value, others->value);
    side->behind = at_least_zero((struct hm_ival){-ahead.hi, -ahead.lo});
    side->radius = half_of(ahead.lo >= 0   ? ahead
                           : ahead.hi <= 0 ? (struct hm_ival){-ahead.hi, -ahead.lo}
                                           : (struct hm_ival){0, fmax(-ahead.lo, ahead.hi)});
    bool listed = others->place != HM_UNSEEN && own->place != HM_UNSEEN;
    if (!row->logits && !listed) need(side, row->ranked ? HM_MISSING_MORE_TOP : HM_MISSING_TOP);
}

// ---- both sides

static bool is_tie(const struct hm_evidence *row, struct value own, struct value others)
{
    return row->unit == HM_UNIT_LOGIT && own.place != HM_UNSEEN && others.place != HM_UNSEEN &&
           own.value.lo == own.value.hi && others.value.lo == others.value.hi && own.value.lo == others.value.lo;
}

static void settle(struct hm_fork *fork, enum hm_fork_class kind, const char *why)
{
    fork->kind = kind;
    fork->why = why;
}

static const char not_first_a[] = "A emitted a token that is not first in its own row (a sampler? --claim-temperature)";
static const char not_first_b[] = "B emitted a token that is not first in its own row (a sampler? --claim-temperature)";

void hm_fork_look(const struct hm_source_token *a, const struct hm_source_token *b, struct hm_fork *out)
{
    struct value own[2], others[2];
    *out = (struct hm_fork){.kind = HM_FORK_NONE, .why = "", .sequence = a->sequence, .t = a->t, .level = some};
    look(a, b, &out->a, &own[0], &others[0]);
    look(b, a, &out->b, &own[1], &others[1]);
    if (a->has_row && a->row.logits && b->token < 0) need(&out->b, HM_MISSING_IDS); // whole rows know ids only
    if (b->has_row && b->row.logits && a->token < 0) need(&out->a, HM_MISSING_IDS);
    struct hm_ival sum = hm_ival_add(out->a.lead, out->b.lead);
    if (out->a.lead.lo == INFINITY || out->b.lead.lo == INFINITY) sum = hm_ival_point(INFINITY); // a masked token
    out->needs = half_of(sum);
    if (out->a.behind.lo == 0 && out->b.behind.lo == 0) out->needs = at_least_zero(out->needs);
    if (!out->a.has_row && !out->b.has_row) settle(out, HM_FORK_UNDECIDED, "neither side has a row here");
    else if (out->a.behind.lo > 0) settle(out, HM_FORK_UNEXPLAINED, not_first_a);
    else if (out->b.behind.lo > 0) settle(out, HM_FORK_UNEXPLAINED, not_first_b);
    else if (out->a.has_row && out->b.has_row && is_tie(&a->row, own[0], others[0]) && is_tie(&b->row, own[1], others[1]))
        settle(out, HM_FORK_TIE, "both tokens are equal in both rows: the order of ties decided");
}

static const char *what_is_open(const struct hm_fork *fork)
{
    if (!fork->a.has_row) return "A has no row here";
    if (!fork->b.has_row) return "B has no row here";
    if (fork->a.lacks && fork->a.missing == HM_MISSING_IDS) return "A does not tell its token's id";
    if (fork->b.lacks && fork->b.missing == HM_MISSING_IDS) return "B does not tell its token's id";
    if (fork->a.lacks) return "A's list does not hold both tokens";
    if (fork->b.lacks) return "B's list does not hold both tokens";
    return "the level lies within what was rounded in printing or counting";
}

void hm_fork_judge(struct hm_fork *fork, bool foreign)
{
    double level = fork->level.lo; // NaN, which is never there, would leave all open
    if (fork->kind != HM_FORK_NONE) return;
    if (foreign) settle(fork, HM_FORK_UNDECIDED, "the rows differ everywhere by more than rounding makes");
    else if (!fork->has_level) settle(fork, HM_FORK_UNDECIDED, "fewer than 200 other positions tell what noise is usual");
    else if (fork->needs.lo > fork->level.hi)
        settle(fork, HM_FORK_UNEXPLAINED, "it needs more noise than is usual in this run");
    else if (fork->needs.hi <= level && fork->a.behind.hi <= level && fork->b.behind.hi <= level)
        settle(fork, HM_FORK_EXPLAINED, "rounding of this size was seen elsewhere in the run");
    else settle(fork, HM_FORK_UNDECIDED, what_is_open(fork));
}

static bool same_rows(const struct hm_source_token *a, const struct hm_source_token *b)
{
    return a->has_row && b->has_row && a->row.logits && b->row.logits && a->row.vocab == b->row.vocab &&
           memcmp(a->row.logits, b->row.logits, a->row.vocab * sizeof *a->row.logits) == 0;
}

void hm_fork_judge_drawn(const struct hm_source_token *a, const struct hm_source_token *b, bool same_draws,
                         struct hm_fork *fork)
{
    if (!same_draws) settle(fork, HM_FORK_UNDECIDED, "tokens were drawn, and not known to be by the same random numbers");
    else if (same_rows(a, b))
        settle(fork, HM_FORK_UNEXPLAINED, "equal rows and equal random numbers gave different tokens");
    else settle(fork, HM_FORK_UNDECIDED, "tokens were drawn from rows that are not known to be equal");
}
