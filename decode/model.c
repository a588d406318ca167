// Opening and closing models: see model.h.
#include "decode/model_parts.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

char *hm_folder_name(const char *dir)
{
    char *whole = realpath(dir, NULL);
    const char *from = whole ? whole : dir, *slash = strrchr(from, '/');
    char *name = strdup(slash && slash[1] ? slash + 1 : from);
    free(whole);
    return name;
}

static void fill_info(struct hm_model *m)
{
    const struct hm_config *c = &m->config;
    struct hm_model_info *i = &m->info;
    i->name = m->name;
    i->architecture = c->architecture;
    i->vocab = c->vocab;
    i->layers = c->layers;
    i->hidden = c->hidden;
    i->intermediate = c->intermediate;
    i->heads = c->heads;
    i->kv_heads = c->kv_heads;
    i->head_dim = c->head_dim;
    i->max_positions = c->max_positions;
    memcpy(i->eos, c->eos, sizeof i->eos);
    i->eos_count = c->eos_count;
    i->bos = c->bos;
    i->has_generation_defaults = c->has_generation;
    i->generation = c->generation;
}

hm_status hm_model_open(const char *dir, struct hm_device *device, struct hm_model **out, struct hm_error *err)
{
    *out = NULL;
    struct hm_checkpoint *checkpoint = NULL;
    struct hm_model *m = hm_calloc(1, sizeof *m);
    if (!m) return hm_fail(err, HM_MEMORY, "%s: out of memory", dir);
    m->device = device;
    hm_status rc = hm_config_read(dir, &m->config, err);
    if (rc) goto cleanup;
    m->name = hm_folder_name(dir);
    m->frequency = hm_calloc(m->config.head_dim / 2, sizeof *m->frequency);
    if (!m->name || !m->frequency) {
        rc = hm_fail(err, HM_MEMORY, "%s: out of memory", dir);
        goto cleanup;
    }
    hm_rope_frequencies(&m->config.rope, m->config.head_dim, m->frequency);
    m->score_scale = (float)(1 / sqrt((double)m->config.head_dim));
    fill_info(m);
    rc = hm_checkpoint_open(dir, &checkpoint, err);
    if (!rc) rc = hm_model_load(m, checkpoint, err);
    if (!rc) rc = hm_checkpoint_hash(checkpoint, m->info.sha256, err);
cleanup:
    // The device holds its own copy of the weights; the mappings go before anything is computed.
    hm_checkpoint_close(checkpoint);
    if (rc)
        hm_model_close(m);
    else
        *out = m;
    return rc;
}

void hm_model_unload_layers(struct hm_model *m)
{
    struct hm_device *d = m->device;
    for (size_t i = 0; m->layer && i < m->config.layers; i++) {
        struct hm_weight *weights[] = {m->layer[i].qkv, m->layer[i].out, m->layer[i].gate_up, m->layer[i].down};
        for (size_t j = 0; j < sizeof weights / sizeof *weights; j++)
            if (weights[j]) d->ops->unload(d, weights[j]);
    }
    if (m->vectors) d->ops->release(d, m->vectors);
    free(m->layer);
}

void hm_model_close(struct hm_model *m)
{
    if (!m) return;
    struct hm_device *d = m->device;
    hm_model_unload_layers(m);
    if (m->head && m->head != m->embedding) d->ops->unload(d, m->head);
    if (m->embedding) d->ops->unload(d, m->embedding);
    free(m->frequency);
    free(m->name);
    free(m);
}

const struct hm_model_info *hm_model_info(const struct hm_model *m)
{
    return &m->info;
}

struct hm_device *hm_model_device(const struct hm_model *m)
{
    return m->device;
}
