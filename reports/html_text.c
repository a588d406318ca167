// The HTML section with the emitted text, every token marked by its verdict, and the data the script shows in a card.
#include "reports/html.h"
#include "reports/number.h"

#include <math.h>
#include <string.h>

static const char *const FINISHES[] = {"", "end of sequence", "length", "stop string"};

static void put_legend(struct hm_output *o, const struct hm_report *r)
{
    uint64_t count[HM_TOKEN_STATUSES] = {0};
    for (size_t i = 0; i < r->token_count; i++) count[r->token_claims[i * r->claim_count + r->lead].status]++;
    hm_put(o, "<ul class=\"legend\" id=\"legend\">");
    for (size_t s = 0; s < HM_TOKEN_STATUSES; s++)
        hm_putf(o, "<li data-s=\"%zu\"%s><span class=\"k s%zu\">%s</span> <b>%s</b></li>", s, count[s] ? "" : " hidden",
                s, hm_html_status_text((unsigned)s), hm_number_count(count[s]).text);
    hm_put(o, "</ul>\n");
}

// Line breaks and blanks have to be seen to carry a colour.
static void put_token(struct hm_output *o, const struct hm_report *r, size_t index)
{
    const struct hm_kept_token *token = &r->tokens[index];
    const char *text = r->text + token->text;
    size_t size = token->text_size;
    hm_putf(o, "<span class=\"k s%u\">", r->token_claims[index * r->claim_count + r->lead].status);
    if (size == 0) hm_putf(o, "<span class=\"sign\">[%u]</span>", token->id);
    for (size_t from = 0; from < size;) {
        const char *newline = memchr(text + from, '\n', size - from);
        size_t part = newline ? (size_t)(newline - text) - from : size - from;
        hm_put_html_bytes(o, text + from, part);
        if (newline) hm_put(o, "<span class=\"sign\">\xe2\x86\xb5</span>\n");
        from += part + (newline != NULL);
    }
    hm_put(o, "</span>");
}

static void put_sequence(struct hm_output *o, const struct hm_report *r, const struct hm_kept_sequence *s, bool open)
{
    uint64_t drafted = s->steps - s->status[HM_TOKEN_NO_DRAFT];
    hm_putf(o, "<details class=\"sequence\"%s><summary><span class=\"name\">", open ? " open" : "");
    hm_put_html(o, s->id[0] ? s->id : "sequence");
    hm_put(o, "</span><span class=\"soft\">");
    if (s->category[0]) {
        hm_put_html(o, s->category);
        hm_put(o, " \xc2\xb7 ");
    }
    if (s->turn) hm_putf(o, "turn %u \xc2\xb7 ", s->turn);
    if (r->log_count > 1) {
        hm_put_html(o, r->logs[s->log].path);
        hm_put(o, " \xc2\xb7 ");
    }
    hm_putf(o, "%s \xc2\xb7 ends by %s</span><span class=\"end soft number\">", hm_number_of(s->steps, "token").text,
            s->finish ? FINISHES[s->finish] : "truncation");
    if (drafted && s->status[HM_TOKEN_VACUOUS] == drafted)
        hm_put(o, "all vacuous</span>");
    else if (drafted)
        hm_putf(o, "%s of %s certified</span>", hm_number_count(s->status[HM_TOKEN_CERTIFIED]).text,
                hm_number_count(drafted).text);
    else
        hm_put(o, "no draft row</span>");
    hm_html_stack(o, "stack thin", s->status);
    hm_put(
        o,
        "</summary>\n<div class=\"text\" role=\"group\" aria-label=\"Emitted text; arrow keys move between tokens\">");
    for (size_t i = 0; i < s->tokens; i++) put_token(o, r, s->token + i);
    if (s->tokens < s->steps)
        hm_putf(o, "<span class=\"soft\"> \xe2\x80\xa6 %s, counted above</span>",
                hm_number_of(s->steps - s->tokens, "more token").text);
    hm_put(o, "</div></details>\n");
}

