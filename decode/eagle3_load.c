// Loading an EAGLE-3 head: the layouts of EAGLE, SpecForge, AngelSlim, DeepSpec and speculators (docs/models.md). Every
// shape is checked against the configuration and the target before anything is computed.
#include "decode/eagle3.h"

#include "base/file.h"
#include "base/memory.h"
#include "decode/config_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Where the tensors of the one layer are: "midlayer." or "layers.0.", perhaps behind "model.".
static hm_status find_prefix(const struct hm_checkpoint *checkpoint, char prefix[HM_TENSOR_NAME_MOST],
                             struct hm_error *err)
{
    static const char *const names[] = {"midlayer.", "layers.0.", "model.midlayer.", "model.layers.0."};
    char query[HM_TENSOR_NAME_MOST + 32];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(prefix, HM_TENSOR_NAME_MOST, "%s", names[i]);
        snprintf(query, sizeof query, "%sself_attn.q_proj.weight", prefix);
        if (hm_checkpoint_find(checkpoint, query, NULL)) return HM_OK;
    }
    return hm_fail(err, HM_SHAPE,
                   "%s: expected an EAGLE-3 head with a tensor \"midlayer.self_attn.q_proj.weight\" or "
                   "\"layers.0.self_attn.q_proj.weight\", found neither",
                   hm_safetensors_path(hm_checkpoint_file(checkpoint, 0)));
}

// ---- guards

// Earlier heads have one feature, a bias with it, and no norm of their own for it.
static hm_status refuse_earlier(const struct hm_checkpoint *checkpoint, const char *prefix, struct hm_error *err)
{
    char norm[HM_TENSOR_NAME_MOST + 32];
    snprintf(norm, sizeof norm, "%shidden_norm.weight", prefix);
    const char *path = hm_safetensors_path(hm_checkpoint_file(checkpoint, 0));
    if (hm_checkpoint_find(checkpoint, norm, NULL) && !hm_checkpoint_find(checkpoint, "fc.bias", NULL)) return HM_OK;
    return hm_fail(
        err, HM_UNSUPPORTED,
        "%s: tensor \"%s\": expected an EAGLE-3 head, found an EAGLE-1 or EAGLE-2 head, which is not supported", path,
        hm_checkpoint_find(checkpoint, "fc.bias", NULL) ? "fc.bias" : norm);
}

// head_dim is what the rows of the queries say: configurations have been wrong about it.
static hm_status derive_head_dim(const struct hm_checkpoint *checkpoint, const char *prefix, struct hm_eagle3_config *c,
                                 struct hm_error *err)
{
    char name[HM_TENSOR_NAME_MOST + 32], found[HM_TENSOR_SHAPE_TEXT];
    const char *path;
    size_t heads = c->layer.heads;
    snprintf(name, sizeof name, "%sself_attn.q_proj.weight", prefix);
    const struct hm_tensor *t = hm_checkpoint_find(checkpoint, name, &path);
    hm_shape_text(t->rank, t->shape, found);
    size_t dim = t->rank == 2 ? t->shape[0] / heads : 0;
    if (t->rank != 2 || dim * heads != t->shape[0] || dim < 2 || dim > HM_HEAD_DIM_MOST || dim % 2 != 0)
        return hm_fail(err, HM_SHAPE,
                       "%s: tensor \"%s\": expected [%zu * n, %zu] for %zu heads, n even and at most %d, found %s",
                       path, name, heads, 2 * c->layer.hidden, heads, HM_HEAD_DIM_MOST, found);
    if (t->shape[1] != 2 * c->layer.hidden)
        return hm_fail(err, HM_SHAPE,
                       "%s: tensor \"%s\": expected [%zu, %zu], embedding and feature side by side, found %s", path,
                       name, t->shape[0], 2 * c->layer.hidden, found);
    c->layer.head_dim = dim;
    snprintf(name, sizeof name, "%sself_attn.q_proj.bias", prefix);
    if (hm_checkpoint_find(checkpoint, name, &path))
        return hm_fail(err, HM_UNSUPPORTED, "%s: tensor \"%s\": expected none, found one", path, name);
    // Queries and keys are normed where the weights are there for it.
    snprintf(name, sizeof name, "%sself_attn.q_norm.weight", prefix);
    c->layer.qk_norm = hm_checkpoint_find(checkpoint, name, NULL) != NULL;
    snprintf(name, sizeof name, "%sself_attn.k_norm.weight", prefix);
    c->layer.qk_norm = c->layer.qk_norm || hm_checkpoint_find(checkpoint, name, NULL) != NULL;
    return HM_OK;
}

