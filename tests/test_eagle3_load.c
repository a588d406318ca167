// Loading EAGLE-3 heads: every layout in use gives the same rows, bit for bit; what is said of a head; which
// checkpoints are taken for one. All cases are edits of the golden head "plain".
#include "tests/eagle3_scene.h"

// Rows of a draft by the head in the test's folder.
static void rows_of(const struct scene *s, double theta, float rows[ROWS_MOST * VOCAB])
{
    struct hm_error err = {0};
    struct hm_drafter *drafter;
    struct hm_pool pool;
    uint64_t seed = 1;
    expect_ok(open_head(s, theta, &drafter, &err), &err);
    open_pool(&pool, drafter, 3);
    show_taps(drafter, s->device, s->taps, TAPS * HIDDEN, 0, 7, &seed);
    expect_ok(drafter->ops->propose(drafter, s->token, 8, 2, &pool, &err), &err);
    assert_int_equal(pool.row_count, 7);
    memcpy(rows, pool.rows, pool.row_count * pool.vocab * sizeof *rows);
    hm_pool_clear(&pool);
    hm_drafter_close(drafter);
}

// ---- layouts

static void rename_tensor(struct tensor_list *list, const char *from, const char *to)
{
    snprintf(list->at[index_of(list, from)].name, sizeof list->at[0].name, "%s", to);
}

// Puts `to` for a leading `from` in every name.
static void rename_all(struct tensor_list *list, const char *from, const char *to)
{
    for (size_t i = 0; i < list->count; i++) {
        char rest[96];
        if (strncmp(list->at[i].name, from, strlen(from)) != 0) continue;
        snprintf(rest, sizeof rest, "%s", list->at[i].name + strlen(from));
        snprintf(list->at[i].name, sizeof list->at[i].name, "%s%.80s", to, rest);
    }
}

static void put_under_model(struct tensor_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->at[i].name, "lm_head", 7) != 0 && strchr(list->at[i].name, '.')) {
            char whole[96];
            snprintf(whole, sizeof whole, "model.%.80s", list->at[i].name);
            memcpy(list->at[i].name, whole, sizeof whole);
        }
}

static int64_t absolute[DRAFT], offsets[DRAFT];
static int32_t narrow[DRAFT];

static void read_vocabulary(const struct scene *s)
{
    memcpy(offsets, hm_safetensors_find(s->head, "d2t")->data, sizeof offsets);
    for (size_t j = 0; j < DRAFT; j++) absolute[j] = offsets[j] + (int64_t)j, narrow[j] = (int32_t)offsets[j];
}

// Widens a BF16 file to F32, in memory that lives until the next call.
static void widen(struct tensor_list *list)
{
    static float store[1 << 16];
    size_t used = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->at[i].type, "BF16") != 0) continue;
        size_t n = list->at[i].bytes / 2;
        assert_true(used + n <= sizeof store / sizeof *store);
        hm_widen_values(list->at[i].data, HM_BF16, store + used, n);
        list->at[i].type = "F32";
        list->at[i].data = store + used;
        list->at[i].bytes = 4 * n;
        used += n;
    }
}

enum layout {
    AS_IS,
    LAYERS_0,
    MODEL_MIDLAYER,
    MODEL_LAYERS_0,
    OTHER_NAME,
    ABSOLUTE,
    ABSOLUTE_ALONE,
    OFFSETS_ALONE,
    NARROW,
    WIDE,
    OWN_TABLE
};

static void lay_out(struct tensor_list *list, const struct scene *s, enum layout how)
{
    size_t d2t = index_of(list, "d2t");
    if (how == ABSOLUTE || how == ABSOLUTE_ALONE) list->at[d2t].data = absolute;
    if (how == NARROW) list->at[d2t].type = "I32", list->at[d2t].data = narrow, list->at[d2t].bytes = sizeof narrow;
    if (how == OTHER_NAME) rename_tensor(list, "d2t", "draft_id_to_target_id");
    if (how == ABSOLUTE_ALONE || how == OFFSETS_ALONE) drop_tensor(list, "t2d");
    if (how == LAYERS_0 || how == MODEL_LAYERS_0) rename_all(list, "midlayer.", "layers.0.");
    if (how == MODEL_MIDLAYER || how == MODEL_LAYERS_0) put_under_model(list);
    if (how == WIDE) widen(list);
    if (how == OWN_TABLE)
        add_tensor(list, "embed_tokens.weight", "BF16", VOCAB, HIDDEN,
                   hm_safetensors_find(s->golden, "target.embed_tokens")->data);
}

