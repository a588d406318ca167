// What a decode runs on: the devices, the target, the drafter and their tokenizers.
#ifndef HM_CLI_DECODE_MODELS_H
#define HM_CLI_DECODE_MODELS_H

#include "cli/decode_options.h"
#include "decode/chat.h"
#include "decode/drafter.h"
#include "decode/model.h"
#include "decode/session.h"
#include "decode/tokenizer.h"

struct hm_decode_models {
    struct hm_device *device, *draft_device; // the draft's is a peer: it may work while the target does
    struct hm_model *target, *draft;         // draft: of a standalone drafter, else NULL
    struct hm_tokenizer *tokenizer, *draft_tokenizer;
    struct hm_drafter *drafter;              // NULL: plain decoding
    enum hm_chat_format chat;                // set with --chat
    int32_t eos[HM_EOS_MOST + 1];
    size_t eos_count;
    size_t positions;                        // to make room for
};

// Opens what the options name. loading: called with each folder before it is read, or NULL. On failure *out is to be
// closed all the same.
hm_status hm_decode_models_open(const struct hm_decode_options *options, void (*loading)(const char *dir),
                                struct hm_decode_models *out, struct hm_error *err);
void hm_decode_models_close(struct hm_decode_models *models);

// The checkpoint that the drafter was loaded from; name NULL: there is none.
struct hm_draft_checkpoint {
    const char *name, *architecture, *sha256;
};
struct hm_draft_checkpoint hm_decode_draft_checkpoint(const struct hm_decode_models *models);

// The session that the options describe; and plain decoding with the same draws, to compare with. Both borrow both.
struct hm_session_options hm_decode_session_options(const struct hm_decode_options *options,
                                                    const struct hm_decode_models *models);
struct hm_session_options hm_decode_plain_session_options(const struct hm_decode_options *options,
                                                          const struct hm_decode_models *models);

#endif
