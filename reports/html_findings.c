// The HTML section on findings: what two runs part at, what is wrong with what other engines logged (findings.h).
#include "reports/html.h"
#include "reports/number.h"
#include "reports/picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const DASH = "\xe2\x80\x93";
static const char *const MEANING[HM_FORK_WORDS] = {
    "needs more noise than this run has anywhere else: a bug in one of the two", "evidence is missing",
    "noise of this size was seen elsewhere in the run", "equal logits: the order of ties decided"};
// Colours of statuses that say the same to the eye: missed, undecided, certified, vacuous.
static const int COLOUR[HM_FORK_WORDS] = {HM_TOKEN_UNCOVERED, HM_TOKEN_UNDECIDED, HM_TOKEN_CERTIFIED, HM_TOKEN_VACUOUS};

// An enclosure by both ends where they differ as printed.
static void put_number(struct hm_output *o, const struct hm_finding_number *n)
{
    if (!n->has) {
        hm_put(o, DASH);
        return;
    }
    struct hm_number lo = hm_number_down(n->lo, 4), hi = hm_number_up(n->hi, 4), near = hm_number_near(n->lo, 4);
    if (n->lo == n->hi)
        hm_put(o, near.text);
    else if (strcmp(lo.text, hi.text) == 0)
        hm_put(o, lo.text);
    else
        hm_putf(o, "%s \xe2\x80\xa6 %s", lo.text, hi.text);
}

static void put_token(struct hm_output *o, int64_t id, const char *text)
{
    if (text[0]) {
        hm_put(o, "<code>");
        hm_put_html(o, text);
        hm_put(o, "</code>");
    }
    if (id >= 0) hm_putf(o, " <span class=\"soft\">%lld</span>", (long long)id);
    if (!text[0] && id < 0) hm_put(o, DASH);
}

static void put_place(struct hm_output *o, const struct hm_findings *f, size_t file, const char *id, int64_t prompt,
                      int64_t t)
{
    hm_put(o, "<tr><th scope=\"row\">");
    if (f->files > 1) { // the last name of a path tells files apart; the table of files has the whole
        const char *name = strrchr(f->file[file].path, '/');
        hm_put_html(o, name ? name + 1 : f->file[file].path);
        hm_put(o, ": ");
    }
    if (id[0])
        hm_put_html(o, id);
    else if (prompt >= 0)
        hm_putf(o, "prompt %lld", (long long)prompt);
    else
        hm_put(o, "all");
    if (t >= 0) hm_putf(o, ", t = %lld", (long long)t);
    hm_put(o, "</th>");
}

static void put_side(struct hm_output *o, const struct hm_fork_side_shown *s)
{
    hm_put(o, "<td class=\"left brief\">emits ");
    put_token(o, s->token, s->token_text);
    hm_put(o, "<br><span class=\"soft\">top 2: </span>");
    put_token(o, s->first, s->first_text);
    hm_put(o, ", ");
    put_token(o, s->second, s->second_text);
    hm_put(o, "<br><span class=\"soft\">gap</span> ");
    put_number(o, &s->gap);
    hm_put(o, ", <span class=\"soft\">radius</span> ");
    put_number(o, &s->radius);
    hm_put(o, "</td>");
}