#define SIZES                                                                                                          \
    "\"hidden_size\":32,\"intermediate_size\":12,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"num_hidden_"    \
    "layers\":1,"                                                                                                      \
    "\"rms_norm_eps\":1e-6,\"vocab_size\":48,\"rope_theta\":10000.0"

static void test_layouts(void **state)
{
    (void)state;
    struct scene s;
    static float want[ROWS_MOST * VOCAB], have[ROWS_MOST * VOCAB], other[ROWS_MOST * VOCAB];
    static struct tensor_list list;
    open_scene(&s);
    read_vocabulary(&s);
    for (enum layout how = AS_IS; how <= OWN_TABLE; how++) {
        list.count = 0;
        add_all(&list, s.head);
        lay_out(&list, &s, how);
        write_list(in_folder("model.safetensors"), &list);
        write_config(NULL, 0);
        rows_of(&s, 0, how == AS_IS ? want : have);
        if (how != AS_IS && memcmp(want, have, 7 * DRAFT * sizeof *want) != 0)
            fail_msg("layout %d gives other rows", (int)how);
    }
    // Configurations that mean the same: ties are ignored, head_dim comes from the weights, theta from the options.
    const struct key ties[] = {{"tie_word_embeddings", "true"}, {"head_dim", "80"}, {"max_position_embeddings", "4"}};
    write_config(ties, 3);
    rows_of(&s, 0, have);
    assert_memory_equal(want, have, 7 * DRAFT * sizeof *want);
    write_config(&(struct key){"rope_theta", "1e6"}, 1);
    rows_of(&s, 0, other);
    assert_memory_not_equal(want, other, 7 * DRAFT * sizeof *want);
    rows_of(&s, 10000, have);
    assert_memory_equal(want, have, 7 * DRAFT * sizeof *want);
    write_config(NULL, 0);
    rows_of(&s, 1e6, have);
    assert_memory_equal(other, have, 7 * DRAFT * sizeof *want);
    // speculators: sizes inside, and the residual of the normed feature unless it says otherwise.
    write_text("config.json",
               "{\"architectures\":[\"Eagle3Speculator\"],\"speculators_model_type\":\"eagle3\","
               "\"draft_vocab_size\":20,\"norm_before_residual\":false,\"transformer_layer_config\":{" SIZES "}}");
    rows_of(&s, 0, have);
    assert_memory_equal(want, have, 7 * DRAFT * sizeof *want);
    write_text("config.json", "{\"architectures\":[\"Eagle3Speculator\"],\"speculators_model_type\":\"eagle3\","
                              "\"draft_vocab_size\":20,\"transformer_layer_config\":{" SIZES "}}");
    rows_of(&s, 0, have);
    write_config(&(struct key){"norm_before_residual", "true"}, 1);
    rows_of(&s, 0, other);
    assert_memory_equal(other, have, 7 * DRAFT * sizeof *want);
    assert_memory_not_equal(want, have, 7 * DRAFT * sizeof *want);
    close_scene(&s);
}

// ---- what is said of a head

static void test_info(void **state)
{
    (void)state;
    struct scene s;
    struct hm_error err = {0};
    struct hm_drafter *drafter, *ngram;
    open_scene(&s);
    read_vocabulary(&s);
    struct hm_eagle3_options options = {.positions = 16, .width = 3, .depth = 2};
    expect_ok(hm_drafter_open_eagle3("tests/data/eagle3/plain/.", s.target, s.device, &options, &drafter, &err), &err);
    const struct hm_eagle3_info *info = hm_drafter_eagle3_info(drafter);
    assert_non_null(info);
    assert_string_equal(info->name, "plain");
    assert_string_equal(info->architecture, "LlamaForCausalLMEagle3");
    assert_int_equal(strlen(info->sha256), 64);
    assert_int_equal(info->draft_vocab, DRAFT);
    assert_int_equal(info->hidden, HIDDEN);
    assert_int_equal(info->taps, TAPS);
    assert_true(info->rope_theta == 10000);
    size_t bytes = 0; // all matrices of the file
    for (size_t i = 0; i < hm_safetensors_count(s.head); i++)
        if (hm_safetensors_at(s.head, i)->rank == 2) bytes += hm_safetensors_at(s.head, i)->bytes;
    assert_int_equal(info->weight_bytes, bytes);
    assert_string_equal(drafter->name, "eagle3");
    assert_int_equal(drafter->vocab, DRAFT);
    assert_int_equal(drafter->usable, DRAFT);
    assert_int_equal(drafter->positions, 16);
    assert_ptr_equal(drafter->device, s.device);
    for (size_t j = 0; j < DRAFT; j++) assert_int_equal(drafter->ids[j], absolute[j]);
    expect_ok(hm_drafter_open_ngram(&ngram, &err), &err);
    assert_null(hm_drafter_eagle3_info(ngram));
    hm_drafter_close(ngram);
    hm_drafter_close(drafter);
    close_scene(&s);
}

