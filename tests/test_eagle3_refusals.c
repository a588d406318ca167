// Loading EAGLE-3 heads: every refusal, word for word. All cases are edits of the golden head "plain".
#include "tests/eagle3_scene.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refusals, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_further_refusals, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
