// Models and caches as a caller meets them: what is said about a checkpoint, checkpoints whose tensors do not fit their
// configuration, and calls that are refused without changing anything.
#include "tests/checkpoint_support.h"
#include "tests/model_support.h"

#include "base/memory.h"

static void test_info(void **state)
{
    (void)state;
    struct hm_device *device = open_device(1, HM_ISA_BEST);
    struct hm_model *model = open_model("qwen3-bf16", device);
    const struct hm_model_info *i = hm_model_info(model);
    assert_string_equal(i->name, "qwen3-bf16");
    assert_string_equal(i->architecture, "Qwen3ForCausalLM");
    assert_int_equal(strlen(i->sha256), 64);
    assert_true(i->vocab == 256 && i->layers == 2 && i->hidden == 64 && i->intermediate == 96 && i->head_dim == 24);
    assert_true(i->heads == 4 && i->kv_heads == 2 && i->max_positions == 512 && i->dtype == HM_BF16);
    assert_true(i->eos_count == 2 && i->eos[0] == 3 && i->eos[1] == 5 && i->bos == -1 && i->has_generation_defaults);
    // Tied: the table is the head. Queries, keys, values, output, gate, up, down.
    assert_int_equal(i->weight_bytes, 2 * (256 * 64 + 2 * (192 * 64 + 64 * 96 + 3 * 64 * 96)));
    assert_ptr_equal(hm_model_device(model), device);
    hm_model_close(model);
    model = open_model("qwen3-bias-f32/", device);
    assert_string_equal(hm_model_info(model)->name, "qwen3-bias-f32");
    // Untied: the head counts, the table does not.
    assert_int_equal(hm_model_info(model)->weight_bytes, 4 * (97 * 36 + 80 * 36 + 36 * 48 + 3 * 36 * 50));
    hm_model_close(model);
    hm_model_close(NULL);
    hm_device_close(device);
}

// The weights of a checkpoint of the source tree under another configuration.
static void open_under(const char *config, hm_status status, const char *message)
{
    struct hm_device *device = open_device(1, HM_ISA_BEST);
    struct hm_model *model;
    struct hm_error err = {0};
    empty_folder();
    link_file("tests/data/checkpoints/qwen3-bias-f32", "model.safetensors");
    write_text("config.json", config);
    hm_status rc = hm_model_open(folder, device, &model, &err);
    if (message)
        expect_message(config, &err, message);
    else if (rc)
        fail_msg("%s\n%s", config, err.message);
    assert_int_equal(rc, status);
    assert_true((model == NULL) == (rc != HM_OK));
    hm_model_close(model);
    hm_device_close(device);
}

#define CONFIG(vocab, layers, hidden, kv, head, inter, more)                                                           \
    "{\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":" vocab ",\"num_hidden_layers\":" layers                 \
    ",\"hidden_size\":" hidden ",\"num_attention_heads\":3,\"num_key_value_heads\":" kv ",\"head_dim\":" head          \
    ",\"intermediate_size\":" inter more "}"
#define W "DIR/model.safetensors: tensor "

static void test_tensors_that_do_not_fit(void **state)
{
    (void)state;
    open_under(CONFIG("97", "1", "36", "1", "16", "50", ",\"attention_bias\":true"), HM_OK, NULL);
    open_under(CONFIG("97", "1", "36", "1", "16", "50", ""), HM_OK, NULL); // biases nobody asks for
    open_under(CONFIG("97", "1", "36", "1", "16", "50", ",\"tie_word_embeddings\":true"), HM_OK, NULL);
    open_under(CONFIG("98", "1", "36", "1", "16", "50", ""), HM_SHAPE,
               W "\"model.embed_tokens.weight\": expected [98, 36], found [97, 36]");
    open_under(CONFIG("97", "2", "36", "1", "16", "50", ""), HM_SHAPE,
               W "\"model.layers.1.input_layernorm.weight\": expected [36], found nothing");
    open_under(CONFIG("97", "1", "36", "3", "16", "50", ""), HM_SHAPE,
               W "\"model.layers.0.self_attn.k_proj.weight\": expected [48, 36], found [16, 36]");
    open_under(CONFIG("97", "1", "36", "1", "18", "50", ""), HM_SHAPE,
               W "\"model.layers.0.self_attn.q_proj.weight\": expected [54, 36], found [48, 36]");
    open_under(CONFIG("97", "1", "36", "1", "16", "51", ""), HM_SHAPE,
               W "\"model.layers.0.mlp.gate_proj.weight\": expected [51, 36], found [50, 36]");
    open_under(CONFIG("4194304", "1024", "1048576", "1", "256", "1048576", ""), HM_SHAPE,
               W "\"model.embed_tokens.weight\": expected [4194304, 1048576], found [97, 36]");
    // All heads share one norm of one head, so a wrong split of the same width is found there.
    open_under("{\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":97,\"num_hidden_layers\":1,\"hidden_size\":36,"
               "\"num_attention_heads\":6,\"num_key_value_heads\":2,\"head_dim\":8,\"intermediate_size\":50}",
               HM_SHAPE, W "\"model.layers.0.self_attn.q_norm.weight\": expected [8], found [16]");
}

