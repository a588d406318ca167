// One claim of a step, for people: see inspect.h. The words are those of docs/log.md "claims".
#include "cli/inspect.h"

#include "reports/number.h"

#include <stdio.h>

static const char *show(struct hm_inspect_text *buffer, struct hm_ival value)
{
    *buffer = hm_inspect_ival(value);
    return buffer->text;
}

static void print_edge(const struct hm_record_claim *c)
{
    struct hm_inspect_text logit[2];
    char token[2][24] = {"none", "none"};
    for (int i = 0; i < 2; i++) {
        logit[i].text[0] = '\0';
        if (!c->edge[i].present) continue;
        snprintf(token[i], sizeof token[i], "%lld", (long long)c->edge[i].id);
        logit[i] = hm_inspect_logit(c->edge[i].logit);
    }
    hm_inspect_field("edge", "last accepted %s %s%s%s, first rejected %s %s%s%s", token[0], logit[0].text[0] ? "(" : "",
                     logit[0].text, logit[0].text[0] ? ")" : "", token[1], logit[1].text[0] ? "(" : "", logit[1].text,
                     logit[1].text[0] ? ")" : "");
}

// A bound, the draft's own value and the verdict, in columns; own or verdict NULL: there is none.
static void print_bound(const char *label, struct hm_ival star, const struct hm_ival *own,
                        const enum hm_certified *verdict)
{
    struct hm_inspect_text a, b;
    const char *bound = show(&a, star);
    hm_inspect_label(label);
    if (!verdict)
        puts(bound);
    else
        printf("%-26s %-26s %s\n", bound, own ? show(&b, *own) : "", hm_certified_names[*verdict]);
}

static void print_witness(const char *label, struct hm_ival level, const uint32_t tied[2])
{
    struct hm_inspect_text a;
    hm_inspect_field(label, "%s, tied: %u of A, %u of S", show(&a, level), tied[0], tied[1]);
}

static void print_level(const struct hm_level *level, bool has_level)
{
    if (!has_level) return;
    print_witness("level c", level->level_f, level->tied_f);
    print_witness("level ln g", level->level_r, level->tied_r);
}

static void print_three(const struct hm_level *level, const struct hm_ival *const own[3],
                        const enum hm_certified *certified)
{
    const struct hm_ival star[3] = {level->klf, level->klr, level->tv};
    static const char *const names[3] = {"KLf*", "KLr*", "TV*"};
    for (int i = 0; i < 3; i++) print_bound(names[i], star[i], own[i], certified ? &certified[i] : NULL);
}

// What a bound is at least.
static struct hm_number least(struct hm_ival value)
{
    return hm_number_down(value.lo, 6);
}

static void print_further(const struct hm_record_claim *c)
{
    struct hm_inspect_text a;
    if (c->has_margin)
        hm_inspect_field("margin", "gap %s: KLf* >= %s, KLr* >= %s, TV* >= %s", show(&a, c->margin.gap),
                         least(c->margin.klf).text, least(c->margin.klr).text, least(c->margin.tv).text);
    if (c->has_universal)
        hm_inspect_field("universal", "by p(1) and the rule alone: KLf* >= %s, KLr* >= %s",
                         least(c->universal.klf).text, least(c->universal.klr).text);
    if (c->has_radius) hm_inspect_field("radius", "%s logits, for the decision above", show(&a, c->radius));
    if (c->active != HM_ACTIVE_NONE)
        hm_inspect_field("active", "%s, the smaller threshold", c->active == HM_ACTIVE_EPS ? "eps" : "delta");
}

static void print_restricted(const struct hm_restricted *r)
{
    struct hm_inspect_text a, b;
    static const struct hm_ival *const none[3] = {NULL, NULL, NULL};
    hm_inspect_field("restricted", "to the tokens D with a finite draft logit: p(D) %s, |A and D| = %zu",
                     show(&a, r->mass), r->k);
    if (r->no_mass) return;
    hm_inspect_field("", "KL(p_D||q) %s", show(&b, r->kl));
    print_level(&r->level, r->k > 0 && !r->vacuous);
    print_three(&r->level, none, r->certified);
}

static void print_claim_head(const struct hm_record_claim *c)
{
    hm_inspect_heading("claim %s, m = %lld%s: k = %lld%s%s%s%s", c->rule, (long long)c->m,
                       c->m_tree ? " (children of the node)" : "", (long long)c->k, c->has_accepts ? ", accepts " : "",
                       c->has_accepts ? hm_verdict_names[c->accepts] : "", c->has_verdicts ? ", covered " : "",
                       c->has_verdicts ? hm_verdict_names[c->covered] : "");
}

void hm_inspect_claim(const struct hm_record_header *header, const struct hm_record_step *step,
                      const struct hm_record_claim *c)
{
    const struct hm_ival *own[3] = {NULL, NULL, NULL};
    struct hm_inspect_text a, b;
    print_claim_head(c);
    print_edge(c);
    if (step->has_draft && c->has_verdicts) own[0] = &step->kl_pq, own[1] = &step->kl_qp, own[2] = &step->tv;
    if (c->has_distances) {
        print_level(&c->level, c->has_level);
        if (own[0]) printf("  %-11s%-26s %-26s %s\n", "", "bound", "this draft's", "certified");
        print_three(&c->level, own, c->has_verdicts ? c->certified : NULL);
    }
    if (!c->has_verdicts) hm_inspect_field("certified", "nothing: %s", c->why ? c->why : "no reason given");
    for (size_t i = 0; c->has_divergences && i < header->divergence_count; i++) {
        const struct hm_record_divergence *d = &c->divergence[i];
        print_bound(header->divergences[i], d->star, step->has_divergences ? &step->divergence[i] : NULL,
                    d->has_verdict ? &d->certified : NULL);
    }
    print_further(c);
    if (c->has_restricted) print_restricted(&c->restricted);
    static const char *const laws[HM_LOG_LAWS] = {[HM_PROPOSAL_TOPK] = "law topk", [HM_PROPOSAL_IID] = "law iid"};
    for (int i = 0; i < HM_LOG_LAWS; i++)
        if (c->has_law[i])
            hm_inspect_field(laws[i], "accepts %s, e %s", show(&a, c->law[i].accept), show(&b, c->law[i].e));
}
