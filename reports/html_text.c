// The HTML section with the emitted text, every token marked by its verdict, older ones summarised in blocks, and the data
// the script shows in a card.
#include "reports/html.h"
#include "reports/number.h"

#include <math.h>
#include <string.h>

static const char *const FINISHES[] = {"", "end of sequence", "length", "stop string"};

static void put_legend(struct hm_output *o, const struct hm_report *r)
{
    uint64_t count[HM_TOKEN_STATUSES] = {0};
    for (size_t i = r->block_old; i < r->block_count; i++)
        for (size_t s = 0; s < HM_TOKEN_STATUSES; s++) count[s] += r->block[i].status[s];
    hm_put(o, "<ul class=\"legend\" id=\"legend\">");
    for (size_t s = 0; s < HM_TOKEN_STATUSES; s++)
        hm_putf(o, "<li data-s=\"%zu\"%s><span class=\"k s%zu\">%s</span> <b>%s</b></li>", s, count[s] ? "" : " hidden",
                s, hm_html_status_text((unsigned)s), hm_number_count(count[s]).text);
    hm_put(o, "</ul>\n");
}

// Line breaks and blanks have to be seen to carry a colour.
static void put_token(struct hm_output *o, const struct hm_report *r, const struct hm_kept_block *b, size_t index)
{
    const struct hm_kept_token *token = &b->token[index];
    const char *text = b->text + token->text;
    size_t size = token->text_size;
    hm_putf(o, "<span class=\"k s%u\">", b->claim[index * r->claim_count + r->lead].status);
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

static void put_older(struct hm_output *o, const struct hm_report *r, const struct hm_kept_sequence *s, size_t old)
{
    hm_put(o, "<div class=\"older\"><table class=\"tight\"><thead><tr><th>Older tokens, t</th><th></th><th>certified</th>"
              "<th>not</th><th>least noise to turn a step</th><th>at t</th><th class=\"left\">look at them</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < old; i++) {
        const struct hm_kept_block *b = &r->block[s->block + i];
        uint64_t status[HM_TOKEN_STATUSES], drafted = b->tokens - b->status[HM_TOKEN_NO_DRAFT];
        for (size_t k = 0; k < HM_TOKEN_STATUSES; k++) status[k] = b->status[k];
        hm_putf(o, "<tr><th scope=\"row\">%u\xe2\x80\x93%u</th><td>", b->t, b->t + b->tokens - 1);
        hm_html_stack(o, "stack thin", status);
        hm_putf(o, "</td><td>%llu of %llu</td><td>%llu</td>", (unsigned long long)status[HM_TOKEN_CERTIFIED],
                (unsigned long long)drafted, (unsigned long long)(drafted - status[HM_TOKEN_CERTIFIED]));
        if (b->radius < INFINITY)
            hm_putf(o, "<td>%s</td><td>%u</td>", hm_number_down(b->radius, 3).text, b->closest);
        else
            hm_put(o, "<td>\xe2\x80\x93</td><td>\xe2\x80\x93</td>");
        hm_put(o, "<td class=\"left\">");
        hm_html_inspect(o, r, s->log, s->sequence, b->t, (int64_t)b->t + b->tokens - 1);
        hm_put(o, "</td></tr>\n");
    }
    hm_put(o, "</tbody></table></div>\n");
}

static void put_summary(struct hm_output *o, const struct hm_report *r, const struct hm_kept_sequence *s, bool open)
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
    hm_put(o, "</summary>\n");
}

static void put_sequence(struct hm_output *o, const struct hm_report *r, const struct hm_kept_sequence *s, bool open)
{
    size_t old = 0;
    while (old < s->blocks && !r->block[s->block + old].token) old++;
    put_summary(o, r, s, open);
    if (old) put_older(o, r, s, old);
    if (old < s->blocks) {
        const struct hm_kept_block *first = &r->block[s->block + old];
        hm_put(o, "<div class=\"text\" role=\"group\" aria-label=\"Emitted text; arrow keys move between tokens\">");
        for (size_t i = old; i < s->blocks; i++) {
            const struct hm_kept_block *b = &r->block[s->block + i];
            for (size_t k = 0; k < b->tokens; k++) put_token(o, r, b, k);
        }
        hm_put(o, "</div><p class=\"look soft\">These tokens: ");
        hm_html_inspect(o, r, s->log, s->sequence, first->t, (int64_t)s->steps - 1);
        hm_put(o, "</p>");
    }
    hm_put(o, "</details>\n");
}

