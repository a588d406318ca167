// `hallmark compare --md FILE`: the comparison as tables that paste into an issue.
#include "cli/compare_run.h"
#include "cli/compare_words.h"
#include "reports/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_MOST = 50 };

struct markdown {
    FILE *to;
    const struct hm_compare_run *run;
    uint64_t forks, outliers;
};

// A cell: no character that ends it or begins something else.
static void cell(FILE *to, const char *text)
{
    fputs(" ", to);
    for (; *text; text++) {
        if (strchr("|`<>*_[]\\#~&", *text)) fprintf(to, "&#%d;", (unsigned char)*text);
        else fputc(*text, to);
    }
    fputs(" |", to);
}

static void token_cell(FILE *to, int32_t id, const char *text)
{
    char words[HM_WORDS];
    hm_words_token(id, text, words);
    cell(to, words);
}

static void side_row(FILE *to, char letter, const struct hm_fork_side *side)
{
    fprintf(to, "| %c |", letter);
    token_cell(to, side->token, side->token_text);
    token_cell(to, side->first, side->first_text);
    token_cell(to, side->second, side->second_text);
    cell(to, side->has_row ? hm_words_ival(side->gap).text : "no row");
    cell(to, side->has_row ? hm_words_ival(side->radius).text : "no row");
    fputc('\n', to);
}

static void write_fork(struct markdown *m, const struct hm_compare_judged *j)
{
    const struct hm_fork *fork = &j->record->fork.fork;
    char place[HM_WORDS];
    if (m->forks++ == 0) fputs("\n### Forks that noise does not explain\n", m->to);
    if (m->forks > ROWS_MOST) return;
    hm_words_place(j->prompt, fork->t, j->record->fork.width, place);
    fprintf(m->to, "\n| %s |", hm_fork_class_name(fork->kind));
    cell(m->to, place);
    fputs(" needs | noise here | usual noise |\n|---|---|---|---|---|\n| |", m->to);
    cell(m->to, fork->why);
    cell(m->to, hm_words_ival(fork->needs).text);
    cell(m->to, fork->has_noise ? hm_words_ival(fork->noise).text : "not known");
    cell(m->to, fork->has_level ? hm_words_ival(fork->level).text : "not known");
    fputs("\n\n| side | emits | first | second | gap | radius |\n|---|---|---|---|---|---|\n", m->to);
    side_row(m->to, 'A', &fork->a);
    side_row(m->to, 'B', &fork->b);
}

static void write_outlier(struct markdown *m, const struct hm_compare_judged *j)
{
    const struct hm_spool_position *p = &j->record->position;
    char place[HM_WORDS], ends[48];
    if (m->outliers++ == 0)
        fputs("\n### Outliers\n\n| place | noise | units | usual noise | between tokens |\n|---|---|---|---|---|\n", m->to);
    if (m->outliers > ROWS_MOST) return;
    hm_words_place(j->prompt, p->t, p->width, place);
    snprintf(ends, sizeof ends, "%d and %d", (int)p->noise.most, (int)p->noise.least);
    fputc('|', m->to);
    cell(m->to, place);
    cell(m->to, hm_words_ival(p->noise.nats).text);
    cell(m->to, hm_words_ival(p->noise.ulps).text);
    cell(m->to, hm_words_ival(j->level).text);
    cell(m->to, ends);
    fputc('\n', m->to);
}

static hm_status write_fork_record(void *user, const struct hm_compare_judged *j, struct hm_error *err)
{
    struct markdown *m = user;
    (void)err;
    if (j->record->kind != HM_SPOOL_FORK) return HM_OK;
    enum hm_fork_class kind = j->record->fork.fork.kind;
    if (kind == HM_FORK_UNEXPLAINED || kind == HM_FORK_UNDECIDED) write_fork(m, j);
    return HM_OK;
}

static hm_status write_outlier_record(void *user, const struct hm_compare_judged *j, struct hm_error *err)
{
    (void)err;
    if (j->outlier) write_outlier(user, j);
    return HM_OK;
}

