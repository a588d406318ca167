// Lines of `hallmark inspect`: see inspect.h.
#include "cli/inspect.h"

#include "reports/number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80, LABEL = 13, DIGITS = 6 };

// A log may hold any text, a terminal obeys control characters: those of ASCII and U+0080 to U+009F.
static bool is_control(const char *text)
{
    unsigned char c = (unsigned char)text[0];
    return c < ' ' || c == 0x7f || (c == 0xc2 && (unsigned char)text[1] < 0xa0);
}

// Formats; control characters become question marks. The caller frees it; NULL: out of memory.
static char *make_text(const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) < 0) return NULL;
    for (char *c = text; *c; c++) {
        if (!is_control(c)) continue;
        if ((unsigned char)*c == 0xc2) *c++ = '?';
        *c = '?';
    }
    return text;
}

// Prints text from a column on, folded at spaces.
static void print_folded(const char *text, int column)
{
    size_t room = (size_t)(COLUMNS - column);
    while (strlen(text) > room) {
        size_t n = room;
        while (n > 0 && text[n] != ' ') n--;
        if (n == 0) n = strcspn(text, " "); // a word longer than a line stands as it is
        if (!text[n]) break;
        printf("%.*s\n%*s", (int)n, text, column, "");
        text += n + 1;
    }
    puts(text);
}

void hm_inspect_label(const char *label)
{
    if (printf("  %-*s", LABEL - 2, label) > LABEL || strlen(label) == LABEL - 2) printf("\n%*s", LABEL, "");
}

void hm_inspect_field(const char *label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = make_text(format, arguments);
    va_end(arguments);
    hm_inspect_label(label);
    print_folded(text ? text : "(out of memory)", LABEL);
    free(text);
}

void hm_inspect_heading(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = make_text(format, arguments);
    va_end(arguments);
    print_folded(text ? text : "(out of memory)", 4);
    free(text);
}

struct hm_inspect_text hm_inspect_ival(struct hm_ival value)
{
    struct hm_inspect_text out;
    struct hm_number lo = hm_number_down(value.lo, DIGITS), hi = hm_number_up(value.hi, DIGITS);
    if (strcmp(lo.text, hi.text) == 0)
        snprintf(out.text, sizeof out.text, "%s", lo.text);
    else
        snprintf(out.text, sizeof out.text, "[%s, %s]", lo.text, hi.text);
    return out;
}

struct hm_inspect_text hm_inspect_logit(double logit)
{
    struct hm_inspect_text out;
    snprintf(out.text, sizeof out.text, "%s", hm_number_near(logit, 9).text);
    return out;
}

// Room for an escape and what closes the text.
static bool has_room(size_t n)
{
    return n + 12 < sizeof((struct hm_inspect_text *)0)->text;
}

struct hm_inspect_text hm_inspect_quote(const char *text, size_t columns)
{
    struct hm_inspect_text out;
    size_t n = 0, shown = 0;
    out.text[n++] = '"';
    for (; *text && shown < columns && has_room(n); shown++) {
        unsigned char c = (unsigned char)*text++;
        if (c == '\n' || c == '\t') {
            n += (size_t)snprintf(out.text + n, 3, "\\%c", c == '\n' ? 'n' : 't');
        } else if (is_control(text - 1)) {
            if (c == 0xc2) c = (unsigned char)*text++;
            n += (size_t)snprintf(out.text + n, 7, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\') out.text[n++] = '\\';
            out.text[n++] = (char)c;
            while ((*text & 0xc0) == 0x80 && has_room(n)) out.text[n++] = *text++; // the rest of a UTF-8 character
        }
    }
    snprintf(out.text + n, sizeof out.text - n, *text ? "\"..." : "\"");
    return out;
}
