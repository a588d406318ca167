// What a step, node or row record claims about its rows. docs/log.md "step" and "claims".
#include "parts.h"

const char *const sc_verdicts[] = {"yes", "no", "vacuous", "inapplicable", "undecided", NULL};
const char *const sc_thresholds[] = {"klf", "klr", "tv", NULL};
static const char *const yes_no[] = {"yes", "no", "undecided", NULL}, *const eps_delta[] = {"eps", "delta", NULL};

// [id, logit], which must be this place of the order when the row is there.
static int64_t entry(const cJSON *v, const char *field, const struct node *n, size_t place, double *logit) {
    sc_need(cJSON_IsArray(v) && cJSON_GetArraySize(v) == 2, field, "[id, logit]");
    int64_t id = sc_integer(v->child, field, 0);
    *logit = sc_real(v->child->next, field);
    sc_must(id < (int64_t)run->vocab, field, "an id below the vocabulary");
    sc_must((double)(float)*logit == *logit, field, "a float32 logit");
    const struct row *p = &run->row[TARGET];
    sc_must(!n->target || (id == p->order[place] && *logit == p->logit[id]), field, "the order's token and logit");
    return id;
}

static void check_top(const cJSON *record, struct node *n) {
    int64_t before = -1, wanted = run->top_count < (int64_t)run->vocab ? run->top_count : (int64_t)run->vocab;
    double above = INFINITY, logit;
    size_t place = 0;
    const cJSON *v;
    n->top = sc_get(record, "top", cJSON_Array);
    sc_must(cJSON_GetArraySize(n->top) == wanted, "top", "as many entries as the header says");
    cJSON_ArrayForEach (v, n->top) {
        int64_t id = entry(v, "top", n, place++, &logit);
        sc_must(logit < above || (logit == above && id > before), "top", "descending logits, then ids");
        before = id;
        above = logit;
    }
}

// Is a token among the first k?  From the row, or from `top` as far as it goes.
static enum answer among(const struct node *n, size_t token, size_t k) {
    if (n->target) return run->row[TARGET].rank[token] < k ? YES : NO;
    size_t rank = 0;
    const cJSON *v;
    cJSON_ArrayForEach (v, n->top) {
        if (v->child->valuedouble == (double)token) return rank < k ? YES : NO;
        rank++;
    }
    return k <= rank ? NO : OPEN;
}

static void check_edge(const cJSON *claim, const struct node *n, size_t k) {
    const cJSON *edge = sc_get(claim, "edge", cJSON_Array);
    sc_need(cJSON_GetArraySize(edge) == 2, "edge", "two entries");
    for (int i = 0; i < 2; i++) {
        const cJSON *v = cJSON_GetArrayItem(edge, i), *listed = cJSON_GetArrayItem(n->top, (int)k - 1 + i);
        bool exists = i ? k < run->vocab : k > 0;
        double logit, other;
        sc_must(exists == !cJSON_IsNull(v), "edge", exists ? "an entry" : "null");
        if (!exists) continue;
        int64_t id = entry(v, "edge", n, k - 1 + (size_t)i, &logit);
        if (!n->target && listed)
            sc_must(entry(listed, "edge", n, 0, &other) == id && other == logit, "edge", "the entry of top");
    }
}

static bool check_k(struct ask a, const struct node *n) {         // true when it is decided
    bool fixed = a.rule->counted && a.rule->kind->rationals == 0; // greedy, topm
    sc_must(a.k <= run->vocab, "k", "at most the vocabulary");
    sc_must(!fixed || a.k == (a.rule->count < run->vocab ? a.rule->count : run->vocab), "k", "the rule's count");
    if (!n->target) return true;
    a.at = a.k;
    enum answer next = sc_member(a), last = YES;
    a.at = a.k - 1;
    if (a.k > 0) last = sc_member(a);
    sc_must(last != NO && next != YES, "k", "the size of A(p)");
    sc_open(last == OPEN || next == OPEN, "k");
    return last == YES && next == NO;
}

