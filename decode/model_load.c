// Loading the weights of a model: every tensor is found, its shape and type checked against the configuration, and then
// handed to the device. Names are those of the Hugging Face checkpoints; tensors nobody asks for are not looked at.
#include "decode/model_parts.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 128, PARTS_MOST = 3 };

struct loader {
    struct hm_model *model;
    const struct hm_checkpoint *checkpoint;
    float *vectors; // host copy of model->vectors
    size_t used, capacity;
    struct hm_error *err;
};

// One matrix of a stack, e.g. {"self_attn.q_proj", outputs}.
struct part {
    const char *name;
    size_t outputs;
};

static void tensor_name(char text[NAME_MOST], const char *prefix, const char *name, const char *kind)
{
    snprintf(text, NAME_MOST, "%s%s.%s", prefix, name, kind);
}

// Loads a matrix, or several with the same inputs as one: their outputs follow each other.
static hm_status load_stack(struct loader *l, const char *prefix, const struct part *part, size_t parts, size_t inputs,
                            struct hm_weight **out)
{
    const void *from[PARTS_MOST];
    size_t outputs[PARTS_MOST], total = 0;
    enum hm_dtype dtype = HM_F32;
    for (size_t i = 0; i < parts; i++) {
        char name[NAME_MOST];
        const struct hm_tensor *tensor;
        enum hm_dtype own;
        tensor_name(name, prefix, part[i].name, "weight");
        hm_status rc =
            hm_checkpoint_need(l->checkpoint, name, 2, (size_t[]){part[i].outputs, inputs}, &tensor, &own, l->err);
        if (rc) return rc;
        if (i > 0 && own != dtype) {
            const char *path = "";
            hm_checkpoint_find(l->checkpoint, name, &path);
            return hm_fail(l->err, HM_UNSUPPORTED, "%s: tensor \"%s\": expected type %s like %s, found %s", path, name,
                           hm_dtype_name(dtype), part[0].name, hm_dtype_name(own));
        }
        dtype = own;
        from[i] = tensor->data;
        outputs[i] = part[i].outputs;
        total += part[i].outputs;
    }
    struct hm_device *device = l->model->device;
    *out = device->ops->load_parts(device, from, outputs, parts, dtype, inputs);
    if (!*out)
        return hm_fail(l->err, HM_MEMORY, "%s%s: out of memory for [%zu, %zu] %s", prefix, part[0].name, total, inputs,
                       hm_dtype_name(dtype));
    l->model->info.weight_bytes += total * inputs * hm_dtype_bytes(dtype);
    return HM_OK;
}

// Appends a vector, or several one after the other, to the vectors of the model.
static hm_status load_vector(struct loader *l, const char *prefix, const struct part *part, size_t parts,
                             const char *kind, struct hm_view *out)
{
    *out = (struct hm_view){.buffer = l->model->vectors, .offset = l->used};
    for (size_t i = 0; i < parts; i++) {
        char name[NAME_MOST];
        const struct hm_tensor *tensor;
        enum hm_dtype dtype;
        tensor_name(name, prefix, part[i].name, kind);
        hm_status rc = hm_checkpoint_need(l->checkpoint, name, 1, &part[i].outputs, &tensor, &dtype, l->err);
        if (rc) return rc;
        hm_widen_values(tensor->data, dtype, l->vectors + l->used, part[i].outputs);
        l->used += part[i].outputs;
    }
    return HM_OK;
}

static hm_status load_attention(struct loader *l, const char *prefix, struct hm_layer *layer)
{
    const struct hm_config *c = &l->model->config;
    size_t kv = hm_kv_width(c), query = c->heads * c->head_dim;
    const struct part qkv[] = {{"self_attn.q_proj", query}, {"self_attn.k_proj", kv}, {"self_attn.v_proj", kv}};
    const struct part out = {"self_attn.o_proj", c->hidden}, norm = {"input_layernorm", c->hidden};
    const struct part q_norm = {"self_attn.q_norm", c->head_dim}, k_norm = {"self_attn.k_norm", c->head_dim};
    hm_status rc = load_vector(l, prefix, &norm, 1, "weight", &layer->attention_norm);
    if (!rc) rc = load_stack(l, prefix, qkv, 3, c->hidden, &layer->qkv);
    if (!rc && c->qkv_bias) rc = load_vector(l, prefix, qkv, 3, "bias", &layer->qkv_bias);
    if (!rc && c->qk_norm) rc = load_vector(l, prefix, &q_norm, 1, "weight", &layer->query_norm);
    if (!rc && c->qk_norm) rc = load_vector(l, prefix, &k_norm, 1, "weight", &layer->key_norm);
    if (!rc) rc = load_stack(l, prefix, &out, 1, query, &layer->out);
    if (!rc && c->out_bias) rc = load_vector(l, prefix, &out, 1, "bias", &layer->out_bias);
    return rc;
}

