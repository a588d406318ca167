// What a step, node or row record claims about its rows. docs/log.md "step" and "claims".
#include "law.h"

static const char *const verdicts[] = {"yes", "no", "vacuous", "inapplicable", "undecided", NULL};
static const char *const thresholds[] = {"klf", "klr", "tv", NULL};
static const char *const yes_no[] = {"yes", "no", "undecided", NULL}, *const eps_delta[] = {"eps", "delta", NULL};

// [id, logit], which must be this place of the order when the row is there.
static int64_t entry(const cJSON *v, const char *field, size_t place, double *logit) {
    const struct row *p = &run->row[TARGET];
    int64_t id = whole(pair(v, field), field, 0);
    *logit = number(v->child->next, field);
    must(id < (int64_t)run->vocab && (double)(float)*logit == *logit, field);
    must(!run->node->target || (id == p->order[place] && *logit == p->logit[id]), field);
    return id;
}

static void check_top(const cJSON *record) {
    int64_t before = -1, id;
    double above = INFINITY, logit;
    size_t place = 0;
    const cJSON *v;
    array(record, "top", (int)(run->top_count < (int64_t)run->vocab ? run->top_count : (int64_t)run->vocab));
    run->node->top = find(record, "top");
    cJSON_ArrayForEach (v, run->node->top) {
        id = entry(v, "top", place++, &logit);
        must(logit < above || (logit == above && id > before), "top");
        before = id;
        above = logit;
    }
}

// Is a token among the first k?  From the row, or from `top` as far as it goes.
static enum answer among(size_t token, size_t k) {
    size_t rank = 0;
    const cJSON *v;
    if (run->node->target) return run->row[TARGET].rank[token] < k ? YES : NO;
    cJSON_ArrayForEach (v, run->node->top) {
        if (v->child->valuedouble == (double)token) return rank < k ? YES : NO;
        rank++;
    }
    return k <= rank ? NO : OPEN;
}

static void check_edge(const cJSON *claim, size_t k) {
    const cJSON *v = pair(get(claim, "edge", cJSON_Array), "edge");
    for (size_t place = k - 1; place != k + 1; place++, v = v->next) { // k - 1 wraps for k = 0: no place
        const cJSON *listed = cJSON_GetArrayItem(run->node->top, (int)place);
        bool exists = place < run->vocab;
        double logit, other;
        must(exists == !cJSON_IsNull(v), "edge");
        int64_t id = exists ? entry(v, "edge", place, &logit) : 0;
        if (exists && listed) must(entry(listed, "edge", place, &other) == id && other == logit, "edge");
    }
}

static bool check_k(struct ask a) { // true when it is decided
    bool fixed = a.rule->kind->slack == NULL, target = run->node->target;
    must(a.k <= run->vocab, "k");
    must(!fixed || a.k == (a.rule->count < run->vocab ? a.rule->count : run->vocab), "k");
    a.at = a.k;
    enum answer next = target ? member(a) : NO, last = YES;
    a.at = a.k - 1;
    if (a.k > 0 && target) last = member(a);
    settle(last, "k");
    settle(opposite(next), "k");
    return last == YES && next == NO;
}

static void check_tied(const cJSON *claim, const char *key, mpq_srcptr order, struct ask a, bool rows) {
    const cJSON *v = pair(get(claim, key, cJSON_Array), key);
    size_t in_a = (size_t)whole(v, key, 0), in_s = (size_t)whole(v->next, key, 0), n = a.k + a.m;
    const size_t edge[4] = {in_a - 1, in_a, n - in_s, n - in_s - 1}; // the last that is tied and the next, of A and S
    must(in_a <= a.k && in_s <= a.m, key);
    a.order = order;
    for (int i = 0; rows && i < 4; i++) {
        bool there = i < 2 ? edge[i] < a.k : edge[i] >= a.k && edge[i] < n;
        a.at = edge[i];
        a.flag = i % 2 == 0;
        enum answer right = there ? decide(is_tied, &a) : YES;
        settle(right, key);
    }
}

