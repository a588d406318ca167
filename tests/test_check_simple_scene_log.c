// See test_check_simple_scene.h: the walk, and the lines of the log.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // asprintf
#endif
#include "tests/test_check_simple_scene.h"

#include "base/sha256.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct step {
    int node, child, token;
    bool looks, charged, relaxed, lied;
    num charge, e, ratio, accept, standard, excess;
    double spent;
};

static void put(struct maker *m, char *text) // a line, which is freed
{
    uint8_t digest[HM_SHA256_BYTES];
    size_t size = strlen(text), before = strlen(m->chain);
    char *both = malloc(before + size);
    memcpy(both, m->chain, before);
    memcpy(both + before, text, size - 1);
    hm_sha256(both, before + size - 1, digest, NULL);
    hm_sha256_hex(digest, m->chain);
    fprintf(m->file, "%.*s,\"chain\":\"%s\"}\n", (int)size - 1, text, m->chain);
    m->lines++;
    free(both);
    free(text);
}

static char *add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static char *add(char *text, const char *format, ...)
{
    char *more, *both;
    va_list list;
    va_start(list, format);
    if (vasprintf(&more, format, list) < 0) abort();
    va_end(list);
    if (asprintf(&both, "%s%s", text ? text : "", more) < 0) abort();
    free(text);
    free(more);
    return both;
}

static double upper(num x) // end of the enclosure
{
    if (fabsl(x) < 1e-17L) return x == 0 ? 0 : 0x1p-61;
    return x == 1 ? 1 : (double)(x * (1 + 0x1p-33L));
}

static char *enclose(struct maker *m, char *text, const char *key, num x)
{
    double low = x == 1 || isinf(x) ? (double)x : fabsl(x) < 1e-17L ? 0 : (double)(x - fabsl(x) * 0x1p-33L);
    if (isinf(x)) return add(text, ",\"%s\":[\"inf\",\"inf\"]", key);
    if (fabsl(x) >= 1e-17L && fabsl(x) < 1e-7L) m->bad = true;
    return add(text, ",\"%s\":[\"%a\",\"%a\"]", key, low, x < 0 ? (double)(x * (1 - 0x1p-33L)) : upper(x));
}

static bool is(const struct maker *m, const char *acceptance)
{
    return strncmp(m->scene->acceptance, acceptance, strlen(acceptance)) == 0;
}

static double sum_upward(double a, double b)
{
    double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part); // exact (Knuth)
    return error > 0 ? nextafter(sum, INFINITY) : sum;
}

// Charges a cost: is the relaxation in force?
static bool charge(struct maker *m, struct step *s, num cost)
{
    bool tv = m->scene->budget[0] == 't';
    num room = tv ? STEPS * ((TREE_BUDGET + WIDTH + 1) * VOCAB + TREE_BUDGET + WIDTH) * 0x1p-53L : 0;
    s->charged = true;
    if (cost > 1e-6L && lies(m, LIE_CHARGE)) {
        s->lied = true;
        cost /= 2;
    }
    s->charge = cost;
    double sum = sum_upward(m->spent, upper(cost));
    s->relaxed = (num)sum + room <= m->scene->limit * 0x1p-60L;
    if (lies(m, s->relaxed ? LIE_NOT_RELAXED : LIE_OVERSPENT)) {
        s->lied = true;
        s->relaxed = !s->relaxed;
    }
    if (s->relaxed) m->spent = sum;
    if (s->relaxed && !m->told->first_spent && sum >= 0x1p-8 && sum < 8)
        m->told->first_spent = (uint64_t)(sum * 0x1p60) + (uint64_t)(room * 0x1p60L);
    if (s->relaxed && cost > 0 && lies(m, LIE_SPENT)) {
        s->lied = true;
        m->spent /= 2;
    }
    return s->relaxed;
}

static int other_token(struct maker *m, struct step *s, enum lie lie, const num *p, int token)
{
    if (!lies(m, lie)) return token;
    s->lied = true;
    do token = (token + 1) % VOCAB;
    while (p[token] == 0);
    return token;
}

