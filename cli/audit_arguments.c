// What decides about an audit's output, in one fixed spelling: see audit_result.h.
#include "cli/audit_result.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

struct words {
    void *word; // char *[count]
    size_t count, room;
    bool failed;
};

// Adds "--flag=value", or "--flag" where both are NULL; `fresh` is freed.
static void add(struct words *w, const char *flag, const char *value, char *fresh)
{
    char *text = NULL;
    const char *shown = value ? value : fresh;
    bool good = hm_grow(&w->word, &w->room, w->count + 1, sizeof text) &&
                asprintf(&text, shown ? "--%s=%s" : "--%s", flag, shown) >= 0;
    if (good) ((char **)w->word)[w->count++] = text;
    else w->failed = true;
    free(fresh);
}

static void add_number(struct words *w, const char *flag, size_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", n);
    add(w, flag, text, NULL);
}

// A text in fresh memory; NULL: memory ran out.
static void add_fresh(struct words *w, const char *flag, char *fresh)
{
    if (fresh) add(w, flag, NULL, fresh);
    else w->failed = true;
}

static void add_input_flags(struct words *w, const struct hm_audit_options *o)
{
    char allowance[40];
    snprintf(allowance, sizeof allowance, "%a", o->allowance);
    if (o->format) add(w, "format", o->format, NULL);
    if (o->vocab) add_number(w, "vocab", o->vocab);
    if (o->printing != HM_PRINTING_ROUNDED) add(w, "printing", "round-trip", NULL);
    add(w, "allowance", allowance, NULL);
    if (o->processed) add(w, "processed", NULL, NULL);
    if (o->claims_temperature) add_fresh(w, "claim-temperature", hm_rational_text(&o->claimed));
    if (o->tensor) add(w, "tensor", o->tensor, NULL);
    for (size_t i = 0; i < o->draft_count; i++) add(w, "draft", o->drafts[i], NULL);
    if (o->vocabulary) add(w, "draft-vocab", o->vocabulary, NULL);
}

hm_status hm_audit_arguments(const struct hm_audit_options *o, char ***out, size_t *count, struct hm_error *err)
{
    struct words w = {0};
    add_input_flags(&w, o);
    for (size_t i = 0; i < o->rule_count; i++) add_fresh(&w, "rule", hm_rule_text(&o->rule[i]));
    for (size_t i = 0; i < o->m_count; i++) add_number(&w, "m", o->m[i]);
    add_fresh(&w, "temperature", hm_rational_text(&o->temperature));
    if (o->margin) add(&w, "margin", NULL, NULL);
    for (size_t i = 0; i < o->divergence_count; i++) add_fresh(&w, "divergence", hm_divergence_text(&o->divergence[i]));
    if (o->law_iid) add(&w, "law", "iid", NULL);
    if (o->law_topk) add(&w, "law", "topk", NULL);
    if (o->json) add(&w, "json", NULL, NULL);
    *out = w.word;
    *count = w.count;
    return w.failed ? hm_fail(err, HM_MEMORY, "out of memory for arguments") : HM_OK;
}

void hm_audit_arguments_free(char **arguments, size_t count)
{
    for (size_t i = 0; i < count; i++) free(arguments[i]);
    free(arguments);
}
