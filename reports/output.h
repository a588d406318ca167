// A file that appears complete or not at all, and text in it that cannot be taken for markup.
//
// Writing never fails in the middle: the first failure is kept and told by hm_output_close, so that a writer reads like
// the page it writes.
#ifndef HM_REPORTS_OUTPUT_H
#define HM_REPORTS_OUTPUT_H

#include "base/error.h"

#include <stddef.h>

struct hm_output;

// Opens a temporary file beside path (same folder, so that the last step is one rename). HM_IO when the folder is not
// writable or path is a folder. "-" is standard output; it and a path that is no regular file (a pipe) are written
// directly.
hm_status hm_output_open(const char *path, struct hm_output **out, struct hm_error *err);

// From here to the end lines of Markdown prose are folded to 80 columns, where they have a space to fold at; tables and
// headings stay as they are. At most `most` bytes are written: where there would be more, the text ends after a whole line
// with a note that says so. most >= 200. HM_MEMORY.
hm_status hm_output_fold(struct hm_output *output, size_t most, struct hm_error *err);

// Text in memory instead of a file: hm_output_close hands it over, *text zero-terminated, the caller's to free (NULL when
// it fails). HM_MEMORY.
hm_status hm_output_open_memory(char **text, size_t *size, struct hm_output **out, struct hm_error *err);

// HM_OK: everything is on disk under the path. Else the temporary file is gone and the path is as it was. Frees output.
hm_status hm_output_close(struct hm_output *output, struct hm_error *err);

// Gives up: the path stays as it was. Frees output.
void hm_output_abandon(struct hm_output *output);

// Plain bytes and formatted text, for what we wrote ourselves.
void hm_put(struct hm_output *o, const char *text);
void hm_put_bytes(struct hm_output *o, const void *bytes, size_t size);
void hm_putf(struct hm_output *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Text from a log, in three languages. Control characters and characters that reorder text become visible signs.
void hm_put_html(struct hm_output *o, const char *text);                 // in an element or a quoted attribute
void hm_put_html_bytes(struct hm_output *o, const char *text, size_t size);
void hm_put_markdown(struct hm_output *o, const char *text);             // in a table cell or a paragraph
void hm_put_json(struct hm_output *o, const char *text);                 // with its quotes; safe inside <script> too
void hm_put_json_bytes(struct hm_output *o, const char *text, size_t size);

#endif