// A Llama of one layer, all zeros, whose keys have a type of their own.
static void write_zeros(const char *key_type, size_t key_bytes)
{
    static const struct {
        const char *name, *shape;
        size_t count;
    } list[] = {
        {"model.embed_tokens.weight", "[3,2]", 6},
        {"model.norm.weight", "[2]", 2},
        {"lm_head.weight", "[3,2]", 6},
        {"model.layers.0.input_layernorm.weight", "[2]", 2},
        {"model.layers.0.post_attention_layernorm.weight", "[2]", 2},
        {"model.layers.0.self_attn.q_proj.weight", "[2,2]", 4},
        {"model.layers.0.self_attn.k_proj.weight", "[2,2]", 4},
        {"model.layers.0.self_attn.v_proj.weight", "[2,2]", 4},
        {"model.layers.0.self_attn.o_proj.weight", "[2,2]", 4},
        {"model.layers.0.mlp.gate_proj.weight", "[1,2]", 2},
        {"model.layers.0.mlp.up_proj.weight", "[1,2]", 2},
        {"model.layers.0.mlp.down_proj.weight", "[2,1]", 2},
    };
    char header[4096] = "{";
    size_t at = 0, n = 1;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        int key = strstr(list[i].name, "k_proj") != NULL;
        size_t end = at + list[i].count * (key ? key_bytes : 4);
        n += (size_t)snprintf(header + n, sizeof header - n,
                              "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", i ? "," : "",
                              list[i].name, key ? key_type : "F32", list[i].shape, at, end);
        at = end;
    }
    snprintf(header + n, sizeof header - n, "}");
    write_tensors("model.safetensors", header, at);
    write_text("config.json", "{\"architectures\":[\"LlamaForCausalLM\"],\"vocab_size\":3,\"hidden_size\":2,"
                              "\"intermediate_size\":1,\"num_hidden_layers\":1,\"num_attention_heads\":1}");
}

static void test_types(void **state)
{
    (void)state;
    struct hm_device *device = open_device(1, HM_ISA_BEST);
    struct hm_model *model;
    struct hm_error err = {0};
    float logits[3];
    empty_folder();
    write_zeros("F16", 2);
    assert_int_equal(hm_model_open(folder, device, &model, &err), HM_UNSUPPORTED);
    expect_message("F16 keys", &err,
                   W "\"model.layers.0.self_attn.k_proj.weight\": expected type F32 like self_attn.q_proj, found F16");
    write_zeros("F64", 8);
    assert_int_equal(hm_model_open(folder, device, &model, &err), HM_UNSUPPORTED);
    expect_message("F64 keys", &err,
                   W "\"model.layers.0.self_attn.k_proj.weight\": expected type F32, F16 or BF16, found F64");
    write_zeros("F32", 4); // zeros are weights like others: every logit is 0
    expect_ok(hm_model_open(folder, device, &model, &err), &err);
    struct hm_cache *cache = open_cache(model, 4);
    expect_ok(hm_model_prefill(model, cache, (int32_t[]){2, 1}, 2, logits, NULL, &err), &err);
    for (int i = 0; i < 3; i++) assert_true(logits[i] == 0);
    hm_cache_close(cache);
    hm_model_close(model);
    hm_device_close(device);
}

// A model with a cache that holds five tokens and the rows of the tree  0 - 1 - 2, 0 - 3.
struct fixture {
    struct hm_device *device;
    struct hm_model *model;
    struct hm_cache *cache;
    float *logits; // of the tree, 4 rows
};