// Levels and thresholds of a claim, or of its `restricted`.
static void check_levels(const cJSON *claim, const struct ask *a, bool rows, quantity *const values[3],
                         struct ends star[3]) {
    bool proper = a->k > 0 && a->k + a->m <= a->size;
    for (int i = 0; i < 3; i++) {
        if (!proper) exactly(claim, thresholds[i], a->k == 0 ? 0 : INFINITY);
        star[i] = within(prove(claim, thresholds[i], values[i], a, rows && proper), thresholds[i], 0, INFINITY);
    }
    if (!proper) absent(claim, "level_f level_r tied_f tied_r margin universal");
    if (!proper) return;
    within(prove(claim, "level_f", q_level_f, a, rows), "level_f", 0, 1);
    within(prove(claim, "level_r", q_level_r, a, rows), "level_r", -INFINITY, 0);
    check_tied(claim, "tied_f", run->one, *a, rows);
    check_tied(claim, "tied_r", run->zero, *a, rows);
}

static void check_bounds(const cJSON *claim, const char *key, struct ask a, bool rows, const struct ends star[3]) {
    bool margin = strcmp(key, "margin") == 0;
    const cJSON *bounds = get(claim, key, cJSON_Object);
    if (margin) prove(bounds, "gap", q_margin, &a, rows);
    for (a.part = 1; a.part <= (margin ? 3 : 2); a.part++) {
        const char *name = thresholds[a.part - 1];
        within(prove(bounds, name, margin ? q_margin : q_universal, &a, rows), name, -INFINITY, star[a.part - 1].hi);
    }
}

static void check_margins(const cJSON *claim, struct ask a, bool rows,
                          const struct ends star[3]) { // and universal ones
    double tv = star[2].lo;
    char kind = run->universal ? a.rule->kind->universal : 0;
    for (int i = 0; i < 2; i++) // Pinsker, with room for this line's own rounding
        must(!(tv > 0) || 2 * tv * tv * (1 - 0x1p-40) <= star[i].hi, thresholds[i]);
    if (run->margin) check_bounds(claim, "margin", a, rows, star);
    if (kind && kind != 'a' && kind != 'm') { // only where p_(1) is above the threshold
        enum answer is_below = rows ? decide(q_below_threshold, &a) : OPEN;
        if (is_below == YES || (is_below == OPEN && !find(claim, "universal"))) kind = 0;
    }
    if (kind) check_bounds(claim, "universal", a, rows, star);
    else absent(claim, "universal");
}

static void check_accepts(const cJSON *claim, struct ask a, bool decided) {
    int said = word(claim, "accepts", yes_no);
    enum answer truth = decided ? among(a.token, a.k) : OPEN;
    run->said_undecided += said == 2;
    must(said == 2 || truth == OPEN || (said == 0) == (truth == YES), "accepts");
    a.at = run->row[TARGET].rank[a.token];
    if (find(claim, "radius")) check_radius(claim, a, run->node->target && truth != OPEN && said != 2);
}

static real eps_or_delta(const struct ask *a) { // ln delta - H - ln eps: is eps the smaller threshold, or equal?
    mpq_srcptr eps = a->rule->a, delta = a->rule->b;
    if (flat(a->p)) return r_number(compare(1, delta, a->p->finite, eps));
    if (mpq_sgn(eps) == 0) return one();
    return r_sub(r_sub(r_log(r_rational(delta)), q_entropy(a)), r_log(r_rational(eps)));
}

static void check_active(const cJSON *claim, const struct ask *a, bool rows) {
    bool eps = word(claim, "active", eps_delta) == 0;
    must(a->rule->kind->universal == 'e', "active");
    enum answer truth = rows ? decide(eps_or_delta, a) : eps ? YES : NO;
    settle(eps ? truth : opposite(truth), "active");
}

// One verdict. value and star: logged enclosures, for when rows are absent.
static enum verdict check_verdict(const cJSON *object, const char *field, const struct ask *a, enum threshold which,
                                  quantity *const quantities[2], struct ends value, struct ends star) {
    enum verdict said = (enum verdict)word(object, field, verdicts);
    bool vacuous = a->k > 0 && a->k + a->m > a->size, other = said == V_VACUOUS || said == V_INAPPLICABLE;
    run->result->claims++;
    must(said != V_VACUOUS || vacuous, field);
    must(said != V_INAPPLICABLE || (a->tree && !(a->draft && a->first)), field);
    must(other || (!vacuous && a->first), field);
    run->said_undecided += said == V_UNDECIDED;
    run->result->undecided += said == V_UNDECIDED;
    if (said > V_NO) return said;
    enum answer truth = value.lo >= star.hi ? NO : value.hi < star.lo ? YES : OPEN;
    if (a->rows && a->k > 0) truth = certifies(*a, which, quantities[0], quantities[1]);
    if (a->k == 0) truth = NO; // coverage always fails
    run->result->undecided += truth == OPEN && a->rows;
    must(truth == OPEN || (truth == YES) == (said == V_YES), field);
    return said;
}

