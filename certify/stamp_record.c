// Header, sequence and end records: see stamp_record.h.
#include "certify/stamp_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#ifndef HALLMARK_VERSION
#error "certify/log.cmake defines HALLMARK_VERSION for this file"
#endif

static void add_field(struct hm_line *line, const char *key, const char *text)
{
    hm_line_format(line, ",\"%s\":", key);
    hm_line_text(line, text);
}

static void add_rational(struct hm_line *line, const char *key, const struct hm_rational *value, const char *otherwise)
{
    char *text = value ? hm_rational_text(value) : NULL;
    if (value && !text) line->status = line->status ? line->status : HM_MEMORY;
    hm_line_format(line, "\"%s\":\"", key);
    hm_line_bytes(line, text ? text : otherwise, strlen(text ? text : otherwise));
    hm_line_bytes(line, "\"", 1);
    free(text);
}

static void add_ids(struct hm_line *line, const char *key, const int32_t *ids, size_t count)
{
    hm_line_format(line, "\"%s\":[", key);
    for (size_t i = 0; i < count; i++) hm_line_format(line, i ? ",%" PRId32 : "%" PRId32, ids[i]);
    hm_line_bytes(line, "]", 1);
}

static void add_m(struct hm_line *line, uint32_t m)
{
    if (m == HM_M_TREE) hm_line_bytes(line, "\"tree\"", 6);
    else hm_line_format(line, "%" PRIu32, m);
}

static void add_model(struct hm_line *line, const char *key, const struct hm_log_model *model)
{
    hm_line_format(line, ",\"%s\":", key);
    if (!model) {
        hm_line_bytes(line, "null", 4);
        return;
    }
    hm_line_bytes(line, "{\"name\":", 8);
    hm_line_text(line, model->name ? model->name : "");
    add_field(line, "sha256", model->sha256);
    hm_line_format(line, ",\"vocab\":%zu", model->vocab);
    add_field(line, "architecture", model->architecture ? model->architecture : "");
    hm_line_bytes(line, "}", 1);
}

static void add_claims(struct hm_line *line, const struct hm_log_header *header, const struct hm_stamp_config *config)
{
    hm_line_bytes(line, ",\"claims\":[", 11);
    for (size_t i = 0; i < config->rule_count; i++) {
        if (i) hm_line_bytes(line, ",", 1);
        hm_line_text(line, config->rule_text[i]);
    }
    hm_line_bytes(line, "],\"m\":[", 7);
    for (size_t i = 0; i < config->m_count; i++) {
        if (i) hm_line_bytes(line, ",", 1);
        add_m(line, config->m[i]);
    }
    hm_line_format(line, "],\"margin\":%s", config->margin ? "true" : "false");
    hm_line_format(line, ",\"universal\":%s", config->universal ? "true" : "false");
    hm_line_bytes(line, ",\"divergences\":[", 16);
    for (size_t i = 0; i < config->divergence_count; i++) {
        if (i) hm_line_bytes(line, ",", 1);
        hm_line_text(line, config->divergence_text[i]);
    }
    hm_line_format(line, "],\"laws\":[%s%s%s],\"acceptance\":", header->law_iid ? "\"iid\"" : "",
                   header->law_iid && header->law_topk ? "," : "", header->law_topk ? "\"topk\"" : "");
    char *acceptance = header->acceptance ? hm_rule_text(header->acceptance) : NULL;
    if (header->acceptance && !acceptance) line->status = line->status ? line->status : HM_MEMORY;
    hm_line_text(line, header->standard ? "standard" : acceptance ? acceptance : "match");
    free(acceptance);
}

static void add_rows(struct hm_line *line, const struct hm_stamp_config *config, const char *target, const char *draft)
{
    hm_line_bytes(line, ",\"rows\":", 8);
    if (!config->hash_rows) {
        hm_line_bytes(line, "null", 4);
        return;
    }
    hm_line_bytes(line, "{\"target\":", 10);
    hm_line_text(line, target);
    add_field(line, "draft", draft);
    hm_line_bytes(line, ",\"hashed\":true}", 15);
}

// When, where and by what: the one part of the header that two runs of the same decode do not share.
static void add_run(struct hm_line *line)
{
    char date[32] = "";
    struct tm calendar;
    struct utsname machine;
    time_t now = time(NULL);
    if (gmtime_r(&now, &calendar)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &calendar);
    hm_line_bytes(line, ",\"run\":{\"date\":", 15);
    hm_line_text(line, date);
    add_field(line, "host", uname(&machine) == 0 ? machine.nodename : "");
    add_field(line, "version", HALLMARK_VERSION);
    hm_line_bytes(line, "}", 1);
}

static void add_decoder(struct hm_line *line, const struct hm_log_header *header)
{
    hm_line_bytes(line, ",\"decoder\":", 11);
    if (header->audit) {
        hm_line_bytes(line, "null", 4);
        return;
    }
    hm_line_bytes(line, "{\"drafter\":", 11);
    hm_line_text(line, header->drafter);
    hm_line_format(line, ",\"width\":%zu,\"depth\":%zu,\"budget\":%zu", header->width, header->depth, header->budget);
    add_field(line, "selection", header->selection);
    add_field(line, "traversal", header->traversal);
    if (header->score) add_field(line, "score", header->score);
    hm_line_bytes(line, "}", 1);
}