static void put_forks(struct hm_output *o, const struct hm_findings *f)
{
    uint64_t all = 0, listed = 0;
    for (size_t c = 0; c < HM_FORK_WORDS; c++) {
        all += f->forks[c];
        listed += f->fork_listed[c];
    }
    hm_put(o, "<h3>Forks</h3><p class=\"note\">The first position at which the two sides emit different tokens. "
              "<b>needs</b>: the least noise that could make both choices; <b>level</b>: the noise of 99.9&nbsp;% of the "
              "other positions.</p>\n<ul class=\"legend\">");
    for (size_t c = 0; c < HM_FORK_WORDS; c++) {
        hm_putf(o, "<li><span class=\"dot s%d\"></span><b>", COLOUR[c]);
        hm_html_value(o, hm_number_count(f->forks[c]).text, NULL, "findings.forks.%s", hm_fork_word((enum hm_fork_word)c));
        hm_putf(o, "</b> %s: %s</li>", hm_fork_word((enum hm_fork_word)c), MEANING[c]);
    }
    hm_put(o, "</ul>\n");
    if (!all) return;
    hm_put(o, "<div class=\"scroll tall\"><table class=\"tight sortable\"><thead><tr><th>Where</th><th class=\"left\">class"
              "</th><th>needs</th><th>noise there</th><th>level</th><th class=\"left\">A</th><th class=\"left\">B</th></tr></thead><tbody>\n");
    for (size_t c = 0; c < HM_FORK_WORDS; c++)
        for (size_t i = 0; i < f->fork_listed[c]; i++) {
            const struct hm_fork_shown *k = &f->fork[c][i];
            put_place(o, f, k->file, k->id, k->prompt, k->t);
            hm_putf(o, "<td class=\"left brief\"><span class=\"dot s%d\"></span>%s<br><span class=\"soft\">", COLOUR[c],
                    hm_fork_word((enum hm_fork_word)c));
            hm_put_html(o, k->why);
            hm_put(o, "</span></td><td><b>");
            put_number(o, &k->needs);
            hm_put(o, "</b></td><td>");
            put_number(o, &k->noise);
            hm_put(o, "</td><td>");
            put_number(o, &k->level);
            hm_put(o, "</td>");
            put_side(o, &k->a);
            put_side(o, &k->b);
            hm_put(o, "</tr>\n");
        }
    hm_put(o, "</tbody></table></div>\n");
    if (listed < all)
        hm_putf(o, "<p class=\"note\">%s of %s forks are listed, the unexplained ones first; all are counted.</p>\n",
                hm_number_count(listed).text, hm_number_count(all).text);
}

static void put_outliers(struct hm_output *o, const struct hm_findings *f)
{
    if (!f->outliers) return;
    hm_put(o, "<h3>Positions with too much noise</h3><p class=\"note\">More than ten times their level, although no token "
              "need have flipped: something other than rounding happened there.</p>\n<div class=\"scroll tall\"><table "
              "class=\"tight sortable\"><thead><tr><th>Where</th><th>noise</th><th>in units of the last place</th><th>level"
              "</th><th>farthest apart</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < f->outliers_listed; i++) {
        const struct hm_outlier_shown *k = &f->outlier[i];
        put_place(o, f, k->file, k->id, k->prompt, k->t);
        hm_put(o, "<td><b>");
        put_number(o, &k->noise);
        hm_put(o, "</b></td><td>");
        put_number(o, &k->ulps);
        hm_put(o, "</td><td>");
        put_number(o, &k->level);
        hm_putf(o, "</td><td>%lld, %lld</td></tr>\n", (long long)k->most, (long long)k->least);
    }
    hm_put(o, "</tbody></table></div>\n");
    if (f->outliers > f->outliers_listed)
        hm_putf(o, "<p class=\"note\">The first %s of %s.</p>\n", hm_number_count(f->outliers_listed).text,
                hm_number_of(f->outliers, "position").text);
}

// Counts over noise, on the edges the file has: bars of equal width, since edges are in octaves.
static void put_histogram(struct hm_output *o, const struct hm_noise_shown *n)
{
    enum { W = 440, H = 150, BOTTOM = 24 };
    size_t from = 0, to = n->bins;
    while (from < to && !n->bin[from].count) from++;
    while (to > from && !n->bin[to - 1].count) to--;
    if (from == to) return;
    size_t bars = to - from;
    double width = (double)W / (double)bars;
    hm_putf(o, "<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>Positions by noise, from %s to %s</title>\n", W, H,
            hm_number_near(n->bin[from].edge, 3).text, hm_number_near(n->bin[to - 1].edge, 3).text);
    for (size_t i = 0; i < bars; i++) {
        double height = (H - BOTTOM - 6) * sqrt((double)n->bin[from + i].count / (double)n->most); // so that few are seen
        if (!n->bin[from + i].count) continue;
        hm_putf(o, "<rect class=\"fill\" x=\"%s\" y=\"%s\" ", hm_units_down(width * (double)i).text,
                hm_units(H - BOTTOM - height).text);
        hm_putf(o, "width=\"%s\" height=\"%s\"><title>from %s: %llu</title></rect>", hm_units(fmax(width - 1, 0.6)).text,
                hm_units(height).text, hm_number_near(n->bin[from + i].edge, 3).text,
                (unsigned long long)n->bin[from + i].count);
    }
    hm_putf(o,
            "\n<text class=\"muted\" x=\"0\" y=\"%d\">%s</text><text class=\"muted\" x=\"%d\" y=\"%d\" "
            "text-anchor=\"end\">%s nats</text></svg>\n",
            H - 6, hm_number_near(n->bin[from].edge, 3).text, W, H - 6, hm_number_near(n->bin[to - 1].edge, 3).text);
}

