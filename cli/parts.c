// Commands over many inputs: see parts.h. Reading and writing a part is in parts_read.c and parts_write.c.
#include "cli/parts.h"

#include "base/memory.h"
#include "cli/parts_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hm_parts_run {
    const struct hm_parts_setup *setup;
    void *summary;
    struct hm_part_writer *writer; // NULL: one process
    size_t next;                   // input whose result is awaited
};

static hm_status create_part(struct hm_parts_run *run, struct hm_error *err)
{
    const struct hm_parts_setup *s = run->setup;
    struct hm_part_header header = {
        .version = HM_VERSION,
        .command = s->summary->command,
        .arguments = s->arguments,
        .argument_count = s->argument_count,
        .shards = s->shards,
        .inputs = s->input_count,
    };
    hm_status rc = hm_part_hash_names(s->inputs, s->input_count, header.inputs_sha256, err);
    return rc ? rc : hm_part_create(s->folder, &header, &run->writer, err);
}

hm_status hm_parts_open(const struct hm_parts_setup *setup, struct hm_parts_run **out, struct hm_error *err)
{
    *out = NULL;
    struct hm_parts_run *run = hm_calloc(1, sizeof *run);
    if (!run) return hm_fail(err, HM_MEMORY, "%s: out of memory", setup->summary->command);
    run->setup = setup;
    run->next = setup->shards.count ? setup->shards.index - 1 : 0;
    hm_status rc =
        setup->summary->open(setup->arguments, setup->argument_count, setup->input_count, &run->summary, err);
    if (!rc && setup->shards.count) rc = create_part(run, err);
    if (rc)
        hm_parts_close(run);
    else
        *out = run;
    return rc;
}

void hm_parts_close(struct hm_parts_run *run)
{
    if (!run) return;
    hm_part_discard(run->writer);
    run->setup->summary->close(run->summary);
    free(run);
}

bool hm_parts_take(const struct hm_parts_run *run, size_t j)
{
    return hm_shards_take(run->setup->shards, j);
}

FILE *hm_parts_text(struct hm_parts_run *run)
{
    return run->writer ? hm_part_text(run->writer) : stdout;
}

hm_status hm_parts_result(struct hm_parts_run *run, size_t j, cJSON *result, struct hm_error *err)
{
    const struct hm_parts_setup *s = run->setup;
    hm_status rc = HM_OK;
    if (!result) return hm_fail(err, HM_MEMORY, "%s: out of memory for a result", s->inputs[j]);
    if (j != run->next)
        rc = hm_fail(err, HM_USAGE, "%s: expected the result of input %zu, found that of %zu", s->summary->command,
                     run->next + 1, j + 1);
    if (!rc) rc = s->summary->add(run->summary, s->inputs[j], result, err);
    run->next = j + (s->shards.count ? s->shards.count : 1);
    if (rc || !run->writer) {
        cJSON_Delete(result);
        if (!run->writer) fflush(stdout); // whoever reads along sees each input; errors are found at the end
        return rc;
    }
    return hm_part_result(run->writer, j, s->inputs[j], result, err);
}

static hm_status flush_output(FILE *to, struct hm_error *err)
{
    if (fflush(to) == 0 && !ferror(to)) return HM_OK;
    return hm_fail(err, HM_IO, "cannot write the result");
}

// A line of its own for a shard: what one process prints last speaks of all inputs.
static void print_shard(const struct hm_parts_run *run, const char *path, int exit_code)
{
    const struct hm_parts_setup *s = run->setup;
    printf("hallmark: shard %zu of %zu: %zu of %zu inputs, exit code %d: ", s->shards.index, s->shards.count,
           hm_part_share(s->shards, s->input_count), s->input_count, exit_code);
    for (; *path; path++) putchar((unsigned char)*path < ' ' || *path == 0x7f ? '?' : *path);
    putchar('\n');
}

hm_status hm_parts_finish(struct hm_parts_run *run, int *exit_code, struct hm_error *err)
{
    const struct hm_parts_setup *s = run->setup;
    hm_status rc = HM_OK;
    if (run->next < s->input_count)
        return hm_fail(err, HM_USAGE, "%s: expected the result of input %zu, found none", s->summary->command,
                       run->next + 1);
    *exit_code = s->summary->finish(run->summary, run->writer ? NULL : stdout);
    if (run->writer) rc = hm_part_finish(run->writer, *exit_code, err);
    if (run->writer && !rc) print_shard(run, hm_part_path(run->writer), *exit_code);
    return rc ? rc : flush_output(stdout, err);
}
