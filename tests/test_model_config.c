// config.json and generation_config.json: defaults of every architecture, the spellings of RoPE settings, and a table
// of what is refused with the exact message.
#include "tests/checkpoint_support.h"

#include "decode/config.h"

#define SIZES                                                                                                          \
    ",\"vocab_size\":131,\"hidden_size\":40,\"intermediate_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":" \
    "4"
#define QWEN3(extra) "{\"architectures\":[\"Qwen3ForCausalLM\"]" SIZES extra "}"
#define QWEN2(extra) "{\"architectures\":[\"Qwen2ForCausalLM\"]" SIZES extra "}"
#define LLAMA(extra) "{\"architectures\":[\"LlamaForCausalLM\"]" SIZES extra "}"
#define C "DIR/config.json: key "

static struct hm_config accepted(const char *config, const char *generation)
{
    struct hm_config c;
    struct hm_error err = {0};
    empty_folder();
    write_text("config.json", config);
    if (generation) write_text("generation_config.json", generation);
    if (hm_config_read(folder, &c, &err)) fail_msg("%s\n%s", config, err.message);
    return c;
}

static void test_defaults(void **state)
{
    (void)state;
    struct hm_config c = accepted(QWEN3(""), NULL);
    assert_string_equal(c.architecture, "Qwen3ForCausalLM");
    assert_true(c.head_dim == 128 && c.kv_heads == 4 && c.max_positions == 32768 && c.qk_norm);
    assert_false(c.qkv_bias || c.out_bias || c.mlp_bias || c.tied || c.has_generation);
    assert_true(c.bos == -1 && c.eos_count == 0);
    assert_true(c.rms_epsilon == 1e-6f && c.rope.theta == 10000 && c.rope.kind == HM_ROPE_PLAIN);
    c = accepted(QWEN2(",\"attention_bias\":false,\"sliding_window\":4096,\"use_sliding_window\":false"), NULL);
    assert_true(c.head_dim == 10 && c.qkv_bias && !c.out_bias && !c.qk_norm && c.max_positions == 32768);
    c = accepted(LLAMA(""), NULL);
    assert_true(c.head_dim == 10 && !c.qkv_bias && c.max_positions == 2048);
    assert_true(c.bos == 1 && c.eos_count == 1 && c.eos[0] == 2);
    c = accepted(LLAMA(",\"bos_token_id\":null,\"eos_token_id\":null,\"num_key_value_heads\":null,\"head_dim\":null"),
                 NULL);
    assert_true(c.bos == -1 && c.eos_count == 0 && c.kv_heads == 4 && c.head_dim == 10);
    c = accepted(LLAMA(",\"attention_bias\":true,\"mlp_bias\":true,\"head_dim\":16,\"tie_word_embeddings\":true"),
                 NULL);
    assert_true(c.qkv_bias && c.out_bias && c.mlp_bias && c.head_dim == 16 && c.tied);
    c = accepted(QWEN3(",\"attention_bias\":true,\"rms_norm_eps\":1e-5"), NULL);
    assert_true(c.qkv_bias && c.out_bias && c.rms_epsilon == 1e-5f);
}

#define SCALES "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4"
static void test_rope_spellings(void **state)
{
    (void)state;
    static const char *const llama3[] = {
        LLAMA(",\"rope_theta\":500000,\"rope_scaling\":{\"type\":\"llama3\"," SCALES
              ",\"original_max_position_embeddings\":8192}"),
        LLAMA(",\"rope_theta\":500000,\"rope_scaling\":{\"rope_type\":\"llama3\"," SCALES
              ",\"original_max_position_embeddings\":8192}"),
        LLAMA(",\"rope_theta\":1,\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":500000," SCALES
              ",\"original_max_position_embeddings\":8192}"),
        LLAMA(
            ",\"rope_theta\":500000,\"max_position_embeddings\":8192,\"rope_scaling\":{\"rope_type\":\"llama3\"," SCALES
            "}"),
    };
    for (size_t i = 0; i < sizeof llama3 / sizeof *llama3; i++) {
        struct hm_rope_config r = accepted(llama3[i], NULL).rope;
        assert_true(r.kind == HM_ROPE_LLAMA3 && r.theta == 500000 && r.factor == 8);
        assert_true(r.low_frequency == 1 && r.high_frequency == 4 && r.original_positions == 8192);
    }
    static const char *const plain[] = {
        QWEN3(",\"rope_theta\":1e6"),
        QWEN3(",\"rope_theta\":1e6,\"rope_scaling\":null,\"rope_parameters\":null"),
        QWEN3(",\"rope_theta\":1e6,\"rope_scaling\":{}"),
        QWEN3(",\"rope_theta\":1e6,\"rope_scaling\":{\"type\":\"default\"}"),
        QWEN3(",\"rope_parameters\":{\"rope_theta\":1e6,\"rope_type\":\"default\"},\"partial_rotary_factor\":1.0"),
        QWEN3(",\"rope_parameters\":{\"rope_theta\":1e6}"),
        QWEN3(",\"rope_scaling\":{},\"rope_parameters\":{\"rope_theta\":1e6}"),
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        struct hm_rope_config r = accepted(plain[i], NULL).rope;
        assert_true(r.kind == HM_ROPE_PLAIN && r.theta == 1e6);
    }
}

