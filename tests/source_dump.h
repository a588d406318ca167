// All that a source gives, as text: what tests of the readers compare with the files beside their samples.
#ifndef HM_TESTS_SOURCE_DUMP_H
#define HM_TESTS_SOURCE_DUMP_H

#include "evidence/source.h"

#include <stddef.h>

// The events of a file, one after the other, in fresh memory; an error is the last line, with the file's name for its path.
// Of rows with more than `most` entries or logits only the first so many are written.
char *test_source_dump(const char *path, const struct hm_source_options *options, size_t most);

// Compares with the text in a file; with HM_UPDATE=1 in the environment it is written first.
void test_source_compare(const char *path, const char *expected_path, const struct hm_source_options *options);

// What most tests read with: rounded printing, the usual allowance.
struct hm_source_options test_source_options(void);

#endif