static quantity *const distances[3] = {q_kl_pq, q_kl_qp, q_tv}, *const stars[3] = {q_klf, q_klr, q_tv_star};

static void check_restricted(const cJSON *r, struct ask a) {
    static quantity *const values[3] = {q_klf, q_klr_restricted, q_tv_restricted};
    static quantity *const pairs[3][2] = {{q_kl_pq, q_klf}, {q_kl_qp, q_klr}, {q_tv_whole, q_tv_restricted}};
    struct row *p = &run->row[RESTRICTED], *all = &run->row[TARGET];
    struct ends star[3], kl = {0, 0};
    size_t k = (size_t)integer(r, "k", 0), common = 0;
    a.size = find(r, "level_f") ? run->vocab : 0; // without rows |D| is not known
    if (a.rows) {
        copy_of_target(RESTRICTED, &run->row[DRAFT]);
        for (size_t i = 0; i < a.k; i++) common += p->rank[all->order[i]] < run->vocab;
        must(p->count < run->vocab, "restricted");
        must(k == common, "k");
        a.size = p->count;
    }
    a.whole = all;
    a.p = p;
    bool massless = a.rows && p->finite == 0;
    a.k = massless ? 0 : k;
    p->here = p->here && !massless;
    if (massless) exactly(r, "mass", 0);
    if (massless) absent(r, "kl");
    else prove(r, "mass", q_mass, &a, a.rows);
    if (!massless && (a.rows || find(r, "kl"))) kl = prove(r, "kl", q_kl_pq, &a, a.rows);
    check_levels(r, &a, a.rows, values, star);
    const cJSON *certified = get(r, "certified", cJSON_Object);
    for (int i = 0; i < 3; i++) {
        enum threshold which = i == TV && p->finite != all->finite ? OTHER : (enum threshold)i;
        check_verdict(certified, thresholds[i], &a, which, pairs[i], i ? run->node->distance[i] : kl, star[i]);
    }
    p->here = false;
}

static void check_divergences(const cJSON *claim, struct ask a, bool null) {
    static quantity *const both[2] = {q_divergence, q_divergence_star};
    const cJSON *all = get(claim, "divergences", cJSON_Object);
    bool proper = a.k > 0 && a.k + a.m <= run->vocab;
    must(cJSON_GetArraySize(all) == run->divergences, "divergences");
    for (int i = 0; i < run->divergences; i++) {
        a.divergence = &run->divergence[i];
        const cJSON *one = get(all, a.divergence->text, cJSON_Object);
        struct ends star = prove(one, "star", q_divergence_star, &a, proper && run->node->target);
        enum threshold which = a.divergence->form < LARGEST ? DIVERGENCE : OTHER;
        if (!proper) exactly(one, "star", a.k == 0 ? 0 : INFINITY);
        if (null) must(is_null(one, "certified"), "certified");
        else check_verdict(one, "certified", &a, which, both, run->node->divergence[i], star);
    }
}

static void check_laws(const cJSON *claim, struct ask a, bool decided) {
    static quantity *const laws[2] = {q_accept, q_e};
    if (!find(claim, "laws") && !decided) return;
    const cJSON *all = get(claim, "laws", cJSON_Object);
    for (int i = 0; i < 4; i++) { // both laws, accept and e of each
        const char *key = i & 1 ? "e" : "accept", *name = i / 2 ? "topk" : "iid";
        if (!run->law[i / 2]) continue;
        a.iid = i / 2 == 0;
        within(prove(get(all, name, cJSON_Object), key, laws[i & 1], &a, a.rows && decided), key, 0, 1);
    }
    must(cJSON_GetArraySize(all) == run->law[0] + run->law[1], "laws");
}

