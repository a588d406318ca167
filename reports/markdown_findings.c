// The Markdown report on findings (findings.h): forks by class, the unexplained ones first, noise, findings by kind.
#include "reports/markdown.h"
#include "reports/number.h"

static void put_number(struct hm_output *o, const struct hm_finding_number *n)
{
    if (!n->has)
        hm_put(o, "-");
    else if (n->lo == n->hi)
        hm_put(o, hm_number_near(n->lo, 4).text);
    else
        hm_putf(o, "%s..%s", hm_number_down(n->lo, 4).text, hm_number_up(n->hi, 4).text);
}

static void put_token(struct hm_output *o, int64_t id, const char *text)
{
    if (text[0]) hm_put_markdown(o, text);
    if (id >= 0) hm_putf(o, " (%lld)", (long long)id);
}

static void put_side(struct hm_output *o, const struct hm_fork_side_shown *s)
{
    put_token(o, s->token, s->token_text);
    hm_put(o, "; top 2: ");
    put_token(o, s->first, s->first_text);
    hm_put(o, ", ");
    put_token(o, s->second, s->second_text);
    hm_put(o, "; gap ");
    put_number(o, &s->gap);
    hm_put(o, ", radius ");
    put_number(o, &s->radius);
}

static void put_forks(struct hm_output *o, const struct hm_findings *f)
{
    size_t left = HM_MARKDOWN_FORKS;
    uint64_t all = 0;
    hm_put(o, "Forks: ");
    for (size_t c = 0; c < HM_FORK_WORDS; c++) {
        hm_putf(o, "%s%llu %s", c ? ", " : "", (unsigned long long)f->forks[c], hm_fork_word((enum hm_fork_word)c));
        all += f->forks[c];
    }
    hm_put(o, ".\n\n");
    if (!all) return;
    hm_put(o, "| class | prompt | t | needs | noise there | level | A emits | B emits |\n|---|---|---:|---:|---:|---:|---|---|\n");
    for (size_t c = 0; c < HM_FORK_WORDS; c++)
        for (size_t i = 0; i < f->fork_listed[c] && left; i++, left--) {
            const struct hm_fork_shown *k = &f->fork[c][i];
            hm_putf(o, "| %s", hm_fork_word((enum hm_fork_word)c));
            if (k->why[0]) {
                hm_put(o, ": ");
                hm_put_markdown(o, k->why);
            }
            hm_put(o, " | ");
            if (k->id[0])
                hm_put_markdown(o, k->id);
            else
                hm_putf(o, "%lld", (long long)k->prompt);
            hm_putf(o, " | %lld | ", (long long)k->t);
            put_number(o, &k->needs);
            hm_put(o, " | ");
            put_number(o, &k->noise);
            hm_put(o, " | ");
            put_number(o, &k->level);
            hm_put(o, " | ");
            put_side(o, &k->a);
            hm_put(o, " | ");
            put_side(o, &k->b);
            hm_put(o, " |\n");
        }
    hm_put(o, all > HM_MARKDOWN_FORKS ? "\nThe first 20, unexplained ones first; all are counted.\n\n" : "\n");
}

static void put_kinds(struct hm_output *o, const struct hm_findings *f)
{
    hm_put(o, "| finding | count | first place | what |\n|---|---:|---|---|\n");
    for (size_t i = 0; i < f->kinds; i++) {
        const struct hm_finding_shown *s = &f->kind[i].list[0];
        hm_put(o, "| ");
        hm_put_markdown(o, f->kind[i].name);
        hm_putf(o, " | %llu | ", (unsigned long long)f->kind[i].count);
        hm_put_markdown(o, f->file[s->file].path);
        hm_put(o, " ");
        hm_put_markdown(o, s->where);
        if (s->sequence >= 0) hm_putf(o, ", sequence %lld", (long long)s->sequence);
        if (s->t >= 0) hm_putf(o, ", t = %lld", (long long)s->t);
        hm_put(o, " | ");
        hm_put_markdown(o, s->message);
        hm_put(o, " |\n");
    }
    hm_put(o, "\n");
}

static void put_noise(struct hm_output *o, const struct hm_findings *f)
{
    hm_put(o, "| noise, nats | positions | median | 90% | 99% | 99.9% | largest |\n|---|---:|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < f->noises; i++) {
        const struct hm_noise_shown *n = &f->noise[i];
        hm_put(o, "| ");
        hm_put_markdown(o, f->file[n->file].path);
        hm_putf(o, " | %llu ", (unsigned long long)n->positions);
        for (size_t q = 0; q < 5; q++) hm_putf(o, "| %s ", n->quantile[q].has ? hm_number_up(n->quantile[q].hi, 3).text : "-");
        hm_put(o, "|\n");
    }
    hm_put(o, "\n");
}

void hm_markdown_findings(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_findings *f = &r->findings;
    if (!f->files) return;
    hm_put(o, "### Findings\n\n");
    for (size_t i = 0; i < f->files; i++) {
        if (!hm_findings_doubtful(&f->file[i])) continue;
        hm_put(o, "> **Incomplete:** ");
        hm_put_markdown(o, f->file[i].path);
        hm_put(o, f->file[i].has_summary ? " counts otherwise in its summary than in its lines.\n\n"
                                         : " has no summary line.\n\n");
    }
    if (hm_findings_compared(f)) put_forks(o, f);
    if (f->outliers)
        hm_putf(o, "%s with more than ten times the noise of the others.\n\n", hm_number_of(f->outliers, "position").text);
    if (f->noises) put_noise(o, f);
    if (f->kinds) put_kinds(o, f);
    for (size_t i = 0; i < f->missings; i++) {
        hm_put(o, i ? "; " : "Not enough evidence: ");
        hm_put_markdown(o, f->missing[i].field);
        hm_put(o, " (");
        hm_put_markdown(o, f->missing[i].flag);
        hm_put(o, ")");
    }
    if (f->missings) hm_put(o, ".\n\n");
}
