// Loading EAGLE-3 heads: every layout in use gives the same rows, bit for bit; every refusal, word for word; what is said of
// a head; which checkpoints are taken for one. All cases are edits of the golden head "plain".
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

static void write_config(const struct key *edit, size_t edits)
{
    char text[4096] = "{";
    size_t n = 1;
    for (size_t i = 0; i < KEYS + edits; i++) {
        const struct key *k = i < KEYS ? &plain_keys[i] : &edit[i - KEYS];
        bool replaced = false;
        for (size_t j = 0; j < edits && i < KEYS; j++) replaced = replaced || strcmp(edit[j].key, k->key) == 0;
        if (k->value && !replaced) n += (size_t)snprintf(text + n, sizeof text - n, "%s\"%s\":%s", n > 1 ? "," : "", k->key, k->value);
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

static void open_scene(struct scene *s)
{
    *s = (struct scene){.device = open_device(1, HM_ISA_BEST)};
    s->head = open_tensors("tests/data/eagle3/plain/model.safetensors");
    s->golden = open_tensors("tests/data/eagle3/plain/golden.safetensors");
    s->target = zero_target(s->device, VOCAB, HIDDEN, LAYERS,
                            hm_safetensors_find(s->golden, "target.embed_tokens")->data, NULL);
    const struct hm_tensor *taps = hm_safetensors_find(s->golden, "taps"), *tokens = hm_safetensors_find(s->golden, "tokens");
    s->taps = malloc(taps->bytes);
    memcpy(s->taps, taps->data, taps->bytes);
    for (size_t i = 0; i < 8; i++) {
        int64_t wide;
        memcpy(&wide, tokens->data + i * sizeof wide, sizeof wide);
        s->token[i] = (int32_t)wide;
    }
}

static void close_scene(struct scene *s)
{
    hm_model_close(s->target);
    hm_device_close(s->device);
    hm_safetensors_close(s->head);
    hm_safetensors_close(s->golden);
    free(s->taps);
}

static hm_status open_head(const struct scene *s, double theta, struct hm_drafter **drafter, struct hm_error *err)
{
    struct hm_eagle3_options options = {.rope_theta = theta, .positions = 16, .width = 3, .depth = 2};
    return hm_drafter_open_eagle3(folder, s->target, s->device, &options, drafter, err);
}

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

enum layout { AS_IS, LAYERS_0, MODEL_MIDLAYER, MODEL_LAYERS_0, OTHER_NAME, ABSOLUTE, ABSOLUTE_ALONE, OFFSETS_ALONE, NARROW, WIDE,
              OWN_TABLE };

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

#define SIZES \
    "\"hidden_size\":32,\"intermediate_size\":12,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"num_hidden_layers\":1," \
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
        if (how != AS_IS && memcmp(want, have, 7 * DRAFT * sizeof *want) != 0) fail_msg("layout %d gives other rows", (int)how);
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
    write_text("config.json", "{\"architectures\":[\"Eagle3Speculator\"],\"speculators_model_type\":\"eagle3\","
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

// ---- refusals

// One edit of a tensor: another shape (columns 0: a vector), another type, no longer there (rows 0), or a further one.
struct edit {
    const char *name;
    size_t rows, columns;
    const char *type; // NULL: BF16
    const void *data; // NULL: zeros
};

static const int64_t repeated[DRAFT] = {0}, beyond[DRAFT] = {[DRAFT - 1] = VOCAB - DRAFT + 1}, below[DRAFT] = {-1},
                     back[DRAFT] = {[5] = 3, [6] = 1, [7] = 1};
static const uint8_t marks[VOCAB] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1};

static const struct refusal {
    struct key key;
    struct edit edit;
    hm_status status;
    const char *message;
} refusals[] = {
    // the configuration
    {{"architectures", "[\"EagleLlamaForCausalLM\"]"}, {0}, HM_UNSUPPORTED,
     "DIR/config.json: key \"architectures\": expected an EAGLE-3 head, found \"EagleLlamaForCausalLM\"; EAGLE-1 and EAGLE-2 "
     "heads read other features and are not supported"},
    {{"architectures", "[3]"}, {0}, HM_FORMAT, "DIR/config.json: key \"architectures\": expected a name, found a number"},
    {{"num_hidden_layers", "2"}, {0}, HM_UNSUPPORTED, "DIR/config.json: key \"num_hidden_layers\": expected 1, found 2"},
    {{"attention_bias", "true"}, {0}, HM_UNSUPPORTED, "DIR/config.json: key \"attention_bias\": expected false, found true"},
    {{"mlp_bias", "true"}, {0}, HM_UNSUPPORTED, "DIR/config.json: key \"mlp_bias\": expected false, found true"},
    {{"quantization_config", "{}"}, {0}, HM_UNSUPPORTED,
     "DIR/config.json: key \"quantization_config\": expected unquantised weights, found a quantisation"},
    {{"hidden_act", "\"gelu\""}, {0}, HM_UNSUPPORTED, "DIR/config.json: key \"hidden_act\": expected \"silu\", found \"gelu\""},
    {{"num_key_value_heads", "3"}, {0}, HM_SHAPE,
     "DIR/config.json: key \"num_key_value_heads\": expected a divisor of 2 heads, found 3"},
    {{"vocab_size", "64"}, {0}, HM_SHAPE, "DIR/config.json: key \"vocab_size\": expected 48, the target's, found 64"},
    {{"hidden_size", "40"}, {0}, HM_SHAPE,
     "DIR/config.json: key \"hidden_size\": expected 32, the hidden size of the target, found 40"},
    {{"target_hidden_size", "40"}, {0}, HM_SHAPE,
     "DIR/config.json: key \"target_hidden_size\": expected 32, the hidden size of the target, found 40"},
    {{"draft_vocab_size", "49"}, {0}, HM_RANGE,
     "DIR/config.json: key \"draft_vocab_size\": expected 1 to 48, found 49"},
    {{"norm_output", "1"}, {0}, HM_FORMAT, "DIR/config.json: key \"norm_output\": expected a boolean, found a number"},
    {{"eagle_config", "{\"use_aux_hidden_state\":false}"}, {0}, HM_UNSUPPORTED,
     "DIR/config.json: key \"eagle_config.use_aux_hidden_state\": expected true, found false"},
    {{"eagle_config", "[]"}, {0}, HM_FORMAT, "DIR/config.json: key \"eagle_config\": expected an object, found an array"},
    {{"target_layer_ids", "3"}, {0}, HM_FORMAT,
     "DIR/config.json: key \"target_layer_ids\": expected a list of layers, found a number"},
    {{"target_layer_ids", "[\"1\"]"}, {0}, HM_FORMAT,
     "DIR/config.json: key \"target_layer_ids\": expected numbers of layers, found a string"},
    {{"target_layer_ids", "[1,17,35]"}, {0}, HM_RANGE,
     "DIR/config.json: key \"target_layer_ids\": expected a layer below 35 of the target's 36, found 35"},
    {{"aux_hidden_state_layer_ids", "[1,17.5,35]"}, {0}, HM_RANGE,
     "DIR/config.json: key \"aux_hidden_state_layer_ids\": expected a layer below 36 of the target's 36, found 17.5"},
    {{"target_layer_ids", "[17,1,32]"}, {0}, HM_UNSUPPORTED,
     "DIR/config.json: key \"target_layer_ids\": expected ascending layers, found 1 after 17"},
    {{"aux_hidden_state_layer_ids", "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]"}, {0}, HM_UNSUPPORTED,
     "DIR/config.json: key \"aux_hidden_state_layer_ids\": expected at most 16 layers, found 17"},
    // heads of another kind
    {{0}, {"midlayer.self_attn.q_proj.weight", 0, 0, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: expected an EAGLE-3 head with a tensor \"midlayer.self_attn.q_proj.weight\" or "
     "\"layers.0.self_attn.q_proj.weight\", found neither"},
    {{0}, {"midlayer.hidden_norm.weight", 0, 0, NULL, NULL}, HM_UNSUPPORTED,
     "DIR/model.safetensors: tensor \"midlayer.hidden_norm.weight\": expected an EAGLE-3 head, found an EAGLE-1 or EAGLE-2 "
     "head, which is not supported"},
    {{0}, {"fc.bias", 32, 0, NULL, NULL}, HM_UNSUPPORTED,
     "DIR/model.safetensors: tensor \"fc.bias\": expected an EAGLE-3 head, found an EAGLE-1 or EAGLE-2 head, which is not "
     "supported"},
    // shapes
    {{0}, {"fc.weight", 32, 64, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"fc.weight\": expected [32, 96] for 3 taps of width 32, found [32, 64]"},
    {{0}, {"fc.weight", 96, 0, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"fc.weight\": expected [32, 96] for 3 taps of width 32, found [96]"},
    {{0}, {"fc.weight", 0, 0, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"fc.weight\": expected [32, 96] for 3 taps of width 32, found nothing"},
    {{"target_layer_ids", "[0,1,2,3]"}, {0}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"fc.weight\": expected [32, 128] for 4 taps of width 32, found [32, 96]"},
    {{0}, {"midlayer.self_attn.q_proj.weight", 16, 32, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"midlayer.self_attn.q_proj.weight\": expected [16, 64], embedding and feature side by "
     "side, found [16, 32]"},
    {{0}, {"midlayer.self_attn.q_proj.weight", 17, 64, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"midlayer.self_attn.q_proj.weight\": expected [2 * n, 64] for 2 heads, n even and at most "
     "256, found [17, 64]"},
    {{0}, {"midlayer.self_attn.q_proj.bias", 16, 0, NULL, NULL}, HM_UNSUPPORTED,
     "DIR/model.safetensors: tensor \"midlayer.self_attn.q_proj.bias\": expected none, found one"},
    {{0}, {"midlayer.self_attn.k_proj.weight", 16, 64, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"midlayer.self_attn.k_proj.weight\": expected [8, 64], found [16, 64]"},
    {{0}, {"midlayer.self_attn.v_proj.weight", 8, 64, "F32", NULL}, HM_UNSUPPORTED,
     "DIR/model.safetensors: tensor \"midlayer.self_attn.v_proj.weight\": expected type BF16 like self_attn.q_proj, found F32"},
    {{0}, {"midlayer.self_attn.o_proj.weight", 16, 32, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"midlayer.self_attn.o_proj.weight\": expected [32, 16], found [16, 32]"},
    {{0}, {"midlayer.mlp.up_proj.weight", 13, 32, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"midlayer.mlp.up_proj.weight\": expected [12, 32], found [13, 32]"},
    {{0}, {"midlayer.mlp.down_proj.weight", 0, 0, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"midlayer.mlp.down_proj.weight\": expected [32, 12], found nothing"},
    {{0}, {"midlayer.input_layernorm.weight", 64, 0, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"midlayer.input_layernorm.weight\": expected [32], found [64]"},
    {{0}, {"midlayer.self_attn.q_norm.weight", 8, 0, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"midlayer.self_attn.k_norm.weight\": expected [8], found nothing"},
    {{0}, {"norm.weight", 31, 0, NULL, NULL}, HM_SHAPE, "DIR/model.safetensors: tensor \"norm.weight\": expected [32], found [31]"},
    {{"fc_norm", "true"}, {0}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"fc_norm.0.weight\": expected [32], found nothing"},
    {{"norm_before_fc", "true"}, {0}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"input_norm.weight\": expected [96], found nothing"},
    {{"eagle_config", "{\"norm_before_fc\":true}"}, {0}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"input_norm.weight\": expected [96], found nothing"},
    {{0}, {"lm_head.weight", 48, 32, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"lm_head.weight\": expected [20, 32], found [48, 32]"},
    {{0}, {"lm_head.weight", 0, 0, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"lm_head.weight\": expected [20, 32], found nothing"},
    {{0}, {"lm_head.weight", 20, 32, "I32", NULL}, HM_UNSUPPORTED,
     "DIR/model.safetensors: tensor \"lm_head.weight\": expected type F32, F16 or BF16, found I32"},
    {{0}, {"embed_tokens.weight", 20, 32, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"embed_tokens.weight\": expected [48, 32], found [20, 32]"},
    // the draft vocabulary
    {{0}, {"d2t", 0, 0, NULL, NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"d2t\": expected [20], the tokens of 48 that the draft vocabulary holds, found nothing"},
    {{0}, {"d2t", 21, 0, "I64", NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"d2t\": expected [20], the draft vocabulary, found [21]"},
    {{0}, {"d2t", 20, 0, "F32", NULL}, HM_UNSUPPORTED,
     "DIR/model.safetensors: tensor \"d2t\": expected type I64 or I32, found F32"},
    {{0}, {"t2d", 20, 0, "BOOL", NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"t2d\": expected [48], the target's vocabulary, found [20]"},
    {{0}, {"t2d", 48, 0, "BF16", NULL}, HM_UNSUPPORTED,
     "DIR/model.safetensors: tensor \"t2d\": expected type BOOL, found BF16"},
    {{0}, {"t2d", 48, 0, "BOOL", NULL}, HM_SHAPE,
     "DIR/model.safetensors: tensor \"t2d\": expected 20 tokens marked, the draft vocabulary, found 0"},
    {{0}, {"d2t", 20, 0, "I64", beyond}, HM_RANGE,
     "DIR/model.safetensors: tensor \"d2t\": entry 19: expected the offset of a token below 48, found 29"},
    {{0}, {"d2t", 20, 0, "I64", below}, HM_RANGE,
     "DIR/model.safetensors: tensor \"d2t\": entry 0: expected the offset of a token below 48, found -1"},
    {{0}, {"d2t", 20, 0, "I64", back}, HM_RANGE,
     "DIR/model.safetensors: tensor \"d2t\": entry 6: expected the offset of a token above 8, found 1"},
};

static void edit_list(struct tensor_list *list, const struct edit *e)
{
    size_t i = 0;
    while (i < list->count && strcmp(list->at[i].name, e->name) != 0) i++;
    if (i < list->count) drop_tensor(list, e->name);
    if (e->rows) add_tensor(list, e->name, e->type ? e->type : "BF16", e->rows, e->columns, e->data);
}

static void test_refusals(void **state)
{
    (void)state;
    struct scene s;
    static struct tensor_list list;
    open_scene(&s);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        struct hm_error err = {0};
        struct hm_drafter *drafter;
        list.count = 0;
        add_all(&list, s.head);
        if (r->edit.name) edit_list(&list, &r->edit);
        // Wrong offsets are met without t2d: with it the marked tokens must agree as well.
        if (r->edit.data) drop_tensor(&list, "t2d");
        write_list(in_folder("model.safetensors"), &list);
        write_config(&r->key, r->key.key ? 1 : 0);
        hm_status rc = open_head(&s, 0, &drafter, &err);
        expect_message(r->key.key ? r->key.key : r->edit.name, &err, r->message);
        if (rc != r->status) fail_msg("%s: expected status %d, found %d", r->message, (int)r->status, (int)rc);
        assert_null(drafter);
    }
    close_scene(&s);
}

// d2t and t2d that disagree, a target without room for the usual taps, values only a caller gives, a folder of pickles.
static void test_further_refusals(void **state)
{
    (void)state;
    struct scene s;
    struct hm_error err = {0};
    struct hm_drafter *drafter;
    static struct tensor_list list;
    open_scene(&s);
    add_all(&list, s.head);
    edit_list(&list, &(struct edit){"d2t", DRAFT, 0, "I64", repeated});
    edit_list(&list, &(struct edit){"t2d", VOCAB, 0, "BOOL", marks});
    write_list(in_folder("model.safetensors"), &list);
    write_config(NULL, 0);
    assert_int_equal(open_head(&s, 0, &drafter, &err), HM_RANGE);
    expect_message("marks", &err, "DIR/model.safetensors: tensor \"d2t\": entry 19: expected a token that \"t2d\" marks, found 19");

    link_file("tests/data/eagle3/plain", "model.safetensors");
    assert_int_equal(open_head(&s, 0.5, &drafter, &err), HM_RANGE);
    expect_message("theta", &err, "rotation of an EAGLE-3 head: expected a base from 1 to 1e15, found 0.5");
    struct hm_eagle3_options options = {.positions = SIZE_MAX, .width = 3, .depth = 2};
    assert_int_equal(hm_drafter_open_eagle3(folder, s.target, s.device, &options, &drafter, &err), HM_RANGE);
    options = (struct hm_eagle3_options){.positions = 1 << 25, .width = 3, .depth = 2};
    assert_int_equal(hm_drafter_open_eagle3(folder, s.target, s.device, &options, &drafter, &err), HM_RANGE);
    expect_message("positions", &err, "EAGLE-3 head: expected at most 16777216 positions, found 33554434");

    hm_model_close(s.target);
    s.target = zero_target(s.device, VOCAB, HIDDEN, 6, NULL, NULL);
    write_config(NULL, 0);
    assert_int_equal(open_head(&s, 0, &drafter, &err), HM_UNSUPPORTED);
    expect_message("layers", &err,
                   "DIR/config.json: expected a list \"eagle_aux_hidden_state_layer_ids\" for a target of 6 layers, found nothing: "
                   "the usual layers 2, N/2 and N-3 need seven");

    empty_folder();
    write_config(&(struct key){"target_layer_ids", "[0,1,2]"}, 1);
    write_text("pytorch_model.bin", "");
    assert_int_equal(open_head(&s, 0, &drafter, &err), HM_UNSUPPORTED);
    expect_message("pickle", &err,
                   "DIR: expected model.safetensors, found pytorch_model.bin, which runs code when it is read; convert it once: "
                   "python3 -c \"import torch, safetensors.torch as s; w = torch.load('pytorch_model.bin', map_location='cpu', "
                   "weights_only=True); s.save_file({k: v.contiguous() for k, v in w.items()}, 'model.safetensors')\"");
    (void)unlink(in_folder("pytorch_model.bin"));
    assert_int_equal(open_head(&s, 0, &drafter, &err), HM_IO);
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
        if (hm_eagle3_detect(folder, &is, &err) != cases[i].status || is != cases[i].is) fail_msg("%s", cases[i].config);
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
        cmocka_unit_test_setup_teardown(test_refusals, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_further_refusals, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_detect, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
