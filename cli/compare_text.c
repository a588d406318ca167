// `hallmark compare` at 80 columns, and the same in Markdown (compare_markdown.c): docs/compare.md "What it prints".
#include "cli/command.h"
#include "cli/compare_run.h"
#include "cli/compare_words.h"
#include "cli/print.h"
#include "reports/number.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

struct printer {
    const struct hm_compare_run *run;
    uint64_t forks, outliers, findings;
};

enum { BLOCKS = 20, BLOCK = 11 }; // blocks shown; their indent

// ---- blocks

static void print_side(char letter, const struct hm_fork_side *side)
{
    char token[HM_WORDS], first[HM_WORDS], second[HM_WORDS];
    hm_words_token(side->token, side->token_text, token);
    if (!side->has_row) {
        printf("           %c emits %s; its row is not known\n", letter, token);
        return;
    }
    hm_words_token(side->first, side->first_text, first);
    hm_words_token(side->second, side->second_text, second);
    printf("           %c emits %s; gap %s, radius %s\n", letter, token, hm_words_ival(side->gap).text,
           hm_words_ival(side->radius).text);
    printf("             top: %s, then %s\n", first, second);
}

static void print_fork(const struct hm_compare_judged *j)
{
    const struct hm_fork *fork = &j->record->fork.fork;
    char place[HM_WORDS];
    hm_words_place(j->prompt, fork->t, j->record->fork.width, place);
    printf("%-10s %s\n           %s\n", hm_fork_class_name(fork->kind), place, fork->why);
    print_side('A', &fork->a);
    print_side('B', &fork->b);
    printf("           needs %s", hm_words_ival(fork->needs).text);
    if (fork->has_noise) printf("; noise here %s", hm_words_ival(fork->noise).text);
    if (fork->has_level) printf("; usual %s", hm_words_ival(fork->level).text);
    putchar('\n');
}

static void print_outlier(const struct hm_compare_judged *j)
{
    const struct hm_spool_position *p = &j->record->position;
    char place[HM_WORDS];
    hm_words_place(j->prompt, p->t, p->width, place);
    printf("outlier    %s%s\n           noise %s = %s units; usual %s\n", p->of_prompt ? "prompt's own " : "", place,
           hm_words_ival(p->noise.nats).text, hm_words_ival(p->noise.ulps).text, hm_words_ival(j->level).text);
    if (p->noise.most >= 0 && p->noise.least >= 0)
        printf("           between tokens %d and %d of %zu shared ones\n", (int)p->noise.most, (int)p->noise.least,
               p->noise.shared);
}

static void print_finding(const struct hm_spool_finding *f)
{
    char what[HM_FINDING_WHAT], where[HM_FINDING_WHERE];
    snprintf(what, sizeof what, "%s", f->finding.what);
    snprintf(where, sizeof where, "%s", f->finding.where);
    hm_text_clean(what);
    hm_text_clean(where);
    printf("finding    %c, %s%s%s:\n", f->side, hm_finding_name(f->finding.kind), *where ? ", " : "", where);
    hm_print_folded(stdout, BLOCK, what);
}

static bool shown(uint64_t *count, uint64_t most, const char *what)
{
    if (++*count == most + 1) printf("%-10s and more (--json lists them all)\n", what);
    return *count <= most;
}

static hm_status print_block(void *user, const struct hm_compare_judged *j, struct hm_error *err)
{
    struct printer *p = user;
    (void)err;
    switch (j->record->kind) {
    case HM_SPOOL_FORK: {
        enum hm_fork_class kind = j->record->fork.fork.kind;
        bool wanted = kind == HM_FORK_UNEXPLAINED || kind == HM_FORK_UNDECIDED;
        if (wanted && shown(&p->forks, BLOCKS, "forks")) print_fork(j);
        break;
    }
    case HM_SPOOL_POSITION:
        if (j->outlier && shown(&p->outliers, BLOCKS, "outliers")) print_outlier(j);
        break;
    case HM_SPOOL_FINDING:
        if (shown(&p->findings, HM_COMPARE_FINDINGS_SHOWN, "findings")) print_finding(&j->record->finding);
        break;
    default: break;
    }
    return HM_OK;
}

// ---- tables

static void print_head(const struct hm_compare_run *run)
{
    for (int s = 0; s < 2; s++)
        if (run->side[s].path)
            printf("%c          %s\n           %s (%s)\n", s ? 'B' : 'A', run->side[s].path,
                   hm_format_name(run->side[s].format), run->side[s].decided_by);
    if (run->model_name) printf("B          %s: A's tokens scored again\n", run->model_name);
    if (run->by_first) puts("tokens     a side tells none: its rows' first ones stand for them");
    if (run->given) puts("path       one, given to both sides: a fork does not end a prompt");
    else if (run->by_first) puts("path       each its own; a fork ends it (rows of one path: --same-path)");
}

