// Records in a temporary file: see compare_spool.h. They are structures as they lie in memory, read by the same process.
#include "cli/compare_spool.h"

#include <errno.h>
#include <string.h>

static const size_t sizes[HM_SPOOL_KINDS] = {sizeof(struct hm_spool_prompt), sizeof(struct hm_spool_position),
                                             sizeof(struct hm_spool_fork), sizeof(struct hm_spool_finding)};

static hm_status failed(const char *what, struct hm_error *err)
{
    return hm_fail(err, HM_IO, "cannot %s a temporary file: %s", what, errno ? strerror(errno) : "it ended early");
}

hm_status hm_spool_open(struct hm_spool *spool, struct hm_error *err)
{
    errno = 0;
    spool->file = tmpfile();
    return spool->file ? HM_OK : failed("create", err);
}

void hm_spool_close(struct hm_spool *spool)
{
    if (spool->file) fclose(spool->file);
    spool->file = NULL;
}

hm_status hm_spool_write(struct hm_spool *spool, const struct hm_spool_record *record, struct hm_error *err)
{
    errno = 0;
    bool good = fputc(record->kind, spool->file) != EOF && fwrite(&record->prompt, sizes[record->kind], 1, spool->file) == 1;
    return good ? HM_OK : failed("write", err);
}

hm_status hm_spool_rewind(struct hm_spool *spool, struct hm_error *err)
{
    errno = 0;
    return fflush(spool->file) == 0 && fseek(spool->file, 0, SEEK_SET) == 0 ? HM_OK : failed("write", err);
}

hm_status hm_spool_read(struct hm_spool *spool, struct hm_spool_record *record, bool *there, struct hm_error *err)
{
    errno = 0;
    int kind = fgetc(spool->file);
    *there = kind != EOF;
    if (!*there) return ferror(spool->file) ? failed("read", err) : HM_OK;
    if (kind >= HM_SPOOL_KINDS) return failed("read", err);
    record->kind = (enum hm_spool_kind)kind;
    return fread(&record->prompt, sizes[kind], 1, spool->file) == 1 ? HM_OK : failed("read", err);
}
