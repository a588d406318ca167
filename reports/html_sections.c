// The HTML sections of figures: acceptance, distance and cost, closest decisions, breakdowns.
#include "reports/html.h"
#include "reports/number.h"
#include "reports/picture.h"

#include <math.h>
#include <stdio.h>

// path: of the figure in the JSON report; of: of what it is a share of, or NULL.
static void put_figure(struct hm_output *o, const char *name, const char *value, const char *of, const char *path,
                       const char *formula)
{
    hm_putf(o, "<tr><th scope=\"row\">%s</th><td><b>", name);
    hm_html_value(o, value, of, "%s", path);
    hm_putf(o, "</b></td><td class=\"left wrap soft\">%s</td></tr>\n", formula);
}

// Expected is before a cut, accepted is what was emitted: the two differ in rounds that the end of a sequence cuts.
static void put_expected(struct hm_output *o, const struct hm_acceptance *a)
{
    char text[384], upper[96] = "", cut[96] = "";
    bool exact = a->expected.lo == a->expected.hi && a->expected.lo < 0x1p53; // temperature 0: whole numbers
    if (!exact)
        snprintf(upper, sizeof upper, " (lower end; upper end %s)",
                 hm_number_up(hm_sum_mean_upper(&a->expected), 4).text);
    if (a->ended)
        snprintf(cut, sizeof cut, "; rounds cut by the end of a sequence: %s", hm_number_count(a->ended).text);
    snprintf(text, sizeof text, "before any cut, mean over %s%s; emitted there: %s%s",
             hm_number_of(a->expected.count, "round").text, upper,
             hm_number_ratio(a->expected_accepted, a->expected.count, 3).text, cut);
    put_figure(o, "expected accepted",
               exact ? hm_number_ratio((uint64_t)a->expected.lo, a->expected.count, 3).text
                     : hm_number_down(hm_sum_mean_lower(&a->expected), 4).text,
               NULL, "acceptance.expected_accept.mean_lower", text);
}

// Trees chosen after a draw, nodes only scored, and whether the next root's row is at hand.
static void put_coverage(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    char text[256];
    if (s->first_drawn) {
        snprintf(text, sizeof text, "%s whose first token was drawn before the tree was chosen",
                 hm_number_of(s->first_drawn, "round").text);
        put_figure(o, "first token drawn", hm_number_percent(s->first_drawn, r->acceptance.rounds).text,
                   "acceptance.rounds", "acceptance.rounds_first_drawn", text);
    }
    if (s->scored) {
        snprintf(text, sizeof text, "%s only scored, in %s; no walk goes to them, and they count nowhere else",
                 hm_number_of(s->scored, "node").text, hm_number_of(s->with_scored, "round").text);
        put_figure(o, "only scored per round", hm_number_ratio(s->scored, r->acceptance.rounds, 2).text,
                   "acceptance.rounds", "acceptance.scored_nodes", text);
    }
    snprintf(text, sizeof text, "%s of %s after which the next context is the address of a node, so that its row is at hand",
             hm_number_count(s->covered).text, hm_number_of(s->continued, "round").text);
    put_figure(o, "covered", hm_number_percent(s->covered, s->continued).text, "acceptance.rounds_continued",
               "acceptance.rounds_covered", text);
}

