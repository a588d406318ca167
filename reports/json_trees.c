// The JSON report's trees: the rounds that the page draws, with the nodes that were kept of them.
#include "reports/json.h"
#include "reports/number.h"

#include <math.h>

static const char *const PARTS[] = {"root", "verified", "accepted", "scored"};

static void put_node(struct hm_output *o, const struct hm_report *r, const struct hm_kept_round *k, size_t i)
{
    const struct hm_kept_node *n = &k->node[i];
    hm_putf(o, "%s{\"node\":%d,\"parent\":%d,\"depth\":%d,\"token\":%lld,", i ? "," : "", n->node,
            n->parent < 0 ? -1 : k->node[n->parent].node, n->depth, (long long)n->token);
    hm_json_text(o, "text", hm_rounds_text(&r->rounds, n->token), ",");
    hm_putf(o, "\"logq\":%s,\"part\":\"%s\"}", hm_number_json_down(n->logq).text, PARTS[n->part]);
}

void hm_json_trees(struct hm_output *o, const struct hm_report *r)
{
    struct hm_shown_round shown[HM_ROUNDS_KEPT];
    size_t n = hm_rounds_chosen(&r->rounds, r->acceptance.by_count, HM_REPORT_DEPTHS, shown);
    hm_put(o, "\"trees\":[");
    for (size_t i = 0; i < n; i++) {
        const struct hm_kept_round *k = shown[i].round;
        hm_put(o, i ? ",\n{" : "{");
        hm_json_text(o, "log", r->logs[k->log].path, ",");
        hm_json_text(o, "why", shown[i].why, ",");
        hm_putf(o, "\"line\":%zu,\"sequence\":%lld,\"round\":%lld,\"t\":%lld,", k->line, (long long)k->sequence,
                (long long)k->round, (long long)k->t);
        hm_putf(o, "\"accepted\":%llu,\"emitted\":%llu,\"nodes\":%lld,\"scored\":%lld,\"depth\":%lld,",
                (unsigned long long)k->accepted, (unsigned long long)k->emitted, (long long)k->nodes,
                (long long)k->scored, (long long)k->depth);
        if (k->has_continuation)
            hm_putf(o, "\"continuation\":%lld,\"continues\":%lld,", (long long)k->continuation, (long long)k->leaves_from);
        else
            hm_put(o, "\"continuation\":null,\"continues\":null,");
        hm_put(o, "\"node\":[");
        for (size_t j = 0; j < k->count; j++) put_node(o, r, k, j);
        hm_put(o, "]}");
    }
    hm_put(o, "]");
}
