// Shared by the tests of loading EAGLE-3 heads: edits of the golden head "plain" and its configuration.
#ifndef HM_TESTS_EAGLE3_SCENE_H
#define HM_TESTS_EAGLE3_SCENE_H

#include "tests/eagle3_support.h"

enum { VOCAB = 48, DRAFT = 20, HIDDEN = 32, LAYERS = 36, TAPS = 3, ROWS_MOST = 16 };

struct key {
    const char *key, *value; // value NULL: not there
};

// config.json of "plain"; edits replace keys or add to them.
static const struct key plain_keys[] = {
    {"architectures", "[\"LlamaForCausalLMEagle3\"]"},
    {"hidden_size", "32"},
    {"intermediate_size", "12"},
    {"num_attention_heads", "2"},
    {"num_key_value_heads", "1"},
    {"num_hidden_layers", "1"},
    {"rms_norm_eps", "1e-6"},
    {"vocab_size", "48"},
    {"draft_vocab_size", "20"},
    {"rope_theta", "10000.0"},
};
enum { KEYS = sizeof plain_keys / sizeof *plain_keys };

static inline void write_config(const struct key *edit, size_t edits)
{
    char text[4096] = "{";
    size_t n = 1;
    for (size_t i = 0; i < KEYS + edits; i++) {
        const struct key *k = i < KEYS ? &plain_keys[i] : &edit[i - KEYS];
        bool replaced = false;
        for (size_t j = 0; j < edits && i < KEYS; j++) replaced = replaced || strcmp(edit[j].key, k->key) == 0;
        if (k->value && !replaced)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s\"%s\":%s", n > 1 ? "," : "", k->key, k->value);
    }
    snprintf(text + n, sizeof text - n, "}");
    write_text("config.json", text);
}

struct scene {
    struct hm_device *device;
    struct hm_model *target;
    struct hm_safetensors *head, *golden;
    float *taps;
    int32_t token[8];
};

static inline void open_scene(struct scene *s)
{
    *s = (struct scene){.device = open_device(1, HM_ISA_BEST)};
    s->head = open_tensors("tests/data/eagle3/plain/model.safetensors");
    s->golden = open_tensors("tests/data/eagle3/plain/golden.safetensors");
    s->target = zero_target(s->device, VOCAB, HIDDEN, LAYERS,
                            hm_safetensors_find(s->golden, "target.embed_tokens")->data, NULL);
    const struct hm_tensor *taps = hm_safetensors_find(s->golden, "taps"),
                           *tokens = hm_safetensors_find(s->golden, "tokens");
    s->taps = malloc(taps->bytes);
    memcpy(s->taps, taps->data, taps->bytes);
    for (size_t i = 0; i < 8; i++) {
        int64_t wide;
        memcpy(&wide, tokens->data + i * sizeof wide, sizeof wide);
        s->token[i] = (int32_t)wide;
    }
}

static inline void close_scene(struct scene *s)
{
    hm_model_close(s->target);
    hm_device_close(s->device);
    hm_safetensors_close(s->head);
    hm_safetensors_close(s->golden);
    free(s->taps);
}

static inline hm_status open_head(const struct scene *s, double theta, struct hm_drafter **drafter,
                                  struct hm_error *err)
{
    struct hm_eagle3_options options = {.rope_theta = theta, .positions = 16, .width = 3, .depth = 2};
    return hm_drafter_open_eagle3(folder, s->target, s->device, &options, drafter, err);
}

#endif
