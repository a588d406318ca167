// What a stamper keeps of its header, and what a header must have: see stamp_record.h.
#include "certify/stamp_record.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DIVERGENCES = 16, MOST_PROPOSALS = 1024 }; // docs/log.md, "Header"

static hm_status check_model(const char *which, const struct hm_log_model *model, struct hm_error *err)
{
    if (model->vocab < 2 || model->vocab > INT32_MAX)
        return hm_fail(err, HM_USAGE, "log header: %s vocabulary: expected 2 to %d, found %zu", which, INT32_MAX,
                       model->vocab);
    return HM_OK;
}

// There is no decode in an audit, so nothing may be said of one.
static hm_status check_audit(const struct hm_log_header *header, struct hm_error *err)
{
    if (header->acceptance || hm_rational_sign(header->temperature) != 0 || header->all_nodes)
        return hm_fail(err, HM_USAGE, "log header: audit: expected acceptance match, temperature 0 and nodes path");
    for (size_t i = 0; i < header->m_count; i++)
        if (header->m[i] == HM_M_TREE)
            return hm_fail(err, HM_USAGE, "log header: audit: m: expected fixed numbers, found \"tree\"");
    return HM_OK;
}

// N of "cap:N"; 0 for other traversals.
static size_t cap_of(const char *traversal)
{
    if (!traversal || strncmp(traversal, "cap:", 4) != 0) return 0;
    return (size_t)strtoull(traversal + 4, NULL, 10);
}

static hm_status check_header(const struct hm_log_header *header, struct hm_error *err)
{
    if (header->rule_count == 0 || header->m_count == 0)
        return hm_fail(err, HM_USAGE, "log header: expected at least one rule and one m, found %zu and %zu",
                       header->rule_count, header->m_count);
    if (!header->temperature || hm_rational_sign(header->temperature) < 0)
        return hm_fail(err, HM_USAGE, "log header: temperature: expected a number >= 0");
    if (!header->certify_temperature || hm_rational_sign(header->certify_temperature) <= 0)
        return hm_fail(err, HM_USAGE, "log header: certify temperature: expected a number > 0");
    if (header->divergence_count > MOST_DIVERGENCES)
        return hm_fail(err, HM_USAGE, "log header: expected at most %d divergences, found %zu", MOST_DIVERGENCES,
                       header->divergence_count);
    for (size_t i = 0; i < header->m_count && (header->law_iid || header->law_topk); i++)
        if (header->m[i] > MOST_PROPOSALS)
            return hm_fail(err, HM_USAGE, "log header: m: expected at most %d where there are laws, found %lu",
                           MOST_PROPOSALS, (unsigned long)header->m[i]);
    if (header->audit) {
        hm_status rc = check_audit(header, err);
        if (rc) return rc;
    }
    if (!header->target) return hm_fail(err, HM_USAGE, "log header: expected a target model");
    hm_status rc = check_model("target", header->target, err);
    if (!rc && header->draft) rc = check_model("draft", header->draft, err);
    if (rc || !header->draft || header->draft->vocab == header->target->vocab) return rc;
    return hm_fail(err, HM_UNSUPPORTED,
                   "log header: draft vocabulary: expected %zu tokens like the target's, found %zu",
                   header->target->vocab, header->draft->vocab);
}

static hm_status copy_rules(struct hm_stamp_config *config, const struct hm_log_header *header)
{
    config->rules = hm_calloc(header->rule_count, sizeof *config->rules);
    config->rule_text = hm_calloc(header->rule_count, sizeof *config->rule_text);
    if (!config->rules || !config->rule_text) return HM_MEMORY;
    for (size_t i = 0; i < header->rule_count; i++) {
        struct hm_rule *rule = &config->rules[i];
        const struct hm_rule *from = &header->rules[i];
        config->rule_text[i] = hm_rule_text(from);
        if (!config->rule_text[i]) return HM_MEMORY;
        hm_rational_init(&rule->a);
        hm_rational_init(&rule->b);
        config->rule_count++; // from here on it must be cleared
        rule->kind = from->kind;
        rule->count = from->count;
        hm_rational_set(&rule->a, &from->a);
        hm_rational_set(&rule->b, &from->b);
    }
    return HM_OK;
}