static void write_head(const struct hm_compare_run *run, FILE *to)
{
    fputs("## hallmark compare\n\n| side | file | format |\n|---|---|---|\n", to);
    for (int s = 0; s < 2; s++) {
        if (!run->side[s].path) continue;
        fprintf(to, "| %c |", s ? 'B' : 'A');
        cell(to, run->side[s].path);
        cell(to, hm_format_name(run->side[s].format));
        fputc('\n', to);
    }
    if (run->model_name) {
        fputs("| B |", to);
        cell(to, run->model_name);
        fputs(" A's tokens scored again |\n", to);
    }
    fputs("\n| prompts | identical | shared prefix (median) | ties | explained | unexplained | undecided | outliers |\n"
          "|---:|---:|---:|---:|---:|---:|---:|---:|\n",
          to);
    const uint64_t *c = run->classes;
    fprintf(to, "| %s |", hm_number_count(run->prompts).text);
    fprintf(to, " %s |", hm_number_percent(run->identical, run->prompts).text);
    fprintf(to, " %u |", (unsigned)hm_compare_median(run));
    for (int k = HM_FORK_TIE; k < HM_FORK_CLASSES; k++) fprintf(to, " %s |", hm_number_count(c[k]).text);
    fprintf(to, " %s |\n", hm_number_count(run->outliers).text);
    if (run->foreign) fputs("\nRows differ by more than 1 nat at half of the positions: no rounding does that.\n", to);
}

static void write_noise(const struct hm_compare_run *run, FILE *to)
{
    struct hm_noise_quantile q[HM_NOISE_QUANTILES];
    fputs("\n### Noise (nats)\n\n| | prompts | forks | unexplained | positions | 50 % | 90 % | 99 % | 99.9 % | most |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
          to);
    for (size_t i = 0; i <= run->groups; i++) {
        const struct hm_compare_group *g = i ? run->group[i - 1] : NULL;
        const struct hm_noise_run *noise = g ? &g->noise : &run->noise;
        const uint64_t *c = run->classes;
        uint64_t forks = g ? g->forks : c[HM_FORK_TIE] + c[HM_FORK_EXPLAINED] + c[HM_FORK_UNEXPLAINED] + c[HM_FORK_UNDECIDED];
        char name[HM_WORDS] = "all";
        if (g) hm_words_group(g, name);
        fputc('|', to);
        cell(to, name);
        fprintf(to, " %s |", hm_number_count(g ? g->prompts : run->prompts).text);
        fprintf(to, " %s |", hm_number_count(forks).text);
        fprintf(to, " %s |", hm_number_count(g ? g->unexplained : c[HM_FORK_UNEXPLAINED]).text);
        fprintf(to, " %s |", hm_number_count(noise->lower.count).text);
        hm_compare_quantiles(noise, q);
        for (int k = 0; k < HM_NOISE_QUANTILES; k++) cell(to, noise->lower.count ? hm_words_ival(q[k].nats).text : "-");
        fputc('\n', to);
    }
}

hm_status hm_compare_print_markdown(struct hm_compare_run *run, struct hm_error *err)
{
    struct markdown m = {.to = fopen(run->options->markdown, "w"), .run = run};
    if (!m.to) return hm_fail(err, HM_IO, "%s: cannot create: %s", run->options->markdown, strerror(errno));
    write_head(run, m.to);
    hm_status rc = hm_compare_each(run, write_fork_record, &m, err);
    if (!rc) rc = hm_compare_each(run, write_outlier_record, &m, err);
    if (m.forks > ROWS_MOST || m.outliers > ROWS_MOST)
        fprintf(m.to, "\nThe first %d of each; `--json` lists them all.\n", ROWS_MOST);
    write_noise(run, m.to);
    bool bad = ferror(m.to);
    if ((fclose(m.to) != 0 || bad) && !rc)
        rc = hm_fail(err, HM_IO, "%s: cannot write: %s", run->options->markdown, strerror(errno));
    return rc;
}
