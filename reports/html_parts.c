// Small parts that all sections of the HTML page share: names, commands, bars, and figures that can be checked.
#include "reports/html.h"
#include "reports/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *hm_html_status_text(unsigned status)
{
    static const char *const names[] = {"certified", "covered, not certified", "not covered", "no draft row",
                                        "vacuous",   "inapplicable",           "undecided"};
    return status < HM_TOKEN_STATUSES ? names[status] : "";
}

void hm_html_claim_name(struct hm_output *o, const struct hm_claim_figures *f)
{
    char m[24];
    hm_put_html(o, f->rule);
    hm_putf(o, ", m = %s", hm_m_text(f->m, m));
}

void hm_html_shell_word(struct hm_output *o, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-=:,@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        hm_put_html(o, word);
        return;
    }
    hm_put(o, "&#39;");
    for (; *word; word += strcspn(word, "'") + (word[strcspn(word, "'")] == '\'')) {
        size_t part = strcspn(word, "'");
        hm_put_html_bytes(o, word, part);
        if (word[part]) hm_put(o, "&#39;\\&#39;&#39;");
    }
    hm_put(o, "&#39;");
}

void hm_html_stack(struct hm_output *o, const char *class_name, const uint64_t status[HM_TOKEN_STATUSES])
{
    uint64_t all = 0;
    for (size_t i = 0; i < HM_TOKEN_STATUSES; i++) all += status[i];
    hm_putf(o, "<div class=\"%s\" role=\"img\" aria-label=\"", class_name);
    for (size_t i = 0, n = 0; i < HM_TOKEN_STATUSES; i++)
        if (status[i])
            hm_putf(o, "%s%s %s", n++ ? ", " : "", hm_html_status_text((unsigned)i),
                    hm_number_percent(status[i], all).text);
    hm_put(o, "\">");
    for (size_t i = 0; i < HM_TOKEN_STATUSES; i++)
        if (status[i]) hm_putf(o, "<i class=\"s%zu\" style=\"flex:%llu\"></i>", i, (unsigned long long)status[i]);
    hm_put(o, "</div>");
}

void hm_html_value(struct hm_output *o, const char *text, const char *of, const char *path, ...)
{
    char key[160];
    va_list arguments;
    va_start(arguments, path);
    vsnprintf(key, sizeof key, path, arguments);
    va_end(arguments);
    hm_putf(o, "<span data-key=\"%s\"%s%s%s>%s</span>", key, of ? " data-of=\"" : "", of ? of : "", of ? "\"" : "", text);
}

void hm_html_inspect(struct hm_output *o, const struct hm_report *r, size_t log, int64_t sequence, int64_t t, int64_t to)
{
    hm_put(o, "<code class=\"look\">hallmark inspect ");
    hm_html_shell_word(o, r->logs[log].path);
    if (sequence >= 0)
        hm_putf(o, " --step %lld:%lld", (long long)sequence, (long long)t);
    else
        hm_putf(o, " --row %lld", (long long)t);
    if (to > t) hm_putf(o, "-%lld", (long long)to);
    hm_put(o, "</code>");
}

void hm_html_compare_command(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<div class=\"command\"><code>hallmark compare ");
    hm_html_shell_word(o, r->log_count ? r->logs[0].path : "a.jsonl");
    hm_put(o, " ");
    hm_html_shell_word(o, r->log_count > 1 ? r->logs[1].path : "other-run.jsonl");
    hm_put(o, " --json &gt; compare.jsonl\nhallmark report");
    for (size_t i = 0; i < r->log_count; i++) {
        hm_put(o, " ");
        hm_html_shell_word(o, r->logs[i].path);
    }
    hm_put(o, " --findings compare.jsonl -o report.html</code><button class=\"copy js-only\" type=\"button\">Copy</button></div>\n");
}