static void put_acceptance_table(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_acceptance *a = &r->acceptance;
    char text[256];
    hm_put(o, "<div class=\"scroll\"><table><thead><tr><th>Figure</th><th>value</th><th "
              "class=\"left\">formula</th></tr></thead><tbody>\n");
    snprintf(text, sizeof text, "%s / %s", hm_number_of(a->accepted, "accepted draft token").text,
             hm_number_of(a->rounds, "round").text);
    put_figure(o, "mean accepted, A", hm_number_ratio(a->accepted, a->rounds, 3).text, NULL, "acceptance.mean_accepted",
               text);
    snprintf(text, sizeof text, "%s emitted in rounds / rounds; A + 1 unless a sequence ends inside a round",
             hm_number_of(a->emitted, "token").text);
    put_figure(o, "tokens per round", hm_number_ratio(a->emitted, a->rounds, 3).text, NULL, "acceptance.tokens_per_round",
               text);
    put_figure(o, "tokens per target pass", hm_number_ratio(a->emitted + r->prefill, a->rounds + r->prefill, 3).text,
               NULL, "acceptance.tokens_per_target_pass", "tokens / (rounds + prompt passes)");
    snprintf(text, sizeof text, "accepted / %s", hm_number_of(a->verified, "verified node").text);
    put_figure(o, "draft acceptance rate", hm_number_ratio(a->accepted, a->verified, 3).text, NULL,
               "acceptance.acceptance_rate", text);
    put_figure(o, "verified nodes per round", hm_number_ratio(a->verified, a->rounds, 2).text, NULL,
               "acceptance.verified_per_round", "nodes of the tree without its root / rounds");
    put_figure(o, "pool per round", hm_number_ratio(a->pool, a->rounds, 2).text, NULL, "acceptance.pool_per_round",
               "candidates the selection chose from / rounds");
    snprintf(text, sizeof text, "%s of %s with a tree emit an accepted path as deep as it",
             hm_number_count(a->full).text, hm_number_of(a->with_tree, "round").text);
    put_figure(o, "fully accepted", hm_number_percent(a->full, a->with_tree).text, "acceptance.rounds_with_tree",
               "acceptance.fully_accepted", text);
    if (a->expected.count) put_expected(o, a);
    if (hm_report_has_coverage(r)) put_coverage(o, r);
    hm_put(o, "</tbody></table></div>\n");
}

// Every definition in use: of all rounds, of those at the depth before, of those with a node there, and per node.
static void put_depths(struct hm_output *o, const struct hm_acceptance *a)
{
    hm_put(o, "<div class=\"scroll\" style=\"margin:0\"><table class=\"tight\"><thead><tr><th>Depth</th><th>offered</th>"
              "<th>reached</th><th>of all</th><th>of depth before</th><th>of offered</th><th>per node"
              "</th></tr></thead><tbody>\n");
    for (size_t d = 1; d < HM_REPORT_DEPTHS && a->offered[d]; d++) {
        const struct {
            const char *name;
            struct hm_number text;
        } cells[] = {{"offered", hm_number_count(a->offered[d])},
                     {"reached", hm_number_count(a->reach[d])},
                     {"share", hm_number_percent(a->reach[d], a->rounds)},
                     {"conditional", hm_number_percent(a->reach[d], a->reach[d - 1])},
                     {"of_offered", hm_number_percent(a->reach[d], a->offered[d])},
                     {"acceptance_rate", hm_number_ratio(a->reach[d], a->nodes[d], 3)}};
        hm_putf(o, "<tr><th scope=\"row\">%zu%s</th>", d, d + 1 == HM_REPORT_DEPTHS ? "+" : "");
        for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
            hm_put(o, "<td>");
            hm_html_value(o, cells[i].text.text, NULL, "acceptance.per_depth.%zu.%s", d - 1, cells[i].name);
            hm_put(o, "</td>");
        }
        hm_put(o, "</tr>\n");
    }
    hm_put(o, "</tbody></table></div>");
}

void hm_html_acceptance(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_acceptance *a = &r->acceptance;
    hm_put(o, "<section id=\"acceptance\"><h2>Acceptance</h2>\n");
    if (a->offered[1]) {
        hm_put(o, "<div class=\"pair\"><div class=\"panel\"><h3>How deep rounds go</h3><p class=\"note\"><span "
                  "class=\"key\"><svg viewBox=\"0 0 22 8\" aria-hidden=\"true\"><rect class=\"fill\" width=\"22\" "
                  "height=\"8\" rx=\"2\"/></svg>share of all rounds</span>"
                  "<span class=\"key\"><svg viewBox=\"0 0 22 16\" aria-hidden=\"true\"><path class=\"mark\" d=\"M11 "
                  "0v16\"/></svg>of those at the depth before</span></p>");
        hm_chart_depths(o, a);
        hm_picture_made(o, r,
                        "Rounds with at least d accepted tokens / rounds; the mark: / rounds with at least d \xe2\x88\x92 1.", "7",
                        -1, "acceptance.per_depth");
        hm_put(o, "</div>");
        put_depths(o, a);
        hm_put(o, "</div>\n");
    }
    put_acceptance_table(o, r);
    hm_html_trees(o, r);
    hm_put(o, "</section>\n");
}