static hm_status check_fc(const struct hm_checkpoint *checkpoint, const struct hm_eagle3_config *c,
                          struct hm_error *err)
{
    char name[HM_TENSOR_NAME_MOST], found[HM_TENSOR_SHAPE_TEXT];
    const char *path;
    hm_eagle3_name(checkpoint, "fc.weight", name);
    const struct hm_tensor *t = hm_checkpoint_find(checkpoint, name, &path);
    if (t) hm_shape_text(t->rank, t->shape, found);
    size_t inputs = c->tap_count * c->target_hidden;
    if (t && t->rank == 2 && t->shape[0] == c->layer.hidden && t->shape[1] == inputs) return HM_OK;
    return hm_fail(err, HM_SHAPE, "%s: tensor \"%s\": expected [%zu, %zu] for %zu taps of width %zu, found %s", path,
                   name, c->layer.hidden, inputs, c->tap_count, c->target_hidden, t ? found : "nothing");
}

static hm_status check_target(const char *dir, struct hm_eagle3_config *c, const struct hm_model *target,
                              struct hm_error *err)
{
    const struct hm_config *t = &target->config;
    if (c->layer.vocab != t->vocab)
        return hm_fail(err, HM_SHAPE, "%s/config.json: key \"vocab_size\": expected %zu, the target's, found %zu", dir,
                       t->vocab, c->layer.vocab);
    const char *key = c->target_hidden ? "target_hidden_size" : "hidden_size";
    if (!c->target_hidden) c->target_hidden = c->layer.hidden;
    if (c->target_hidden != t->hidden)
        return hm_fail(err, HM_SHAPE,
                       "%s/config.json: key \"%s\": expected %zu, the hidden size of the target, found %zu", dir, key,
                       t->hidden, c->target_hidden);
    return HM_OK;
}

static hm_status refuse_pickles(const char *dir, struct hm_error *err)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"};
    bool there[3];
    for (size_t i = 0; i < 3; i++) {
        char *path = hm_path_join(dir, names[i]);
        if (!path) return hm_fail(err, HM_MEMORY, "%s: out of memory", dir);
        there[i] = access(path, F_OK) == 0;
        free(path);
    }
    if (there[0] || there[1] || !there[2]) return HM_OK;
    return hm_fail(
        err, HM_UNSUPPORTED,
        "%s: expected model.safetensors, found pytorch_model.bin, which runs code when it is read; convert it once: "
        "python3 -c \"import torch, safetensors.torch as s; w = torch.load('pytorch_model.bin', map_location='cpu', "
        "weights_only=True); s.save_file({k: v.contiguous() for k, v in w.items()}, 'model.safetensors')\"",
        dir);
}

// ---- weights

