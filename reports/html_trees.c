// The HTML section with draft trees of chosen rounds: nodes from left to right by depth, the accepted path on top.
#include "reports/html.h"
#include "reports/number.h"
#include "reports/picture.h"

#include <math.h>
#include <string.h>

enum { COLUMN = 104, ROW = 25, BOX = 88, BOX_HEIGHT = 19, DEEPEST = 14, MARGIN = 8, TEXT = 11 };

// What a node is called: its text where a step of the log has it, else its id. Blanks are made visible, long texts cut.
static void put_label(struct hm_output *o, const struct hm_report *r, int64_t token)
{
    const char *text = hm_rounds_text(&r->rounds, token);
    if (!text) {
        hm_putf(o, "#%lld", (long long)token);
        return;
    }
    for (size_t i = 0; text[i]; i++) {
        if (i == TEXT - 1 && text[TEXT]) {
            hm_put(o, "\xe2\x80\xa6");
            return;
        }
        if (text[i] == ' ')
            hm_put(o, "\xe2\x90\xa3");
        else if (text[i] == '\n')
            hm_put(o, "\xe2\x86\xb5");
        else
            hm_put_html_bytes(o, text + i, 1);
    }
}

// Rows of the picture: a node's first child stands in its own row, the others below what hangs under those before. The
// accepted child comes first, so that the accepted path is the top line.
struct place {
    int row;
    bool drawn;
};

// The target's token comes last below the node whose row gave it, unless a child there has it; target: its row.
static bool continued(const struct hm_kept_round *k, size_t i)
{
    int32_t from = k->node[i].parent;
    return k->has_continuation && from >= 0 && k->node[from].node == k->leaves_from && k->node[i].token == k->continuation &&
           k->node[i].part != HM_NODE_ACCEPTED;
}

static int place_node(const struct hm_kept_round *k, size_t node, int row, struct place *places, int *target)
{
    int next = row;
    bool given = k->has_continuation && k->node[node].node == k->leaves_from;
    places[node] = (struct place){row, true};
    if (k->node[node].depth >= DEEPEST) return row + 1;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = node + 1; i < k->count; i++)
            if (k->node[i].parent == (int32_t)node && (k->node[i].part == HM_NODE_ACCEPTED) == (pass == 0)) {
                next = place_node(k, i, next, places, target);
                given = given && !continued(k, i);
            }
    if (given) *target = next++;
    return next > row ? next : row + 1;
}

static void put_edge(struct hm_output *o, int depth, int from, int to, const char *class_name)
{
    int x = MARGIN + (depth - 1) * COLUMN + BOX, mid = x + (COLUMN - BOX) / 2;
    int a = MARGIN + from * ROW + BOX_HEIGHT / 2, b = MARGIN + to * ROW + BOX_HEIGHT / 2;
    hm_putf(o, "<path class=\"edge %s\" d=\"M%d %dH%dV%dH%d\"/>", class_name, x, a, mid, b, x + COLUMN - BOX);
}

static void put_box(struct hm_output *o, const struct hm_report *r, int depth, int row, const char *class_name, int64_t token)
{
    int x = MARGIN + depth * COLUMN, y = MARGIN + row * ROW;
    hm_putf(o, "<rect class=\"node %s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/><text class=\"%s\" x=\"%d\" "
               "y=\"%d\" text-anchor=\"middle\">",
            class_name, x, y, BOX, BOX_HEIGHT, class_name, x + BOX / 2, y + 14);
    put_label(o, r, token);
    hm_put(o, "</text>");
}

static const char *const CLASSES[] = {"root", "verified", "accepted", "scored"};
static const char *const PARTS[] = {"root, the newest token", "verified, not accepted", "accepted", "only scored"};

static void put_tree(struct hm_output *o, const struct hm_report *r, const struct hm_kept_round *k)
{
    struct place places[HM_ROUNDS_NODES] = {{0, false}};
    int row = -1, rows = place_node(k, 0, 0, places, &row), deepest = 0, leaves = -1;
    for (size_t i = 0; i < k->count; i++) {
        if (places[i].drawn && k->node[i].depth > deepest) deepest = k->node[i].depth;
        bool drawn = places[i].drawn && k->node[i].depth < DEEPEST;
        if (row >= 0 && drawn && k->node[i].node == k->leaves_from) leaves = (int)i;
    }
    int depth = leaves >= 0 ? k->node[leaves].depth + 1 : 0;
    if (depth > deepest) deepest = depth;
    int width = 2 * MARGIN + deepest * COLUMN + BOX, height = 2 * MARGIN + rows * ROW - (ROW - BOX_HEIGHT);
    hm_putf(o, "<div class=\"scroll plain\"><svg class=\"tree\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
               "role=\"img\"><title>Draft tree: %llu of %lld nodes drawn, %llu accepted</title>\n",
            width, height, width, height, (unsigned long long)k->count, (long long)k->nodes,
            (unsigned long long)k->accepted);
    for (int pass = 0; pass < 2; pass++) // the accepted path over the others
        for (size_t i = 1; i < k->count; i++)
            if (places[i].drawn && (k->node[i].part == HM_NODE_ACCEPTED) == (pass == 1))
                put_edge(o, k->node[i].depth, places[k->node[i].parent].row, places[i].row,
                         continued(k, i) ? "target" : CLASSES[k->node[i].part]);
    if (leaves >= 0) put_edge(o, depth, places[leaves].row, row, "target");
    hm_put(o, "\n");
    for (size_t i = 0; i < k->count; i++) {
        const struct hm_kept_node *n = &k->node[i];
        if (!places[i].drawn) continue;
        hm_putf(o, "<g><title>node %d, token %lld, depth %d: %s", n->node, (long long)n->token, n->depth, PARTS[n->part]);
        if (continued(k, i)) hm_put(o, ", and the target\xe2\x80\x99s own token, which ends the round");
        if (i && n->logq > -INFINITY)
            hm_putf(o, "; q = %s given its parent, as the log says", hm_number_near(exp(n->logq), 3).text);
        hm_put(o, "</title>");
        put_box(o, r, n->depth, places[i].row, continued(k, i) ? "target" : CLASSES[n->part], n->token);
        hm_put(o, "</g>\n");
    }
    if (leaves >= 0) {
        hm_putf(o, "<g><title>token %lld: emitted by the target, which ends the round</title>", (long long)k->continuation);
        put_box(o, r, depth, row, "target", k->continuation);
        hm_put(o, "</g>\n");
    }
    hm_put(o, "</svg></div>\n");
}

