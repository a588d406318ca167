// What the flags of `hallmark decode` mean together: see decode_options.h.
#include "cli/decode_options.h"

#include "certify/stamp.h"
#include "decode/drafter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hm_status check_prompts(const struct hm_decode_options *o, struct hm_error *err)
{
    int given = !!o->prompt + !!o->prompt_file + !!o->prompts;
    if (given != 1) return hm_fail(err, HM_USAGE, "expected one of --prompt, --prompt-file and --prompts, found %d", given);
    if (o->limit && !o->prompts) return hm_fail(err, HM_USAGE, "--limit goes with --prompts");
    if (o->system && !o->chat) return hm_fail(err, HM_USAGE, "--system goes with --chat");
    return HM_OK;
}

// The drafter: named, or told from the checkpoint.
static hm_status settle_drafter(struct hm_decode_options *o, struct hm_error *err)
{
    bool eagle3 = false, named = o->drafter != NULL;
    if (named && strcmp(o->drafter, "ngram") != 0 && strcmp(o->drafter, "none") != 0 && !o->draft)
        return hm_fail(err, HM_USAGE, "--drafter %s: expected --draft DIR as well", o->drafter);
    hm_status rc = o->draft ? hm_eagle3_detect(o->draft, &eagle3, err) : HM_OK;
    if (rc) return rc;
    const char *found = !o->draft ? "none" : eagle3 ? "eagle3" : "standalone";
    if (!named) o->drafter = found;
    else if (o->draft && (strcmp(o->drafter, "ngram") == 0 || strcmp(o->drafter, "none") == 0))
        return hm_fail(err, HM_USAGE, "--drafter %s has no use for --draft", o->drafter);
    else if (o->draft && strcmp(o->drafter, found) != 0)
        return hm_fail(err, HM_USAGE, "--drafter %s: expected a checkpoint of that kind, found %s in %s", o->drafter, found,
                       o->draft);
    if (o->draft_rope_theta != 0 && !eagle3)
        return hm_fail(err, HM_USAGE, "--draft-rope-theta goes with an EAGLE-3 --draft");
    if (o->width == SIZE_MAX) o->width = eagle3 ? 10 : 4;
    if (o->depth == SIZE_MAX) o->depth = eagle3 ? 7 : 4;
    if (o->budget == SIZE_MAX) o->budget = eagle3 ? 59 : 16;
    return HM_OK;
}

// What needs a drafter, and what needs one with rows, is refused before anything is loaded.
static hm_status check_drafter(const struct hm_decode_options *o, struct hm_error *err)
{
    bool none = strcmp(o->drafter, "none") == 0;
    if (o->proposal == HM_PROPOSAL_IID && !o->draft)
        return hm_fail(err, HM_USAGE, "--proposal iid draws from the draft's rows: expected --draft DIR, found drafter %s", o->drafter);
    const char *flag = o->selection != HM_SELECT_DRAFT ? "--select"
                       : o->covering                   ? "--decoder covering"
                       : o->leaf_stop || o->cap        ? "--traverse"
                       : o->score_top                  ? "--score-top"
                       : o->score_frontier             ? "--score-frontier"
                       : o->fidelity                   ? "a fidelity budget"
                                                       : NULL;
    if (!none || !flag) return HM_OK;
    return hm_fail(err, HM_USAGE, "%s has no use without a drafter: expected --draft DIR or --drafter ngram", flag);
}

static hm_status settle_temperatures(struct hm_decode_options *o, struct hm_error *err)
{
    bool sampled = hm_rational_sign(&o->temperature) > 0;
    if (!sampled && (o->top_k || o->has_top_p))
        return hm_fail(err, HM_USAGE, "--top-k and --top-p sample: expected a --temperature above 0 with them");
    if (hm_rational_sign(&o->certify_temperature) != 0) return HM_OK;
    if (sampled) hm_rational_set(&o->certify_temperature, &o->temperature);
    else hm_rational_set_int(&o->certify_temperature, 1, 1);
    return HM_OK;
}

