// The prompts of a decode: see prompts.h.
#include "cli/prompts.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 64 << 20 };

void hm_prompts_clear(struct hm_prompts *prompts)
{
    for (size_t i = 0; i < prompts->count; i++) {
        struct hm_prompt *p = &prompts->prompt[i];
        for (size_t j = 0; j < p->turns; j++) free(p->turn[j]);
        free(p->turn);
        free(p->id);
        free(p->category);
    }
    free(prompts->prompt);
    *prompts = (struct hm_prompts){0};
}

// Appends a prompt with room for `turns` texts; NULL when memory is short.
static struct hm_prompt *add_prompt(struct hm_prompts *prompts, const char *id, const char *category, size_t turns)
{
    struct hm_prompt *grown = realloc(prompts->prompt, (prompts->count + 1) * sizeof *grown);
    if (!grown) return NULL;
    prompts->prompt = grown;
    struct hm_prompt *p = &grown[prompts->count++];
    *p = (struct hm_prompt){.id = strdup(id), .category = strdup(category), .turn = hm_calloc(turns, sizeof *p->turn)};
    return p->id && p->category && p->turn ? p : NULL;
}

static hm_status add_turn(struct hm_prompt *p, const char *text, struct hm_error *err)
{
    p->turn[p->turns] = strdup(text);
    if (!p->turn[p->turns]) return hm_fail(err, HM_MEMORY, "out of memory for a prompt");
    p->turns++;
    return HM_OK;
}

hm_status hm_prompts_from_text(const char *text, struct hm_prompts *out, struct hm_error *err)
{
    *out = (struct hm_prompts){0};
    struct hm_prompt *p = add_prompt(out, "", "", 1);
    hm_status rc = p ? add_turn(p, text, err) : hm_fail(err, HM_MEMORY, "out of memory for a prompt");
    if (rc) hm_prompts_clear(out);
    return rc;
}

hm_status hm_prompts_from_file(const char *path, struct hm_prompts *out, struct hm_error *err)
{
    char *text;
    size_t size;
    *out = (struct hm_prompts){0};
    hm_status rc = hm_file_read(path, LARGEST, &text, &size, err);
    if (rc) return rc;
    if (memchr(text, 0, size)) rc = hm_fail(err, HM_FORMAT, "%s: expected text, found a zero byte", path);
    else rc = hm_prompts_from_text(text, out, err);
    free(text);
    return rc;
}

// The question's id as text: a text as it stands, or an integer that JSON numbers hold exactly.
static hm_status question_id(const char *where, const cJSON *object, char *out, size_t size, struct hm_error *err)
{
    const cJSON *id = hm_json_find(object, "question_id");
    int64_t number;
    out[0] = 0;
    if (!id) return HM_OK;
    if (cJSON_IsString(id)) {
        snprintf(out, size, "%s", id->valuestring);
        return HM_OK;
    }
    hm_status rc = hm_json_integer(where, object, "question_id", -((int64_t)1 << 53), (int64_t)1 << 53, &number, err);
    if (!rc) snprintf(out, size, "%lld", (long long)number);
    return rc;
}

static hm_status add_question(const char *where, const cJSON *object, struct hm_prompts *out, struct hm_error *err)
{
    const cJSON *turns, *turn;
    const cJSON *category = hm_json_find(object, "category");
    char id[256];
    if (!cJSON_IsObject(object)) return hm_fail(err, HM_FORMAT, "%s: expected an object, found %s", where, hm_json_kind(object));
    hm_status rc = hm_json_array(where, object, "turns", &turns, err);
    if (rc) return rc;
    int count = cJSON_GetArraySize(turns);
    if (count < 1) return hm_fail(err, HM_FORMAT, "%s: key \"turns\": expected at least one text, found none", where);
    rc = question_id(where, object, id, sizeof id, err);
    if (rc) return rc;
    if (category && !cJSON_IsString(category))
        return hm_fail(err, HM_FORMAT, "%s: key \"category\": expected a string, found %s", where, hm_json_kind(category));
    struct hm_prompt *p = add_prompt(out, id, cJSON_IsString(category) ? category->valuestring : "", (size_t)count);
    if (!p) return hm_fail(err, HM_MEMORY, "out of memory for a prompt");
    cJSON_ArrayForEach(turn, turns)
    {
        if (!cJSON_IsString(turn))
            return hm_fail(err, HM_FORMAT, "%s: key \"turns\": expected texts, found %s", where, hm_json_kind(turn));
        rc = add_turn(p, turn->valuestring, err);
        if (rc) return rc;
    }
    return HM_OK;
}

static hm_status add_line(const char *path, size_t number, const char *line, size_t size, struct hm_prompts *out,
                          struct hm_error *err)
{
    char where[512];
    cJSON *object;
    snprintf(where, sizeof where, "%.400s: line %zu", path, number);
    hm_status rc = hm_json_parse(where, line, size, &object, err);
    if (!rc) rc = add_question(where, object, out, err);
    cJSON_Delete(object);
    return rc;
}

hm_status hm_prompts_from_jsonl(const char *path, size_t limit, struct hm_prompts *out, struct hm_error *err)
{
    char *text;
    size_t size, number = 0;
    *out = (struct hm_prompts){0};
    hm_status rc = hm_file_read(path, LARGEST, &text, &size, err);
    if (rc) return rc;
    for (char *line = text; line < text + size && !rc && !(limit && out->count >= limit);) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        if (!end) end = text + size;
        number++;
        if (strspn(line, " \t\r") < (size_t)(end - line)) rc = add_line(path, number, line, (size_t)(end - line), out, err);
        line = end + 1;
    }
    if (!rc && out->count == 0) rc = hm_fail(err, HM_FORMAT, "%s: expected at least one prompt, found none", path);
    free(text);
    if (rc) hm_prompts_clear(out);
    return rc;
}
