// The insides of a model and of a cache, shared by the files that load and run them; not for others.
#ifndef HM_DECODE_MODEL_PARTS_H
#define HM_DECODE_MODEL_PARTS_H

#include "decode/checkpoint.h"
#include "decode/config.h"
#include "decode/model.h"
#include "decode/model_rope.h"

// Rows computed together. Longer passes are cut; bits do not depend on where.
enum { HM_CHUNK_ROWS = HM_PREFILL_ROWS };

// One layer. Views point into hm_model.vectors; a NULL buffer means the architecture has no such vector.
struct hm_layer {
    struct hm_weight *qkv;                   // [(heads + 2 kv_heads) * head_dim, hidden]: queries, keys, values
    struct hm_weight *out;                   // [hidden, heads * head_dim]
    struct hm_weight *gate_up;               // [2 * intermediate, hidden]
    struct hm_weight *down;                  // [hidden, intermediate]
    struct hm_view attention_norm, mlp_norm; // [hidden]
    struct hm_view query_norm, key_norm;     // [head_dim]
    struct hm_view qkv_bias, out_bias;       // [rows of qkv], [hidden]
    struct hm_view gate_up_bias, down_bias;  // [2 * intermediate], [hidden]
};

struct hm_model {
    struct hm_device *device;
    struct hm_config config;
    struct hm_model_info info;
    char *name;
    struct hm_layer *layer;      // [config.layers]
    struct hm_weight *embedding; // [vocab, hidden]
    struct hm_weight *head;      // [vocab, hidden]; the embedding itself when tied
    struct hm_view final_norm;   // [hidden]
    struct hm_buffer *vectors;   // all norms and biases, float32
    double *frequency;           // [head_dim / 2] of the rotary embedding
    float score_scale;           // 1 / sqrt(head_dim), rounded once
};

// Where a scratch row hangs: its depth below the committed tokens (0 = follows the last one) and whether it and all its
// ancestors lie in the slots of their own positions, as in a causal chunk.
struct hm_scratch_row {
    int32_t parent;
    uint32_t depth;
    bool straight;
};

struct hm_cache {
    struct hm_model *model;
    size_t positions, length, scratch;
    struct hm_buffer *keys, *values; // [layers][positions][kv_heads * head_dim]
    struct hm_scratch_row *row;      // [scratch]
    size_t row_capacity;
    struct hm_rope rope; // tables for the positions used so far, doubled as needed
    float *rope_tables;

    // Of one chunk, on the device: residual stream, normed rows, projections, attention output, MLP.
    struct hm_buffer *stream, *normed, *qkv, *mixed, *gate_up, *active, *logits;
    // Of one chunk, on the host.
    uint32_t *tail; // ancestors' slots of all rows
    size_t tail_capacity;
};

// What one chunk of a pass is made of, in host memory.
struct hm_chunk {
    size_t first, rows; // rows of the pass
    uint32_t position[HM_CHUNK_ROWS], slot[HM_CHUNK_ROWS];
    struct hm_visible visible[HM_CHUNK_ROWS];
};

static inline struct hm_view hm_whole(struct hm_buffer *buffer)
{
    return (struct hm_view){.buffer = buffer};
}

static inline size_t hm_qkv_width(const struct hm_config *c)
{
    return (c->heads + 2 * c->kv_heads) * c->head_dim;
}

static inline size_t hm_kv_width(const struct hm_config *c)
{
    return c->kv_heads * c->head_dim;
}

// model_load.c: checks every tensor and loads it; on failure what was loaded is left for hm_model_close.
hm_status hm_model_load(struct hm_model *model, const struct hm_checkpoint *checkpoint, struct hm_error *err);

// Its parts, for whatever else has a layer like these (eagle3_load.c).
enum { HM_TENSOR_NAME_MOST = 128 };
struct hm_loader {
    struct hm_model *model; // device and config are given; weights and vectors are put here
    const struct hm_checkpoint *checkpoint;
    float *vectors; // host copy of model->vectors
    size_t used;    // floats of it
    struct hm_error *err;
};
// One matrix or vector of a stack, e.g. {"self_attn.q_proj", outputs}.
struct hm_part {
    const char *name;
    size_t outputs;
};
hm_status hm_loader_open(struct hm_loader *loader, size_t floats); // room for vectors and config.layers layers
void hm_loader_close(struct hm_loader *loader, hm_status rc);      // uploads the vectors unless rc says that loading failed
size_t hm_layer_floats(const struct hm_config *config);            // in the vectors of one layer
// Loads a matrix, or several with the same inputs as one: their outputs follow each other.
hm_status hm_load_stack(struct hm_loader *loader, const char *prefix, const struct hm_part *part, size_t parts, size_t inputs,
                        struct hm_weight **out);
// Appends a vector, or several one after the other, to the vectors of the model. kind: "weight", "bias".
hm_status hm_load_vector(struct hm_loader *loader, const char *prefix, const struct hm_part *part, size_t parts,
                         const char *kind, struct hm_view *out);
// One layer; inputs: of queries, keys and values.
hm_status hm_load_layer(struct hm_loader *loader, const char *prefix, size_t inputs, struct hm_layer *layer);

// model.c: the last component of a path, "." and trailing slashes aside, in fresh memory; NULL: none left. And what
// hm_model_close does to the layers.
char *hm_folder_name(const char *dir);
void hm_model_unload_layers(struct hm_model *model);

// model_layer.c.
// Checks the rows of a pass, writes them behind the scratch rows (not yet counted) and rotates for their positions.
hm_status hm_cache_place(struct hm_cache *cache, const struct hm_pass *pass, struct hm_error *err);
// Fills in slots, positions and what each row of the chunk (its first and rows are given) sees.
hm_status hm_cache_see(struct hm_cache *cache, struct hm_chunk *chunk, struct hm_error *err);
// cache->stream += attention of layer i over its input, [rows][inputs of qkv], whose keys and values enter the cache.
void hm_layer_attend(struct hm_cache *cache, const struct hm_chunk *chunk, size_t i, struct hm_view input);
// cache->stream += MLP of layer i over the normed stream.
void hm_layer_mlp(struct hm_cache *cache, size_t rows, size_t i);

// cache.c: makes the rotary tables cover `positions` positions. HM_MEMORY.
hm_status hm_cache_rotate_to(struct hm_cache *cache, size_t positions, struct hm_error *err);

#endif