static void put_round(struct hm_output *o, const struct hm_report *r, const struct hm_shown_round *shown, size_t index)
{
    const struct hm_kept_round *k = shown->round;
    hm_putf(o, "<div class=\"panel round\" data-round=\"%zu\"><h3>", index);
    if (*shown->why) hm_putf(o, "%c%s: ", shown->why[0] - 32, shown->why + 1); // names of rounds.h are small letters
    hm_putf(o, "%llu accepted</h3><p class=\"note\">Round %lld of sequence %lld, from t = %lld: ",
            (unsigned long long)k->accepted, (long long)k->round, (long long)k->sequence, (long long)k->t);
    hm_putf(o, "%s verified", hm_number_of((uint64_t)(k->nodes - 1 - k->scored), "node").text);
    if (k->scored) hm_putf(o, ", %s only scored", hm_number_count((uint64_t)k->scored).text);
    hm_putf(o, ", depth %lld; %s emitted.", (long long)k->depth, hm_number_of(k->emitted, "token").text);
    if ((int64_t)k->count < k->nodes)
        hm_putf(o, " Drawn: the accepted path and the draft\xe2\x80\x99s likeliest, %zu of %lld nodes.", k->count,
                (long long)k->nodes);
    hm_put(o, " ");
    hm_html_inspect(o, r, k->log, k->sequence, k->t, k->t + (int64_t)k->emitted - 1);
    hm_put(o, "</p>");
    put_tree(o, r, k);
    hm_put(o, "</div>\n");
}

static void put_key(struct hm_output *o, const char *class_name, const char *text)
{
    hm_putf(o,
            "<span class=\"key\"><svg viewBox=\"0 0 22 12\" aria-hidden=\"true\"><rect class=\"node %s\" x=\"1\" y=\"1\" "
            "width=\"20\" height=\"10\" rx=\"3\"/></svg>%s</span>",
            class_name, text);
}

void hm_html_trees(struct hm_output *o, const struct hm_report *r)
{
    struct hm_shown_round shown[HM_ROUNDS_KEPT];
    size_t n = hm_rounds_chosen(&r->rounds, r->acceptance.by_count, HM_REPORT_DEPTHS, shown);
    bool scored = false;
    if (!n) return;
    if (n > HM_HTML_MOST_TREES) n = HM_HTML_MOST_TREES;
    for (size_t i = 0; i < n; i++) scored |= shown[i].round->scored > 0;
    hm_put(o, "<div id=\"trees\"><h3>Draft trees</h3><p class=\"note\">One round for each number of accepted tokens. Texts "
              "are those of the log\xe2\x80\x99s own steps, #ids where no step has the token. ");
    put_key(o, "accepted", "accepted");
    put_key(o, "verified", "verified, not accepted");
    if (scored) put_key(o, "scored", "only scored");
    put_key(o, "target", "the target\xe2\x80\x99s own token");
    hm_put(o, "</p>\n");
    if (n > 1) {
        hm_put(o, "<p class=\"js-only soft pick\"><label for=\"round\">Round</label><select id=\"round\">");
        for (size_t i = 0; i < n; i++)
            hm_putf(o, "<option value=\"%zu\">%llu accepted%s%s</option>", i, (unsigned long long)shown[i].round->accepted,
                    *shown[i].why ? ": " : "", shown[i].why);
        hm_put(o, "<option value=\"-1\">all of these</option></select></p>\n");
    }
    for (size_t i = 0; i < n; i++) put_round(o, r, &shown[i], i);
    hm_picture_made(o, r,
                    "Rounds and steps of the log as they stand; of each number of accepted tokens the first round, "
                    "\xe2\x80\x9ctypical\xe2\x80\x9d being the median number.",
                    NULL, -1, "trees");
    hm_put(o, "</div>\n");
}
