// The log file: lines appended whole, chained by hash (docs/log.md, "Integrity").
//
// The file is written in place under its final name, so that what is complete can be read at any instant. Only one
// writer at a time: an exclusive lock (flock) is held until the writer is closed.
#ifndef HM_CERTIFY_LOG_WRITER_H
#define HM_CERTIFY_LOG_WRITER_H

#include "base/error.h"
#include "certify/log_json.h"

struct hm_log_writer;

// Creates the log, or empties an existing one. HM_IO when it cannot be created, is no regular file, or when another
// writer holds it (the file is then left as it is).
hm_status hm_log_writer_open(const char *path, struct hm_log_writer **out, struct hm_error *err);

// Completes the line, "{...", with its chain, "}" and newline, and writes it at once. The line is left as written.
// After a failure nothing more may be appended; what was written of the failed line is cut off again if possible.
hm_status hm_log_writer_append(struct hm_log_writer *writer, struct hm_line *line, struct hm_error *err);

// Gives up the lock and frees the writer (NULL is allowed). HM_IO when the system only now says that writing failed.
hm_status hm_log_writer_close(struct hm_log_writer *writer, struct hm_error *err);

#endif
