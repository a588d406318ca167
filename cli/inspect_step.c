// One step, node or row of a log, for people: see inspect.h.
#include "cli/inspect.h"

#include "base/rational.h"
#include "bounds/ival_math.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { TOP_SHOWN = 20 };

static void print_head(const struct hm_record *record)
{
    const struct hm_record_step *s = record->step;
    if (record->kind == HM_RECORD_ROW)
        hm_inspect_heading("row %" PRId64 " (line %zu)", s->index, record->line);
    else
        hm_inspect_heading("step %" PRId64 ":%" PRId64 " (line %zu)", s->sequence, s->t, record->line);
}

static void print_token(const struct hm_record *record)
{
    const struct hm_record_step *s = record->step;
    static const char *const finishes[] = {"", "end of text", "length", "stop string"};
    if (record->kind == HM_RECORD_ROW) {
        if (s->token >= 0) hm_inspect_field("token", "%" PRId64 " (asserted)", s->token);
        return;
    }
    if (s->text[0])
        hm_inspect_field("token", "%" PRId64 " %s", s->token, hm_inspect_quote(s->text, 48).text);
    else
        hm_inspect_field("token", "%" PRId64, s->token);
    if (s->source == HM_SOURCE_PREFILL)
        hm_inspect_field("source", "prefill: the draw from the prompt's last row");
    else if (s->source == HM_SOURCE_ACCEPTED)
        hm_inspect_field("source",
                         "accepted: child %" PRId64 " of node %" PRId64 ", at depth %" PRId64 " of round %" PRId64,
                         s->child, s->node, s->depth, s->round);
    else
        hm_inspect_field("source",
                         "continuation: from the row of node %" PRId64 ", at depth %" PRId64 " of round %" PRId64,
                         s->node, s->depth, s->round);
    if (s->finish != HM_FINISH_NONE) hm_inspect_field("finish", "%s: the sequence ends here", finishes[s->finish]);
}

static void print_row(const char *label, const struct hm_record_row *row)
{
    if (row->shard >= 0)
        hm_inspect_field(label, "shard %" PRId64 ", row %" PRId64, row->shard, row->index);
    else
        hm_inspect_field(label, "%s", row->why && row->why[0] ? row->why : "none");
    if (row->sha256) hm_inspect_field("", "sha256 %.56s...", row->sha256);
}

// p of a token from its logit and ln sum exp(l/T): the enclosure is as narrow as the latter's.
static struct hm_ival probability(double logit, const struct hm_rational *temperature, struct hm_ival lse)
{
    if (logit == -INFINITY) return hm_ival_point(0);
    struct hm_ival scaled = hm_ival_div(hm_ival_point(logit), hm_ival_rational(temperature->value));
    struct hm_ival p = hm_ival_exp(hm_ival_sub(scaled, lse));
    return hm_ival_max(hm_ival_point(0), hm_ival_min(p, hm_ival_point(1)));
}

static void print_top(const struct hm_record_header *header, const struct hm_record_step *s)
{
    struct hm_rational temperature;
    if (s->top_count == 0) return;
    hm_rational_init(&temperature);
    if (hm_rational_parse(header->certify_temperature, &temperature, NULL))
        hm_rational_set_int(&temperature, 1, 1); // the reader took it
    printf("  %-10s %9s  %-14s  %s\n", "top", "token", "logit", "probability");
    for (size_t i = 0; i < s->top_count && i < TOP_SHOWN; i++)
        printf("  %-10s %9" PRId64 "  %-14s  %s\n", "", s->top[i].id, hm_inspect_logit(s->top[i].logit).text,
               hm_inspect_ival(probability(s->top[i].logit, &temperature, s->lse)).text);
    if (s->top_count > TOP_SHOWN) hm_inspect_field("", "and %zu more (--json)", s->top_count - TOP_SHOWN);
    hm_rational_clear(&temperature);
}

static void print_optional(bool present, const char *label, struct hm_ival value, const char *what)
{
    if (present) hm_inspect_field(label, "%s%s", hm_inspect_ival(value).text, what);
}

static void print_figures(const struct hm_record_header *header, const struct hm_record_step *s)
{
    hm_inspect_field("lse", "%s at temperature %s", hm_inspect_ival(s->lse).text, header->certify_temperature);
    hm_inspect_field("entropy", "%s nats", hm_inspect_ival(s->entropy).text);
    print_optional(s->has_draft, "KL(p||q)", s->kl_pq, " nats, p the target and q the draft");
    print_optional(s->has_draft, "KL(q||p)", s->kl_qp, " nats");
    print_optional(s->has_draft, "TV(p,q)", s->tv, "");
    for (size_t i = 0; s->has_divergences && i < header->divergence_count; i++)
        print_optional(true, header->divergences[i], s->divergence[i], "");
    print_optional(s->has_regret, "regret", s->regret, ", ln(p_1/p_token)");
    print_optional(s->has_standard_accept, "standard", s->standard_accept,
                   ", what standard sampling accepts of one draft");
    print_optional(s->has_nucleus_excess, "excess", s->nucleus_excess, ", what one draft costs in TV");
    print_optional(s->has_accept, "accept", s->accept, ", probability that a child is accepted");
    print_optional(s->has_accept_standard, "", s->accept_standard, ", the same under standard sampling");
    print_optional(s->has_e, "e", s->e, ", TV between the token's law and the target's");
    print_optional(s->has_e, "ratio", s->ratio, ", p(token) over its probability in that law");
    if (s->has_charge)
        print_optional(true, "charge", s->charge, s->relaxed ? ", spent: the relaxation was in force" : ", not spent");
    if (s->has_spent)
        hm_inspect_field("spent", "%s of %s so far (%s)", hm_inspect_logit(s->spent).text,
                         header->budget_limit ? header->budget_limit : "?", header->budget_kind);
}

void hm_inspect_step(const struct hm_record_header *header, const struct hm_record *record)
{
    const struct hm_record_step *s = record->step;
    print_head(record);
    print_token(record);
    print_row("row", &s->row);
    print_row("draft row", &s->draft_row);
    print_top(header, s);
    if (record->kind != HM_RECORD_ROW) hm_inspect_field("support", "%" PRId64 " tokens", s->support);
    print_figures(header, s);
    for (size_t i = 0; i < s->claim_count; i++) hm_inspect_claim(header, s, &s->claims[i]);
}