// Standard or nucleus acceptance at a node with children.
static void try_children(struct maker *m, struct step *s, const int *child, int n)
{
    const num *p = m->p[s->node], *q = m->q[s->node];
    struct law l = law_of(m, s->node, child, n);
    num own[VOCAB], c = 1;
    int t = m->t + m->depth[s->node], taken = -1;
    bool nucleus = is(m, "nucleus");
    s->relaxed = nucleus;
    if (nucleus && m->scene->budget) charge(m, s, l.e);
    memcpy(own, p, sizeof own);
    for (int j = 0; j < n && taken < 0; j++) {
        int x = m->token[child[j]];
        num u = uniform(m, t, HM_COIN, j), sum = 0;
        bool sure = s->relaxed && l.rank[x] < l.k, tails = u * (m->scene->iid ? q[x] : 1) >= own[x];
        bool lied = sure ? lies(m, LIE_SURE) : lies(m, LIE_COIN);
        s->lied = s->lied || lied;
        bool take = (sure || !tails) != lied;
        if (take && j + 1 < n && lies(m, LIE_SKIP)) {
            s->lied = true;
            take = false;
        }
        m->told->taken[sure ? 0 : 1 + (j > 0)] += take && !lied;
        if (take) taken = child[j];
        for (int i = 0; i < VOCAB; i++) {
            own[i] = m->scene->iid ? fmaxl(p[i] - c * q[i], 0) : i == x ? 0 : own[i];
            sum += own[i];
        }
        c += sum;
        for (int i = 0; i < VOCAB && sum > 0; i++) own[i] /= sum;
    }
    s->child = taken;
    m->told->taken[3] += taken < 0;
    s->token = taken >= 0 ? m->token[taken]
                          : other_token(m, s, LIE_RESIDUAL, p, draw(own, uniform(m, t, HM_DRAW_RESIDUAL, 0)));
    bool mixed = s->relaxed && l.e > 1e-17L;
    s->accept = s->relaxed ? l.accept : l.standard;
    s->standard = l.standard;
    s->e = mixed ? l.e : 0;
    s->ratio = mixed ? p[s->token] / l.o[s->token] * (1 + 1e-18L) : 1; // so that 1 is not written as exact
    if (mixed && !m->scene->budget && lies(m, LIE_E)) {
        s->lied = true;
        s->e = 0;
    }
    if (mixed && lies(m, LIE_RATIO)) {
        s->lied = true;
        s->ratio *= 1.000001L;
    }
    if (s->accept < 0.99L && s->accept > 1e-3L && lies(m, LIE_ACCEPT)) {
        s->lied = true;
        s->accept *= 1.000001L;
    }
    if (nucleus && s->standard < 0.99L && s->standard > 1e-3L && lies(m, LIE_STANDARD)) {
        s->lied = true;
        s->standard *= 1.000001L;
    }
}

// The child that a draw, or a deterministic rule, leads to.
static void match_children(struct maker *m, struct step *s, const int *child, int n)
{
    const num *p = m->p[s->node];
    int t = m->t + m->depth[s->node], order[VOCAB], rank[VOCAB], best = -1;
    order_of(p, order, rank);
    s->child = -1;
    s->token = m->scene->sampled ? draw(p, uniform(m, t, HM_DRAW_TARGET, 0)) : order[0];
    if (is(m, "additive")) {
        for (int j = 0; j < n; j++)
            if (best < 0 || rank[m->token[child[j]]] < rank[m->token[best]]) best = child[j];
        if (best < 0 || p[m->token[best]] < p[order[0]] - m->scene->share / 10.0L) return;
        num cost = logl(p[order[0]] / p[m->token[best]]);
        if (m->scene->budget && !charge(m, s, cost)) return;
        s->child = best;
        s->token = m->token[best];
        return;
    }
    if (s->node == 0 && m->first >= 0)
        s->token = m->first;
    else
        s->token = other_token(m, s, LIE_DRAW, p, s->token);
    for (int j = 0; j < n; j++)
        if (s->child < 0 && m->token[child[j]] == s->token) s->child = child[j];
    for (int i = m->verified; i < m->nodes && s->child < 0; i++)
        if (m->parent[i] == s->node && m->token[i] == s->token && lies(m, LIE_SCORED)) {
            s->lied = true;
            s->child = i;
            return;
        }
    int leaf[NODES];
    if (strcmp(m->scene->traversal, "leaf-stop") != 0 || s->child < 0 || children_of(m, s->child, leaf) > 0) return;
    if (lies(m, LIE_LEAF))
        s->lied = true;
    else
        s->child = -1;
}