static const int32_t tree_token[] = {6, 7, 8, 9}, tree_parent[] = {-1, 0, 1, 0};

static struct fixture five_and_a_tree(size_t positions)
{
    struct fixture f = {.device = open_device(1, HM_ISA_BEST)};
    struct hm_error err = {0};
    f.model = open_model("llama3-f32", f.device); // 64 positions
    f.cache = open_cache(f.model, positions);
    f.logits = hm_calloc(4 * hm_model_info(f.model)->vocab, sizeof(float));
    expect_ok(hm_model_prefill(f.model, f.cache, (int32_t[]){1, 2, 3, 4, 5}, 5, NULL, NULL, &err), &err);
    struct hm_pass pass = {tree_token, tree_parent, 4, (uint32_t[]){0, 1, 2, 3}, 4, NULL};
    expect_ok(hm_model_forward(f.model, f.cache, &pass, f.logits, &err), &err);
    return f;
}

static void close_fixture(struct fixture *f)
{
    free(f->logits);
    hm_cache_close(f->cache);
    hm_cache_close(NULL);
    hm_model_close(f->model);
    hm_device_close(f->device);
}

static void refused_pass(struct fixture *f, struct hm_pass pass, hm_status status, const char *message)
{
    struct hm_error err = {0};
    size_t length = hm_cache_length(f->cache), scratch = hm_cache_scratch(f->cache);
    assert_int_equal(hm_model_forward(f->model, f->cache, &pass, NULL, &err), status);
    assert_string_equal(err.message, message);
    assert_int_equal(hm_cache_length(f->cache), length);
    assert_int_equal(hm_cache_scratch(f->cache), scratch);
}

static void test_refused_passes(void **state)
{
    (void)state;
    struct fixture f = five_and_a_tree(12);
    const int32_t minus[] = {-1, 0}, chain[] = {-1, 4, 5, 6}, zero[] = {0, 0, 0, 0}, bad_token[] = {5, 131},
                  negative[] = {-1};
    const int32_t self[] = {4}, below[] = {-2};
    refused_pass(&f, (struct hm_pass){zero, chain, 4, NULL, 0, NULL}, HM_RANGE,
                 "pass of 4 tokens: expected room in 12 positions of cache, found 9 in use");
    refused_pass(&f, (struct hm_pass){zero, chain, SIZE_MAX, NULL, 0, NULL}, HM_RANGE,
                 "pass of 18446744073709551615 tokens: expected room in 12 positions of cache, found 9 in use");
    refused_pass(&f, (struct hm_pass){bad_token, minus, 2, NULL, 0, NULL}, HM_RANGE,
                 "token 1: expected an id below 131, found 131");
    refused_pass(&f, (struct hm_pass){negative, minus, 1, NULL, 0, NULL}, HM_RANGE,
                 "token 0: expected an id below 131, found -1");
    refused_pass(&f, (struct hm_pass){zero, self, 1, NULL, 0, NULL}, HM_RANGE,
                 "token 0: expected a parent from -1 to 3, found 4");
    refused_pass(&f, (struct hm_pass){zero, below, 1, NULL, 0, NULL}, HM_RANGE,
                 "token 0: expected a parent from -1 to 3, found -2");
    refused_pass(&f, (struct hm_pass){zero, minus, 2, (uint32_t[]){1, 2}, 2, NULL}, HM_RANGE,
                 "logits 1: expected a row below 2, found 2");
    // The rows of the tree are still whole: committed, they continue as before.
    struct hm_error err = {0};
    struct fixture g = five_and_a_tree(12);
    for (int i = 0; i < 2; i++) {
        struct fixture *x = i ? &g : &f;
        expect_ok(hm_cache_commit(x->cache, (uint32_t[]){0, 3}, 2, &err), &err);
        expect_ok(hm_model_prefill(x->model, x->cache, zero, 2, x->logits, NULL, &err), &err);
    }
    assert_memory_equal(f.logits, g.logits, hm_model_info(f.model)->vocab * sizeof(float));
    expect_ok(hm_model_forward(f.model, f.cache, &(struct hm_pass){0}, NULL, &err), &err); // no rows: nothing happens
    assert_int_equal(hm_model_forward(g.model, f.cache, &(struct hm_pass){zero, minus, 1, NULL, 0, NULL}, NULL, &err),
                     HM_USAGE);
    assert_string_equal(err.message, "pass: expected a cache of this model, found another's");
    close_fixture(&f);
    close_fixture(&g);
}

