// Between a decode and its log: see stamping.h.
#include "cli/stamping.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct hm_log_model describe(const struct hm_model_info *info, size_t vocab)
{
    struct hm_log_model model = {.name = info->name, .vocab = vocab, .architecture = info->architecture};
    memcpy(model.sha256, info->sha256, sizeof model.sha256);
    return model;
}

hm_status hm_stamping_check_path(const char *path, struct hm_error *err)
{
    static const char magic[] = "{\"hallmark\":";
    char head[sizeof magic];
    struct stat file, output;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode)) return HM_OK; // new, or refused when it is opened
    if (fstat(STDOUT_FILENO, &output) == 0 && file.st_dev == output.st_dev && file.st_ino == output.st_ino)
        return hm_fail(err, HM_USAGE, "%s: expected a file of its own for the log, found standard output", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return HM_OK;
    ssize_t n = read(fd, head, sizeof magic - 1);
    close(fd);
    if (n == 0 || (n == (ssize_t)sizeof magic - 1 && memcmp(head, magic, sizeof magic - 1) == 0)) return HM_OK;
    return hm_fail(err, HM_USAGE, "%s: expected a new file or an old log to replace, found another kind of file", path);
}

hm_status hm_stamping_open(const struct hm_decode_options *options, const struct hm_model_info *target,
                           const struct hm_model_info *draft, const struct hm_drafter *drafter,
                           const struct hm_tokenizer *tokenizer, const struct hm_device *device,
                           struct hm_stamping *out, struct hm_error *err)
{
    char tokenizer_hash[HM_SHA256_HEX], traversal[32] = "exhaustive";
    struct hm_log_model target_model = describe(target, target->vocab), draft_model;
    if (draft) draft_model = describe(draft, target->vocab); // draft rows are fitted to the target's ids
    hm_sha256_hex(hm_tokenizer_sha256(tokenizer), tokenizer_hash);
    if (options->cap) snprintf(traversal, sizeof traversal, "cap:%zu", options->cap);
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
        .acceptance = options->match ? NULL : &options->acceptance,
        .temperature = &options->temperature,
        .certify_temperature = &options->certify_temperature,
        .top_k = options->top_k,
        .top_p = options->has_top_p ? &options->top_p : NULL,
        .top = 8,
        .all_nodes = options->all_nodes,
        .target = &target_model,
        .draft = draft ? &draft_model : NULL,
        .tokenizer_sha256 = tokenizer_hash,
        .drafter = drafter ? drafter->name : "none",
        .width = drafter ? options->width : 0,
        .depth = drafter ? options->depth : 0,
        .budget = drafter ? options->budget : 0,
        .selection = "draft",
        .traversal = traversal,
        .proposal = drafter ? "topk" : "none",
        .weights_dtype = hm_dtype_name(target->dtype),
        .backend = device->backend,
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