static void add_budget(struct hm_line *line, const struct hm_log_header *header)
{
    if (header->budget_kind == HM_LOG_NO_BUDGET) {
        hm_line_bytes(line, ",\"budget\":null", 14);
        return;
    }
    hm_line_format(line, ",\"budget\":{\"kind\":\"%s\",", header->budget_kind == HM_LOG_TV_BUDGET ? "tv" : "regret");
    add_rational(line, "limit", header->budget_limit, "0");
    hm_line_bytes(line, "}", 1);
}

void hm_stamp_header_line(struct hm_line *line, const struct hm_log_header *header,
                          const struct hm_stamp_config *config, const char *target_pattern, const char *draft_pattern)
{
    hm_line_format(line, "{\"hallmark\":1,\"kind\":\"header\"");
    add_claims(line, header, config);
    hm_line_bytes(line, ",", 1);
    add_rational(line, "temperature", header->temperature, "0");
    hm_line_bytes(line, ",", 1);
    add_rational(line, "certify_temperature", header->certify_temperature, "1");
    hm_line_format(line, ",\"processors\":{\"top_k\":%zu,", header->top_k);
    add_rational(line, "top_p", header->top_p, "1");
    hm_line_bytes(line, "}", 1);
    add_field(line, "proposal", header->proposal ? header->proposal : "none");
    add_budget(line, header);
    hm_line_format(line, ",\"rng\":\"philox4x32-10\",\"top\":%zu,\"nodes\":\"%s\"", header->top,
                   header->all_nodes ? "all" : "path");
    add_model(line, "target", header->target);
    add_model(line, "draft", header->draft);
    add_field(line, "tokenizer_sha256", header->tokenizer_sha256);
    add_decoder(line, header);
    hm_line_bytes(line, ",\"numerics\":{\"weights\":", 23);
    hm_line_text(line, header->weights_dtype);
    add_field(line, "accumulate", header->accumulate ? header->accumulate : "F32");
    add_field(line, "backend", header->backend);
    add_field(line, "row_source", header->row_source);
    hm_line_bytes(line, "}", 1);
    add_rows(line, config, target_pattern, draft_pattern);
    add_run(line);
}

void hm_stamp_sequence_line(struct hm_line *line, const struct hm_log_sequence *sequence)
{
    hm_line_format(line, "{\"kind\":\"sequence\",\"sequence\":%" PRIu32, sequence->sequence);
    add_field(line, "id", sequence->id ? sequence->id : "");
    add_field(line, "category", sequence->category ? sequence->category : "");
    hm_line_format(line, ",\"turn\":%" PRIu32 ",", sequence->turn);
    add_ids(line, "prompt", sequence->prompt, sequence->prompt_length);
    hm_line_format(line, ",\"seed\":\"%" PRIu64 "\",\"stop\":{", sequence->seed);
    add_ids(line, "eos", sequence->eos, sequence->eos_count);
    hm_line_format(line, ",\"max_tokens\":%zu,\"strings\":[", sequence->max_tokens);
    for (size_t i = 0; i < sequence->stop_count; i++) {
        if (i) hm_line_bytes(line, ",", 1);
        hm_line_text(line, sequence->stop[i]);
    }
    hm_line_bytes(line, "]}", 2);
}

static void add_verdicts(struct hm_line *line, const char *key, const uint64_t verdict[5])
{
    hm_line_format(line,
                   ",\"%s\":{\"yes\":%" PRIu64 ",\"no\":%" PRIu64 ",\"vacuous\":%" PRIu64 ",\"inapplicable\":%" PRIu64
                   ",\"undecided\":%" PRIu64 "}",
                   key, verdict[HM_CERT_YES], verdict[HM_CERT_NO], verdict[HM_CERT_VACUOUS],
                   verdict[HM_CERT_INAPPLICABLE], verdict[HM_CERT_UNDECIDED]);
}

void hm_stamp_end_line(struct hm_line *line, const struct hm_stamp_config *config,
                       const struct hm_stamp_summary *summary, double elapsed_seconds)
{
    hm_line_format(line,
                   "{\"kind\":\"end\",\"sequences\":%" PRIu64 ",\"rounds\":%" PRIu64 ",\"steps\":%" PRIu64
                   ",\"nodes\":%" PRIu64,
                   summary->sequences, summary->rounds, summary->steps, summary->nodes);
    if (config->audit) hm_line_format(line, ",\"rows\":%" PRIu64, summary->rows);
    hm_line_bytes(line, ",\"verdicts\":[", 13);
    for (size_t i = 0; i < summary->counts; i++) {
        hm_line_format(line, "%s{\"rule\":", i ? "," : "");
        hm_line_text(line, config->rule_text[i / config->m_count]);
        hm_line_bytes(line, ",\"m\":", 5);
        add_m(line, config->m[i % config->m_count]);
        add_verdicts(line, "klf", summary->count[i].verdict[0]);
        add_verdicts(line, "klr", summary->count[i].verdict[1]);
        add_verdicts(line, "tv", summary->count[i].verdict[2]);
        hm_line_bytes(line, "}", 1);
    }
    hm_line_format(line, "],\"undecided\":%" PRIu64 ",\"run\":{\"certify_seconds\":", summary->undecided);
    hm_line_seconds(line, summary->seconds);
    hm_line_format(line, ",\"seconds\":");
    hm_line_seconds(line, elapsed_seconds);
    hm_line_format(line, ",\"hash_seconds\":");
    hm_line_seconds(line, summary->hash_seconds);
    hm_line_format(line, ",\"filter\":{\"decisions\":%" PRIu64 ",\"undecided\":%" PRIu64 "}}", summary->decisions,
                   summary->filter_undecided);
}