static hm_status load_mlp(struct loader *l, const char *prefix, struct hm_layer *layer)
{
    const struct hm_config *c = &l->model->config;
    const struct part gate_up[] = {{"mlp.gate_proj", c->intermediate}, {"mlp.up_proj", c->intermediate}};
    const struct part down = {"mlp.down_proj", c->hidden}, norm = {"post_attention_layernorm", c->hidden};
    hm_status rc = load_vector(l, prefix, &norm, 1, "weight", &layer->mlp_norm);
    if (!rc) rc = load_stack(l, prefix, gate_up, 2, c->hidden, &layer->gate_up);
    if (!rc && c->mlp_bias) rc = load_vector(l, prefix, gate_up, 2, "bias", &layer->gate_up_bias);
    if (!rc) rc = load_stack(l, prefix, &down, 1, c->intermediate, &layer->down);
    if (!rc && c->mlp_bias) rc = load_vector(l, prefix, &down, 1, "bias", &layer->down_bias);
    return rc;
}

// The table the tokens are looked up in, the last norm, and the head, which may be the table.
static hm_status load_ends(struct loader *l)
{
    struct hm_model *m = l->model;
    const struct hm_config *c = &m->config;
    const struct part table = {"embed_tokens", c->vocab}, norm = {"norm", c->hidden}, head = {"lm_head", c->vocab};
    const struct hm_tensor *tensor;
    hm_status rc = load_stack(l, "model.", &table, 1, c->hidden, &m->embedding);
    if (!rc)
        rc = hm_checkpoint_need(l->checkpoint, "model.embed_tokens.weight", 2, (size_t[]){c->vocab, c->hidden}, &tensor,
                                &m->info.dtype, l->err);
    if (!rc) rc = load_vector(l, "model.", &norm, 1, "weight", &m->final_norm);
    if (rc) return rc;
    if (c->tied) {
        m->head = m->embedding;
        return HM_OK;
    }
    m->info.weight_bytes -= c->vocab * c->hidden * hm_dtype_bytes(m->info.dtype);
    return load_stack(l, "", &head, 1, c->hidden, &m->head);
}

// Floats in all norms and biases together.
static size_t vector_floats(const struct hm_config *c)
{
    size_t layer = 2 * c->hidden + (c->qk_norm ? 2 * c->head_dim : 0) + (c->qkv_bias ? hm_qkv_width(c) : 0) +
                   (c->out_bias ? c->hidden : 0) + (c->mlp_bias ? 2 * c->intermediate + c->hidden : 0);
    return c->layers * layer + c->hidden;
}

hm_status hm_model_load(struct hm_model *m, const struct hm_checkpoint *checkpoint, struct hm_error *err)
{
    const struct hm_config *c = &m->config;
    struct hm_device *device = m->device;
    struct loader l = {.model = m, .checkpoint = checkpoint, .capacity = vector_floats(c), .err = err};
    l.vectors = hm_calloc(l.capacity, sizeof *l.vectors);
    m->vectors = device->ops->alloc(device, l.capacity);
    m->layer = hm_calloc(c->layers, sizeof *m->layer);
    hm_status rc = HM_OK;
    if (!l.vectors || !m->vectors || !m->layer) rc = hm_fail(err, HM_MEMORY, "out of memory for %zu layers", c->layers);
    if (!rc) rc = load_ends(&l);
    for (size_t i = 0; i < c->layers && !rc; i++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "model.layers.%zu.", i);
        rc = load_attention(&l, prefix, &m->layer[i]);
        if (!rc) rc = load_mlp(&l, prefix, &m->layer[i]);
    }
    if (!rc) device->ops->upload(device, (struct hm_view){.buffer = m->vectors}, l.vectors, l.used);
    free(l.vectors);
    return rc;
}
