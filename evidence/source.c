// Opening a source: what format a file has, and the reader of that format. See source.h.
#include "evidence/source.h"

#include "base/memory.h"
#include "decode/row_file.h"
#include "evidence/documents.h"
#include "evidence/source_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How far to look for a document with a field that decides: hosted services begin a stream with one that has no choices.
enum { LOOK_MOST = 8 };

struct hm_source_file {
    char *path;
    struct hm_map map;
    enum hm_format format;
    const char *decided_by;
    struct hm_reader reader;
    bool open, failed;
    struct hm_error error; // given again after a failure
    hm_status status;
};

static const struct {
    const char *name;
    hm_reader_open *open;
} formats[HM_FORMATS] = {
    [HM_FORMAT_OPENAI_CHAT] = {"openai-chat", hm_openai_chat_open},
    [HM_FORMAT_OPENAI_COMPLETIONS] = {"openai-completions", hm_openai_completions_open},
    [HM_FORMAT_VLLM] = {"vllm", hm_vllm_open},
    [HM_FORMAT_LLAMA_SERVER] = {"llama.cpp-server", hm_llama_server_open},
    [HM_FORMAT_SGLANG] = {"sglang", hm_sglang_open},
    [HM_FORMAT_LLAMA_KLD] = {"llama.cpp-kld", hm_llama_kld_open},
    [HM_FORMAT_ROWS] = {"rows", hm_rows_open},
    [HM_FORMAT_HALLMARK] = {"hallmark", hm_hallmark_open},
};

const char *hm_format_name(enum hm_format format)
{
    return (unsigned)format < HM_FORMATS ? formats[format].name : "unknown";
}