static void put_distance_row(struct hm_output *o, const char *name, const char *key, const struct hm_sum *sum,
                             const struct hm_histogram *h)
{
    static const struct {
        unsigned permille;
        const char *key;
    } quantiles[] = {{500, "q50"}, {900, "q90"}, {950, "q95"}, {990, "q99"}, {999, "q999"}};
    hm_putf(o, "<tr><th scope=\"row\">%s</th><td><b>", name);
    hm_html_value(o, hm_number_up(fmin(hm_sum_mean_upper(sum), h->most), 4).text, NULL, "draft_distance.%s_mean.mean_upper",
                  key);
    hm_put(o, "</b></td>");
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        double value = hm_histogram_upper(h, hm_histogram_rank(h, quantiles[i].permille, 1000));
        hm_put(o, "<td>");
        hm_html_value(o, hm_number_up(value, 4).text, NULL, "draft_distance.%s.%s", key, quantiles[i].key);
        hm_put(o, "</td>");
    }
    hm_put(o, "<td>");
    hm_html_value(o, hm_number_up(h->most, 4).text, NULL, "draft_distance.%s.max", key);
    hm_put(o, "</td></tr>\n");
}

static void put_times(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_acceptance *a = &r->acceptance;
    if (!a->timed && r->certify_seconds < 0) return;
    hm_put(o,
           "<h3>Time</h3><p class=\"note\">From the log\xe2\x80\x99s <code>run</code> fields, which claim nothing: ");
    if (a->timed)
        hm_putf(o, "drafting %s s and verifying %s s in %s%s", hm_number_near(a->draft_seconds, 4).text,
                hm_number_near(a->verify_seconds, 4).text, hm_number_of(a->timed, "round").text,
                r->certify_seconds >= 0 ? "; " : ".");
    if (r->certify_seconds >= 0)
        hm_putf(o, "certifying %s s of processor time%s (%s ms per %s).", hm_number_near(r->certify_seconds, 4).text,
                a->timed ? " beside them" : "",
                hm_number_near(r->steps ? 1000 * r->certify_seconds / (double)r->steps : 0, 3).text,
                hm_report_audit(r) ? "row" : "step");
    hm_put(o, "</p>\n");
}

// What was accepted and what was drawn: at a temperature above 0 the target's own draws have regret too.
static void put_regret(struct hm_output *o, const struct hm_report *r)
{
    const struct {
        const char *name, *path;
        struct hm_number text;
    } rows[] = {
        {"sum, at least", "relaxation.regret.sum_lower", hm_number_down(r->regret.lo, 5)},
        {"sum, at most", "relaxation.regret.sum_upper", hm_number_up(r->regret.hi, 5)},
        {"mean per token, at most", "relaxation.regret_mean_upper",
         hm_number_up(fmin(hm_sum_mean_upper(&r->regret), r->regret_most), 4)},
        {"largest, at most", "relaxation.regret_max_upper", hm_number_up(r->regret_most, 4)},
        {"sum over accepted tokens, at most", r->regret_accepted.count ? "relaxation.regret_accepted.sum_upper" : NULL,
         hm_number_up(r->regret_accepted.hi, 5)},
        {"accepted tokens that are not the target\xe2\x80\x99s first", "relaxation.accepted_not_first",
         hm_number_count(r->accepted_not_first)}};
    hm_putf(o,
            "<p class=\"note\">Regret ln(p<sub>(1)</sub> / p<sub>token</sub>) of %s, in nats; of accepted tokens it is "
            "what the rule gave up, of the others the target\xe2\x80\x99s own draws.</p>\n<div class=\"scroll\"><table "
            "class=\"tight\"><thead><tr><th>Regret</th><th>value</th></tr></thead><tbody>\n",
            hm_number_of(r->regret.count, "token").text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].path) continue;
        hm_putf(o, "<tr><th scope=\"row\">%s</th><td><b>", rows[i].name);
        hm_html_value(o, rows[i].text.text, NULL, "%s", rows[i].path);
        hm_put(o, "</b></td></tr>\n");
    }
    hm_put(o, "</tbody></table></div>\n");
}