static bool is(const char *text, const char *other) { return strcmp(text, other) == 0; }

// Why there is no draft row: one of the page's reasons, and only where it can be true, so that no verdict hides there.
static bool can_be(const struct node *n, const char *why) {
    bool none = !run->has_draft, leaf = n->children == 0 && !run->audit;
    return is(why, "not kept") || (none && (is(why, "no draft model") || is(why, "no drafter"))) ||
           (n->index < 0 && !run->audit && is(why, "prefill")) || (leaf && is(why, "leaf")) ||
           ((leaf || none) && is(why, "not expanded"));
}

static void check_no_verdicts(const cJSON *claim, bool no_children) {
    const struct node *n = run->node;
    bool prefill = n->index < 0 && !run->audit;
    const char *why = text_of(claim, "why"), *given = prefill ? "prefill" : no_children ? "no children" : n->why;
    must(is_null(claim, "certified"), "certified");
    absent(claim, "covered restricted laws");
    must(is(why, given) || is(why, no_children ? "no children" : "no draft row"), "why");
}

static void check_certified(const cJSON *claim, struct ask *a, const struct ends star[3], bool decided,
                            uint64_t tally[3][VERDICTS]) {
    const struct node *n = run->node;
    const cJSON *certified = get(claim, "certified", ANY), *restricted = find(claim, "restricted");
    enum answer covered = a->tree || n->draft ? NO : OPEN;
    must(cJSON_IsObject(certified), "certified");
    for (size_t i = 0; i < a->proposals; i++) {
        enum answer in = among(a->proposed[i], a->k);
        if (a->tree && n->draft && (n->repeats || run->row[DRAFT].rank[a->proposed[i]] >= a->m)) a->first = false;
        if (in == YES || (in == OPEN && covered == NO)) covered = in;
    }
    int said = word(claim, "covered", yes_no);
    need(said < 2, "covered");
    must(covered == OPEN || (said == 0) == (covered == YES), "covered");
    for (int i = 0; i < 3; i++) {
        quantity *const both[2] = {distances[i], stars[i]};
        enum verdict v = check_verdict(certified, thresholds[i], a, (enum threshold)i, both, n->distance[i], star[i]);
        tally[i][v] += n->counted;
        must(v != V_YES || said == 0, "covered"); // certified implies covered
    }
    if (restricted) check_restricted(restricted, *a);
    if (run->law[0] || run->law[1]) check_laws(claim, *a, decided);
    else absent(claim, "laws");
}

static void check_claim(const cJSON *claim, int rule, int column, int64_t *rule_k, bool *decided) {
    const struct node *n = run->node;
    struct row *p = &run->row[TARGET], *q = &run->row[DRAFT];
    struct ends star[3] = {{0, 0}, {0, 0}, {0, 0}};
    bool tree = run->m[column] == 0;
    size_t m = tree ? n->children : (size_t)run->m[column], vocab = run->vocab;
    struct ask a = {
        .p = p, .q = q, .whole = p, .m = m, .rule = &run->rule[rule], .size = vocab, .tree = tree, .first = true};
    a.draft = n->draft;
    a.rows = n->target && n->draft;
    a.token = (size_t)(n->token < 0 ? 0 : n->token);
    a.proposed = tree ? n->proposed : q->order;
    a.proposals = tree ? m : !n->draft ? 0 : m < vocab ? m : vocab;
    says(claim, "rule", a.rule->text);
    says(claim, "m_from", tree ? "tree" : "fixed");
    counts(claim, "m", (int64_t)m);
    a.k = (size_t)integer(claim, "k", 0);
    if (*rule_k < 0) *decided = check_k(a); // once per rule: the same for every m
    must(*rule_k < 0 || (int64_t)a.k == *rule_k, "k");
    *rule_k = (int64_t)a.k;
    if (n->token < 0) absent(claim, "accepts radius");
    if (m == 0) absent(claim, "level_f level_r tied_f tied_r klf klr tv margin universal radius active");
    if (m == 0) absent(claim, "covered restricted laws divergences");
    check_edge(claim, a.k);
    if (n->token >= 0) check_accepts(claim, a, *decided);
    if (find(claim, "active")) check_active(claim, &a, n->target);
    if (m > 0) check_levels(claim, &a, n->target, stars, star);
    if (m > 0 && a.k > 0 && a.k + m <= vocab) check_margins(claim, a, n->target, star);
    if (!run->margin) absent(claim, "margin");
    bool null = !n->draft_known || m == 0;
    if (null) check_no_verdicts(claim, m == 0);
    else check_certified(claim, &a, star, *decided, run->verdicts[rule][column]);
    if (run->divergences && m > 0) check_divergences(claim, a, null);
    else absent(claim, "divergences");
}