static hm_status load_norms(struct hm_loader *l, struct hm_eagle3 *h, const char *prefix)
{
    const struct hm_eagle3_config *c = &h->config;
    const struct hm_part hidden = {"hidden_norm", c->layer.hidden};
    char name[HM_TENSOR_NAME_MOST];
    hm_status rc = hm_load_vector(l, prefix, &hidden, 1, "weight", &h->hidden_norm);
    hm_eagle3_name(l->checkpoint, "norm.weight", name);
    const char *root = strncmp(name, "model.", 6) == 0 ? "model." : "";
    const struct hm_part last = {"norm", c->layer.hidden};
    if (!rc) rc = hm_load_vector(l, root, &last, 1, "weight", &h->layer.final_norm);
    hm_eagle3_name(l->checkpoint, c->fc_norm ? "fc_norm.0.weight" : "input_norm.weight", name);
    root = strncmp(name, "model.", 6) == 0 ? "model." : "";
    for (size_t i = 0; c->fc_norm && i < c->tap_count && !rc; i++) {
        char one[32];
        snprintf(one, sizeof one, "fc_norm.%zu", i);
        rc = hm_load_vector(l, root, &(struct hm_part){one, c->target_hidden}, 1, "weight", &h->fc_norm[i]);
    }
    const struct hm_part input = {"input_norm", c->tap_count * c->target_hidden};
    if (!rc && c->norm_before_fc) rc = hm_load_vector(l, root, &input, 1, "weight", &h->input_norm);
    return rc;
}

// A matrix by its own name or behind "model.".
static hm_status load_matrix(struct hm_loader *l, const char *name, size_t outputs, size_t inputs,
                             struct hm_weight **out)
{
    char whole[HM_TENSOR_NAME_MOST + 8], found[HM_TENSOR_NAME_MOST];
    snprintf(whole, sizeof whole, "%s.weight", name);
    hm_eagle3_name(l->checkpoint, whole, found);
    const struct hm_part part = {name, outputs};
    return hm_load_stack(l, strcmp(whole, found) == 0 ? "" : "model.", &part, 1, inputs, out);
}

static bool has(const struct hm_checkpoint *checkpoint, const char *name)
{
    char found[HM_TENSOR_NAME_MOST];
    hm_eagle3_name(checkpoint, name, found);
    return hm_checkpoint_find(checkpoint, found, NULL) != NULL;
}

// The file's own table and head where it has them, whatever it says of ties; else the target's.
static hm_status load_ends(struct hm_loader *l, struct hm_eagle3 *h, const struct hm_model *target)
{
    const struct hm_eagle3_config *c = &h->config;
    struct hm_model *m = &h->layer;
    bool same_width = c->layer.hidden == target->config.hidden;
    hm_status rc = HM_OK;
    size_t before = m->info.weight_bytes;
    if (has(l->checkpoint, "embed_tokens.weight") || !same_width)
        rc = load_matrix(l, "embed_tokens", c->layer.vocab, c->layer.hidden, &h->own_embedding);
    m->info.weight_bytes = before; // rows are looked up, the table is not read
    m->embedding = h->own_embedding ? h->own_embedding : target->embedding;
    if (rc) return rc;
    if (has(l->checkpoint, "lm_head.weight") || !same_width || c->draft_vocab != c->layer.vocab)
        rc = load_matrix(l, "lm_head", c->draft_vocab, c->layer.hidden, &h->own_head);
    else
        m->info.weight_bytes += c->draft_vocab * c->layer.hidden * hm_dtype_bytes(target->info.dtype);
    m->head = h->own_head ? h->own_head : target->head;
    return rc;
}

static hm_status load_weights(struct hm_eagle3 *h, const struct hm_checkpoint *checkpoint, const char *prefix,
                              const struct hm_model *target, struct hm_error *err)
{
    const struct hm_eagle3_config *c = &h->config;
    size_t wide = c->tap_count * c->target_hidden, hidden = c->layer.hidden;
    struct hm_loader l = {.model = &h->layer, .checkpoint = checkpoint, .err = err};
    hm_status rc = hm_loader_open(&l, hm_layer_floats(&c->layer) + 2 * hidden + 2 * wide);
    if (!rc) rc = load_norms(&l, h, prefix);
    if (!rc) rc = load_matrix(&l, "fc", hidden, wide, &h->fc);
    if (!rc) rc = hm_load_layer(&l, prefix, 2 * hidden, &h->layer.layer[0]);
    if (!rc) rc = load_ends(&l, h, target);
    hm_loader_close(&l, rc);
    return rc;
}

// ---- opening