static void test_generation(void **state)
{
    (void)state;
    struct hm_config c = accepted(QWEN3(",\"eos_token_id\":7,\"bos_token_id\":3"),
                                  "{\"do_sample\":true,\"temperature\":0.6,\"top_k\":20,\"top_p\":0.95}");
    assert_true(c.eos_count == 1 && c.eos[0] == 7 && c.bos == 3 && c.has_generation);
    assert_true(c.generation.has_do_sample && c.generation.do_sample && c.generation.has_temperature);
    assert_true(c.generation.temperature == 0.6 && c.generation.top_k == 20 && c.generation.top_p == 0.95);
    assert_false(c.generation.has_repetition_penalty);
    c = accepted(QWEN3(",\"eos_token_id\":7"), "{\"eos_token_id\":[9,7,130],\"bos_token_id\":4}");
    assert_true(c.eos_count == 3 && c.eos[0] == 9 && c.eos[2] == 130 && c.bos == 4);
    c = accepted(QWEN3(",\"eos_token_id\":[7,8]"), "{\"eos_token_id\":null}");
    assert_true(c.eos_count == 2 && c.eos[1] == 8);
}

static const struct {
    const char *config, *generation, *message;
    hm_status status;
} bad[] = {
    {"", NULL, "DIR/config.json: byte 0: not valid JSON", HM_FORMAT},
    {"[1]", NULL, "DIR/config.json: expected an object, found an array", HM_FORMAT},
    {"{}", NULL, C "\"architectures\": expected an array, found nothing", HM_FORMAT},
    {"{\"architectures\":[]}", NULL, C "\"architectures\": expected a name, found nothing", HM_FORMAT},
    {"{\"architectures\":[\"MistralForCausalLM\"]}", NULL,
     C
     "\"architectures\": expected Qwen3ForCausalLM, Qwen2ForCausalLM or LlamaForCausalLM, found \"MistralForCausalLM\"",
     HM_UNSUPPORTED},
    {"{\"architectures\":[\"Qwen3ForCausalLM\"]}", NULL, C "\"vocab_size\": expected an integer, found nothing",
     HM_FORMAT},
    {"{\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":1e9}", NULL,
     C "\"vocab_size\": expected 1 to 4194304, found 1000000000", HM_RANGE},
    {"{\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":12.5}", NULL,
     C "\"vocab_size\": expected an integer, found 12.5", HM_FORMAT},
    {"{\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":8,\"hidden_size\":0}", NULL,
     C "\"hidden_size\": expected 1 to 1048576, found 0", HM_RANGE},
    {"{\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":1,\"hidden_size\":1,\"intermediate_size\":1,"
     "\"num_hidden_layers\":1,\"num_attention_heads\":1}",
     NULL, C "\"vocab_size\": expected at least 2, found 1", HM_RANGE},
    {QWEN3(",\"num_key_value_heads\":3"), NULL, C "\"num_key_value_heads\": expected a divisor of 4 heads, found 3",
     HM_SHAPE},
    {QWEN3(",\"num_key_value_heads\":-1"), NULL, C "\"num_key_value_heads\": expected 1 to 4096, found -1", HM_RANGE},
    {QWEN3(",\"num_key_value_heads\":\"2\""), NULL, C "\"num_key_value_heads\": expected an integer, found a string",
     HM_FORMAT},
    {QWEN3(",\"head_dim\":15"), NULL, C "\"head_dim\": expected an even number up to 256, found 15", HM_UNSUPPORTED},
    {QWEN3(",\"head_dim\":258"), NULL, C "\"head_dim\": expected 1 to 256, found 258", HM_RANGE},
    {"{\"architectures\":[\"LlamaForCausalLM\"],\"vocab_size\":8,\"hidden_size\":42,\"intermediate_size\":1,"
     "\"num_hidden_layers\":1,\"num_attention_heads\":4}",
     NULL, C "\"hidden_size\": expected a multiple of 4 heads, found 42", HM_SHAPE},
    {QWEN3(",\"max_position_embeddings\":1e8"), NULL,
     C "\"max_position_embeddings\": expected 1 to 16777216, found 100000000", HM_RANGE},
    {QWEN3(",\"rms_norm_eps\":0"), NULL, C "\"rms_norm_eps\": expected a number between 0 and 1, found 0", HM_RANGE},
    {QWEN3(",\"rms_norm_eps\":1e999"), NULL, C "\"rms_norm_eps\": expected a finite number, found a number", HM_FORMAT},
    {QWEN3(",\"hidden_act\":\"gelu\""), NULL, C "\"hidden_act\": expected \"silu\", found \"gelu\"", HM_UNSUPPORTED},
    {QWEN3(",\"tie_word_embeddings\":1"), NULL, C "\"tie_word_embeddings\": expected a boolean, found a number",
     HM_FORMAT},
    {QWEN3(",\"use_sliding_window\":true"), NULL, C "\"use_sliding_window\": expected false, found true",
     HM_UNSUPPORTED},
    {LLAMA(",\"layer_types\":[\"full_attention\",\"sliding_attention\"]"), NULL,
     C "\"layer_types\": expected \"full_attention\", found \"sliding_attention\"", HM_UNSUPPORTED},
    {LLAMA(",\"layer_types\":[3]"), NULL, C "\"layer_types\": expected \"full_attention\", found a number",
     HM_UNSUPPORTED},
    {QWEN3(",\"quantization_config\":{\"bits\":4}"), NULL,
     C "\"quantization_config\": expected unquantised weights, found a quantisation", HM_UNSUPPORTED},
    {QWEN3(",\"rope_theta\":0.5"), NULL, C "\"rope_theta\": expected a number from 1 to 1e+15, found 0.5", HM_RANGE},
    {QWEN3(",\"rope_theta\":\"1e6\""), NULL, C "\"rope_theta\": expected a number, found a string", HM_FORMAT},
    {QWEN3(",\"rope_scaling\":4"), NULL, C "\"rope_scaling\": expected an object, found a number", HM_FORMAT},
    {QWEN3(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}"), NULL,
     C "\"rope_scaling.type\": expected \"default\" or \"llama3\", found \"yarn\"", HM_UNSUPPORTED},
    {QWEN3(",\"rope_scaling\":{\"rope_type\":\"dynamic\",\"type\":\"default\"}"), NULL,
     C "\"rope_scaling.rope_type\": expected \"default\" or \"llama3\", found \"dynamic\"", HM_UNSUPPORTED},
    {QWEN3(",\"rope_parameters\":{\"rope_type\":7}"), NULL,
     C "\"rope_parameters.rope_type\": expected a string, found a number", HM_FORMAT},
    {QWEN3(",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"yarn\"}}"), NULL,
     C "\"rope_parameters.full_attention\": expected one rotation for all layers, found an object", HM_UNSUPPORTED},
    {LLAMA(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1}"), NULL,
     C "\"rope_scaling.high_freq_factor\": expected a number, found nothing", HM_FORMAT},
    {LLAMA(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":0,\"low_freq_factor\":1,\"high_freq_factor\":4}"),
     NULL, C "\"rope_scaling.factor\": expected a number from 1 to 1e+06, found 0", HM_RANGE},
    {LLAMA(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4}"),
     NULL, C "\"rope_scaling.high_freq_factor\": expected more than low_freq_factor 4, found 4", HM_RANGE},
    {LLAMA(",\"partial_rotary_factor\":0.5"), NULL, C "\"partial_rotary_factor\": expected 1, found 0.5",
     HM_UNSUPPORTED},
    {LLAMA(",\"rope_parameters\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.5}"), NULL,
     C "\"rope_parameters.partial_rotary_factor\": expected 1, found 0.5", HM_UNSUPPORTED},
    {QWEN3(",\"eos_token_id\":131"), NULL, C "\"eos_token_id\": expected a token id below 131, found 131", HM_RANGE},
    {QWEN3(",\"eos_token_id\":[1,-1]"), NULL, C "\"eos_token_id\": expected a token id below 131, found -1", HM_RANGE},
    {QWEN3(",\"eos_token_id\":[[1]]"), NULL, C "\"eos_token_id\": expected a token id, found an array", HM_FORMAT},
    {QWEN3(",\"eos_token_id\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]"), NULL,
     C "\"eos_token_id\": expected at most 16 token ids, found 17", HM_RANGE},
    {QWEN3(",\"bos_token_id\":1e9"), NULL, C "\"bos_token_id\": expected a token id below 131, found 1000000000",
     HM_RANGE},
    {QWEN3(""), "[]", "DIR/generation_config.json: expected an object, found an array", HM_FORMAT},
    {QWEN3(""), "{\"eos_token_id\":500}",
     "DIR/generation_config.json: key \"eos_token_id\": expected a token id below 131, found 500", HM_RANGE},
    {QWEN3(""), "{\"temperature\":\"hot\"}",
     "DIR/generation_config.json: key \"temperature\": expected a number, found a string", HM_FORMAT},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hm_config c;
        struct hm_error err = {0};
        empty_folder();
        write_text("config.json", bad[i].config);
        if (bad[i].generation) write_text("generation_config.json", bad[i].generation);
        hm_status rc = hm_config_read(folder, &c, &err);
        expect_message(bad[i].config, &err, bad[i].message);
        assert_int_equal(rc, bad[i].status);
    }
}

static void test_absent(void **state)
{
    (void)state;
    struct hm_config c;
    struct hm_error err = {0};
    empty_folder();
    assert_int_equal(hm_config_read(folder, &c, &err), HM_IO);
    expect_message("absent", &err, "DIR/config.json: cannot open: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_rope_spellings), cmocka_unit_test(test_generation),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_absent),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