const char *hm_format_flag(enum hm_format format, enum hm_missing missing)
{
    enum { ANY = HM_FORMATS };
    static const struct {
        int format;
        enum hm_missing missing;
        const char *flag;
    } flags[] = {
        {HM_FORMAT_OPENAI_CHAT, HM_MISSING_LOGPROBS, "\"logprobs\": true, \"top_logprobs\": 20 in the request"},
        {HM_FORMAT_OPENAI_CHAT, HM_MISSING_TOP, "\"top_logprobs\": 20 in the request"},
        {HM_FORMAT_OPENAI_CHAT, HM_MISSING_MORE_TOP, "a larger \"top_logprobs\" in the request (vLLM: --max-logprobs)"},
        {HM_FORMAT_OPENAI_CHAT, HM_MISSING_IDS, "\"return_tokens_as_token_ids\": true in the request (vLLM)"},
        {HM_FORMAT_OPENAI_CHAT, HM_MISSING_PROMPT, "\"return_token_ids\": true in the request (vLLM)"},
        {HM_FORMAT_OPENAI_COMPLETIONS, HM_MISSING_LOGPROBS, "\"logprobs\": 20 in the request"},
        {HM_FORMAT_OPENAI_COMPLETIONS, HM_MISSING_TOP, "\"logprobs\": 20 in the request"},
        {HM_FORMAT_OPENAI_COMPLETIONS, HM_MISSING_MORE_TOP, "a larger \"logprobs\" in the request (vLLM: --max-logprobs)"},
        {HM_FORMAT_OPENAI_COMPLETIONS, HM_MISSING_IDS, "\"return_tokens_as_token_ids\": true in the request (vLLM)"},
        {HM_FORMAT_OPENAI_COMPLETIONS, HM_MISSING_PROMPT, "\"return_token_ids\": true in the request (vLLM)"},
        {HM_FORMAT_VLLM, HM_MISSING_LOGPROBS, "SamplingParams(logprobs=20)"},
        {HM_FORMAT_VLLM, HM_MISSING_TOP, "SamplingParams(logprobs=20)"},
        {HM_FORMAT_VLLM, HM_MISSING_MORE_TOP, "SamplingParams(logprobs=-1) with max_logprobs=-1: the whole row"},
        {HM_FORMAT_VLLM, HM_MISSING_RAW, "--logprobs-mode raw_logprobs"},
        {HM_FORMAT_LLAMA_SERVER, HM_MISSING_LOGPROBS, "\"n_probs\": 20 in the request"},
        {HM_FORMAT_LLAMA_SERVER, HM_MISSING_TOP, "\"n_probs\": 20 in the request"},
        {HM_FORMAT_LLAMA_SERVER, HM_MISSING_MORE_TOP, "a larger \"n_probs\" in the request"},
        {HM_FORMAT_LLAMA_SERVER, HM_MISSING_IDS, "\"return_tokens\": true in the request"},
        {HM_FORMAT_LLAMA_SERVER, HM_MISSING_RAW, "\"post_sampling_probs\": false in the request"},
        {HM_FORMAT_SGLANG, HM_MISSING_LOGPROBS, "\"return_logprob\": true, \"top_logprobs_num\": 20 in the request"},
        {HM_FORMAT_SGLANG, HM_MISSING_TOP, "\"top_logprobs_num\": 20 in the request"},
        {HM_FORMAT_SGLANG, HM_MISSING_MORE_TOP, "a larger \"top_logprobs_num\", or \"token_ids_logprob\", in the request"},
        {HM_FORMAT_SGLANG, HM_MISSING_PROMPT, "\"logprob_start_len\": 0 in the request"},
        {HM_FORMAT_HALLMARK, HM_MISSING_LOGPROBS, "--keep-rows"},
        {HM_FORMAT_HALLMARK, HM_MISSING_DRAFT, "--keep-rows"},
        {HM_FORMAT_LLAMA_SERVER, HM_MISSING_MEASURED, "the server logs none inside a character of several tokens (no flag helps), and none while it speculates (run it without a draft)"},
        {ANY, HM_MISSING_MEASURED, "a run without speculation: the engine logs none for drafted tokens"},
        {ANY, HM_MISSING_VOCABULARY, "--vocab"},
        {ANY, HM_MISSING_RAW, "log-probabilities before temperature and filters"},
        {ANY, HM_MISSING_DRAFT, "--draft"},
        {ANY, HM_MISSING_FLOOR, "whole rows of logits"},
        {ANY, HM_MISSING_LOGPROBS, "log-probabilities of the emitted tokens"},
        {ANY, HM_MISSING_TOP, "the largest log-probabilities of each row"},
        {ANY, HM_MISSING_MORE_TOP, "more log-probabilities of each row"},
        {ANY, HM_MISSING_IDS, "token ids"},
        {ANY, HM_MISSING_PROMPT, "the token ids of the prompt"},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if ((flags[i].format == (int)format || flags[i].format == ANY) && flags[i].missing == missing) return flags[i].flag;
    return "";
}

// ---- Deciding ----

// The formats that fit, and by what. One fits when fits has one bit.
struct decision {
    unsigned fits;
    enum hm_format format; // the last that fits
    const char *by;        // what decided it
};

static void fit(struct decision *d, enum hm_format format, const char *by)
{
    if (d->fits >> format & 1) return;
    d->fits |= 1u << format;
    d->format = format;
    d->by = by;
}

static bool has(struct hm_json_text object, const char *key)
{
    return hm_json_text_kind(hm_json_text_find(object, key)) != HM_JSON_NONE;
}

static void look_at_document(struct hm_json_text document, struct decision *d)
{
    struct hm_json_text choice = hm_json_text_first(hm_json_text_find(document, "choices"), NULL);
    int64_t version;
    if (has(choice, "message")) fit(d, HM_FORMAT_OPENAI_CHAT, "the field choices[].message");
    if (has(choice, "delta")) fit(d, HM_FORMAT_OPENAI_CHAT, "the field choices[].delta");
    if (has(choice, "text")) fit(d, HM_FORMAT_OPENAI_COMPLETIONS, "the field choices[].text");
    if (has(document, "outputs") && has(document, "prompt_token_ids")) fit(d, HM_FORMAT_VLLM, "the fields outputs and prompt_token_ids");
    if (has(document, "completion_probabilities")) fit(d, HM_FORMAT_LLAMA_SERVER, "the field completion_probabilities");
    if (has(document, "probs")) fit(d, HM_FORMAT_LLAMA_SERVER, "the field probs");
    if (has(document, "meta_info")) fit(d, HM_FORMAT_SGLANG, "the field meta_info");
    if (hm_json_text_integer(hm_json_text_find(document, "hallmark"), &version) && version == 1)
        fit(d, HM_FORMAT_HALLMARK, "the field hallmark");
}

static bool begins_with(const struct hm_map *map, const char *magic, size_t size)
{
    return map->size >= size && memcmp(map->data, magic, size) == 0;
}

static hm_status look_at_documents(const char *path, const struct hm_map *map, struct decision *d, struct hm_error *err)
{
    struct hm_documents documents;
    struct hm_document document;
    hm_status rc = hm_documents_open(&documents, path, map, err);
    for (int i = 0; !rc && i < LOOK_MOST && !d->fits; i++) {
        rc = hm_documents_next(&documents, &document, err);
        if (rc || !document.value.at) break;
        look_at_document(document.value, d);
    }
    return rc;
}

static hm_status decide(struct hm_source_file *s, struct hm_error *err)
{
    struct decision d = {0};
    if (begins_with(&s->map, "_logits_", 8)) fit(&d, HM_FORMAT_LLAMA_KLD, "the magic _logits_");
    const char *rows = hm_row_file_magic(s->map.data, s->map.size);
    if (rows) fit(&d, HM_FORMAT_ROWS, rows);
    hm_status rc = d.fits ? HM_OK : look_at_documents(s->path, &s->map, &d, err);
    if (rc) return rc;
    if (!d.fits)
        return hm_fail(err, HM_FORMAT,
                       "%s: expected a field or magic that names the format (choices[].message, choices[].delta, choices[].text, "
                       "outputs with prompt_token_ids, completion_probabilities, probs, meta_info, \"hallmark\":1, _logits_, "
                       ".npy, .safetensors), found none; say which with --format",
                       s->path);
    if (d.fits & (d.fits - 1)) {
        char names[160] = "";
        for (unsigned f = 0; f < HM_FORMATS; f++)
            if (d.fits >> f & 1) {
                size_t at = strlen(names);
                snprintf(names + at, sizeof names - at, at ? ", %s" : "%s", formats[f].name);
            }
        return hm_fail(err, HM_FORMAT, "%s: expected one format, found fields of several (%s); say which with --format", s->path, names);
    }
    s->format = d.format;
    s->decided_by = d.by;
    return HM_OK;
}

static hm_status take_format(struct hm_source_file *s, const char *name, struct hm_error *err)
{
    char names[160] = "";
    for (unsigned f = 0; f < HM_FORMATS; f++) {
        if (strcmp(name, formats[f].name) == 0) {
            s->format = (enum hm_format)f;
            s->decided_by = "--format";
            return HM_OK;
        }
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, at ? ", %s" : "%s", formats[f].name);
    }
    return hm_fail(err, HM_USAGE, "--format: expected one of %s, found \"%s\"", names, name);
}