static void print_counts(const struct hm_compare_run *run)
{
    const uint64_t *c = run->classes;
    uint64_t forks = c[HM_FORK_TIE] + c[HM_FORK_EXPLAINED] + c[HM_FORK_UNEXPLAINED] + c[HM_FORK_UNDECIDED];
    printf("\nprompts    %s: %s identical; %s tokens compared;\n           shared prefix %u token%s (median)\n",
           hm_number_count(run->prompts).text, hm_number_count(run->identical).text, hm_number_count(run->tokens).text,
           (unsigned)hm_compare_median(run), hm_plural(hm_compare_median(run)));
    printf("forks      %s: %s tie%s, %s explained, %s unexplained, %s undecided\n", hm_number_count(forks).text,
           hm_number_count(c[HM_FORK_TIE]).text, hm_plural(c[HM_FORK_TIE]), hm_number_count(c[HM_FORK_EXPLAINED]).text,
           hm_number_count(c[HM_FORK_UNEXPLAINED]).text, hm_number_count(c[HM_FORK_UNDECIDED]).text);
    if (run->noise.lower.count <= HM_LEVEL_LEAST_POSITIONS)
        printf("outliers   not judged: that takes %d other positions with noise\n", HM_LEVEL_LEAST_POSITIONS);
    else
        printf("outliers   %s position%s with more than ten times the usual noise\n", hm_number_count(run->outliers).text,
               hm_plural(run->outliers));
    if (run->pairs.alone)
        printf("alone      %s prompt%s without a partner\n", hm_number_count(run->pairs.alone).text, hm_plural(run->pairs.alone));
    if (run->parted)
        printf("parted     %s prompt%s whose contexts differ or are not known\n", hm_number_count(run->parted).text, hm_plural(run->parted));
    if (run->foreign) puts("foreign    rows differ by more than 1 nat at half of the positions: no rounding does\n"
                           "           that; other weights, another context or other tokens?");
    if (run->broken) printf("broken     %s row%s that are none\n", hm_number_count(run->broken).text, hm_plural(run->broken));
}

static void print_noise(const struct hm_compare_run *run)
{
    struct hm_noise_quantile q[HM_NOISE_QUANTILES];
    hm_compare_quantiles(&run->noise, q);
    printf("\nnoise      %s position%s; in nats, each figure between two ends\n", hm_number_count(run->noise.lower.count).text, hm_plural(run->noise.lower.count));
    for (int i = 0; i < HM_NOISE_QUANTILES && run->noise.lower.count; i++)
        printf("%10s %s\n", i == HM_NOISE_QUANTILES - 1 ? "most" : hm_words_percent(q[i].name).text,
               hm_words_ival(q[i].nats).text);
}

static void print_groups(const struct hm_compare_run *run)
{
    struct hm_noise_quantile q[HM_NOISE_QUANTILES];
    for (size_t i = 0; i < run->groups; i++) {
        const struct hm_compare_group *g = run->group[i];
        char name[HM_WORDS];
        if (i == 0) printf("\n%-28s %8s %7s %12s %10s %9s\n", "by", "prompts", "forks", "unexplained", "positions", "99.9 %");
        hm_words_group(g, name);
        hm_compare_quantiles(&g->noise, q);
        printf("%-28.28s %8s %7s %12s %10s %9s\n", name, hm_number_count(g->prompts).text, hm_number_count(g->forks).text,
               hm_number_count(g->unexplained).text, hm_number_count(g->noise.lower.count).text,
               g->noise.lower.count ? hm_number_up(q[3].nats.hi, 3).text : "-");
    }
}

static void print_temperatures(const struct hm_compare_run *run)
{
    for (int s = 0; s < 2; s++) {
        const struct hm_likelihood *l = &run->likelihood[s];
        if (!*run->claimed[s]) continue;
        printf("%s    %c: temperature %s: %s of %s tokens are their rows' first;\n           p-value at most %s\n",
               run->refuted[s] ? "refuted" : "claimed", s ? 'B' : 'A', run->claimed[s], hm_number_count(l->first).text,
               hm_number_count(l->tokens).text, hm_number_up(hm_likelihood_p_value(l), 3).text);
    }
}

static void print_missing(const struct hm_compare_run *run)
{
    for (int s = 0; s < 2; s++)
        for (int m = 0; m < HM_MISSINGS; m++)
            if (run->missing[s][m]) {
                printf("missing    %c, %s, at %s place%s:\n", s ? 'B' : 'A', hm_missing_name((enum hm_missing)m),
                       hm_number_count(run->missing[s][m]).text, hm_plural(run->missing[s][m]));
                hm_print_folded(stdout, BLOCK, hm_format_flag(run->side[s].format, (enum hm_missing)m));
            }
}

hm_status hm_compare_print_text(struct hm_compare_run *run, struct hm_error *err)
{
    struct printer p = {.run = run};
    print_head(run);
    print_counts(run);
    hm_status rc = run->options->quiet ? HM_OK : hm_compare_each(run, print_block, &p, err);
    if (rc) return rc;
    print_noise(run);
    print_groups(run);
    print_temperatures(run);
    print_missing(run);
    return hm_cli_flush(err);
}