static hm_status check_record(const struct hm_decode_options *o, struct hm_error *err)
{
    if (!o->record_pool) return HM_OK;
    const char *found = !o->draft                        ? "no --draft"
                        : o->accept != HM_ACCEPT_MATCH   ? "--accept"
                        : o->covering                    ? "--decoder covering"
                        : o->selection != HM_SELECT_DRAFT ? "--select"
                        : o->cap || o->leaf_stop          ? "--traverse"
                                                          : NULL;
    if (!found) return HM_OK;
    return hm_fail(err, HM_USAGE, "--record-pool records a plain run with a draft model: found %s", found);
}

hm_status hm_decode_options_settle(struct hm_decode_options *o, struct hm_error *err)
{
    if (!o->model) return hm_fail(err, HM_USAGE, "--model: expected the folder of a checkpoint, found none (hallmark decode --help)");
    hm_status rc = check_prompts(o, err);
    if (!rc) rc = settle_drafter(o, err);
    if (!rc) rc = check_drafter(o, err);
    if (!rc) rc = settle_temperatures(o, err);
    if (!rc) rc = check_record(o, err);
    if (rc) return rc;
    if (!o->log && (o->keep_rows || o->hash_rows || o->all_nodes))
        return hm_fail(err, HM_USAGE, "--keep-rows, --hash-rows and --certify-nodes all write to a log: expected --log FILE");
    if (o->score_top && o->score_frontier)
        return hm_fail(err, HM_USAGE, "--score-top and --score-frontier both say what is scored besides: expected one of them");
    if (o->covering && o->traverse_given && !o->leaf_stop)
        return hm_fail(err, HM_USAGE, "--decoder covering stops before leaves: expected no --traverse, or leaf-stop");
    if (o->covering) o->leaf_stop = true;
    if (o->certify_count == 0) {
        const struct hm_rule *rule = hm_decode_rule(o);
        char *text = rule ? hm_rule_text(rule) : strdup("greedy");
        if (!text) return hm_fail(err, HM_MEMORY, "out of memory for a rule");
        rc = hm_flag_add_rule("certify", text, o->certify, &o->certify_count, err);
        free(text);
    }
    // Without draft rows nothing is certified, and a fixed m says at every step what a draft would have to reach.
    if (o->m_count == 0) o->m[o->m_count++] = o->draft ? HM_M_TREE : 1;
    return rc;
}

const struct hm_rule *hm_decode_rule(const struct hm_decode_options *o)
{
    return o->accept == HM_ACCEPT_RULE || o->accept == HM_ACCEPT_NUCLEUS ? &o->acceptance : NULL;
}

const char *hm_decode_selection_name(const struct hm_decode_options *o)
{
    static const char *const names[] = {"draft", "root", "root-draw", "pearl"};
    return o->covering ? "covering" : names[o->selection];
}

const char *hm_decode_traversal_name(const struct hm_decode_options *o, char text[32])
{
    if (o->cap) snprintf(text, 32, "cap:%zu", o->cap);
    else snprintf(text, 32, "%s", o->leaf_stop ? "leaf-stop" : "exhaustive");
    return text;
}

const char *hm_decode_score_name(const struct hm_decode_options *o, char text[32])
{
    if (o->score_top) snprintf(text, 32, "top:%zu", o->score_top);
    else if (o->score_frontier == SIZE_MAX) snprintf(text, 32, "frontier:all");
    else if (o->score_frontier) snprintf(text, 32, "frontier:%zu", o->score_frontier);
    else return NULL;
    return text;
}

void hm_decode_options_clear(struct hm_decode_options *o)
{
    hm_rational_clear(&o->temperature);
    hm_rational_clear(&o->top_p);
    hm_rational_clear(&o->certify_temperature);
    hm_rational_clear(&o->fidelity_limit);
    if (hm_decode_rule(o)) hm_rule_clear(&o->acceptance);
    for (size_t i = 0; i < o->certify_count; i++) hm_rule_clear(&o->certify[i]);
    for (size_t i = 0; i < o->divergence_count; i++) hm_divergence_clear(&o->divergence[i]);
}
