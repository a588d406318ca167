// What a stamper keeps of its header: see stamp_record.h.
#include "certify/stamp_record.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static void copy_rule(struct hm_rule *rule, const struct hm_rule *from)
{
    hm_rational_init(&rule->a);
    hm_rational_init(&rule->b);
    rule->kind = from->kind;
    rule->count = from->count;
    hm_rational_set(&rule->a, &from->a);
    hm_rational_set(&rule->b, &from->b);
}

static hm_status copy_rules(struct hm_stamp_config *config, const struct hm_log_header *header)
{
    config->rules = hm_calloc(header->rule_count, sizeof *config->rules);
    config->rule_text = hm_calloc(header->rule_count, sizeof *config->rule_text);
    if (!config->rules || !config->rule_text) return HM_MEMORY;
    for (size_t i = 0; i < header->rule_count; i++) {
        config->rule_text[i] = hm_rule_text(&header->rules[i]);
        if (!config->rule_text[i]) return HM_MEMORY;
        copy_rule(&config->rules[config->rule_count++], &header->rules[i]);
    }
    return HM_OK;
}

static hm_status copy_divergences(struct hm_stamp_config *config, const struct hm_log_header *header,
                                  struct hm_error *err)
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

static enum hm_stamp_first draws_first(const char *selection)
{
    if (!selection) return HM_STAMP_FIRST_NEVER;
    if (strcmp(selection, "covering") == 0) return HM_STAMP_FIRST_SOMETIMES;
    bool always = strcmp(selection, "root-draw") == 0 || strcmp(selection, "pearl") == 0;
    return always ? HM_STAMP_FIRST_ALWAYS : HM_STAMP_FIRST_NEVER;
}

hm_status hm_stamp_config_set(struct hm_stamp_config *config, const struct hm_stamp_options *options,
                              const struct hm_log_header *header, struct hm_error *err)
{
    *config = (struct hm_stamp_config){0};
    hm_rational_init(&config->temperature);
    hm_rational_init(&config->certify_temperature);
    hm_rational_init(&config->top_p);
    hm_rational_set_int(&config->top_p, 1, 1);
    hm_status rc = hm_stamp_header_check(header, err);
    if (!rc) rc = hm_stamp_traversal(header->traversal, &config->cap, &config->leaf_stop, err);
    if (rc) return rc;
    config->acceptance = hm_stamp_acceptance(header);
    config->has_rule = header->acceptance != NULL;
    if (config->has_rule) copy_rule(&config->rule, header->acceptance);
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
    config->budget_kind = (int)header->budget_kind;
    config->proposal = header->proposal_iid ? HM_PROPOSAL_IID : HM_PROPOSAL_TOPK;
    config->scores = header->score != NULL;
    config->draws_first = draws_first(header->selection);
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
    if (config->has_rule) hm_rule_clear(&config->rule);
    free(config->divergences);
    free(config->divergence_text);
    free(config->rules);
    free(config->rule_text);
    free(config->m);
    hm_rational_clear(&config->temperature);
    hm_rational_clear(&config->certify_temperature);
    hm_rational_clear(&config->top_p);
}