void hm_html_cost(struct hm_output *o, const struct hm_report *r)
{
    bool audit = hm_report_audit(r);
    hm_putf(o, "<section id=\"cost\"><h2>Distance%s</h2>\n", audit ? "" : " and cost");
    if (audit && !r->kl_pq.count) hm_put(o, "<p class=\"note\">No row of a draft: there is no distance.</p>\n");
    if (r->kl_pq.count) {
        hm_putf(o,
                "<p class=\"note\">How far the draft q is from the target p at %s with a draft row (KLf: "
                "KL(p\xe2\x80\x96q), KLr: KL(q\xe2\x80\x96p)): upper bounds, rounded up.</p>\n"
                "<div "
                "class=\"scroll\"><table><thead><tr><th>Distance</th><th>mean</th><th>median</th><th>90%%</"
                "th><th>95%%</th><th>99%%</th><th>99.9%%</th><th>largest</th></tr></thead><tbody>\n",
                hm_number_of(r->kl_pq.count, audit ? "row" : "step").text);
        put_distance_row(o, "KLf, nats", "kl_pq", &r->sum_kl_pq, &r->kl_pq);
        put_distance_row(o, "KLr, nats", "kl_qp", &r->sum_kl_qp, &r->kl_qp);
        put_distance_row(o, "TV", "tv", &r->sum_tv, &r->tv);
        hm_put(o, "</tbody></table></div>\n");
        if (hm_report_infinite(r).text[0])
            hm_putf(o,
                    "<p class=\"note\">KLf is infinite at %s: there the draft\xe2\x80\x99s vocabulary lacks tokens that "
                    "the target can choose; see <a href=\"#reduced\">Reduced draft vocabulary</a>.</p>\n",
                    hm_report_infinite(r).text);
    }
    if (!audit) hm_put(o, "<h3>Relaxation</h3>");
    if (r->regret.count)
        put_regret(o, r);
    else if (r->speculative.positions)
        hm_put(o, "<p class=\"note\">Acceptance is <code>standard</code>: coins accept draft tokens just as often as leaves "
                  "every token the target\xe2\x80\x99s law, so speculation changes speed and nothing else.</p>\n");
    else if (!audit)
        hm_put(o, "<p class=\"note\">Acceptance is <code>match</code>: a draft token is kept only when it is the token "
                  "the target draws itself, so speculation changes speed and nothing else.</p>\n");
    if (r->speculative.standard.count)
        hm_put(o, "<p class=\"note\">The target\xe2\x80\x99s own draws have regret too: what the relaxation costs stands "
                  "under <a href=\"#speculative\">Speculative sampling</a>.</p>\n");
    put_times(o, r);
    hm_put(o, "</section>\n");
}

static void put_top(struct hm_output *o, const struct hm_record_logit *top)
{
    if (top->present)
        hm_putf(o, "<td>%lld <span class=\"soft\">(%s)</span></td>", (long long)top->id,
                hm_number_near(top->logit, 9).text);
    else
        hm_put(o, "<td>\xe2\x80\x93</td>");
}