static void decide(struct maker *m, struct step *s, int node, int accepted)
{
    int child[NODES], n = children_of(m, node, child);
    *s = (struct step){.node = node, .child = -1, .ratio = 1, .spent = m->spent};
    s->looks = n > 0 && (m->scene->cap < 0 || accepted < m->scene->cap);
    s->excess = law_of(m, node, child, 0).excess;
    if (m->draft[node] >= 0 && s->excess > 1e-6L && is(m, "nucleus") && lies(m, LIE_EXCESS)) {
        s->lied = true;
        s->excess *= 1.000001L;
    }
    if (s->looks && (is(m, "standard") || is(m, "nucleus")))
        try_children(m, s, child, n);
    else
        match_children(m, s, child, s->looks ? n : 0);
    s->spent = m->spent;
}

static void write_step(struct maker *m, const struct step *s, int t, bool prefill)
{
    const num *p = m->p[s->node], *q = m->q[s->node];
    bool stochastic = is(m, "standard") || is(m, "nucleus"), draft = !prefill && m->draft[s->node] >= 0;
    num lse = 0, entropy = 0, kl[2] = {0, 0}, tv = 0, top = -INFINITY, heat = m->scene->sampled ? 1.5L : 1;
    const float *row = m->rows[0][m->row[s->node]];
    for (int i = 0; i < VOCAB; i++) {
        lse += expl(row[i] / heat);
        top = fmaxl(top, row[i]);
        entropy -= p[i] > 0 ? p[i] * logl(p[i]) : 0;
        kl[0] += p[i] > 0 ? p[i] * logl(p[i] / q[i]) : 0;
        kl[1] += q[i] > 0 ? q[i] * logl(q[i] / p[i]) : 0;
        tv += fmaxl(p[i] - q[i], 0);
    }
    if (s->lied) m->told->line = m->lines + 1;
    char *text = add(NULL, "{\"kind\":\"step\",\"sequence\":0,\"t\":%d,\"token\":%d,\"node\":%d,\"depth\":%d", t,
                     s->token, s->node, m->depth[s->node]);
    text = prefill
               ? add(text, ",\"round\":null,\"source\":\"prefill\",\"child\":null")
               : add(text, ",\"round\":%d,\"source\":\"%s\"", m->round, s->child >= 0 ? "accepted" : "continuation");
    if (!prefill) text = s->child >= 0 ? add(text, ",\"child\":%d", s->child) : add(text, ",\"child\":null");
    text = add(text, ",\"row\":{\"shard\":0,\"index\":%d}", m->row[s->node]);
    text = draft ? add(text, ",\"draft_row\":{\"shard\":0,\"index\":%d}", m->row[s->node])
                 : add(text, ",\"draft_row\":{\"why\":\"%s\"}", prefill ? "prefill" : "leaf");
    text = add(text, ",\"top\":[],\"support\":%d,\"claims\":[]", VOCAB);
    text = enclose(m, enclose(m, text, "lse", logl(lse)), "entropy", fabsl(entropy));
    if (draft) text = enclose(m, enclose(m, enclose(m, text, "kl_pq", kl[0]), "kl_qp", kl[1]), "tv", tv);
    if (draft && is(m, "nucleus")) text = enclose(m, text, "nucleus_excess", s->excess);
    if (!is(m, "match") && !is(m, "standard"))
        text = enclose(m, text, "regret", (top - row[s->token]) / heat); // exact where it is 1
    if (stochastic && s->looks) text = enclose(m, text, "accept", s->accept);
    if (is(m, "nucleus") && s->looks) text = enclose(m, text, "accept_standard", s->standard);
    if (s->charged) text = enclose(m, text, "charge", s->charge);
    if (s->charged) text = add(text, ",\"relaxed\":%s", s->relaxed ? "true" : "false");
    if (m->scene->budget) text = add(text, ",\"spent\":\"%a\"", s->spent);
    if (stochastic)
        text = enclose(m, enclose(m, text, "e", s->charged && s->relaxed ? s->charge : s->e), "ratio", s->ratio);
    if (t + 1 == STEPS) text = add(text, ",\"finish\":\"length\"");
    put(m, add(text, "}"));
    m->told->steps++;
    m->told->relaxed += s->charged && s->relaxed;
}

