// The JSON report's lists: sequences, blocks of tokens, uncertified steps, closest decisions.
#include "reports/json.h"
#include "reports/number.h"

#include <math.h>

const char *const HM_JSON_STATUS[HM_TOKEN_STATUSES] = {"certified", "covered_not_certified", "not_covered", "no_draft",
                                                       "vacuous",   "inapplicable",          "undecided"};

void hm_json_text(struct hm_output *o, const char *key, const char *text, const char *after)
{
    hm_putf(o, "\"%s\":", key);
    if (text)
        hm_put_json(o, text);
    else
        hm_put(o, "null");
    hm_put(o, after);
}

void hm_json_ends(struct hm_output *o, const char *key, bool known, struct hm_ival value, const char *after)
{
    hm_putf(o, "\"%s_lower\":%s,", key, known ? hm_number_json_down(value.lo).text : "null");
    hm_putf(o, "\"%s_upper\":%s%s", key, known ? hm_number_json_up(value.hi).text : "null", after);
}

static void put_sequence(struct hm_output *o, const struct hm_report *r, const struct hm_kept_sequence *s)
{
    static const char *const finish[] = {NULL, "eos", "length", "stop"};
    hm_put(o, "{");
    hm_json_text(o, "log", r->logs[s->log].path, ",");
    hm_putf(o, "\"sequence\":%u,", s->sequence);
    hm_json_text(o, "id", s->id, ",");
    hm_json_text(o, "category", s->category, ",");
    hm_putf(o, "\"turn\":%u,\"steps\":%llu,", s->turn, (unsigned long long)s->steps);
    hm_json_text(o, "finish", finish[s->finish], ",");
    for (size_t i = 0; i < HM_TOKEN_STATUSES; i++)
        hm_putf(o, "\"%s\":%llu,", HM_JSON_STATUS[i], (unsigned long long)s->status[i]);
    hm_json_ends(o, "e_sum", s->course.has_e, s->course.s, ",");
    hm_json_ends(o, "w", s->course.has_e, s->course.w, ",");
    hm_json_ends(o, "shortfall", s->course.has_e, s->course.shortfall, ",");
    hm_json_ends(o, "regret", s->course.has_regret, s->course.regret, "}");
}

void hm_json_sequences(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "\"sequences\":[");
    for (size_t i = 0; i < r->kept_count; i++) {
        if (i) hm_put(o, ",\n");
        put_sequence(o, r, &r->kept[i]);
    }
    hm_put(o, "]");
}

void hm_json_blocks(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "\"blocks\":[");
    for (size_t i = 0; i < r->block_count; i++) {
        const struct hm_kept_block *b = &r->block[i];
        const struct hm_kept_sequence *s = &r->kept[b->sequence];
        hm_put(o, i ? ",\n{" : "{");
        hm_json_text(o, "log", r->logs[s->log].path, ",");
        hm_putf(o, "\"sequence\":%u,\"t\":%u,\"tokens\":%u,\"listed\":%s,", s->sequence, b->t, b->tokens,
                b->token ? "true" : "false");
        for (size_t k = 0; k < HM_TOKEN_STATUSES; k++) hm_putf(o, "\"%s\":%u,", HM_JSON_STATUS[k], b->status[k]);
        if (b->radius < INFINITY)
            hm_putf(o, "\"noise_lower\":%s,\"closest_t\":%u,", hm_number_json_down(b->radius).text, b->closest);
        else
            hm_put(o, "\"noise_lower\":null,\"closest_t\":null,");
        hm_putf(o, "\"regret_max_upper\":%s}", b->regret >= 0 ? hm_number_json_up(b->regret).text : "null");
    }
    hm_put(o, "]");
}

static void put_missed(struct hm_output *o, const struct hm_report *r, const struct hm_missed_step *m)
{
    static const char *const distance[] = {"kl_pq", "kl_qp", "tv"}, *const limit[] = {"klf", "klr", "tv_limit"};
    static const char *const by[] = {"by_klf", "by_klr", "by_tv"};
    hm_put(o, "{");
    hm_json_text(o, "log", r->logs[m->log].path, ",");
    hm_putf(o, "\"line\":%zu,", m->line);
    if (m->index < 0)
        hm_putf(o, "\"sequence\":%lld,\"t\":%lld,\"row\":null,", (long long)m->sequence, (long long)m->t);
    else
        hm_putf(o, "\"sequence\":null,\"t\":null,\"row\":%lld,", (long long)m->index);
    hm_putf(o, "\"token\":%lld,", (long long)m->token);
    hm_json_text(o, "text", m->text, ",");
    hm_putf(o, "\"status\":\"%s\",\"k\":%lld,\"m\":%lld", HM_JSON_STATUS[m->status], (long long)m->k, (long long)m->m);
    for (int i = 0; i < 3; i++) {
        hm_putf(o, ",\"%s_upper\":%s", distance[i], m->has_draft ? hm_number_json_up(m->distance[i]).text : "null");
        hm_putf(o, ",\"%s_lower\":%s", limit[i], m->has_limits ? hm_number_json_down(m->limit[i]).text : "null");
        hm_putf(o, ",\"%s\":\"%s\"", by[i], hm_certified_names[m->certified[i]]);
    }
    hm_put(o, "}");
}

void hm_json_missed(struct hm_output *o, const struct hm_report *r)
{
    bool any = false;
    hm_put(o, "\"not_certified\":[");
    for (size_t s = 0; s < HM_TOKEN_STATUSES; s++)
        for (size_t i = 0; i < r->missed_count[s]; i++) {
            if (any) hm_put(o, ",\n");
            put_missed(o, r, &r->missed[s][i]);
            any = true;
        }
    hm_put(o, "]");
}

void hm_json_closest(struct hm_output *o, const struct hm_report *r)
{
    static const char *const id[] = {"first", "second"};
    hm_put(o, "\"closest\":[");
    for (size_t i = 0; i < r->closest_count; i++) {
        const struct hm_close_step *c = &r->closest[i];
        hm_put(o, i ? ",\n{" : "{");
        hm_json_text(o, "log", r->logs[c->log].path, ",");
        hm_putf(o, "\"line\":%zu,\"sequence\":%u,\"t\":%u,\"token\":%u,", c->line, c->sequence, c->t, c->token);
        hm_json_text(o, "text", c->text, ",");
        hm_putf(o, "\"by\":\"%s\",\"noise_lower\":%s", r->closest_by_radius ? "radius" : "top_logits",
                hm_number_json_down(c->radius).text);
        for (int k = 0; k < 2; k++) {
            if (c->top[k].present)
                hm_putf(o, ",\"%s\":%lld,\"%s_logit\":%s", id[k], (long long)c->top[k].id, id[k],
                        hm_number_json_down(c->top[k].logit).text);
            else
                hm_putf(o, ",\"%s\":null,\"%s_logit\":null", id[k], id[k]);
        }
        hm_putf(o, ",\"status\":\"%s\"}", HM_JSON_STATUS[c->status]);
    }
    hm_put(o, "]");
}