static void check_distances(const cJSON *record, struct ask a) { // between the rows
    static const char *const names[3] = {"kl_pq", "kl_qp", "tv"};
    struct node *n = run->node;
    const cJSON *all = NULL;
    for (int i = 0; i < 3; i++)
        n->distance[i] = within(prove(record, names[i], distances[i], &a, a.rows), names[i], 0, i < 2 ? INFINITY : 1);
    if (find(record, "standard_accept"))
        within(prove(record, "standard_accept", q_standard_accept, &a, a.rows), "standard_accept", 0, 1);
    a.k = n->k;
    a.iid = true;
    if (!run->nucleus) absent(record, "nucleus_excess");
    else if (find(record, "nucleus_excess"))
        within(prove(record, "nucleus_excess", q_nucleus_excess, &a, a.rows), "nucleus_excess", 0, 1);
    if (run->divergences) all = get(record, "divergences", cJSON_Object);
    else absent(record, "divergences");
    must(cJSON_GetArraySize(all) == run->divergences, "divergences");
    for (int i = 0; i < run->divergences; i++) {
        a.divergence = &run->divergence[i];
        n->divergence[i] = prove(all, a.divergence->text, q_divergence, &a, a.rows);
    }
}

static size_t places_in_nucleus(void) { // how many the acceptance takes surely
    struct ask a = {.p = &run->row[TARGET], .rule = &run->acceptance};
    size_t low = 0, high = run->vocab;
    while (low < high) {
        a.at = low + (high - low) / 2;
        if (member(a) == YES) low = a.at + 1;
        else high = a.at;
    }
    return low;
}

static void load_rows(const cJSON *record) {
    struct node *n = run->node;
    bool target_gone, draft_gone;
    n->target = load_row(record, "row", TARGET, &target_gone);
    n->draft = load_row(record, "draft_row", DRAFT, &draft_gone);
    const cJSON *reference = find(record, "draft_row");
    bool named = find(reference, "sha256") || find(reference, "shard") || find(record, "kl_pq");
    n->draft_known = n->draft || (draft_gone && named);
    n->why = find(reference, "shard") ? "" : text_of(reference, "why");
    must((!*n->why || can_be(n, n->why)) && (!n->draft_known || run->has_draft), "draft_row");
    run->row_absent = run->row_absent || !n->target || draft_gone;
    if (n->target && !run->greedy) copy_of_target(DRAW, NULL);
    n->k = n->target && run->nucleus ? places_in_nucleus() : 0;
}

static void check_record(const cJSON *record) {
    struct node *n = run->node;
    struct ask a = {.p = &run->row[TARGET], .q = &run->row[DRAFT], .token = (size_t)(n->token < 0 ? 0 : n->token)};
    load_rows(record);
    a.rows = n->target && n->draft;
    check_top(record);
    prove(record, "lse", q_lse, &a, n->target);
    within(prove(record, "entropy", q_entropy, &a, n->target), "entropy", 0, log((double)run->vocab) * (1 + 0x1p-40));
    if (n->draft_known) check_distances(record, a);
    else absent(record, "kl_pq kl_qp tv standard_accept nucleus_excess divergences");
    if (run->match || run->standard || n->token < 0) absent(record, "regret");
    else prove(record, "regret", q_regret, &a, n->target);
    const cJSON *claim = array(record, "claims", run->rules * run->ms);
    int64_t k = -1;
    bool decided = true;
    for (int i = 0; claim; i++, claim = claim->next) {
        size_t used = run->used;
        snprintf(run->prefix, sizeof run->prefix, "claims[%d].", i);
        if (i % run->ms == 0) k = -1;
        check_claim(claim, i / run->ms, i % run->ms, &k, &decided);
        run->used = used;
    }
    run->prefix[0] = '\0';
}