static void write_shards(struct maker *m, const char *folder)
{
    for (int i = 0; i < 2; i++) {
        char path[512], head[256];
        snprintf(path, sizeof path, "%s/scene-%d-00000.safetensors", folder, i);
        FILE *file = fopen(path, "wb");
        if (!file) abort();
        int rows = m->count[0], bytes = rows * VOCAB * 4;
        int size =
            snprintf(head, sizeof head, "{\"logits\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]}}",
                     rows, VOCAB, bytes);
        while (size % 8 > 0) head[size++] = ' ';
        fwrite(&(uint64_t){(uint64_t)size}, 8, 1, file);
        fwrite(head, 1, (size_t)size, file);
        fwrite(m->rows[i], 1, (size_t)bytes, file);
        if (fclose(file) != 0) abort();
    }
}

static void write_header(struct maker *m)
{
    static const char model[] = "{\"name\":\"scene\",\"sha256\":\"%s\",\"vocab\":%d,\"architecture\":\"none\"}";
    const struct scene *s = m->scene;
    const char *temperature = s->sampled ? "3/2" : "0", *certify = s->sampled ? "3/2" : "1";
    char none[65], one[256];
    memset(none, '0', 64);
    none[64] = '\0';
    snprintf(one, sizeof one, model, none, VOCAB);
    char *text =
        add(NULL,
            "{\"hallmark\":1,\"kind\":\"header\",\"claims\":[],\"m\":[],\"margin\":false,\"top\":0,\"nodes\":\"path\"");
    text = add(text, ",\"acceptance\":\"%s\",\"temperature\":\"%s\",\"certify_temperature\":\"%s\"", s->acceptance,
               temperature, certify);
    text = add(text, ",\"processors\":{\"top_k\":0,\"top_p\":\"1\"},\"proposal\":\"%s\",\"rng\":\"philox4x32-10\"",
               s->iid ? "iid" : "topk");
    text = s->budget ? add(text, ",\"budget\":{\"kind\":\"%s\",\"limit\":\"%llu/%llu\"}", s->budget,
                           (unsigned long long)s->limit, 1ULL << 60)
                     : add(text, ",\"budget\":null");
    text = add(text, ",\"target\":%s,\"draft\":%s,\"tokenizer_sha256\":\"%s\"", one, one, none);
    text = add(text, ",\"decoder\":{\"drafter\":\"scene\",\"width\":%d,\"depth\":%d,\"budget\":%d,\"selection\":\"%s\"",
               WIDTH, DEPTH, TREE_BUDGET + WIDTH, s->selection);
    text = add(text, ",\"traversal\":\"%s\"%s}", s->traversal, s->scored ? ",\"score\":\"frontier:3\"" : "");
    text = add(
        text,
        ",\"numerics\":{\"weights\":\"none\",\"accumulate\":\"none\",\"backend\":\"none\",\"row_source\":\"foreign\"}");
    text = add(text, ",\"rows\":{\"target\":\"scene-0-%%05d.safetensors\",\"draft\":\"scene-1-%%05d.safetensors\","
                     "\"hashed\":false}");
    put(m, add(text, "}"));
    text = add(
        NULL,
        "{\"kind\":\"sequence\",\"sequence\":0,\"id\":0,\"category\":\"\",\"turn\":0,\"prompt\":[0],\"seed\":\"%llu\"",
        (unsigned long long)m->seed);
    put(m, add(text, ",\"stop\":{\"eos\":[],\"max_tokens\":%d,\"strings\":[]}}", STEPS));
}

