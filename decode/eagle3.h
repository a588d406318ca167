// An EAGLE-3 head as its checkpoint has it: configuration, draft vocabulary, weights on a device (docs/models.md,
// "EAGLE-3 heads"). For drafter_eagle3.c, which runs it; not for others.
#ifndef HM_DECODE_EAGLE3_H
#define HM_DECODE_EAGLE3_H

#include "decode/drafter.h"
#include "decode/model_parts.h"

enum { HM_EAGLE3_TAPS_MOST = 16 };

struct hm_eagle3_config {
    char architecture[64];
    struct hm_config layer; // vocab is the target's; head_dim is 0 until the weights say it
    size_t draft_vocab;
    size_t target_hidden;            // width of one tap; 0: not said, so that of the head
    size_t tap[HM_EAGLE3_TAPS_MOST]; // layers of the target whose inputs the head reads, ascending [tap_count]
    size_t tap_count;
    bool fc_norm;              // each tap is normed before fc
    bool norm_before_fc;       // all taps together are
    bool norm_before_residual; // attention adds to the normed feature, not to the feature itself
    bool norm_output;          // a slot hands on its normed output, not the output itself
};

struct hm_eagle3 {
    struct hm_eagle3_config config;
    struct hm_eagle3_info info;
    char *name;
    struct hm_model layer; // one layer; attention_norm is the embedding's. Embedding and head may be the target's
    struct hm_weight *fc;  // [hidden, tap_count * target_hidden]
    struct hm_view hidden_norm, input_norm, fc_norm[HM_EAGLE3_TAPS_MOST];
    struct hm_weight *own_embedding, *own_head; // NULL: the target's
    int32_t *ids;                               // the target's id of each draft id, ascending; NULL: the same
};

// eagle3_config.c: reads config.json for a target of so many layers.
hm_status hm_eagle3_config_read(const char *dir, size_t target_layers, struct hm_eagle3_config *out,
                                struct hm_error *err);

// eagle3_vocabulary.c: the target's id of each draft id, in fresh memory; NULL when they are the same. t2d and d2t may
// be missing when the draft vocabulary is the whole.
hm_status hm_eagle3_vocabulary(const struct hm_checkpoint *checkpoint, size_t draft_vocab, size_t vocab, int32_t **ids,
                               struct hm_error *err);

// The name under which a checkpoint has a tensor: as given, or behind "model."; as given when it has neither.
void hm_eagle3_name(const struct hm_checkpoint *checkpoint, const char *name, char found[HM_TENSOR_NAME_MOST]);

// eagle3_load.c: everything. theta 0: as the configuration says; positions: that the rotation must reach.
hm_status hm_eagle3_open(const char *dir, const struct hm_model *target, struct hm_device *device, double theta,
                         size_t positions, struct hm_eagle3 **out, struct hm_error *err);
void hm_eagle3_close(struct hm_eagle3 *head); // NULL is allowed

#endif
