// Files and lines of logs under test: see test_stamp_fixture.h.
#include "tests/test_stamp_fixture.h"

#include "base/file.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const struct decode decode_plain = {.vocab = 24,
                                    .rules = {"greedy"},
                                    .m = {HM_M_TREE},
                                    .m_count = 1,
                                    .width = 2,
                                    .depth = 3,
                                    .budget = 9,
                                    .sequences = 2,
                                    .tokens = 25,
                                    .seed = 11};
const struct decode decode_rich = {.vocab = 17,
                                   .rules = {"additive:1/10", "topm:3", "nucleus:0.9"},
                                   .divergences = {"renyi:1/2", "chi2", "spread"},
                                   .m = {HM_M_TREE, 1, 4, 16},
                                   .m_count = 4,
                                   .acceptance = "additive:0.3",
                                   .temperature = "0.8",
                                   .certify_temperature = "3/2",
                                   .top_k = 9,
                                   .top_p = "0.9",
                                   .margin = true,
                                   .universal = true,
                                   .laws = true,
                                   .all_nodes = true,
                                   .width = 3,
                                   .depth = 2,
                                   .budget = 12,
                                   .cap = 2,
                                   .sequences = 3,
                                   .tokens = 12,
                                   .seed = 5};

char log_folder[] = "/tmp/hm-stamp-XXXXXX", log_path[64];

int log_set_up(void **state)
{
    (void)state;
    if (!mkdtemp(log_folder)) return -1;
    snprintf(log_path, sizeof log_path, "%s/run.jsonl", log_folder);
    return 0;
}

int log_tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", log_folder);
    return system(command) == 0 ? 0 : -1;
}

void log_run(const struct decode *decode, const struct hm_stamp_options *options, struct hm_stamp_summary *summary)
{
    struct hm_error err = {.message = ""};
    hm_status rc = decode_run(decode, options, summary, &err);
    if (rc) print_error("%s\n", err.message);
    assert_int_equal(rc, HM_OK);
}

struct log_text log_read(const char *path)
{
    struct log_text text = {0};
    struct hm_error err;
    size_t capacity = 0;
    assert_int_equal(hm_file_read(path, 1 << 26, &text.bytes, &text.size, &err), HM_OK);
    assert_true(text.size > 0);
    assert_int_equal(text.bytes[text.size - 1], '\n');
    for (char *line = text.bytes, *end; line < text.bytes + text.size; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        *end = 0;
        void *start = text.start;
        assert_true(hm_grow(&start, &capacity, text.lines + 1, sizeof *text.start));
        text.start = start;
        text.start[text.lines++] = line;
    }
    return text;
}

void log_free(struct log_text *text)
{
    free(text->bytes);
    free(text->start);
}
