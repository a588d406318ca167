// Between a decode and its log: see stamping.h.
#include "cli/stamping.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct hm_log_model describe(const char *name, const char *architecture, const char *sha256, size_t vocab)
{
    struct hm_log_model model = {.name = name, .vocab = vocab, .architecture = architecture};
    memcpy(model.sha256, sha256, sizeof model.sha256);
    return model;
}

hm_status hm_stamping_check_path(const char *path, struct hm_error *err)
{
    static const char magic[] = "{\"hallmark\":";
    struct stat file, output;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode)) return HM_OK; // new, or refused when it is opened
    if (fstat(STDOUT_FILENO, &output) == 0 && file.st_dev == output.st_dev && file.st_ino == output.st_ino)
        return hm_fail(err, HM_USAGE, "%s: expected a file of its own for the log, found standard output", path);
    if (hm_file_may_replace(path, magic, sizeof magic - 1)) return HM_OK;
    return hm_fail(err, HM_USAGE, "%s: expected a new file or an old log to replace, found another kind of file", path);
}

hm_status hm_stamping_open(const struct hm_decode_options *options, const struct hm_decode_models *models,
                           struct hm_stamping *out, struct hm_error *err)
{
    const struct hm_model_info *target = hm_model_info(models->target);
    const struct hm_drafter *drafter = models->drafter;
    const struct hm_draft_checkpoint draft = hm_decode_draft_checkpoint(models);
    char tokenizer_hash[HM_SHA256_HEX], traversal[32], score[32];
    struct hm_log_model draft_model;
    struct hm_log_model target_model = describe(target->name, target->architecture, target->sha256, target->vocab);
    if (draft.name) // its rows are fitted to the target's ids
        draft_model = describe(draft.name, draft.architecture, draft.sha256, target->vocab);
    hm_sha256_hex(hm_tokenizer_sha256(models->tokenizer), tokenizer_hash);
    struct hm_log_header header = {
        .rules = options->certify,
        .rule_count = options->certify_count,
        .m = options->m,
        .m_count = options->m_count,
        .margin = options->margin,
        .universal = options->margin,
        .divergences = options->divergence,
        .divergence_count = options->divergence_count,
        .law_iid = options->law_iid,
        .law_topk = options->law_topk,
        .acceptance = hm_decode_rule(options),
        .standard = options->accept == HM_ACCEPT_STANDARD,
        .proposal_iid = options->proposal == HM_PROPOSAL_IID,
        .budget_kind = options->fidelity == HM_BUDGET_TV       ? HM_LOG_TV_BUDGET
                       : options->fidelity == HM_BUDGET_REGRET ? HM_LOG_REGRET_BUDGET
                                                               : HM_LOG_NO_BUDGET,
        .budget_limit = options->fidelity ? &options->fidelity_limit : NULL,
        .temperature = &options->temperature,
        .certify_temperature = &options->certify_temperature,
        .top_k = options->top_k,
        .top_p = options->has_top_p ? &options->top_p : NULL,
        .top = 8,
        .all_nodes = options->all_nodes,
        .target = &target_model,
        .draft = draft.name ? &draft_model : NULL,
        .tokenizer_sha256 = tokenizer_hash,
        .drafter = drafter ? drafter->name : "none",
        .width = drafter ? options->width : 0,
        .depth = drafter ? options->depth : 0,
        .budget = drafter ? options->budget : 0,
        .selection = hm_decode_selection_name(options),
        .traversal = hm_decode_traversal_name(options, traversal),
        .score = hm_decode_score_name(options, score),
        .proposal = !drafter ? "none" : options->proposal == HM_PROPOSAL_IID ? "iid" : "topk",
        .weights_dtype = hm_dtype_name(target->dtype),
        .backend = models->device->backend,
        .row_source = "verify",
    };
    struct hm_stamp_options stamp = {
        .path = options->log,
                                     .keep_rows = options->keep_rows,
                                     .hash_rows = options->hash_rows,
                                     .threads = (unsigned)options->certify_threads};
    *out = (struct hm_stamping){0};
    return hm_stamper_open(&stamp, &header, &out->stamper, err);
}

hm_status hm_stamping_round(struct hm_stamping *s, const struct hm_round_event *event, struct hm_error *err)
{
    struct hm_log_round round = {
        .sequence = s->sequence,
        .round = event->round,
        .t = event->t,
        .nodes = event->tree->nodes,
        .parent = event->tree->parent,
        .token = event->tree->token,
        .logq = event->tree->logq,
        .pool = event->pool,
        .accepted = event->accepted,
        .target_rows = event->rows,
        .scored = event->tree->scored,
        .first_drawn = event->first >= 0,
        .first = event->first,
        .draft_seconds = event->draft_seconds,
        .verify_seconds = event->verify_seconds,
    };
    return hm_stamper_round(s->stamper, &round, err);
}

static enum hm_source source_of(enum hm_token_source source)
{
    switch (source) {
    case HM_TOKEN_ACCEPTED: return HM_SOURCE_ACCEPTED;
    case HM_TOKEN_CONTINUATION: return HM_SOURCE_CONTINUATION;
    default: return HM_SOURCE_PREFILL;
    }
}

static enum hm_finish finish_of(enum hm_stop_reason stop)
{
    switch (stop) {
    case HM_STOP_EOS: return HM_FINISH_EOS;
    case HM_STOP_LENGTH: return HM_FINISH_LENGTH;
    case HM_STOP_STRING: return HM_FINISH_STOP;
    default: return HM_FINISH_NONE;
    }
}

hm_status hm_stamping_step(struct hm_stamping *s, const struct hm_step_event *event, struct hm_error *err)
{
    struct hm_log_step step = {
        .sequence = s->sequence,
        .t = event->t,
        .round = event->round,
        .token = event->token,
        .source = source_of(event->source),
        .node = event->node,
        .depth = event->depth,
        .child = event->child,
        .support = event->support,
        .children = event->children,
        .child_count = event->child_count,
        .target_row = event->target_row,
        .draft_row = event->draft_row,
        .draft_why = event->draft_why,
        .capped = event->capped,
        .charged = event->charged,
        .relaxed = event->relaxed,
        .charge = event->charge,
        .spent = event->spent,
        .finish = finish_of(event->stop),
        .text = event->text,
        .text_size = event->text_size,
    };
    return hm_stamper_step(s->stamper, &step, err);
}

hm_status hm_stamping_node(struct hm_stamping *s, const struct hm_node_event *event, struct hm_error *err)
{
    struct hm_log_step node = {
        .sequence = s->sequence,
        .round = event->round,
        .token = -1,
        .node = event->node,
        .depth = event->depth,
        .child = -1,
        .support = event->support,
        .children = event->children,
        .child_count = event->child_count,
        .target_row = event->target_row,
        .draft_row = event->draft_row,
        .draft_why = event->draft_why,
    };
    return hm_stamper_step(s->stamper, &node, err);
}
