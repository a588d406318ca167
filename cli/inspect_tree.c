// A round's tree, drawn with characters: see inspect.h.
#include "cli/inspect.h"

#include "base/memory.h"
#include "reports/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWN_DEPTH = 12, TEXT_COLUMNS = 16 };

static hm_status make_room(struct hm_inspect_tree *t, size_t nodes, struct hm_error *err)
{
    size_t room = t->room;
    if (nodes <= room) return HM_OK;
    const struct hm_array arrays[] = {
        {(void **)&t->parent, sizeof *t->parent},     {(void **)&t->token, sizeof *t->token},
        {(void **)&t->depth, sizeof *t->depth},       {(void **)&t->logq, sizeof *t->logq},
        {(void **)&t->accepted, sizeof *t->accepted}, {(void **)&t->text, sizeof *t->text}};
    if (!hm_grow_together(arrays, sizeof arrays / sizeof *arrays, nodes))
        return hm_fail(err, HM_MEMORY, "out of memory for a tree of %zu nodes", nodes);
    t->room = nodes;
    return HM_OK;
}

static void forget_texts(struct hm_inspect_tree *t)
{
    for (size_t i = 0; i < t->nodes; i++) {
        free(t->text[i]);
        t->text[i] = NULL;
    }
    t->nodes = 0;
}

hm_status hm_inspect_tree_take(struct hm_inspect_tree *t, const struct hm_record *record, struct hm_error *err)
{
    const struct hm_record_round *r = record->round;
    forget_texts(t);
    hm_status rc = make_room(t, r->nodes, err);
    if (rc) return rc;
    t->sequence = r->sequence, t->round = r->round, t->line = record->line;
    t->nodes = r->nodes, t->scored = r->scored;
    t->t = r->t, t->pool = r->pool, t->first = r->first;
    t->has_expected = r->has_expected_accept, t->expected = r->expected_accept;
    memcpy(t->parent, r->parent, r->nodes * sizeof *t->parent);
    memcpy(t->token, r->token, r->nodes * sizeof *t->token);
    memcpy(t->depth, r->depth, r->nodes * sizeof *t->depth);
    memcpy(t->logq, r->logq, r->nodes * sizeof *t->logq);
    memset(t->accepted, 0, r->nodes * sizeof *t->accepted);
    memset(t->text, 0, r->nodes * sizeof *t->text);
    return HM_OK;
}

void hm_inspect_tree_mark(struct hm_inspect_tree *t, const struct hm_record_step *step)
{
    for (int64_t i = step->node; i > 0 && (size_t)i < t->nodes; i = t->parent[i])
        t->accepted[i] = true; // the walk came this way
    if (step->child < 0 || (size_t)step->child >= t->nodes) return;
    t->accepted[step->child] = true;
    free(t->text[step->child]);
    t->text[step->child] = step->text[0] ? strdup(step->text) : NULL; // without memory for it there is no text
}

void hm_inspect_tree_clear(struct hm_inspect_tree *t)
{
    forget_texts(t);
    free(t->parent), free(t->token), free(t->depth), free(t->logq), free(t->accepted), free(t->text);
}

// ---- drawing

// Of each node its first child and its next sibling; 0 where there is none, as node 0 is neither.
struct kin {
    size_t *child, *sibling;
};

static struct kin find_kin(const struct hm_inspect_tree *t)
{
    struct kin k = {hm_calloc(t->nodes, sizeof *k.child), hm_calloc(t->nodes, sizeof *k.sibling)};
    for (size_t i = t->nodes - 1; k.child && k.sibling && i > 0; i--) { // backwards, so that chains are in node order
        k.sibling[i] = k.child[t->parent[i]];
        k.child[t->parent[i]] = i;
    }
    return k;
}

// The lines from the root to a node; only the lowest generations of a deep tree.
static void print_lines(const struct hm_inspect_tree *t, const struct kin *k, size_t node)
{
    size_t path[DRAWN_DEPTH], n = 0, at = node;
    for (; at > 0 && n < DRAWN_DEPTH; at = (size_t)t->parent[at]) path[n++] = at;
    if (at > 0) fputs("..", stdout);
    while (n-- > 0) {
        bool last = k->sibling[path[n]] == 0;
        if (n > 0)
            fputs(last ? "  " : "| ", stdout);
        else
            putchar(last ? '`' : '|');
    }
    if (node > 0) putchar('-');
}

static void print_node(const struct hm_inspect_tree *t, const struct kin *k, size_t i)
{
    char parent[24] = "-", logq[32] = "";
    if (i > 0) snprintf(parent, sizeof parent, "%" PRId64, t->parent[i]);
    if (i > 0) snprintf(logq, sizeof logq, "%.5g", t->logq[i]);
    printf("%6zu %6s %9" PRId64 " %10s  %-8s ", i, parent, t->token[i], logq,
           i == 0                      ? "root"
           : t->accepted[i]            ? "accepted"
           : i >= t->nodes - t->scored ? "scored"
                                       : "");
    print_lines(t, k, i);
    fputs(t->accepted[i] ? "*" : "o", stdout);
    if (t->text[i]) printf(" %s", hm_inspect_quote(t->text[i], TEXT_COLUMNS - 6).text);
    putchar('\n');
}

hm_status hm_inspect_tree_print(const struct hm_inspect_tree *t, struct hm_error *err)
{
    struct kin k = find_kin(t);
    size_t accepted = 0, i = 0;
    hm_status rc =
        k.child && k.sibling ? HM_OK : hm_fail(err, HM_MEMORY, "out of memory for a tree of %zu nodes", t->nodes);
    for (size_t j = 0; j < t->nodes; j++) accepted += t->accepted[j];
    if (rc) goto out;
    printf("round %" PRId64 " of sequence %" PRId64 " (line %zu)\n", t->round, t->sequence, t->line);
    hm_inspect_field("tree", "%s besides the root, %zu accepted%s, from a pool of %" PRId64,
                     hm_number_of(t->nodes - 1, "node").text, accepted, t->scored ? ", some only scored" : "", t->pool);
    if (t->has_expected) hm_inspect_field("expected", "%s accepted", hm_inspect_ival(t->expected).text);
    if (t->first >= 0) hm_inspect_field("first", "token %" PRId64 " was drawn before the tree was chosen", t->first);
    printf("%6s %6s %9s %10s\n", "node", "parent", "token", "log q");
    while (true) { // depth first, without recursion: trees may be thousands deep
        print_node(t, &k, i);
        if (k.child[i]) {
            i = k.child[i];
            continue;
        }
        while (i > 0 && !k.sibling[i]) i = (size_t)t->parent[i];
        if (i == 0) break;
        i = k.sibling[i];
    }
out:
    free(k.child);
    free(k.sibling);
    return rc;
}