static void check_tied(const cJSON *claim, const char *key, mpq_srcptr order, const struct ask *a, bool rows) {
    const cJSON *tied = sc_get(claim, key, cJSON_Array);
    sc_need(cJSON_GetArraySize(tied) == 2, key, "[a, s]");
    size_t count[2] = {(size_t)sc_integer(tied->child, key, 0), (size_t)sc_integer(tied->child->next, key, 0)};
    size_t range[4] = {0, a->k, 0, a->m};
    if (rows) sc_tied(a, order, range);
    bool ok = count[0] >= range[0] && count[0] <= range[1] && count[1] >= range[2] && count[1] <= range[3];
    sc_must(ok, key, "the tied set");
}

// Levels and thresholds of a claim, or of its `restricted`.
static void check_levels(const cJSON *claim, const struct ask *a, bool rows, quantity *const thresholds[3],
                         struct ends star[3]) {
    if (a->k == 0 || a->k + a->m > a->size) {
        for (int i = 0; i < 3; i++) {
            star[i] = sc_enclosure(claim, sc_thresholds[i], false);
            double value = a->k == 0 ? 0 : INFINITY;
            sc_must(star[i].lo == value && star[i].hi == value, sc_thresholds[i],
                    value > 0 ? "exactly inf" : "exactly 0");
        }
        sc_absent(claim, "level_f level_r tied_f tied_r margin universal",
                  "nothing: k is 0 or k + m exceeds the vocabulary");
        return;
    }
    struct ends f = sc_prove(claim, "level_f", q_level_f, a, rows), r = sc_prove(claim, "level_r", q_level_r, a, rows);
    sc_must(f.hi >= 0 && f.lo <= 1, "level_f", "a level within [0, 1]");
    sc_must(r.lo <= 0, "level_r", "a logarithm <= 0");
    check_tied(claim, "tied_f", run->one, a, rows);
    check_tied(claim, "tied_r", run->zero, a, rows);
    for (int i = 0; i < 3; i++) {
        star[i] = sc_prove(claim, sc_thresholds[i], thresholds[i], a, rows);
        sc_must(star[i].hi >= 0, sc_thresholds[i], "a value >= 0");
    }
}

static void check_bounds(const cJSON *claim, struct ask a, bool rows, const struct ends star[3]) { // margin, universal
    for (int i = 0; i < 2; i++) // Pinsker, with room for this line's own rounding
        sc_must(!(star[2].lo > 0) || 2 * star[2].lo * star[2].lo * (1 - 0x1p-40) <= star[i].hi, sc_thresholds[i],
                "at least 2 tv^2");
    if (run->margin) {
        const cJSON *margin = sc_get(claim, "margin", cJSON_Object);
        sc_prove(margin, "gap", q_margin, &a, rows);
        for (a.part = 1; a.part <= 3; a.part++) {
            struct ends e = sc_prove(margin, sc_thresholds[a.part - 1], q_margin, &a, rows);
            sc_must(e.lo <= star[a.part - 1].hi, sc_thresholds[a.part - 1], "at most the exact threshold");
        }
    }
    char kind = run->universal ? a.rule->kind->universal : 0;
    const cJSON *universal = sc_find(claim, "universal");
    if (kind && kind != 'a' && kind != 'm') {
        enum answer below = rows ? sc_decide(q_below_threshold, &a) : OPEN;
        if (below == YES || (below == OPEN && !universal)) kind = 0;
    }
    if (kind) universal = sc_get(claim, "universal", cJSON_Object);
    sc_must(kind || !universal, "universal", "nothing here");
    for (a.part = 1; kind && a.part <= 2; a.part++) {
        struct ends e = sc_prove(universal, sc_thresholds[a.part - 1], q_universal, &a, rows);
        sc_must(e.lo <= star[a.part - 1].hi, sc_thresholds[a.part - 1], "at most the exact threshold");
    }
}