static void write_round(struct maker *m, int64_t expected)
{
    char *lists[3] = {NULL, NULL, NULL};
    for (int i = 0; i < m->nodes; i++) {
        const char *comma = i ? "," : "";
        lists[0] = add(lists[0], "%s%d", comma, m->parent[i]);
        lists[1] = add(lists[1], "%s%d", comma, m->token[i]);
        lists[2] = add(lists[2], "%s\"%s\"", comma, i ? "-inf" : "0x0p+0");
    }
    char *text = add(NULL, "{\"kind\":\"round\",\"sequence\":0,\"round\":%d,\"t\":%d,\"parent\":[%s],\"token\":[%s]",
                     m->round, m->t, lists[0], lists[1]);
    text = add(text, ",\"logq\":[%s],\"pool\":%d,\"charges\":[],\"run\":{}", lists[2], m->nodes - 1);
    if (m->nodes > m->verified) text = add(text, ",\"scored\":%d", m->nodes - m->verified);
    if (m->first >= 0) text = add(text, ",\"first\":%d", m->first);
    if (expected < 0)
        text = add(text, ",\"expected_accept\":null");
    else
        text = add(text, ",\"expected_accept\":[\"%a\",\"%a\"]", (double)expected, (double)expected);
    put(m, add(text, "}"));
    for (int i = 0; i < 3; i++) free(lists[i]);
}

static void write_rounds(struct maker *m)
{
    for (m->round = 0; m->t < STEPS && m->count[0] + NODES < ROWS; m->round++) {
        struct step step[NODES];
        int count = 0, accepted = 0, node = 0;
        make_tree(m);
        while (node >= 0) {
            decide(m, &step[count], node, accepted);
            node = step[count++].child;
            accepted += node >= 0;
        }
        bool counted = !m->scene->sampled || is(m, "additive"), whole = m->t + count <= STEPS;
        int64_t expected = counted ? accepted : -1;
        if (counted && whole && lies(m, LIE_EXPECTED)) {
            expected++;
            m->told->line = m->lines + 1;
        }
        write_round(m, expected);
        for (int i = 0; i < count && m->t < STEPS; i++) write_step(m, &step[i], m->t++, false);
        m->last = step[count - 1].token;
    }
}

bool scene_write(const char *folder, const struct scene *scene, uint64_t seed, enum lie lie, int nth, struct told *told)
{
    char path[512];
    struct maker *m = calloc(1, sizeof *m);
    if (!m) abort();
    *told = (struct told){0};
    m->scene = scene;
    m->lie = lie;
    m->nth = nth;
    m->told = told;
    m->random = m->seed = seed;
    snprintf(path, sizeof path, "%s/scene.jsonl", folder);
    m->file = fopen(path, "wb");
    if (!m->file) abort();
    write_header(m);
    struct step prefill = {.child = -1, .ratio = 1};
    m->first = -1;
    m->nodes = m->verified = 0;
    add_node(m, -1, 0);
    match_children(m, &prefill, NULL, 0);
    m->last = prefill.token;
    write_step(m, &prefill, m->t++, true);
    write_rounds(m);
    put(m,
        add(NULL,
            "{\"kind\":\"end\",\"sequences\":1,\"rounds\":%d,\"steps\":%d,\"nodes\":0,\"verdicts\":[],\"undecided\":0}",
            m->round, m->t));
    if (fclose(m->file) != 0) abort();
    write_shards(m, folder);
    bool good = !m->bad && m->t == STEPS;
    free(m);
    return good;
}