static void put_noise(struct hm_output *o, const struct hm_findings *f)
{
    static const char *const names[] = {"median", "90%", "99%", "99.9%", "largest"};
    if (!f->noises) return;
    hm_put(o, "<h3>Noise</h3><p class=\"note\">Half the range of the difference of two rows of one context: constant offsets "
              "cancel. Heights go with the square root of the count, so that rare noise is seen.</p>\n<div class=\"pair\">");
    for (size_t i = 0; i < f->noises; i++) {
        const struct hm_noise_shown *n = &f->noise[i];
        hm_put(o, "<div class=\"panel\"><h3>");
        hm_html_value(o, hm_number_count(n->positions).text, NULL, "findings.noise.%zu.positions", i);
        hm_put(o, " positions</h3><p class=\"note\">");
        hm_put_html(o, f->file[n->file].path);
        if (n->type[0]) {
            hm_put(o, ", ");
            hm_put_html(o, n->type);
        }
        hm_put(o, "</p>");
        put_histogram(o, n);
        hm_put(o, "<table class=\"tight\"><thead><tr>");
        for (size_t q = 0; q < 5; q++) hm_putf(o, "<th>%s</th>", names[q]);
        hm_put(o, "</tr></thead><tbody><tr>");
        for (size_t q = 0; q < 5; q++) {
            hm_put(o, "<td>");
            hm_put(o, n->quantile[q].has ? hm_number_up(n->quantile[q].hi, 3).text : DASH);
            hm_put(o, "</td>");
        }
        hm_put(o, "</tr></tbody></table></div>");
    }
    hm_put(o, "</div>\n");
}