static void check_accepts(const cJSON *claim, struct ask a, const struct node *n, bool decided) {
    int word = sc_word(claim, "accepts", yes_no);
    bool yes = word == 0, undecided = word == 2;
    enum answer truth = decided ? among(n, a.token, a.k) : OPEN;
    run->said_undecided += undecided;
    sc_must(undecided || truth == OPEN || yes == (truth == YES), "accepts", yes ? "no" : "yes");
    a.at = run->row[TARGET].rank[a.token];
    if (sc_find(claim, "radius")) sc_radius(claim, a, n->target && truth != OPEN && !undecided);
}

static void check_active(const cJSON *claim, const struct ask *a, bool rows) {
    bool eps = sc_word(claim, "active", eps_delta) == 0;
    sc_must(a->rule->kind->universal == 'e', "active", "nothing: the rule has one threshold");
    enum answer truth = rows ? sc_eps_is_active(a) : OPEN;
    sc_must(truth == OPEN || eps == (truth == YES), "active", eps ? "delta" : "eps");
    sc_open(rows && truth == OPEN, "active");
}

// One verdict. value and star: logged enclosures, for when rows are absent.
static enum verdict check_verdict(const cJSON *object, const char *field, const struct ask *a, enum threshold which,
                                  quantity *quantities[2], struct ends value, struct ends star) {
    enum verdict word = (enum verdict)sc_word(object, field, sc_verdicts);
    bool vacuous = a->k > 0 && a->k + a->m > a->size, other = word == V_VACUOUS || word == V_INAPPLICABLE;
    run->result->claims++;
    sc_must(word != V_VACUOUS || vacuous, field, "k + m > vocab of a vacuous claim");
    sc_must(word != V_INAPPLICABLE || (a->tree && !(a->draft && a->first)), field, "a word for a claim that applies");
    sc_must(other || (!vacuous && a->first), field, vacuous ? "vacuous" : "inapplicable");
    run->said_undecided += word == V_UNDECIDED;
    run->result->undecided += word == V_UNDECIDED;
    if (word > V_NO) return word;
    enum answer truth = value.lo >= star.hi ? NO : value.hi < star.lo ? YES : OPEN;
    if (a->rows && a->k > 0) truth = sc_certifies(*a, which, quantities[0], quantities[1]);
    if (a->k == 0) truth = NO; // coverage always fails
    run->result->undecided += truth == OPEN && a->rows;
    sc_must(truth == OPEN || (truth == YES) == (word == V_YES), field, truth == YES ? "yes" : "no");
    return word;
}

static void check_restricted(const cJSON *r, struct ask a, const struct ends kl[3]) {
    static quantity *const thresholds[3] = {q_klf, q_klr_restricted, q_tv_restricted};
    quantity *pairs[3][2] = {{q_kl_pq, q_klf}, {q_kl_qp, q_klr}, {q_tv_whole, q_tv_restricted}};
    struct row *p = &run->row[RESTRICTED], *whole = &run->row[TARGET];
    struct ends star[3], own = {0, 0}, mass = sc_enclosure(r, "mass", false);
    size_t k = (size_t)sc_int(r, "k", 0), common = 0;
    a.size = sc_find(r, "level_f") ? run->vocab : 0; // without rows |D| is not known
    if (a.rows) {
        memcpy(p->logit, whole->logit, run->vocab * sizeof *p->logit);
        sc_order(p, &run->row[DRAFT]);
        sc_must(p->count < run->vocab, "restricted", "nothing: the draft scores every token");
        for (size_t i = 0; i < a.k; i++) common += p->rank[whole->order[i]] < run->vocab;
        sc_must(k == common, "k", "the size of A cap D");
        a.whole = whole;
        a.p = p;
        a.size = p->count;
    }
    bool massless = a.rows && p->finite == 0;
    a.k = massless ? 0 : k;
    if (massless) {
        p->here = false;
        sc_must(mass.lo == 0 && mass.hi == 0, "mass", "exactly 0");
        sc_absent(r, "kl", "nothing: p has no mass there");
    } else {
        sc_prove(r, "mass", q_mass, &a, a.rows);
        if (a.rows || sc_find(r, "kl")) own = sc_prove(r, "kl", q_kl_pq, &a, a.rows);
    }
    check_levels(r, &a, a.rows, thresholds, star);
    const cJSON *certified = sc_get(r, "certified", cJSON_Object);
    for (int i = 0; i < 3; i++) {
        enum threshold which = i == TV && p->finite != whole->finite ? OTHER : (enum threshold)i;
        check_verdict(certified, sc_thresholds[i], &a, which, pairs[i], i ? kl[i] : own, star[i]);
    }
    p->here = false;
}

