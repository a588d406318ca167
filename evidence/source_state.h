// Private to evidence/: what the readers of one format each give to source.c.
#ifndef HM_EVIDENCE_SOURCE_STATE_H
#define HM_EVIDENCE_SOURCE_STATE_H

#include "base/file.h"
#include "evidence/source.h"

// A reader of one format. `state` is its own.
struct hm_reader {
    void *state;
    hm_status (*next)(void *state, struct hm_event *out, struct hm_error *err);
    void (*close)(void *state);
};

// Each opens a mapped file of its format; the map stays the source's and outlives the reader.
typedef hm_status hm_reader_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                                 struct hm_reader *out, struct hm_error *err);
hm_reader_open hm_openai_chat_open, hm_openai_completions_open, hm_llama_server_open; // openai_chat.c, ...
hm_reader_open hm_vllm_open, hm_sglang_open, hm_llama_kld_open;
hm_reader_open hm_rows_open, hm_hallmark_open; // these open the path themselves

#endif
