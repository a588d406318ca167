// The models of a decode: see decode_models.h.
#include "cli/decode_models.h"

#include <string.h>

static hm_status check_vocabulary(const char *dir, const struct hm_tokenizer *tokenizer, const struct hm_model *model,
                                  struct hm_error *err)
{
    size_t rows = hm_model_info(model)->vocab, ids = (size_t)hm_tokenizer_size(tokenizer);
    if (ids <= rows) return HM_OK;
    return hm_fail(err, HM_SHAPE, "%s: tokenizer.json: expected at most %zu ids, as many as the model has rows, found %zu",
                   dir, rows, ids);
}

static hm_status open_standalone(const struct hm_decode_options *o, struct hm_decode_models *d, struct hm_error *err)
{
    hm_status rc = hm_model_open(o->draft, d->draft_device, &d->draft, err);
    if (!rc) rc = hm_tokenizer_open(o->draft, &d->draft_tokenizer, err);
    if (!rc) rc = check_vocabulary(o->draft, d->draft_tokenizer, d->draft, err);
    if (rc) return rc;
    size_t target_rows = hm_model_info(d->target)->vocab, draft_rows = hm_model_info(d->draft)->vocab;
    rc = hm_tokenizer_same_text(d->tokenizer, (int32_t)target_rows, d->draft_tokenizer, (int32_t)draft_rows, err);
    if (rc) return rc;
    return hm_drafter_open_standalone(d->draft, target_rows, d->positions, o->width, o->depth, &d->drafter, err);
}

static hm_status open_eagle3(const struct hm_decode_options *o, struct hm_decode_models *d, struct hm_error *err)
{
    struct hm_eagle3_options options = {
        .rope_theta = o->draft_rope_theta, .positions = d->positions, .width = o->width, .depth = o->depth};
    return hm_drafter_open_eagle3(o->draft, d->target, d->draft_device, &options, &d->drafter, err);
}

static hm_status open_draft(const struct hm_decode_options *o, void (*loading)(const char *dir), struct hm_decode_models *d,
                            struct hm_error *err)
{
    if (strcmp(o->drafter, "ngram") == 0) return hm_drafter_open_ngram(&d->drafter, err);
    if (!o->draft) return HM_OK;
    if (loading) loading(o->draft);
    hm_status rc = hm_device_open_peer(d->device, 0, &d->draft_device, err);
    if (!rc) rc = strcmp(o->drafter, "eagle3") == 0 ? open_eagle3(o, d, err) : open_standalone(o, d, err);
    return rc ? hm_fail_prefix(err, "--draft") : HM_OK;
}

static void choose_eos(const struct hm_decode_options *o, struct hm_decode_models *d)
{
    const struct hm_model_info *info = hm_model_info(d->target);
    if (o->ignore_eos) return;
    for (size_t i = 0; i < info->eos_count; i++) d->eos[d->eos_count++] = info->eos[i];
    if (!o->chat) return;
    int32_t end = hm_chat_end(d->tokenizer, d->chat);
    for (size_t i = 0; i < d->eos_count; i++)
        if (d->eos[i] == end) return;
    d->eos[d->eos_count++] = end;
}

hm_status hm_decode_models_open(const struct hm_decode_options *o, void (*loading)(const char *dir),
                                struct hm_decode_models *d, struct hm_error *err)
{
    if (loading) loading(o->model);
    *d = (struct hm_decode_models){0};
    hm_status rc = hm_device_open_cpu((unsigned)o->threads, HM_ISA_BEST, &d->device, err);
    if (!rc) rc = hm_model_open(o->model, d->device, &d->target, err);
    if (!rc) rc = hm_tokenizer_open(o->model, &d->tokenizer, err);
    if (!rc) rc = check_vocabulary(o->model, d->tokenizer, d->target, err);
    if (!rc && o->chat) rc = hm_chat_detect(d->tokenizer, &d->chat, err);
    if (rc) return rc;
    size_t most = hm_model_info(d->target)->max_positions;
    if (o->context > most)
        return hm_fail(err, HM_USAGE, "--context %zu: expected at most %zu, the model's positions", o->context, most);
    d->positions = o->context ? o->context : most < 40960 ? most : 40960;
    choose_eos(o, d);
    return open_draft(o, loading, d, err);
}

void hm_decode_models_close(struct hm_decode_models *d)
{
    hm_drafter_close(d->drafter);
    hm_tokenizer_close(d->tokenizer);
    hm_tokenizer_close(d->draft_tokenizer);
    hm_model_close(d->draft);
    hm_model_close(d->target);
    hm_device_close(d->draft_device);
    hm_device_close(d->device);
}

struct hm_draft_checkpoint hm_decode_draft_checkpoint(const struct hm_decode_models *d)
{
    const struct hm_eagle3_info *head = d->drafter ? hm_drafter_eagle3_info(d->drafter) : NULL;
    const struct hm_model_info *draft = d->draft ? hm_model_info(d->draft) : NULL;
    if (head) return (struct hm_draft_checkpoint){head->name, head->architecture, head->sha256};
    if (draft) return (struct hm_draft_checkpoint){draft->name, draft->architecture, draft->sha256};
    return (struct hm_draft_checkpoint){0};
}

struct hm_session_options hm_decode_session_options(const struct hm_decode_options *o, const struct hm_decode_models *d)
{
    return (struct hm_session_options){
        .target = d->target,
        .drafter = d->drafter,
        .tokenizer = d->tokenizer,
        .acceptance = {.kind = o->accept,
                       .rule = hm_decode_rule(o),
                       .proposal = o->proposal,
                       .temperature = &o->temperature,
                       .certify_temperature = &o->certify_temperature,
                       .top_k = o->top_k,
                       .top_p = o->has_top_p ? &o->top_p : NULL,
                       .seed = o->seed},
        .fidelity = o->fidelity,
        .fidelity_limit = o->fidelity ? &o->fidelity_limit : NULL,
        .width = o->width,
        .depth = o->depth,
        .budget = o->budget,
        .selection = o->selection,
        .covering = o->covering,
        .cap = o->cap,
        .leaf_stop = o->leaf_stop,
        .score_top = o->score_top,
        .score_frontier = o->score_frontier,
        .serial = o->serial,
        .draft_threads = (unsigned)o->draft_threads,
        .positions = d->positions,
        .eos = d->eos,
        .eos_count = d->eos_count,
        .stop = o->stop,
        .stop_count = o->stop_count,
    };
}

struct hm_session_options hm_decode_plain_session_options(const struct hm_decode_options *o,
                                                          const struct hm_decode_models *d)
{
    struct hm_session_options options = hm_decode_session_options(o, d);
    options.drafter = NULL;
    options.acceptance.kind = HM_ACCEPT_MATCH;
    options.acceptance.rule = NULL;
    options.fidelity = HM_BUDGET_NONE;
    options.fidelity_limit = NULL;
    options.selection = HM_SELECT_DRAFT;
    options.covering = options.leaf_stop = false;
    options.score_top = options.score_frontier = options.cap = 0;
    return options;
}