// The layer as a model of its own, with the rotation that the options ask for.
static hm_status prepare_layer(struct hm_eagle3 *h, double theta, size_t positions, struct hm_error *err)
{
    struct hm_model *m = &h->layer;
    if (theta != 0 && !(theta >= 1 && theta <= 1e15))
        return hm_fail(err, HM_RANGE, "rotation of an EAGLE-3 head: expected a base from 1 to 1e15, found %.17g",
                       theta);
    if (positions > HM_POSITIONS_MOST)
        return hm_fail(err, HM_RANGE, "EAGLE-3 head: expected at most %d positions, found %zu", HM_POSITIONS_MOST,
                       positions);
    if (theta != 0) h->config.layer.rope.theta = theta;
    h->config.layer.max_positions = positions; // of the run, whatever the configuration was written for
    m->config = h->config.layer;
    m->frequency = hm_calloc(m->config.head_dim / 2, sizeof *m->frequency);
    if (!m->frequency) return hm_fail(err, HM_MEMORY, "out of memory for a rotation");
    hm_rope_frequencies(&m->config.rope, m->config.head_dim, m->frequency);
    m->score_scale = (float)(1 / sqrt((double)m->config.head_dim));
    return HM_OK;
}

static void fill_info(struct hm_eagle3 *h)
{
    h->info.name = h->name;
    h->info.architecture = h->config.architecture;
    h->info.draft_vocab = h->config.draft_vocab;
    h->info.hidden = h->config.layer.hidden;
    h->info.taps = h->config.tap_count;
    h->info.weight_bytes = h->layer.info.weight_bytes;
    h->info.rope_theta = h->config.layer.rope.theta;
}

hm_status hm_eagle3_open(const char *dir, const struct hm_model *target, struct hm_device *device, double theta,
                         size_t positions, struct hm_eagle3 **out, struct hm_error *err)
{
    *out = NULL;
    char prefix[HM_TENSOR_NAME_MOST];
    struct hm_checkpoint *checkpoint = NULL;
    struct hm_eagle3 *h = hm_calloc(1, sizeof *h);
    if (!h) return hm_fail(err, HM_MEMORY, "%s: out of memory", dir);
    h->layer.device = device;
    h->name = hm_folder_name(dir);
    hm_status rc = h->name ? HM_OK : hm_fail(err, HM_MEMORY, "%s: out of memory", dir);
    if (!rc) rc = hm_eagle3_config_read(dir, target->config.layers, &h->config, err);
    if (!rc) rc = refuse_pickles(dir, err);
    if (!rc) rc = hm_checkpoint_open(dir, &checkpoint, err);
    if (!rc) rc = find_prefix(checkpoint, prefix, err);
    if (!rc) rc = refuse_earlier(checkpoint, prefix, err);
    if (!rc) rc = check_target(dir, &h->config, target, err);
    if (!rc) rc = derive_head_dim(checkpoint, prefix, &h->config, err);
    if (!rc) rc = check_fc(checkpoint, &h->config, err);
    if (!rc) rc = prepare_layer(h, theta, positions, err);
    if (!rc) rc = hm_eagle3_vocabulary(checkpoint, h->config.draft_vocab, h->config.layer.vocab, &h->ids, err);
    if (!rc) rc = load_weights(h, checkpoint, prefix, target, err);
    if (!rc) rc = hm_checkpoint_hash(checkpoint, h->info.sha256, err);
    hm_checkpoint_close(checkpoint);
    if (!rc) fill_info(h);
    if (rc)
        hm_eagle3_close(h);
    else
        *out = h;
    return rc;
}

void hm_eagle3_close(struct hm_eagle3 *h)
{
    if (!h) return;
    struct hm_device *d = h->layer.device;
    struct hm_weight *weights[] = {h->fc, h->own_embedding, h->own_head};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (weights[i]) d->ops->unload(d, weights[i]);
    hm_model_unload_layers(&h->layer);
    free(h->layer.frequency);
    free(h->ids);
    free(h->name);
    free(h);
}
