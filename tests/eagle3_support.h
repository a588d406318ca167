// Shared by the tests of EAGLE-3 heads: safetensors files written from edited copies of others, targets of zeros around
// a given embedding table, and drafting from given features.
#ifndef HM_TESTS_EAGLE3_SUPPORT_H
#define HM_TESTS_EAGLE3_SUPPORT_H

#include "tests/model_support.h"

#include "tests/checkpoint_support.h"

#include "decode/drafter.h"
#include "decode/safetensors.h"

enum { TENSORS_MOST = 400 };

// A file about to be written. Data is borrowed unless NULL, which stands for zeros.
struct tensor_list {
    struct {
        char name[96];
        const char *type;
        size_t rank, shape[2], bytes;
        const void *data;
    } at[TENSORS_MOST];
    size_t count;
};

static inline size_t type_bytes(const char *type)
{
    if (strcmp(type, "I64") == 0) return 8;
    if (strcmp(type, "F32") == 0 || strcmp(type, "I32") == 0) return 4;
    return strcmp(type, "BOOL") == 0 ? 1 : 2;
}

static inline void add_tensor(struct tensor_list *list, const char *name, const char *type, size_t rows, size_t columns,
                              const void *data)
{
    assert_true(list->count < TENSORS_MOST);
    size_t i = list->count++;
    snprintf(list->at[i].name, sizeof list->at[i].name, "%s", name);
    list->at[i].type = type;
    list->at[i].rank = columns ? 2 : 1;
    list->at[i].shape[0] = rows;
    list->at[i].shape[1] = columns;
    list->at[i].bytes = rows * (columns ? columns : 1) * type_bytes(type);
    list->at[i].data = data;
}

static inline size_t index_of(const struct tensor_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i].name, name) == 0) return i;
    fail_msg("no tensor %s", name);
    return 0;
}

static inline void drop_tensor(struct tensor_list *list, const char *name)
{
    size_t i = index_of(list, name);
    list->at[i] = list->at[--list->count];
}

static inline void add_all(struct tensor_list *list, const struct hm_safetensors *file)
{
    for (size_t i = 0; i < hm_safetensors_count(file); i++) {
        const struct hm_tensor *t = hm_safetensors_at(file, i);
        add_tensor(list, t->name, t->type, t->shape[0], t->rank == 2 ? t->shape[1] : 0, t->data);
    }
}

static inline void write_list(const char *path, const struct tensor_list *list)
{
    static char header[64 * 1024];
    size_t n = 1, offset = 0;
    header[0] = '{';
    for (size_t i = 0; i < list->count; i++) {
        char shape[48];
        if (list->at[i].rank == 2)
            snprintf(shape, sizeof shape, "%zu,%zu", list->at[i].shape[0], list->at[i].shape[1]);
        else
            snprintf(shape, sizeof shape, "%zu", list->at[i].shape[0]);
        n += (size_t)snprintf(header + n, sizeof header - n,
                              "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", i ? "," : "",
                              list->at[i].name, list->at[i].type, shape, offset, offset + list->at[i].bytes);
        offset += list->at[i].bytes;
    }
    header[n++] = '}';
    uint64_t length = n;
    (void)unlink(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(&length, sizeof length, 1, f);
    fwrite(header, 1, n, f);
    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i].data)
            fwrite(list->at[i].data, 1, list->at[i].bytes, f);
        else
            for (size_t b = 0; b < list->at[i].bytes; b++) fputc(0, f);
    }
    assert_int_equal(fclose(f), 0);
}

static inline struct hm_safetensors *open_tensors(const char *path)
{
    struct hm_error err = {0};
    struct hm_safetensors *file = NULL;
    expect_ok(hm_safetensors_open(path, &file, &err), &err);
    return file;
}

