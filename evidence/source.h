// Sources: logs of other engines, row files and certificate logs, read as one stream of sequences and tokens.
//
// Memory does not grow with a file's length: files are mapped and walked (base/json_text.h). What is wrong with the
// content comes as findings in the stream; what cannot be read at all is an error "FILE: line 3: choices[0]...: expected
// ..., found ...". Formats: docs/evidence.md "What it reads".
#ifndef HM_EVIDENCE_SOURCE_H
#define HM_EVIDENCE_SOURCE_H

#include "base/error.h"
#include "evidence/evidence.h"
#include "evidence/finding.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hm_format {
    HM_FORMAT_OPENAI_CHAT,        // "openai-chat": JSON, JSON Lines, or an SSE stream
    HM_FORMAT_OPENAI_COMPLETIONS, // "openai-completions": the same
    HM_FORMAT_VLLM,               // "vllm": RequestOutput objects
    HM_FORMAT_LLAMA_SERVER,       // "llama.cpp-server": /completion, JSON, JSON Lines or SSE
    HM_FORMAT_SGLANG,             // "sglang": /generate
    HM_FORMAT_LLAMA_KLD,          // "llama.cpp-kld": the base file of llama-perplexity
    HM_FORMAT_ROWS,               // "rows": .safetensors or .npy, without tokens
    HM_FORMAT_HALLMARK,           // "hallmark": a certificate log with its row shards
    HM_FORMATS
};
const char *hm_format_name(enum hm_format format);

struct hm_source_options {
    const char *format;           // NULL: decided by a magic or field that only one format has
    const char *tensor;           // of row files
    size_t vocab;                 // 0: not told
    enum hm_printing printing;
    double allowance;             // hm_decimal_widen
    bool exact_sums;              // rows are not to be taken as off by a shift (evidence.h)
    bool processed;               // log-probabilities are of processed rows (vLLM --logprobs-mode processed_logprobs)
    bool prompt_tokens;           // also give tokens of the prompt that have log-probabilities
};

// A sequence: one choice of one response. Borrowed until the next event.
struct hm_source_sequence {
    uint32_t number;              // 0, 1, 2, ... in the order of the file
    const char *id;               // the engine's, "" when it has none
    const char *model, *category; // likewise
    const int32_t *prompt;        // ids the model saw before the first token [prompt_length]; NULL: not told
    size_t prompt_length;
    const char *temperature;      // as the log says (a rational), NULL when it does not
    const char *seed, *acceptance; // of certificate logs; else NULL
    int64_t draft_tokens, accepted_tokens; // the engine's counters of speculation, -1 when absent
};

struct hm_source_token {
    uint32_t sequence;
    uint32_t t;                   // index among the emitted tokens; of a prompt's tokens their place in it
    bool of_prompt;               // it was given, not emitted
    int32_t token;                // -1: only its text is known
    const char *text;             // bytes [text_size]; NULL: not told
    size_t text_size;
    bool has_row;                 // else `missing` says what is
    enum hm_missing missing;      // with a row: what would tell more
    struct hm_evidence row;
    const float *draft_logits;    // the draft's row at this context [row.vocab], of certificate logs that kept it; or NULL
    int32_t width;                // nodes in the pass that computed the row (certificate logs); 0: not told
    const char *where;            // place in the file
};

enum hm_event_kind { HM_EVENT_SEQUENCE, HM_EVENT_TOKEN, HM_EVENT_FINDING, HM_EVENT_END };

struct hm_event {
    enum hm_event_kind kind;
    const struct hm_source_sequence *sequence; // of its kind, else NULL
    const struct hm_source_token *token;
    const struct hm_finding *finding;
};

struct hm_source_file;

// Opens a file. HM_FORMAT when no format or more than one fits: the message lists what was looked for and names --format.
hm_status hm_source_open(const char *path, const struct hm_source_options *options, struct hm_source_file **out,
                         struct hm_error *err);
void hm_source_close(struct hm_source_file *source); // NULL is allowed

enum hm_format hm_source_format(const struct hm_source_file *source);
const char *hm_source_decided_by(const struct hm_source_file *source); // "--format", "the magic _logits_", "the field meta_info"

// The next event; HM_EVENT_END for ever after the last. A sequence comes before its tokens, a finding after what it speaks
// of. Sequences whose chunks interleave in a stream come interleaved: tokens and findings say which they are of. A piece of
// text whose tokens are not told counts as one token, without a row. After an error the source gives the same error again. Findings about one row's values are hm_sanity_check's, not the
// source's; those about lists, ids and counters are.
hm_status hm_source_next(struct hm_source_file *source, struct hm_event *out, struct hm_error *err);

// The engine's flag that supplies what is missing: "logprobs=20", "--max-logprobs", with the name of the request field.
const char *hm_format_flag(enum hm_format format, enum hm_missing missing);

#ifdef __cplusplus
}
#endif

#endif