void hm_html_text(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<section id=\"text\"><h2>Text</h2>\n<p class=\"note\">Every emitted token");
    if (hm_report_has_draft_rows(r)) hm_put(o, ", marked by its verdict");
    if (r->claim_count > 1) hm_put(o, " under the chosen claim");
    hm_put(o, ". Point at a token, tap it, or move with the arrow keys for its numbers. The words are as the log says; "
              "the proof covers the token ids.</p>\n");
    if (hm_report_has_draft_rows(r))
        hm_put(o,
               "<p class=\"js-only soft\" style=\"gap:.5rem;align-items:center;font-size:.875rem\"><label "
               "for=\"proof\">Certified by</label>"
               "<select id=\"proof\"><option value=\"-1\">any distance</option><option value=\"0\">KLf</option><option "
               "value=\"1\">KLr</option><option value=\"2\">TV</option></select></p>\n");
    put_legend(o, r);
    for (size_t i = 0; i < r->kept_count; i++) put_sequence(o, r, &r->kept[i], i == 0);
    uint64_t hidden = r->steps - r->rows - r->token_count;
    if (hidden)
        hm_putf(o,
                "<p class=\"note\">The first %s tokens are shown one by one. %s, of %s in all, "
                "are in every figure of this page but not in this list.</p>\n",
                hm_number_count(r->token_count).text, hm_number_of(hidden, "more token").text,
                hm_number_of(r->sequences, "sequence").text);
    hm_put(o, "</section>\n");
}

static void put_bound(struct hm_output *o, bool known, struct hm_number number)
{
    if (!known)
        hm_put(o, ",null");
    else if (number.text[0] == 'i' || number.text[1] == 'i')
        hm_putf(o, ",\"%s\"", number.text);
    else
        hm_putf(o, ",%s", number.text);
}

static void put_claim_data(struct hm_output *o, const struct hm_kept_claim *c)
{
    static const char codes[] = "nyviu"; // enum hm_certified
    char verdicts[4] = "";
    for (int i = 0; i < 3 && c->has_verdicts; i++) verdicts[i] = codes[c->certified[i]];
    hm_putf(o, ",[%u,%u,%u,%u,\"%s\"", c->k, c->m, c->accepts, c->covered, verdicts);
    put_bound(o, c->has_distances, hm_number_down(c->klf.lo, 4));
    put_bound(o, c->has_distances, hm_number_down(c->klr.lo, 4));
    put_bound(o, c->has_distances, hm_number_down(c->tv.lo, 4));
    put_bound(o, c->has_radius, hm_number_down(c->radius.lo, 4));
    hm_put(o, "]");
}

// One array per token, in the order of the page; report.js knows the places.
void hm_html_token_data(struct hm_output *o, const struct hm_report *r)
{
    char m[24];
    hm_put(o, "<script type=\"application/json\" id=\"data\">{\"claims\":[");
    for (size_t i = 0; i < r->claim_count; i++) {
        hm_put(o, i ? ",[" : "[");
        hm_put_json(o, r->claims[i].rule);
        hm_putf(o, ",\"%s\"]", hm_m_text(r->claims[i].m, m));
    }
    hm_put(o, "],\"rows\":[");
    for (size_t i = 0; i < r->token_count; i++) {
        const struct hm_kept_token *t = &r->tokens[i];
        hm_putf(o, "%s\n[%u,%u,%u,%u,%d", i ? "," : "", t->t, t->id, t->source,
                t->depth + (t->source == HM_SOURCE_ACCEPTED),
                t->round); // the accepted child is one deeper than its row
        put_bound(o, true, hm_number_up(t->entropy.hi, 4));
        put_bound(o, t->has_draft, hm_number_up(t->kl_pq.hi, 4));
        put_bound(o, t->has_draft, hm_number_up(t->kl_qp.hi, 4));
        put_bound(o, t->has_draft, hm_number_up(t->tv.hi, 4));
        put_bound(o, t->has_regret, hm_number_up(t->regret.hi, 4));
        hm_putf(o, ",\"%s\"", FINISHES[t->finish]);
        for (size_t c = 0; c < r->claim_count; c++) put_claim_data(o, &r->token_claims[i * r->claim_count + c]);
        hm_put(o, "]");
    }
    hm_put(o, "]}</script>\n");
}
