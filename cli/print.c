// What commands print the same way: see print.h.
#include "cli/print.h"

#include "reports/number.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

const char *hm_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void hm_print_folded(FILE *to, int indent, const char *text)
{
    size_t room = (size_t)(79 - indent);
    while (*text) {
        size_t n = strlen(text), cut = n;
        if (n > room)
            for (cut = room; cut > 0 && text[cut] != ' ';) cut--;
        if (cut == 0) cut = room < n ? room : n;
        fprintf(to, "%*s%.*s\n", indent, "", (int)cut, text);
        text += cut + (text[cut] == ' ');
    }
}

void hm_json_add_text(cJSON *object, const char *key, const char *text)
{
    char clean[256];
    hm_text_copy(clean, sizeof clean, text, strlen(text));
    hm_text_clean(clean);
    cJSON_AddStringToObject(object, key, clean);
}

void hm_json_add_ival(cJSON *object, const char *key, struct hm_ival value)
{
    char text[2 * HM_NUMBER_SIZE + 4];
    snprintf(text, sizeof text, "[%s,%s]", hm_number_json_down(value.lo).text, hm_number_json_up(value.hi).text);
    cJSON_AddRawToObject(object, key, text);
}

void hm_json_add_count(cJSON *object, const char *key, uint64_t count)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, count);
    cJSON_AddRawToObject(object, key, text);
}

static void add_index(cJSON *object, const char *key, int64_t index)
{
    if (index >= 0) cJSON_AddNumberToObject(object, key, (double)index);
    else cJSON_AddNullToObject(object, key);
}

void hm_json_add_finding(cJSON *object, const struct hm_finding *f, const char *side)
{
    cJSON_AddStringToObject(object, "finding", hm_finding_name(f->kind));
    cJSON_AddStringToObject(object, "side", side);
    add_index(object, "sequence", f->sequence);
    add_index(object, "t", f->t);
    hm_json_add_text(object, "where", f->where);
    hm_json_add_text(object, "message", f->what);
}