static void put_kinds(struct hm_output *o, const struct hm_findings *f)
{
    if (!f->kinds) return;
    hm_put(o, "<h3>Findings</h3><div class=\"scroll tall\"><table class=\"tight sortable\"><thead><tr><th>Finding</th><th>"
              "count</th><th class=\"left\">place</th><th>sequence, t</th><th class=\"left\">what</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < f->kinds; i++)
        for (size_t k = 0; k < f->kind[i].listed; k++) {
            const struct hm_finding_shown *s = &f->kind[i].list[k];
            hm_put(o, "<tr><th scope=\"row\"><code>");
            hm_put_html(o, f->kind[i].name);
            hm_put(o, "</code></th><td>");
            if (k)
                hm_put(o, hm_number_count(f->kind[i].count).text);
            else
                hm_html_value(o, hm_number_count(f->kind[i].count).text, NULL, "findings.kinds.%zu.count", i);
            hm_put(o, "</td><td class=\"left wrap\">");
            hm_put_html(o, f->file[s->file].path);
            if (s->side[0]) {
                hm_put(o, ", side ");
                hm_put_html(o, s->side);
            }
            if (s->input > 0) hm_putf(o, ", input %lld", (long long)s->input);
            if (s->where[0]) {
                hm_put(o, ", ");
                hm_put_html(o, s->where);
            }
            hm_put(o, "</td><td>");
            if (s->sequence >= 0)
                hm_putf(o, s->t >= 0 ? "%lld, %lld" : "%lld", (long long)s->sequence, (long long)s->t);
            else
                hm_put(o, DASH);
            hm_put(o, "</td><td class=\"left wrap soft\">");
            hm_put_html(o, s->message);
            hm_put(o, "</td></tr>\n");
        }
    hm_put(o, "</tbody></table></div>\n<p class=\"note\">At most 12 of each kind are listed; all are counted.</p>\n");
}

static void put_temperatures(struct hm_output *o, const struct hm_findings *f)
{
    if (!f->temperatures) return;
    hm_put(o, "<h3>Claimed temperature</h3><div class=\"scroll\"><table class=\"tight\"><thead><tr><th>Side</th><th>claimed"
              "</th><th>tokens</th><th>first of their rows</th><th>chance of that, at most</th><th>refuted</th></tr></thead>"
              "<tbody>\n");
    for (size_t i = 0; i < f->temperatures; i++) {
        const struct hm_finding_temperature *t = &f->temperature[i];
        hm_put(o, "<tr><th scope=\"row\">");
        hm_put_html(o, t->side);
        hm_put(o, "</th><td>");
        hm_put_html(o, t->claimed);
        hm_putf(o, "</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", hm_number_count(t->tokens).text,
                hm_number_count(t->first).text, t->p_value.has ? hm_number_up(t->p_value.hi, 3).text : DASH,
                t->refuted ? "<b>yes</b>" : "no");
    }
    hm_put(o, "</tbody></table></div>\n");
}

static void put_groups(struct hm_output *o, const struct hm_findings *f)
{
    if (!f->groups) return;
    hm_put(o, "<h3>By category and width</h3><div class=\"scroll\"><table class=\"tight sortable\"><thead><tr><th>Group</th>"
              "<th>prompts</th><th>forks</th><th>unexplained</th><th>positions</th><th>noise, 99.9%</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < f->groups; i++) {
        const struct hm_finding_group *g = &f->group[i];
        hm_put(o, "<tr><th scope=\"row\">");
        hm_put_html(o, g->by);
        hm_put(o, " ");
        hm_put_html(o, g->name);
        hm_putf(o, "</th><td>%s</td><td>%s</td><td>%s</td>", hm_number_count(g->prompts).text,
                hm_number_count(g->forks).text, hm_number_count(g->unexplained).text);
        hm_putf(o, "<td>%s</td><td>%s</td></tr>\n", hm_number_count(g->positions).text,
                g->noise.has ? hm_number_up(g->noise.hi, 3).text : DASH);
    }
    hm_put(o, "</tbody></table></div>\n");
}

static void put_missing(struct hm_output *o, const struct hm_findings *f)
{
    if (!f->missings) return;
    hm_put(o, "<h3>Not enough evidence</h3><div class=\"scroll\"><table class=\"tight\"><thead><tr><th>Missing</th><th>tokens"
              "</th><th class=\"left\">what would supply it</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < f->missings; i++) {
        hm_put(o, "<tr><th scope=\"row\">");
        hm_put_html(o, f->missing[i].field);
        hm_putf(o, "</th><td>%s</td><td class=\"left\"><code>", hm_number_count(f->missing[i].tokens).text);
        hm_put_html(o, f->missing[i].flag);
        hm_put(o, "</code></td></tr>\n");
    }
    hm_put(o, "</tbody></table></div>\n");
}

static void put_files(struct hm_output *o, const struct hm_findings *f)
{
    hm_put(o, "<div class=\"scroll\"><table class=\"tight\"><thead><tr><th>File</th><th class=\"left\">of</th><th>prompts</th>"
              "<th>identical</th><th>shared prefix</th><th>tokens</th><th>lines</th><th class=\"left\">state</th></tr>"
              "</thead><tbody>\n");
    for (size_t i = 0; i < f->files; i++) {
        const struct hm_findings_file *k = &f->file[i];
        hm_put(o, "<tr><th scope=\"row\" class=\"brief\">");
        hm_put_html(o, k->path);
        hm_put(o, "</th><td class=\"left brief\">");
        if (k->comparison) {
            hm_put_html(o, k->a);
            hm_put(o, " \xe2\x86\x94 ");
            hm_put_html(o, k->b);
        } else {
            hm_put(o, "audit");
        }
        if (k->says)
            hm_putf(o, "</td><td>%s</td><td>%s</td><td>", hm_number_count(k->prompts).text,
                    hm_number_count(k->identical).text);
        else
            hm_putf(o, "</td><td>%s</td><td>%s</td><td>", DASH, DASH);
        put_number(o, &k->shared_prefix);
        hm_putf(o, "</td><td>%s</td><td>%s</td><td class=\"left\">%s</td></tr>\n",
                k->audit ? hm_number_count(k->tokens).text : DASH, hm_number_count(k->lines).text,
                !k->has_summary             ? "<b>incomplete: no summary line</b>"
                : hm_findings_doubtful(k)   ? "<b>its summary counts otherwise than its lines</b>"
                                            : "complete");
    }
    hm_put(o, "</tbody></table></div>\n");
}

void hm_html_findings(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_findings *f = &r->findings;
    hm_put(o, "<section id=\"findings\"><h2>Unexplained?</h2>\n");
    if (!f->files) {
        hm_put(o, "<p class=\"note\">No comparison was given. A log alone says what its own rows prove; whether another run "
                  "of the same prompts parts from it, and whether noise explains where, needs that run:</p>\n");
        hm_html_compare_command(o, r);
        hm_put(o, "</section>\n");
        return;
    }
    put_files(o, f);
    if (hm_findings_compared(f)) put_forks(o, f);
    put_outliers(o, f);
    put_temperatures(o, f);
    put_noise(o, f);
    put_kinds(o, f);
    put_groups(o, f);
    put_missing(o, f);
    hm_put(o, "</section>\n");
}
