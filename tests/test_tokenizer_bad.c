// Tokenizer files that must be refused: each in tests/data/tokenizer/bad, each with the exact error expected.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/tokenizer.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *file;
    hm_status code;
    const char *message; // after the path
} cases[] = {
    {"added_empty", HM_RANGE, "added token \"\": expected 1 to 512 bytes, found 0"},
    {"added_flag", HM_FORMAT, "key \"special\": expected a boolean, found a string"},
    {"added_id_large", HM_RANGE, "key \"id\": expected 0 to 16777215, found 16777216"},
    {"added_id_of_vocabulary", HM_FORMAT, "added token \"ab\": expected id 2 as in the vocabulary, found 3"},
    {"added_id_taken", HM_FORMAT, "added token \"<x>\": id 1 belongs to another token"},
    {"added_long", HM_RANGE,
     "added token \"<xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\": expected 1 to 512 bytes, found 513"},
    {"added_no_id", HM_FORMAT, "key \"id\": expected an integer, found nothing"},
    {"added_other_bytes", HM_UNSUPPORTED, "added token \"é\": its text spells other bytes in the vocabulary"},
    {"added_single_word", HM_UNSUPPORTED, "added token \"<x>\": single_word is not supported"},
    {"added_twice", HM_FORMAT, "added token \"<x>\" appears twice"},
    {"decoder_missing", HM_FORMAT, "key \"decoder\": expected an object, found nothing"},
    {"decoder_wordpiece", HM_UNSUPPORTED, "decoder: expected \"ByteLevel\", found \"WordPiece\""},
    {"merge_array_of_three", HM_FORMAT, "merge 0: expected \"left right\" or [\"left\", \"right\"]"},
    {"merge_empty_part", HM_FORMAT, "merge 0: \"\" is not in the vocabulary"},
    {"merge_number", HM_FORMAT, "merge 0: expected \"left right\" or [\"left\", \"right\"]"},
    {"merge_one_part", HM_FORMAT, "merge 0: expected \"left right\" or [\"left\", \"right\"]"},
    {"merge_three_parts", HM_FORMAT, "merge 0: expected \"left right\" or [\"left\", \"right\"]"},
    {"merge_twice", HM_FORMAT, "merge 1: \"a\" and the token after it have a merge already"},
    {"merge_unknown_left", HM_FORMAT, "merge 1: \"z\" is not in the vocabulary"},
    {"merge_unknown_result", HM_FORMAT, "merge 0: its result \"ba\" is not in the vocabulary"},
    {"merge_unknown_right", HM_FORMAT, "merge 0: \"z\" is not in the vocabulary"},
    {"merges_missing", HM_FORMAT, "key \"merges\": expected an array, found nothing"},
    {"model_byte_fallback", HM_UNSUPPORTED, "model: byte_fallback is not supported, only byte-level BPE"},
    {"model_dropout", HM_UNSUPPORTED, "model: dropout is not supported: the ids of a text must be certain"},
    {"model_prefix", HM_UNSUPPORTED, "model: continuing_subword_prefix is not supported"},
    {"model_suffix", HM_UNSUPPORTED, "model: end_of_word_suffix is not supported"},
    {"model_untyped", HM_FORMAT, "key \"type\": expected a string, found nothing"},
    {"model_wordpiece", HM_UNSUPPORTED, "model type: expected \"BPE\", found \"WordPiece\""},
    {"no_model", HM_FORMAT, "key \"model\": expected an object, found nothing"},
    {"normalizer_in_sequence", HM_UNSUPPORTED, "normalizer \"NFKC\" is not supported; hallmark knows NFC and none"},
    {"normalizer_lowercase", HM_UNSUPPORTED, "normalizer \"Lowercase\" is not supported; hallmark knows NFC and none"},
    {"not_json", HM_FORMAT, "byte 9: not valid JSON"},
    {"not_object", HM_FORMAT, "expected an object, found an array"},
    {"pre_tokenizer_bytes_first", HM_UNSUPPORTED, "pre_tokenizer: \"Digits\" after ByteLevel is not supported"},
    {"pre_tokenizer_long", HM_RANGE, "pre_tokenizer: expected at most 16 steps"},
    {"pre_tokenizer_metaspace", HM_UNSUPPORTED,
     "pre_tokenizer \"Metaspace\" is not supported; hallmark knows ByteLevel, Split, Digits and Sequence"},
    {"pre_tokenizer_missing", HM_UNSUPPORTED, "pre_tokenizer: expected an object, found nothing"},
    {"pre_tokenizer_no_bytes", HM_UNSUPPORTED, "pre_tokenizer: expected ByteLevel as its last step"},
    {"processor_bert", HM_UNSUPPORTED, "post_processor \"BertProcessing\" is not supported"},
    {"regex_anchor", HM_UNSUPPORTED, "pattern \"^a\": character 0: an anchor is not supported"},
    {"regex_backreference", HM_UNSUPPORTED, "pattern \"(a)\\1\": character 3: this escape is not supported"},
    {"regex_byte_escape", HM_UNSUPPORTED, "pattern \"\\xff\": character 0: this code point is not supported"},
    {"regex_inline_option", HM_UNSUPPORTED, "pattern \"(?i)a\": character 0: this kind of group is not supported"},
    {"regex_intersection", HM_UNSUPPORTED,
     "pattern \"[a-z&&b]\": character 4: an intersection of classes is not supported"},
    {"regex_named_group", HM_UNSUPPORTED, "pattern \"(?<n>a)\": character 0: this kind of group is not supported"},
    {"regex_nested_class", HM_UNSUPPORTED,
     "pattern \"[a[b]]\": character 2: a bracket inside brackets is not supported"},
    {"regex_open_repetition", HM_UNSUPPORTED, "pattern \"a{,3}\": character 1: this brace is not supported"},
    {"regex_posix_class", HM_UNSUPPORTED,
     "pattern \"[[:alpha:]]\": character 1: a bracket inside brackets is not supported"},
    {"regex_possessive_count", HM_UNSUPPORTED,
     "pattern \"a{2}+\": character 1: a suffix after a counted repetition is not supported"},
    {"regex_property", HM_UNSUPPORTED, "pattern \"\\p{L1}\": character 0: this property is not supported"},
    {"regex_set_after_hyphen", HM_UNSUPPORTED,
     "pattern \"[!-\\s]\": character 3: a set after a hyphen is not supported"},
    {"regex_surrogate", HM_UNSUPPORTED, "pattern \"\\ud800\": character 0: this code point is not supported"},
    {"regex_trailing_backslash", HM_UNSUPPORTED, "pattern \"a\\\": character 1: a final backslash is not supported"},
    {"regex_unclosed", HM_FORMAT, "pattern \"(a\": missing closing parenthesis"},
    {"regex_unknown_script", HM_FORMAT, "pattern \"\\p{Klingon}\": unknown property after \\P or \\p"},
    {"regex_verb", HM_UNSUPPORTED, "pattern \"(*ACCEPT)\": character 0: a verb is not supported"},
    {"regex_word_boundary", HM_UNSUPPORTED, "pattern \"\\ba\": character 0: this escape is not supported"},
    {"split_behavior", HM_UNSUPPORTED, "pre_tokenizer Split: behavior \"Doubled\" is not supported"},
    {"split_no_pattern", HM_FORMAT, "key \"Regex\": expected a string, found nothing"},
    {"template_after_text", HM_UNSUPPORTED, "post_processor: a token after the text is not supported"},
    {"template_id_absent", HM_FORMAT, "post_processor token \"a\": id 9 is not a token"},
    {"template_piece", HM_FORMAT, "post_processor: expected SpecialToken or Sequence in \"single\""},
    {"template_unknown_token", HM_FORMAT, "key \"z\": expected an object, found nothing"},
    {"vocab_empty_token", HM_FORMAT, "vocabulary entry of id 3: expected text, found none"},
    {"vocab_id_fraction", HM_RANGE, "vocabulary entry \"c\": expected an id from 0 to 16777215, found 1.5"},
    {"vocab_id_large", HM_RANGE, "vocabulary entry \"c\": expected an id from 0 to 16777215, found 16777216"},
    {"vocab_id_negative", HM_RANGE, "vocabulary entry \"c\": expected an id from 0 to 16777215, found -1"},
    {"vocab_id_text", HM_FORMAT, "vocabulary entry \"c\": expected an id, found a string"},
    {"vocab_id_twice", HM_FORMAT, "vocabulary entry \"c\": id 1 belongs to another entry"},
    {"vocab_list", HM_FORMAT, "key \"vocab\": expected an object, found an array"},
    {"vocab_missing", HM_FORMAT, "key \"vocab\": expected an object, found nothing"},
    {"vocab_token_twice", HM_FORMAT, "key \"ab\" appears twice in one object"},
    {"zero_in_string", HM_UNSUPPORTED, "byte 7: the character U+0000 in a string is not supported"},
};

static void bad_files_are_refused(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[128], expected[1200];
        struct hm_tokenizer *t;
        struct hm_error err = {0};
        snprintf(path, sizeof path, "tests/data/tokenizer/bad/%s.json", cases[i].file);
        snprintf(expected, sizeof expected, "%s: %s", path, cases[i].message);
        hm_status rc = hm_tokenizer_open(path, &t, &err);
        assert_null(t);
        if (rc == cases[i].code && err.code == rc && strcmp(err.message, expected) == 0) continue;
        print_error("%s: expected %d \"%s\"\n  found %d \"%s\"\n", cases[i].file, cases[i].code, expected, rc,
                    err.message);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void missing_files_are_named(void **state)
{
    (void)state;
    struct hm_tokenizer *t;
    struct hm_error err;
    assert_int_equal(hm_tokenizer_open("tests/data/no/such", &t, &err), HM_IO);
    assert_string_equal(err.message, "tests/data/no/such: cannot open: No such file or directory");
    assert_int_equal(hm_tokenizer_open("tests/data", &t, &err), HM_IO);
    assert_string_equal(err.message, "tests/data/tokenizer.json: cannot open: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bad_files_are_refused),
                                       cmocka_unit_test(missing_files_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