// A Llama of zeros but for its table (and head, NULL: tied), through the test's folder, which is left empty. Tables are
// BF16.
static inline struct hm_model *zero_target(struct hm_device *device, size_t vocab, size_t hidden, size_t layers,
                                           const void *embedding, const void *head)
{
    enum { HEADS = 2, DIM = 4, INNER = 4 };
    struct hm_error err = {0};
    struct hm_model *model = NULL;
    static struct tensor_list list;
    char config[600], name[96];
    list.count = 0;
    snprintf(
        config, sizeof config,
        "{\"architectures\":[\"LlamaForCausalLM\"],\"vocab_size\":%zu,\"hidden_size\":%zu,\"intermediate_size\":%d,"
        "\"num_hidden_layers\":%zu,\"num_attention_heads\":%d,\"head_dim\":%d,\"tie_word_embeddings\":%s}",
        vocab, hidden, INNER, layers, HEADS, DIM, head ? "false" : "true");
    add_tensor(&list, "model.embed_tokens.weight", "BF16", vocab, hidden, embedding);
    add_tensor(&list, "model.norm.weight", "BF16", hidden, 0, NULL);
    if (head) add_tensor(&list, "lm_head.weight", "BF16", vocab, hidden, head);
    const struct {
        const char *name;
        size_t rows, columns;
    } parts[] = {{"input_layernorm", hidden, 0},
                 {"post_attention_layernorm", hidden, 0},
                 {"self_attn.q_proj", HEADS * DIM, hidden},
                 {"self_attn.k_proj", HEADS * DIM, hidden},
                 {"self_attn.v_proj", HEADS * DIM, hidden},
                 {"self_attn.o_proj", hidden, HEADS * DIM},
                 {"mlp.gate_proj", INNER, hidden},
                 {"mlp.up_proj", INNER, hidden},
                 {"mlp.down_proj", hidden, INNER}};
    for (size_t i = 0; i < layers; i++)
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++) {
            snprintf(name, sizeof name, "model.layers.%zu.%s.weight", i, parts[j].name);
            add_tensor(&list, name, "BF16", parts[j].rows, parts[j].columns, NULL);
        }
    write_text("config.json", config);
    write_list(in_folder("model.safetensors"), &list);
    expect_ok(hm_model_open(folder, device, &model, &err), &err);
    empty_folder();
    return model;
}

// Pools of the drafter's rows. The drafter outlives the pool.
static inline void open_pool(struct hm_pool *pool, const struct hm_drafter *drafter, size_t width)
{
    struct hm_error err = {0};
    struct hm_pool_options options = {.width = width,
                                      .vocab = drafter->vocab,
                                      .usable = drafter->usable,
                                      .ids = drafter->ids,
                                      .proposal = HM_PROPOSAL_TOPK};
    expect_ok(hm_pool_init(pool, &options, &err), &err);
}

// Lets the drafter see rows first .. first + count - 1 of taps, through a buffer in which they lie scrambled.
static inline void show_taps(struct hm_drafter *drafter, struct hm_device *device, const float *taps, size_t width,
                             size_t first, size_t count, uint64_t *seed)
{
    struct hm_error err = {0};
    struct hm_buffer *buffer = device->ops->alloc(device, count * width + 1);
    uint32_t *row = malloc((count + 1) * sizeof *row);
    for (size_t j = 0; j < count; j++) {
        size_t other = draw(seed, (uint32_t)j + 1);
        row[j] = row[other];
        row[other] = (uint32_t)j; // an inside-out shuffle: row[] is a permutation of 0 .. j
    }
    for (size_t j = 0; j < count; j++)
        device->ops->upload(device, (struct hm_view){buffer, row[j] * width + 1}, taps + (first + j) * width, width);
    expect_ok(drafter->ops->observe(drafter, (struct hm_view){buffer, 1}, row, count, &err), &err);
    device->ops->release(device, buffer);
    free(row);
}

// The candidate reached from the root by these tokens, or -1.
static inline int32_t find_path(const struct hm_pool *pool, const int32_t *token, size_t n)
{
    int32_t at = -1;
    for (size_t i = 0; i < n; i++) {
        int32_t next = -1;
        for (size_t j = 0; j < pool->count && next < 0; j++)
            if (pool->candidate[j].parent == at && pool->candidate[j].token == token[i]) next = (int32_t)j;
        if (next < 0) return -1;
        at = next;
    }
    return at;
}

static inline const float *row_after(const struct hm_pool *pool, int32_t candidate)
{
    int32_t row = candidate < 0 ? 0 : pool->candidate[candidate].row;
    return row < 0 || (size_t)row >= pool->row_count ? NULL : pool->rows + (size_t)row * pool->vocab;
}

#endif