void hm_html_closest(struct hm_output *o, const struct hm_report *r)
{
    bool drafted = hm_report_has_draft_rows(r);
    hm_put(o, "<section id=\"closest\"><h2>Closest decisions</h2>\n");
    if (!r->closest_count)
        hm_put(o, "<p class=\"note\">The log lists neither radii nor two leading tokens per step.</p>\n");
    else {
        hm_put(o, r->closest_by_radius
                      ? "<p class=\"note\">The steps that the least noise in the logits could turn: their stability "
                        "radius under the claim of the first screen. Two runs that part at a step "
                        "where the noise between them is smaller than this radius cannot blame numerics.</p>\n"
                      : "<p class=\"note\">The steps whose first token the least noise in the logits could change: "
                        "half the difference of the two largest logits.</p>\n");
        hm_put(o, "<div class=\"scroll\"><table class=\"tight sortable\"><thead><tr><th>Emitted</th><th>token</th><th>noise "
                  "that could turn it</th><th>first (logit)</th><th>second (logit)</th><th>sequence, t</th><th>log line</th>");
        hm_put(o, drafted ? "<th class=\"left\">verdict</th>" : "");
        hm_put(o, "<th class=\"left\">look at it</th></tr></thead><tbody>\n");
        for (size_t i = 0; i < r->closest_count; i++) {
            const struct hm_close_step *c = &r->closest[i];
            hm_put(o, "<tr><th scope=\"row\"><code>");
            hm_put_html(o, c->text);
            hm_putf(o, "</code></th><td>%u</td><td><b>", c->token);
            hm_html_value(o, hm_number_down(c->radius, 4).text, NULL, "closest.%zu.noise_lower", i);
            hm_put(o, "</b></td>");
            put_top(o, &c->top[0]);
            put_top(o, &c->top[1]);
            hm_putf(o, "<td>%u, %u</td><td>", c->sequence, c->t);
            if (r->log_count > 1) {
                hm_put_html(o, r->logs[c->log].path);
                hm_put(o, ": ");
            }
            hm_putf(o, "%zu</td>", c->line);
            if (drafted)
                hm_putf(o, "<td class=\"left\"><span class=\"dot s%u\"></span>%s</td>", c->status,
                        hm_html_status_text(c->status));
            hm_put(o, "<td class=\"left\">");
            hm_html_inspect(o, r, c->log, c->sequence, c->t, -1);
            hm_put(o, "</td></tr>\n");
        }
        hm_put(o, "</tbody></table></div>\n");
    }
    hm_put(o, "</section>\n");
}

static void put_group_table(struct hm_output *o, const char *title, const char *list, const struct hm_report_group *groups,
                            size_t n)
{
    static const char *const names[] = {"sequences", "steps", "rounds", "accepted", "emitted"};
    hm_putf(o,
            "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>%s</th><th>sequences</th><th>tokens</th>"
            "<th>rounds</th><th>mean accepted</th><th>tokens per round</th><th>certified</th></tr></thead><tbody>\n",
            title);
    for (size_t i = 0; i < n; i++) {
        const struct hm_report_group *g = &groups[i];
        const uint64_t counts[] = {g->sequences, g->steps, g->rounds, g->accepted, g->emitted};
        char of[64];
        snprintf(of, sizeof of, "%s.%zu.rounds", list, i);
        hm_put(o, "<tr><th scope=\"row\">");
        hm_put_html(o, g->name);
        hm_put(o, "</th>");
        for (size_t k = 0; k < 5; k++) {
            hm_put(o, "<td>");
            hm_html_value(o, k < 3 ? hm_number_count(counts[k]).text : hm_number_ratio(counts[k], g->rounds, 2).text,
                          k < 3 ? NULL : of, "%s.%zu.%s", list, i, names[k]);
            hm_put(o, "</td>");
        }
        hm_putf(o, "<td>%s</td></tr>\n",
                g->with_draft ? hm_number_share(g->certified, g->with_draft, g->vacuous).text : "no draft row");
    }
    hm_put(o, "</tbody></table></div>\n");
}

void hm_html_groups(struct hm_output *o, const struct hm_report *r)
{
    if (r->category_count < 2 && r->log_count < 2) return;
    hm_put(o, "<section id=\"groups\"><h2>Side by side</h2>\n<p class=\"note\">Certified: under the claim of the first "
              "screen, of the steps with a draft row.</p>\n");
    if (r->category_count > 1) put_group_table(o, "Category", "categories", r->categories, r->category_count);
    if (r->log_count > 1) put_group_table(o, "Log", "logs", r->by_log, r->log_count);
    hm_put(o, "</section>\n");
}
