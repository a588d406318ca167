// The JSON report on whole sequences: the mean course, and what a group of sequences cost (course.h).
#include "reports/json.h"
#include "reports/number.h"

#include <math.h>

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

void hm_json_course_group(struct hm_output *o, const struct hm_course_group *group)
{
    hm_put(o, "\"course\":{");
    if (group->fidelity.sequences) {
        struct hm_fidelity f;
        hm_fidelity_bound(&group->fidelity, HM_FIDELITY_RISK_PERCENT / 200.0, &f);
        hm_putf(o, "\"sequences\":%llu,", (unsigned long long)group->fidelity.sequences);
        hm_json_ends(o, "shortfall_mean", true, f.mean_shortfall, ",");
        hm_putf(o, "\"bound_upper\":%s,\"vacuous\":%s,", hm_number_json_up(fmin(f.hoeffding, f.bernstein)).text,
                truth(f.vacuous));
        hm_json_ends(o, "e_sum_mean", true, f.mean_s, ",");
        hm_putf(o, "\"e_sum_vacuous\":%s,", truth(f.vacuous_s));
    }
    hm_json_sum(o, "regret", &group->regret, ",");
    hm_putf(o, "\"regret_max_upper\":%s}", group->regret.count ? hm_number_json_up(group->regret_most).text : "null");
}

void hm_json_course(struct hm_output *o, const struct hm_report *r)
{
    struct hm_course_point points[HM_COURSE_BINS];
    size_t n = hm_course_points(&r->course, points);
    hm_putf(o, "\"course\":{\"with_e\":%llu,\"with_regret\":%llu,\"points\":[", (unsigned long long)r->course.with_e,
            (unsigned long long)r->course.with_regret);
    for (size_t i = 0; i < n; i++) {
        hm_putf(o, "%s{\"tokens\":%llu,", i ? "," : "", (unsigned long long)points[i].tokens);
        hm_putf(o, "\"shortfall_mean_upper\":%s,",
                r->course.with_e ? hm_number_json_up(points[i].shortfall).text : "null");
        hm_putf(o, "\"e_sum_mean_upper\":%s,", r->course.with_e ? hm_number_json_up(points[i].e).text : "null");
        hm_putf(o, "\"regret_mean_upper\":%s}",
                r->course.with_regret ? hm_number_json_up(points[i].regret).text : "null");
    }
    hm_put(o, "]}");
}
