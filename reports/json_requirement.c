// The JSON report's figures on requirements, on what knowing less certifies, and on the steps nearest to the line
// (requirement.h, region.h, docs/report.md).
#include "reports/figures.h"
#include "reports/number.h"
#include "reports/output.h"

static const char *const BY[HM_KNOWN_BY] = {"klf", "klr", "tv", "any"};

static unsigned long long count(uint64_t n)
{
    return n;
}

void hm_json_known(struct hm_output *o, const struct hm_known *k)
{
    static const char *const from_names[HM_KNOWN_FROM] = {"row", "gap", "rule"};
    for (int from = 0; from < HM_KNOWN_FROM; from++) {
        hm_putf(o, "%s\"%s\":", from ? "," : "", from_names[from]);
        if (!k->with[from]) {
            hm_put(o, "null");
            continue;
        }
        hm_putf(o, "{\"steps\":%llu", count(k->with[from]));
        for (int by = 0; by < HM_KNOWN_BY; by++)
            if (from != HM_FROM_RULE || by != HM_BY_TV) hm_putf(o, ",\"%s\":%llu", BY[by], count(k->yes[from][by]));
        hm_put(o, "}");
    }
}

// Points inside a run of equal counts are left out: its ends say as much. An edge reads back as itself from 17 digits.
static void put_curve(struct hm_output *o, const struct hm_requirement *q)
{
    struct hm_curve c = hm_curve_over(q->level, q->draft);
    uint64_t level = hm_histogram_at_least(q->level, c.first), draft = hm_histogram_at_least(q->draft, c.first);
    bool inside = false; // counts as at the point before
    hm_put(o, "\"curve\":[");
    for (size_t bin = c.first;;) {
        size_t next = hm_curve_next(&c, bin);
        uint64_t next_level = hm_curve_count(q->level, bin, level, next);
        uint64_t next_draft = hm_curve_count(q->draft, bin, draft, next);
        bool same = next_level == level && next_draft == draft;
        if (!inside || !same || bin == c.last)
            hm_putf(o, "%s[%s,%llu,%llu]", bin == c.first ? "" : ",", hm_number_near(hm_histogram_edge(bin), 17).text,
                    count(level), count(draft));
        if (bin == c.last) break;
        inside = same;
        level = next_level;
        draft = next_draft;
        bin = next;
    }
    hm_put(o, "]");
}

static void put_requirement(struct hm_output *o, const struct hm_requirement *q)
{
    static const unsigned shares[] = {50, 90, 99};
    if (!q->level->count) {
        hm_put(o, "null");
        return;
    }
    hm_putf(o, "{\"steps\":%llu,\"draft_steps\":%llu,\"certified_below\":{", count(q->level->count),
            count(q->draft->count));
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        hm_putf(o, "%s\"x%u\":%s", i ? "," : "", shares[i],
                hm_number_json_down(hm_requirement_at(q->level, shares[i])).text);
    hm_put(o, "},");
    put_curve(o, q);
    hm_put(o, "}");
}

void hm_json_ival(struct hm_output *o, const char *key, struct hm_ival x)
{
    hm_putf(o, "\"%s\":[%s,%s]", key, hm_number_json_down(x.lo).text, hm_number_json_up(x.hi).text);
}

static void put_region(struct hm_output *o, const struct hm_region *g)
{
    static const char *const distances[3] = {"kl_pq", "kl_qp", "tv_pq"}, *const levels[3] = {"klf", "klr", "tv"};
    hm_putf(
        o,
        "{\"log\":%zu,\"line\":%zu,\"sequence\":%lld,\"t\":%lld,\"index\":%lld,\"k\":%lld,\"m\":%lld,\"certified\":%s,",
        g->log, g->line, (long long)g->sequence, (long long)g->t, (long long)g->index, (long long)g->k, (long long)g->m,
        g->certified ? "true" : "false");
    for (int i = 0; i < 3; i++) {
        hm_json_ival(o, distances[i], g->distance[i]);
        hm_put(o, ",");
        hm_json_ival(o, levels[i], g->level[i]);
        hm_put(o, ",");
    }
    hm_json_ival(o, "level_f", g->water[0]);
    hm_put(o, ",");
    hm_json_ival(o, "level_r", g->water[1]);
    hm_put(o, ",");
    hm_json_ival(o, "p_k", g->edge[0]);
    hm_put(o, ",");
    hm_json_ival(o, "p_next", g->edge[1]);
    hm_put(o, ",");
    hm_json_ival(o, "gap", g->gap);
    hm_putf(o, ",\"klf_from_gap_lower\":%s}", hm_number_json_down(hm_region_margin(g->k, g->m, g->gap).lo).text);
}

void hm_json_claim_requirement(struct hm_output *o, const struct hm_claim_figures *f)
{
    const struct hm_requirement q[HM_REQUIREMENTS] = {
        {&f->klf, &f->draft}, {&f->klr, &f->draft_klr}, {&f->tv, &f->draft_tv}};
    hm_put(o, "\"known\":{");
    hm_json_known(o, &f->known);
    hm_put(o, "},\"requirement\":{");
    for (int i = 0; i < HM_REQUIREMENTS; i++) {
        hm_putf(o, "%s\"%s\":", i ? "," : "", BY[i]);
        put_requirement(o, &q[i]);
    }
    hm_put(o, "},\"regions\":[");
    for (int certified = 1, first = 1; certified >= 0; certified--)
        for (size_t i = 0; i < f->regions.count[certified]; i++, first = 0) {
            if (!first) hm_put(o, ",");
            put_region(o, &f->regions.near[certified][i]);
        }
    hm_put(o, "]");
}

void hm_json_examples(struct hm_output *o, const struct hm_report *r)
{
    static const char *const names[2] = {"two", "three"}, *const distances[3] = {"kl_pq", "kl_qp", "tv_pq"};
    hm_put(o, "{");
    for (int i = 0; i < 2; i++) {
        const struct hm_example *e = &r->example[i];
        const struct hm_ival *rows[2] = {e->p, e->q};
        hm_putf(o, "%s\"%s\":{", i ? "," : "", names[i]);
        for (int row = 0; row < 2; row++) {
            hm_putf(o, "\"%s\":[", row ? "q" : "p");
            for (size_t t = 0; t < e->vocab; t++)
                hm_putf(o, "%s[%s,%s]", t ? "," : "", hm_number_json_down(rows[row][t].lo).text,
                        hm_number_json_up(rows[row][t].hi).text);
            hm_put(o, "],");
        }
        for (int d = 0; d < 3; d++) {
            hm_json_ival(o, distances[d], e->distance[d]);
            hm_put(o, ",");
            hm_json_ival(o, BY[d], e->level[d]);
            hm_put(o, ",");
        }
        hm_json_ival(o, "level_f", e->water[0]);
        hm_put(o, ",");
        hm_json_ival(o, "level_r", e->water[1]);
        hm_put(o, "}");
    }
    hm_put(o, "}");
}