static void test_taps(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        size_t tap[3];
    } cases[] = {
        {"rope_scaling", "null", {2, 18, 33}},
        {"eagle_config", "{\"eagle_aux_hidden_state_layer_ids\":[1,17,32]}", {2, 18, 33}}, // outputs
        {"target_layer_ids", "[0,10,34]", {1, 11, 35}},                                    // outputs
        {"eagle_aux_hidden_state_layer_ids", "[0,10,35]", {0, 10, 35}},                    // inputs
        {"aux_hidden_state_layer_ids", "[4,5,6]", {4, 5, 6}},                              // inputs
        {"eagle_aux_hidden_state_layer_ids", "[]", {2, 18, 33}},
    };
    struct scene s;
    struct hm_error err = {0};
    open_scene(&s);
    link_file("tests/data/eagle3/plain", "model.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hm_drafter *drafter;
        write_config(&(struct key){cases[i].key, cases[i].value}, 1);
        expect_ok(open_head(&s, 0, &drafter, &err), &err);
        assert_int_equal(drafter->tap_count, 3);
        assert_memory_equal(drafter->tap, cases[i].tap, sizeof cases[i].tap);
        hm_drafter_close(drafter);
    }
    close_scene(&s);
}

static void test_detect(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        hm_status status;
        bool is;
    } cases[] = {
        {"{\"architectures\":[\"LlamaForCausalLM\"],\"draft_vocab_size\":32000}", HM_OK, true}, // EAGLE's own
        {"{\"architectures\":[\"LlamaForCausalLMEagle3\"]}", HM_OK, true},                      // SpecForge
        {"{\"architectures\":[\"Eagle3LlamaForCausalLM\"]}", HM_OK, true},                      // AngelSlim
        {"{\"architectures\":[\"Qwen3Eagle3Model\"]}", HM_OK, true},                            // DeepSpec
        {"{\"architectures\":[\"Eagle3DraftModel\"],\"speculators_model_type\":\"eagle3\"}", HM_OK, true},
        {"{\"architectures\":[\"LlamaForCausalLM\"]}", HM_OK, false},
        {"{\"architectures\":[\"LlamaForCausalLM\"],\"draft_vocab_size\":null}", HM_OK, false},
        {"{\"architectures\":[\"Qwen3DSparkModel\"],\"draft_vocab_size\":32000}", HM_OK, false}, // a block drafter
        {"{\"architectures\":[\"DFlashDraftModel\"],\"speculators_model_type\":\"dflash\"}", HM_OK, false},
        {"{\"architectures\":[\"EagleLlamaForCausalLM\"]}", HM_UNSUPPORTED, false},
        {"{\"architectures\":[\"EagleSpeculator\"],\"speculators_model_type\":\"eagle\"}", HM_UNSUPPORTED, false},
        {"{}", HM_FORMAT, false},
        {"[]", HM_FORMAT, false},
        {"{\"architectures\":[]}", HM_FORMAT, false},
    };
    struct hm_error err = {0};
    bool is = true;
    assert_int_equal(hm_eagle3_detect(folder, &is, &err), HM_IO);
    assert_false(is);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("config.json", cases[i].config);
        if (hm_eagle3_detect(folder, &is, &err) != cases[i].status || is != cases[i].is)
            fail_msg("%s", cases[i].config);
    }
    expect_ok(hm_eagle3_detect("models/tiny-eagle3", &is, &err), &err);
    assert_true(is);
    expect_ok(hm_eagle3_detect("models/tiny-qwen3-draft", &is, &err), &err);
    assert_false(is);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_layouts, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_info, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_taps, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_detect, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