static void check_divergences(const cJSON *claim, struct ask a, const struct node *n, bool null) {
    const cJSON *all = sc_get(claim, "divergences", cJSON_Object);
    quantity *pair[2] = {q_divergence, q_divergence_star};
    double constant = a.k == 0 ? 0 : INFINITY;
    sc_must(cJSON_GetArraySize(all) == run->divergences, "divergences", "the header's");
    for (a.divergence = run->divergence; a.divergence < run->divergence + run->divergences; a.divergence++) {
        const cJSON *one = sc_get(all, a.divergence->text, cJSON_Object);
        bool proper = a.k > 0 && a.k + a.m <= run->vocab;
        struct ends star = sc_prove(one, "star", q_divergence_star, &a, proper && n->target);
        sc_must(proper || (star.lo == constant && star.hi == constant), "star",
                constant > 0 ? "exactly inf" : "exactly 0");
        enum threshold which = a.divergence->form < LARGEST ? DIVERGENCE : OTHER;
        if (null) sc_must(cJSON_IsNull(sc_get(one, "certified", ANY)), "certified", "null");
        else check_verdict(one, "certified", &a, which, pair, n->divergence[a.divergence - run->divergence], star);
    }
}

static void check_laws(const cJSON *claim, struct ask a, bool decided) {
    static quantity *const laws[2] = {q_law_iid, q_law_topk};
    if (!sc_find(claim, "laws") && !decided) return;
    const cJSON *all = sc_get(claim, "laws", cJSON_Object);
    for (int i = 0; i < 4; i++) { // both laws, accept and e of each
        const char *key = i & 1 ? "e" : "accept";
        if (!run->law[i / 2]) continue;
        a.flag = i & 1;
        struct ends x =
            sc_prove(sc_get(all, i / 2 ? "topk" : "iid", cJSON_Object), key, laws[i / 2], &a, a.rows && decided);
        sc_must(x.hi >= 0 && x.lo <= 1, key, "a share");
    }
    sc_must(cJSON_GetArraySize(all) == run->law[0] + run->law[1], "laws", "the header's");
}

// Why there is no draft row: one of the page's reasons, and only where it can be true, so that no verdict hides there.
static void check_why(const struct node *n) {
    static const char *const reasons[] = {"not kept",   "prefill", "no draft model",
                                          "no drafter", "leaf",    "not expanded"};
    bool none = !run->has_draft, leaf = n->children == 0 && !run->audit;
    const bool possible[] = {true, n->index < 0 && !run->audit, none, none, leaf, leaf || none};
    int i = 0;
    while (i < 6 && strcmp(n->why, reasons[i]) != 0) i++;
    sc_must(i < 6 && possible[i], "draft_row", "a reason of docs/log.md that can be true here");
}

static void check_no_verdicts(const cJSON *claim, const struct node *n, bool no_children) {
    const char *why = sc_text(claim, "why"), *given = n->index >= 0 || run->audit ? n->why : "prefill";
    bool childless = no_children && strcmp(why, "no children") == 0,
         rowless = !no_children && strcmp(why, "no draft row") == 0;
    if (no_children && n->index >= 0) given = "no children";
    sc_must(cJSON_IsNull(sc_get(claim, "certified", ANY)), "certified", "null: there is no draft row, or no child");
    sc_absent(claim, "covered restricted laws", "nothing: there are no verdicts");
    sc_must(childless || rowless || strcmp(why, given) == 0, "why", given);
}