static hm_status copy_divergences(struct hm_stamp_config *config, const struct hm_log_header *header, struct hm_error *err)
{
    config->divergences = hm_calloc(header->divergence_count, sizeof *config->divergences);
    config->divergence_text = hm_calloc(header->divergence_count, sizeof *config->divergence_text);
    if (!config->divergences || !config->divergence_text) return hm_fail(err, HM_MEMORY, "log header: out of memory");
    for (size_t i = 0; i < header->divergence_count; i++) {
        struct hm_divergence *d = &config->divergences[i];
        char *text = hm_divergence_text(&header->divergences[i]);
        if (!text) return hm_fail(err, HM_MEMORY, "log header: out of memory");
        hm_rational_init(&d->order);
        config->divergence_text[config->divergence_count++] = text; // from here on it must be cleared
        d->kind = header->divergences[i].kind;
        hm_rational_set(&d->order, &header->divergences[i].order);
        for (size_t j = 0; j < i; j++)
            if (strcmp(config->divergence_text[j], text) == 0)
                return hm_fail(err, HM_USAGE, "log header: divergence %s stands there twice", text);
    }
    return HM_OK;
}

hm_status hm_stamp_config_set(struct hm_stamp_config *config, const struct hm_stamp_options *options,
                              const struct hm_log_header *header, struct hm_error *err)
{
    *config = (struct hm_stamp_config){0};
    hm_rational_init(&config->temperature);
    hm_rational_init(&config->certify_temperature);
    hm_rational_init(&config->top_p);
    hm_rational_set_int(&config->top_p, 1, 1);
    hm_status rc = check_header(header, err);
    if (rc) return rc;
    hm_rational_set(&config->temperature, header->temperature);
    hm_rational_set(&config->certify_temperature, header->certify_temperature);
    if (header->top_p) hm_rational_set(&config->top_p, header->top_p);
    config->top_k = header->top_k;
    config->vocab = header->target->vocab;
    config->top = header->top;
    config->margin = header->margin;
    config->universal = header->universal;
    config->law[HM_PROPOSAL_IID] = header->law_iid;
    config->law[HM_PROPOSAL_TOPK] = header->law_topk;
    config->all_nodes = header->all_nodes;
    config->audit = header->audit;
    config->cap = cap_of(header->traversal);
    config->relaxed = header->acceptance != NULL;
    config->greedy = hm_rational_sign(header->temperature) == 0;
    config->has_draft = header->draft != NULL;
    config->keep_rows = options->keep_rows && options->path;
    config->hash_rows = config->keep_rows || options->hash_rows;
    rc = copy_rules(config, header);
    config->m = hm_calloc(header->m_count, sizeof *config->m);
    if (rc || !config->m) return hm_fail(err, HM_MEMORY, "log header: out of memory");
    memcpy(config->m, header->m, header->m_count * sizeof *config->m);
    config->m_count = header->m_count;
    return copy_divergences(config, header, err);
}

void hm_stamp_config_clear(struct hm_stamp_config *config)
{
    for (size_t i = 0; i < config->rule_count; i++) {
        hm_rule_clear(&config->rules[i]);
        free(config->rule_text[i]);
    }
    for (size_t i = 0; i < config->divergence_count; i++) {
        hm_divergence_clear(&config->divergences[i]);
        free(config->divergence_text[i]);
    }
    free(config->divergences);
    free(config->divergence_text);
    free(config->rules);
    free(config->rule_text);
    free(config->m);
    hm_rational_clear(&config->temperature);
    hm_rational_clear(&config->certify_temperature);
    hm_rational_clear(&config->top_p);
}