// ---- Opening and reading ----

hm_status hm_source_open(const char *path, const struct hm_source_options *options, struct hm_source_file **out,
                         struct hm_error *err)
{
    *out = NULL;
    struct hm_source_file *s = hm_calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    }
    hm_status rc = hm_map_open(path, &s->map, err);
    if (!rc) rc = options->format ? take_format(s, options->format, err) : decide(s, err);
    if (!rc) rc = formats[s->format].open(s->path, &s->map, options, &s->reader, err);
    if (rc) {
        hm_source_close(s);
        return rc;
    }
    s->open = true;
    *out = s;
    return HM_OK;
}

void hm_source_close(struct hm_source_file *source)
{
    if (!source) return;
    if (source->open) source->reader.close(source->reader.state);
    hm_map_close(&source->map);
    free(source->path);
    free(source);
}

enum hm_format hm_source_format(const struct hm_source_file *source)
{
    return source->format;
}

const char *hm_source_decided_by(const struct hm_source_file *source)
{
    return source->decided_by;
}

hm_status hm_source_next(struct hm_source_file *source, struct hm_event *out, struct hm_error *err)
{
    if (!source->failed) {
        source->status = source->reader.next(source->reader.state, out, &source->error);
        if (!source->status) return HM_OK;
        source->failed = true;
    }
    if (err) *err = source->error;
    return source->status;
}
