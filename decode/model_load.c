// Loading the weights of a model: every tensor is found, its shape and type checked against the configuration, and then
// handed to the device. Names are those of the Hugging Face checkpoints; tensors nobody asks for are not looked at.
#include "decode/model_parts.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MOST = 3 };

static void tensor_name(char text[HM_TENSOR_NAME_MOST], const char *prefix, const char *name, const char *kind)
{
    snprintf(text, HM_TENSOR_NAME_MOST, "%s%s.%s", prefix, name, kind);
}

hm_status hm_load_stack(struct hm_loader *l, const char *prefix, const struct hm_part *part, size_t parts, size_t inputs,
                        struct hm_weight **out)
{
    const void *from[PARTS_MOST];
    size_t outputs[PARTS_MOST], total = 0;
    enum hm_dtype dtype = HM_F32;
    for (size_t i = 0; i < parts; i++) {
        char name[HM_TENSOR_NAME_MOST];
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

hm_status hm_load_vector(struct hm_loader *l, const char *prefix, const struct hm_part *part, size_t parts,
                         const char *kind, struct hm_view *out)
{
    *out = (struct hm_view){.buffer = l->model->vectors, .offset = l->used};
    for (size_t i = 0; i < parts; i++) {
        char name[HM_TENSOR_NAME_MOST];
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

static hm_status load_attention(struct hm_loader *l, const char *prefix, size_t inputs, struct hm_layer *layer)
{
    const struct hm_config *c = &l->model->config;
    size_t kv = hm_kv_width(c), query = c->heads * c->head_dim;
    const struct hm_part qkv[] = {{"self_attn.q_proj", query}, {"self_attn.k_proj", kv}, {"self_attn.v_proj", kv}};
    const struct hm_part out = {"self_attn.o_proj", c->hidden}, norm = {"input_layernorm", c->hidden};
    const struct hm_part q_norm = {"self_attn.q_norm", c->head_dim}, k_norm = {"self_attn.k_norm", c->head_dim};
    hm_status rc = hm_load_vector(l, prefix, &norm, 1, "weight", &layer->attention_norm);
    if (!rc) rc = hm_load_stack(l, prefix, qkv, 3, inputs, &layer->qkv);
    if (!rc && c->qkv_bias) rc = hm_load_vector(l, prefix, qkv, 3, "bias", &layer->qkv_bias);
    if (!rc && c->qk_norm) rc = hm_load_vector(l, prefix, &q_norm, 1, "weight", &layer->query_norm);
    if (!rc && c->qk_norm) rc = hm_load_vector(l, prefix, &k_norm, 1, "weight", &layer->key_norm);
    if (!rc) rc = hm_load_stack(l, prefix, &out, 1, query, &layer->out);
    if (!rc && c->out_bias) rc = hm_load_vector(l, prefix, &out, 1, "bias", &layer->out_bias);
    return rc;
}

static hm_status load_mlp(struct hm_loader *l, const char *prefix, struct hm_layer *layer)
{
    const struct hm_config *c = &l->model->config;
    const struct hm_part gate_up[] = {{"mlp.gate_proj", c->intermediate}, {"mlp.up_proj", c->intermediate}};
    const struct hm_part down = {"mlp.down_proj", c->hidden}, norm = {"post_attention_layernorm", c->hidden};
    hm_status rc = hm_load_vector(l, prefix, &norm, 1, "weight", &layer->mlp_norm);
    if (!rc) rc = hm_load_stack(l, prefix, gate_up, 2, c->hidden, &layer->gate_up);
    if (!rc && c->mlp_bias) rc = hm_load_vector(l, prefix, gate_up, 2, "bias", &layer->gate_up_bias);
    if (!rc) rc = hm_load_stack(l, prefix, &down, 1, c->intermediate, &layer->down);
    if (!rc && c->mlp_bias) rc = hm_load_vector(l, prefix, &down, 1, "bias", &layer->down_bias);
    return rc;
}

hm_status hm_load_layer(struct hm_loader *l, const char *prefix, size_t inputs, struct hm_layer *layer)
{
    hm_status rc = load_attention(l, prefix, inputs, layer);
    return rc ? rc : load_mlp(l, prefix, layer);
}

// The table the tokens are looked up in, the last norm, and the head, which may be the table.
static hm_status load_ends(struct hm_loader *l)
{
    struct hm_model *m = l->model;
    const struct hm_config *c = &m->config;
    const struct hm_part table = {"embed_tokens", c->vocab}, norm = {"norm", c->hidden}, head = {"lm_head", c->vocab};
    const struct hm_tensor *tensor;
    hm_status rc = hm_load_stack(l, "model.", &table, 1, c->hidden, &m->embedding);
    if (!rc)
        rc = hm_checkpoint_need(l->checkpoint, "model.embed_tokens.weight", 2, (size_t[]){c->vocab, c->hidden}, &tensor,
                                &m->info.dtype, l->err);
    if (!rc) rc = hm_load_vector(l, "model.", &norm, 1, "weight", &m->final_norm);
    if (rc) return rc;
    if (c->tied) {
        m->head = m->embedding;
        return HM_OK;
    }
    m->info.weight_bytes -= c->vocab * c->hidden * hm_dtype_bytes(m->info.dtype);
    return hm_load_stack(l, "", &head, 1, c->hidden, &m->head);
}

size_t hm_layer_floats(const struct hm_config *c)
{
    return 2 * c->hidden + (c->qk_norm ? 2 * c->head_dim : 0) + (c->qkv_bias ? hm_qkv_width(c) : 0) +
           (c->out_bias ? c->hidden : 0) + (c->mlp_bias ? 2 * c->intermediate + c->hidden : 0);
}

hm_status hm_loader_open(struct hm_loader *l, size_t floats)
{
    struct hm_model *m = l->model;
    l->vectors = hm_calloc(floats, sizeof *l->vectors);
    m->vectors = m->device->ops->alloc(m->device, floats);
    m->layer = hm_calloc(m->config.layers, sizeof *m->layer);
    if (l->vectors && m->vectors && m->layer) return HM_OK;
    return hm_fail(l->err, HM_MEMORY, "out of memory for %zu layers", m->config.layers);
}

void hm_loader_close(struct hm_loader *l, hm_status rc)
{
    struct hm_device *device = l->model->device;
    if (!rc) device->ops->upload(device, hm_whole(l->model->vectors), l->vectors, l->used);
    free(l->vectors);
}

hm_status hm_model_load(struct hm_model *m, const struct hm_checkpoint *checkpoint, struct hm_error *err)
{
    const struct hm_config *c = &m->config;
    struct hm_loader l = {.model = m, .checkpoint = checkpoint, .err = err};
    hm_status rc = hm_loader_open(&l, c->layers * hm_layer_floats(c) + c->hidden);
    if (!rc) rc = load_ends(&l);
    for (size_t i = 0; i < c->layers && !rc; i++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "model.layers.%zu.", i);
        rc = hm_load_layer(&l, prefix, c->hidden, &m->layer[i]);
    }
    hm_loader_close(&l, rc);
    return rc;
}
