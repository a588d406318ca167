// The Markdown report's tables on requirements and on what knowing less certifies (requirement.h).
#include "reports/figures.h"
#include "reports/number.h"
#include "reports/output.h"

#include <math.h>

static const char *const BY[HM_KNOWN_BY] = {"KLf", "KLr", "TV", "any"};

static void put_name(struct hm_output *o, const struct hm_claim_figures *f)
{
    char m[24];
    hm_put(o, "| ");
    hm_put_markdown(o, f->rule);
    hm_putf(o, " | %s ", hm_m_text(f->m, m));
}

// Below which x a draft is certified, at 50, 90 and 99 % of the steps.
static void put_requirements(struct hm_output *o, const struct hm_report *r)
{
    static const unsigned shares[] = {50, 90, 99};
    bool any = false;
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_claim_figures *f = &r->claims[i];
        const struct hm_histogram *levels[HM_REQUIREMENTS] = {&f->klf, &f->klr, &f->tv};
        if (!f->klf.count) continue;
        if (!any)
            hm_put(
                o,
                "### Requirement\n\nWhat any draft must stay below to be certified at that share of the steps (lower "
                "bounds; KLf "
                "and KLr in nats), known from target rows alone.\n\n| rule | m | by | 50% of steps | 90% | 99% | steps "
                "|\n|---|---|---|---:|---:|---:|---:|\n");
        any = true;
        for (int by = 0; by < HM_REQUIREMENTS; by++) {
            put_name(o, f);
            hm_putf(o, "| %s ", BY[by]);
            for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
                double at = hm_requirement_at(levels[by], shares[s]);
                hm_putf(o, "| %s ", isinf(at) ? "any" : hm_number_down(at, 3).text);
            }
            hm_putf(o, "| %llu |\n", (unsigned long long)levels[by]->count);
        }
    }
    if (any) hm_put(o, "\n");
}

static void put_known(struct hm_output *o, const struct hm_report *r)
{
    static const char *const names[HM_KNOWN_FROM] = {"whole row", "gap alone", "rule alone"};
    bool any = false;
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_known *k = &r->claims[i].known;
        if (!k->with[HM_FROM_GAP] && !k->with[HM_FROM_RULE]) continue;
        if (!any)
            hm_put(o, "### What knowing less loses\n\nCertified from the whole target row, from the gap p(k) - p(k+1) "
                      "alone, and from the "
                      "rule's parameter and p(1) alone.\n\n| rule | m | known | KLf | KLr | TV | any | steps "
                      "|\n|---|---|---|---:|---:|---:|---:|---:|\n");
        any = true;
        for (int from = 0; from < HM_KNOWN_FROM; from++) {
            if (!k->with[from]) continue;
            put_name(o, &r->claims[i]);
            hm_putf(o, "| %s ", names[from]);
            for (int by = 0; by < HM_KNOWN_BY; by++)
                hm_putf(o, "| %s ",
                        from == HM_FROM_RULE && by == HM_BY_TV ? ""
                                                               : hm_number_percent(k->yes[from][by], k->steps).text);
            hm_putf(o, "| %llu |\n", (unsigned long long)k->steps);
        }
    }
    if (any) hm_put(o, "\n");
}

void hm_markdown_requirement(struct hm_output *o, const struct hm_report *r)
{
    put_requirements(o, r);
    put_known(o, r);
}