void hm_html_text(struct hm_output *o, const struct hm_report *r)
{
    uint64_t older = r->steps - r->rows - r->token_count;
    hm_put(o, "<section id=\"text\"><h2>Text</h2>\n<p class=\"note\">");
    hm_put(o, older ? "The newest tokens" : "Every emitted token");
    if (hm_report_has_draft_rows(r)) hm_put(o, ", marked by the verdict");
    if (r->claim_count > 1) hm_put(o, " under the chosen claim");
    hm_put(o, ". Point at a token, tap it, or move with the arrow keys for its numbers and its command. The words are as "
              "the log says; the proof covers the token ids.</p>\n");
    if (older)
        hm_putf(o,
                "<p class=\"note\">The newest %s are shown one by one; %s, of %s in all, are in every figure of this page "
                "and stand here in summaries of blocks.%s</p>\n",
                hm_number_of(r->token_count, "token").text, hm_number_of(older, "older token").text,
                hm_number_of(r->sequences, "sequence").text,
                r->sequences > r->kept_count ? " The first 2,000 sequences are listed." : "");
    if (hm_report_has_draft_rows(r))
        hm_put(o, "<p class=\"js-only soft pick\"><label for=\"proof\">Certified by</label>"
                  "<select id=\"proof\"><option value=\"-1\">any distance</option><option value=\"0\">KLf</option><option "
                  "value=\"1\">KLr</option><option value=\"2\">TV</option></select>"
                  "<label for=\"only\">Point out</label><select id=\"only\"><option value=\"-1\">everything</option></select></p>\n");
    put_legend(o, r);
    size_t open = 0; // the first with tokens
    while (open < r->kept_count && (!r->kept[open].blocks || !r->block[r->kept[open].block + r->kept[open].blocks - 1].token))
        open++;
    for (size_t i = 0; i < r->kept_count; i++) put_sequence(o, r, &r->kept[i], i == open);
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

static void put_token_data(struct hm_output *o, const struct hm_report *r, const struct hm_kept_block *b, size_t index)
{
    const struct hm_kept_token *t = &b->token[index];
    hm_putf(o, "[%u,%u,%u,%u,%d", t->t, t->id, t->source, t->depth + (t->source == HM_SOURCE_ACCEPTED),
            t->round); // the accepted child is one deeper than its row
    put_bound(o, true, hm_number_up(t->entropy.hi, 4));
    put_bound(o, t->has_draft, hm_number_up(t->kl_pq.hi, 4));
    put_bound(o, t->has_draft, hm_number_up(t->kl_qp.hi, 4));
    put_bound(o, t->has_draft, hm_number_up(t->tv.hi, 4));
    put_bound(o, t->has_regret, hm_number_up(t->regret.hi, 4));
    hm_putf(o, ",\"%s\"", FINISHES[t->finish]);
    for (size_t c = 0; c < r->claim_count; c++) put_claim_data(o, &b->claim[index * r->claim_count + c]);
    hm_put(o, "]");
}

// One array per token, in the order of the page; report.js knows the places. Runs: how many tokens in a row belong to a
// sequence of a log.
void hm_html_token_data(struct hm_output *o, const struct hm_report *r)
{
    char m[24];
    const char *between = "";
    hm_put(o, "<script type=\"application/json\" id=\"data\">");
    hm_putf(o, "{\"lead\":%zu,\"claims\":[", r->lead);
    for (size_t i = 0; i < r->claim_count; i++) {
        hm_put(o, i ? ",[" : "[");
        hm_put_json(o, r->claims[i].rule);
        hm_putf(o, ",\"%s\"]", hm_m_text(r->claims[i].m, m));
    }
    hm_put(o, "],\"logs\":[");
    for (size_t i = 0; i < r->log_count; i++) {
        if (i) hm_put(o, ",");
        hm_put_json(o, r->logs[i].path);
    }
    hm_put(o, "],\"runs\":[");
    for (size_t i = r->block_old; i < r->block_count; i++) {
        const struct hm_kept_sequence *s = &r->kept[r->block[i].sequence];
        hm_putf(o, "%s[%u,%zu,%u]", i > r->block_old ? "," : "", r->block[i].tokens, s->log, s->sequence);
    }
    hm_put(o, "],\"rows\":[");
    for (size_t i = r->block_old; i < r->block_count; i++)
        for (size_t k = 0; k < r->block[i].tokens; k++, between = ",") {
            hm_putf(o, "%s\n", between);
            put_token_data(o, r, &r->block[i], k);
        }
    hm_put(o, "]}</script>\n");
}