static void check_certified(const cJSON *claim, struct ask *a, const struct node *n, const struct ends kl[3],
                            const struct ends star[3], bool decided, uint64_t counts[3][VERDICTS]) {
    quantity *pairs[3][2] = {{q_kl_pq, q_klf}, {q_kl_qp, q_klr}, {q_tv, q_tv_star}};
    const cJSON *certified = sc_get(claim, "certified", ANY), *restricted = sc_find(claim, "restricted");
    enum answer covered = a->tree || n->draft ? NO : OPEN;
    sc_must(cJSON_IsObject(certified), "certified", "verdicts");
    for (size_t i = 0; i < a->proposals; i++) {
        enum answer in = among(n, a->proposed[i], a->k);
        if (a->tree && n->draft && run->row[DRAFT].rank[a->proposed[i]] >= a->m) a->first = false;
        if (in == YES || (in == OPEN && covered == NO)) covered = in;
    }
    int word = sc_word(claim, "covered", yes_no);
    sc_need(word < 2, "covered", "yes or no");
    sc_must(covered == OPEN || (word == 0) == (covered == YES), "covered", covered == YES ? "yes" : "no");
    for (int i = 0; i < 3; i++) {
        enum verdict v = check_verdict(certified, sc_thresholds[i], a, (enum threshold)i, pairs[i], kl[i], star[i]);
        counts[i][v] += n->counted;
        sc_must(v != V_YES || word == 0, "covered", "yes: certified implies covered");
    }
    if (restricted) check_restricted(restricted, *a, kl);
    if (run->law[0] || run->law[1]) check_laws(claim, *a, decided);
    else sc_absent(claim, "laws", "nothing: the header lists none");
}

static void check_claim(const cJSON *claim, const struct node *n, int rule, int column, const struct ends kl[3],
                        int64_t *rule_k, bool *decided) {
    static quantity *const thresholds[3] = {q_klf, q_klr, q_tv_star};
    struct row *p = &run->row[TARGET], *q = &run->row[DRAFT];
    struct ends star[3] = {{0, 0}, {0, 0}, {0, 0}};
    bool tree = run->m[column] == 0;
    size_t m = tree ? n->children : (size_t)run->m[column], vocab = run->vocab;
    struct ask a = {.p = p, .q = q, .m = m, .rule = &run->rule[rule], .size = vocab, .tree = tree, .first = true};
    a.draft = n->draft;
    a.rows = n->target && n->draft;
    a.token = (size_t)(n->token < 0 ? 0 : n->token);
    a.proposed = tree ? n->proposed : q->order;
    a.proposals = tree ? m : !n->draft ? 0 : m < vocab ? m : vocab;
    sc_is_text(claim, "rule", run->rule[rule].text);
    sc_is_text(claim, "m_from", tree ? "tree" : "fixed");
    sc_is_int(claim, "m", (int64_t)m);
    int64_t k = sc_int(claim, "k", 0);
    a.k = (size_t)k;
    if (*rule_k < 0) *decided = check_k(a, n); // once per rule: the same for every m
    sc_must(*rule_k < 0 || k == *rule_k, "k", "the same as for the other m");
    *rule_k = k;
    if (n->token < 0) sc_absent(claim, "accepts radius", "nothing: there is no token");
    if (m == 0) sc_absent(claim, "level_f level_r tied_f tied_r klf klr tv margin universal", "nothing after edge");
    if (m == 0) sc_absent(claim, "radius active covered restricted laws divergences", "nothing after edge");
    check_edge(claim, n, a.k);
    if (n->token >= 0) check_accepts(claim, a, n, *decided);
    if (sc_find(claim, "active")) check_active(claim, &a, n->target);
    if (m > 0) check_levels(claim, &a, n->target, thresholds, star);
    if (m > 0 && k > 0 && a.k + m <= vocab) check_bounds(claim, a, n->target, star);
    if (!run->margin) sc_absent(claim, "margin", "nothing: the header says so");
    bool null = !n->draft_known || m == 0;
    if (null) check_no_verdicts(claim, n, m == 0);
    else check_certified(claim, &a, n, kl, star, *decided, run->verdicts[rule][column]);
    if (run->divergences && m > 0) check_divergences(claim, a, n, null);
    else sc_absent(claim, "divergences", "nothing here");
}