static void test_refused_commits(void **state)
{
    (void)state;
    struct fixture f = five_and_a_tree(16);
    static const struct {
        uint32_t path[5];
        size_t n;
        const char *message;
    } bad_paths[] = {
        {{0, 1, 2, 3, 4}, 5, "commit: expected at most 4 scratch rows, found 5"},
        {{1}, 1, "commit: expected a child of scratch row -1 at place 0, found row 1"},
        {{0, 2}, 2, "commit: expected a child of scratch row 0 at place 1, found row 2"},
        {{0, 1, 3}, 3, "commit: expected a child of scratch row 1 at place 2, found row 3"},
        {{4}, 1, "commit: expected a child of scratch row -1 at place 0, found row 4"},
        {{0, 0xFFFFFFFF}, 2, "commit: expected a child of scratch row 0 at place 1, found row 4294967295"},
    };
    for (size_t i = 0; i < sizeof bad_paths / sizeof *bad_paths; i++) {
        struct hm_error err = {0};
        assert_int_equal(hm_cache_commit(f.cache, bad_paths[i].path, bad_paths[i].n, &err), HM_USAGE);
        assert_string_equal(err.message, bad_paths[i].message);
        assert_int_equal(hm_cache_length(f.cache), 5);
        assert_int_equal(hm_cache_scratch(f.cache), 4);
    }
    hm_cache_drop_scratch(f.cache);
    assert_int_equal(hm_cache_scratch(f.cache), 0);
    hm_cache_truncate(f.cache, 9);
    assert_int_equal(hm_cache_length(f.cache), 5);
    hm_cache_truncate(f.cache, 3);
    assert_int_equal(hm_cache_length(f.cache), 3);
    assert_int_equal(hm_cache_positions(f.cache), 16);
    close_fixture(&f);
}

static void count_progress(void *user, size_t done, size_t total)
{
    size_t *last = user;
    assert_true(done > *last && done <= total);
    *last = done;
}

static void test_limits(void **state)
{
    (void)state;
    struct fixture f = five_and_a_tree(400);
    struct hm_error err = {0};
    int32_t many[70] = {0}, parent[70];
    size_t last = 0;
    for (int i = 0; i < 70; i++) parent[i] = i - 1;
    hm_cache_drop_scratch(f.cache);
    assert_int_equal(hm_model_prefill(f.model, f.cache, many, 60, NULL, NULL, &err), HM_RANGE);
    assert_string_equal(err.message,
                        "prefill of 60 tokens after 5: expected at most 64 positions in all (the limit of the model)");
    assert_int_equal(hm_model_prefill(f.model, f.cache, many, 0, NULL, NULL, &err), HM_USAGE);
    refused_pass(&f, (struct hm_pass){many, parent, 60, NULL, 0, NULL}, HM_RANGE,
                 "token 59: expected a position below 64, the limit of the model, found 64");
    many[40] = 131;
    assert_int_equal(hm_model_prefill(f.model, f.cache, many, 59, NULL, NULL, &err), HM_RANGE);
    assert_string_equal(err.message, "token 40: expected an id below 131, found 131");
    assert_int_equal(hm_cache_length(f.cache), 5);
    many[40] = 0;
    expect_ok(hm_model_prefill(f.model, f.cache, many, 59, NULL, &(struct hm_prefill_watch){.progress = count_progress, .user = &last}, &err), &err);
    assert_int_equal(last, 59);
    assert_int_equal(hm_cache_length(f.cache), 64);
    refused_pass(&f, (struct hm_pass){many, parent, 1, NULL, 0, NULL}, HM_RANGE,
                 "token 0: expected a position below 64, the limit of the model, found 64");
    struct hm_cache *cache;
    assert_int_equal(hm_cache_open(f.model, 0, &cache, &err), HM_RANGE);
    assert_string_equal(err.message, "cache: expected 1 to 2147483647 positions, found 0");
    assert_int_equal(hm_cache_open(f.model, (size_t)1 << 31, &cache, &err), HM_RANGE);
    hm_cache_close(open_cache(f.model, 1000000)); // reserved, not used
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_tensors_that_do_not_fit),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_refused_passes),
        cmocka_unit_test(test_refused_commits),
        cmocka_unit_test(test_limits),
    };
    setenv("HALLMARK_CACHE", "off", 1);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