// What there is of the draft, between the rows; kl gets the three that claims need.
static void check_distances(const cJSON *record, struct node *n, struct ask a, struct ends kl[3]) {
    static const char *const names[3] = {"kl_pq", "kl_qp", "tv"};
    static quantity *const values[3] = {q_kl_pq, q_kl_qp, q_tv};
    if (!n->draft_known)
        sc_absent(record, "kl_pq kl_qp tv standard_accept divergences", "nothing: there is no draft row");
    if (!run->divergences) sc_absent(record, "divergences", "nothing: the header lists none");
    if (!n->draft_known) return;
    for (int i = 0; i < 3; i++) {
        kl[i] = sc_prove(record, names[i], values[i], &a, a.rows);
        sc_must(kl[i].hi >= 0 && (i < 2 || kl[i].lo <= 1), names[i], "a divergence");
    }
    if (sc_find(record, "standard_accept")) {
        struct ends e = sc_prove(record, "standard_accept", q_standard_accept, &a, a.rows);
        sc_must(e.hi >= 0 && e.lo <= 1, "standard_accept", "a share");
    }
    const cJSON *all = run->divergences ? sc_get(record, "divergences", cJSON_Object) : NULL;
    sc_must(!all || cJSON_GetArraySize(all) == run->divergences, "divergences", "the header's");
    for (int i = 0; i < run->divergences; i++) {
        a.divergence = &run->divergence[i];
        n->divergence[i] = sc_prove(all, a.divergence->text, q_divergence, &a, a.rows);
    }
}

static void load_rows(const cJSON *record, struct node *n) {
    struct row *target = &run->row[TARGET], *drawn = &run->row[DRAW];
    bool target_absent, draft_absent;
    n->target = sc_load(record, "row", TARGET, &target_absent);
    n->draft = sc_load(record, "draft_row", DRAFT, &draft_absent);
    const cJSON *reference = sc_find(record, "draft_row");
    bool named = sc_find(reference, "sha256") || sc_find(reference, "shard") || sc_find(record, "kl_pq");
    n->draft_known = n->draft || (draft_absent && named);
    n->why = sc_find(reference, "shard") ? "" : sc_text(reference, "why");
    if (*n->why) check_why(n);
    sc_must(!n->draft_known || run->has_draft, "draft_row", "none: the header names no draft model");
    run->row_absent = run->row_absent || !n->target || draft_absent;
    if (!n->target || run->greedy) return;
    memcpy(drawn->logit, target->logit, run->vocab * sizeof *drawn->logit);
    sc_order(drawn, NULL);
}

void sc_claims(const cJSON *record, struct node *n) {
    struct ask a = {.p = &run->row[TARGET], .q = &run->row[DRAFT], .token = (size_t)(n->token < 0 ? 0 : n->token)};
    struct ends kl[3] = {{0, 0}, {0, 0}, {0, 0}};
    load_rows(record, n);
    a.rows = n->target && n->draft;
    check_top(record, n);
    sc_prove(record, "lse", q_lse, &a, n->target);
    struct ends e = sc_prove(record, "entropy", q_entropy, &a, n->target);
    sc_must(e.hi >= 0 && e.lo <= log((double)run->vocab) * (1 + 0x1p-40), "entropy", "at most ln vocab");
    check_distances(record, n, a, kl);
    if (run->match || n->token < 0) sc_absent(record, "regret", "nothing: acceptance is match, or there is no token");
    else sc_prove(record, "regret", q_regret, &a, n->target);
    const cJSON *claims = sc_get(record, "claims", cJSON_Array), *claim;
    sc_must(cJSON_GetArraySize(claims) == run->rules * run->ms, "claims", "one for each rule and m");
    int64_t k = -1;
    bool decided = true;
    int i = 0;
    cJSON_ArrayForEach (claim, claims) {
        struct mark mark = r_mark();
        snprintf(run->prefix, sizeof run->prefix, "claims[%d].", i);
        if (i % run->ms == 0) k = -1;
        check_claim(claim, n, i / run->ms, i % run->ms, kl, &k, &decided);
        r_release(mark);
        i++;
    }
    run->prefix[0] = '\0';
}
