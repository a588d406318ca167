// What `hallmark decode` prints: see decode_summary.h.
#include "cli/decode_summary.h"

#include "cli/command.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

hm_status hm_print_answer(const struct hm_answer *answer, struct hm_error *err)
{
    cJSON *object = cJSON_CreateObject();
    char *text = strndup(answer->text, answer->size);
    cJSON_AddStringToObject(object, "kind", "answer");
    cJSON_AddNumberToObject(object, "sequence", answer->sequence);
    cJSON_AddStringToObject(object, "id", answer->prompt->id);
    cJSON_AddStringToObject(object, "category", answer->prompt->category);
    cJSON_AddNumberToObject(object, "turn", (double)answer->turn);
    cJSON_AddNumberToObject(object, "prompt_tokens", (double)answer->prompt_tokens);
    cJSON_AddStringToObject(object, "text", text ? text : "");
    cJSON_AddItemToObject(object, "tokens", cJSON_CreateIntArray(answer->token, (int)answer->count));
    free(text);
    return hm_cli_print_json(object, err);
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

// Tokens that rounds emitted, per round.
static double tokens_per_round(const struct hm_session_counts *c)
{
    return ratio((double)(c->tokens - c->prefills), (double)c->rounds);
}

// ---- for machines

static void add_verdicts(cJSON *claim, const struct hm_stamp_count *count)
{
    static const char *const divergence[] = {"klf", "klr", "tv"};
    for (int i = 0; i < 3; i++) {
        cJSON *object = cJSON_AddObjectToObject(claim, divergence[i]);
        for (int j = 0; j < HM_CERT_VERDICTS; j++) cJSON_AddNumberToObject(object, hm_certified_names[j], (double)count->verdict[i][j]);
    }
}

static void add_claims(cJSON *summary, const struct hm_decode_options *o, const struct hm_stamp_summary *stamps)
{
    cJSON *claims = cJSON_AddArrayToObject(summary, "claims");
    for (size_t i = 0; i < stamps->counts; i++) {
        cJSON *claim = cJSON_CreateObject();
        char *rule = hm_rule_text(&o->certify[i / o->m_count]);
        uint32_t m = o->m[i % o->m_count];
        cJSON_AddStringToObject(claim, "rule", rule ? rule : "");
        if (m == HM_M_TREE) cJSON_AddStringToObject(claim, "m", "tree");
        else cJSON_AddNumberToObject(claim, "m", m);
        cJSON_AddNumberToObject(claim, "steps", (double)stamps->count[i].claims);
        cJSON_AddNumberToObject(claim, "certified", (double)stamps->count[i].certified);
        cJSON_AddNumberToObject(claim, "covered", (double)stamps->count[i].covered);
        add_verdicts(claim, &stamps->count[i]);
        cJSON_AddItemToArray(claims, claim);
        free(rule);
    }
}

static hm_status print_json(const struct hm_decode_options *o, const struct hm_session_counts *c,
                            const struct hm_stamp_summary *stamps, double waited, const struct hm_check_result *check,
                            bool interrupted, struct hm_error *err)
{
    cJSON *s = cJSON_CreateObject();
    cJSON_AddStringToObject(s, "kind", "summary");
    cJSON_AddBoolToObject(s, "interrupted", interrupted);
    cJSON_AddNumberToObject(s, "tokens", (double)c->tokens);
    cJSON_AddNumberToObject(s, "rounds", (double)c->rounds);
    cJSON_AddNumberToObject(s, "accepted", (double)c->accepted);
    cJSON_AddNumberToObject(s, "drafted", (double)c->drafted);
    cJSON_AddNumberToObject(s, "verified", (double)c->verified);
    cJSON_AddNumberToObject(s, "rounds_with_tree", (double)c->trees);
    cJSON_AddNumberToObject(s, "full_rounds", (double)c->full);
    cJSON_AddNumberToObject(s, "mean_accepted", ratio((double)c->accepted, (double)c->rounds));
    cJSON_AddNumberToObject(s, "tokens_per_round", tokens_per_round(c));
    cJSON *reached = cJSON_AddArrayToObject(s, "reached_depth");
    for (size_t i = 0; i < 64 && c->reached[i]; i++) cJSON_AddItemToArray(reached, cJSON_CreateNumber((double)c->reached[i]));
    cJSON_AddNumberToObject(s, "seconds", c->seconds);
    cJSON_AddNumberToObject(s, "prefill_seconds", c->prefill_seconds);
    cJSON_AddNumberToObject(s, "covered_rounds", (double)c->covered);
    cJSON_AddNumberToObject(s, "scored", (double)c->scored);
    cJSON_AddNumberToObject(s, "root_passes", (double)c->root_passes);
    if (o->fidelity) {
        cJSON_AddNumberToObject(s, "charged", (double)c->charged);
        cJSON_AddNumberToObject(s, "relaxed", (double)c->relaxed);
        cJSON_AddNumberToObject(s, "most_spent", c->most_spent);
    }
    cJSON_AddNumberToObject(s, "draft_seconds", c->draft_seconds);
    cJSON_AddNumberToObject(s, "root_seconds", c->root_seconds);
    cJSON_AddNumberToObject(s, "together_seconds", c->together_seconds);
    cJSON_AddNumberToObject(s, "verify_seconds", c->verify_seconds);
    cJSON_AddNumberToObject(s, "tokens_per_second", ratio((double)c->tokens, c->seconds));
    if (stamps->counts) {
        cJSON_AddNumberToObject(s, "certify_processor_seconds", stamps->seconds);
        cJSON_AddNumberToObject(s, "certify_wait_seconds", waited);
        cJSON_AddNumberToObject(s, "hash_processor_seconds", stamps->hash_seconds);
        cJSON_AddNumberToObject(s, "write_processor_seconds", stamps->write_seconds);
        cJSON *filter = cJSON_AddObjectToObject(s, "filter");
        cJSON_AddNumberToObject(filter, "decisions", (double)stamps->decisions);
        cJSON_AddNumberToObject(filter, "undecided", (double)stamps->filter_undecided);
        cJSON_AddNumberToObject(s, "undecided", (double)stamps->undecided);
        add_claims(s, o, stamps);
    }
    if (o->check) {
        cJSON *object = cJSON_AddObjectToObject(s, "check");
        cJSON_AddNumberToObject(object, "sequences", (double)check->compared);
        cJSON_AddNumberToObject(object, "different", (double)check->different);
    }
    return hm_cli_print_json(s, err);
}

// ---- for people

// The parts of a round one after the other: where the root's row had a pass of its own, it and drafting ran together.
static void print_time(const struct hm_session_counts *c)
{
    double drafting = c->root_passes ? c->together_seconds : c->draft_seconds;
    fprintf(stderr, "time       draft %.2f s, verify %.2f s, decide and certify %.2f s\n", drafting, c->verify_seconds,
            c->seconds - drafting - c->verify_seconds);
    if (c->root_passes)
        fprintf(stderr, "           draft: %.2f s of it and %.2f s of the root's rows, side by side\n", c->draft_seconds,
                c->root_seconds);
}

// A drafter that is wired wrongly (layers, rotary base, vocabulary) costs speed only, so nothing else would tell.
static void print_warning(const struct hm_decode_options *o, const struct hm_session_counts *c)
{
    enum { ENOUGH_ROUNDS = 50 };
    if (!o->draft || c->trees < ENOUGH_ROUNDS || tokens_per_round(c) >= 1.2) return;
    fprintf(stderr, "warning    %.3f tokens per round: is %s a draft for this target?\n", tokens_per_round(c), o->draft);
}

static void print_selection(const struct hm_decode_options *o, const struct hm_session_counts *c)
{
    double rounds = (double)c->rounds;
    if (o->covering || o->leaf_stop || c->scored)
        fprintf(stderr, "selection  %s; the next root's row at hand after %.1f%% of rounds\n", hm_decode_selection_name(o),
                100 * ratio((double)c->covered, rounds));
    if (c->scored) fprintf(stderr, "scored     %.1f further nodes a round\n", ratio((double)c->scored, rounds));
    if (o->fidelity)
        fprintf(stderr, "budget     of %g a sequence, %.4g spent at most;\n"
                        "           relaxed at %llu of %llu positions that could be\n", hm_rational_double(&o->fidelity_limit),
                c->most_spent, (unsigned long long)c->relaxed, (unsigned long long)c->charged);
}

static void print_rounds(const struct hm_session_counts *c)
{
    double rounds = (double)c->rounds;
    if (c->trees == 0) return;
    fprintf(stderr, "rounds     %llu; tokens per round %.3f, of which drafted %.3f\n", (unsigned long long)c->rounds,
            tokens_per_round(c), ratio((double)c->accepted, rounds));
    fprintf(stderr, "trees      %.1f candidates drafted, %.1f nodes verified a round;\n"
                    "           accepted to full depth %.1f%%\n",
            ratio((double)c->drafted, rounds), ratio((double)c->verified, rounds),
            100 * ratio((double)c->full, (double)c->trees));
    fprintf(stderr, "accepted   to depth");
    for (size_t i = 0; i < 5 && (c->reached[i] || i == 0); i++)
        fprintf(stderr, " %zu: %.1f%%", i + 1, 100 * ratio((double)c->reached[i], rounds));
    fputc('\n', stderr);
}

// All three divergences are vacuous at a step, or none is.
static void print_vacuous(double vacuous, double steps)
{
    if (vacuous == 0) return;
    if (vacuous == steps) fprintf(stderr, "    all vacuous: ");
    else fprintf(stderr, "    %.0f vacuous: ", vacuous);
    fprintf(stderr, "fewer than m tokens to reject, any draft covers\n");
}

static void print_inapplicable(double inapplicable)
{
    if (inapplicable > 0)
        fprintf(stderr, "    %.0f inapplicable: the children are not the first m of the draft\n", inapplicable);
}

static void print_claims(const struct hm_decode_options *o, const struct hm_stamp_summary *stamps,
                         const struct hm_drafter *drafter)
{
    if (stamps->counts)
        fprintf(stderr, "certified  of the steps with a draft row, by any of KL(p||q) / KL(q||p) / TV:\n");
    for (size_t i = 0; i < stamps->counts; i++) {
        const struct hm_stamp_count *c = &stamps->count[i];
        char *rule = hm_rule_text(&o->certify[i / o->m_count]);
        uint32_t m = o->m[i % o->m_count];
        char label[16] = "tree";
        if (m != HM_M_TREE) snprintf(label, sizeof label, "%u", m);
        fprintf(stderr, "  %s, m = %s: ", rule ? rule : "?", label);
        double n = 0; // steps with a verdict: those with a draft row
        for (int v = 0; v < 5; v++) n += (double)c->verdict[0][v];
        double inapplicable = (double)c->verdict[0][HM_CERT_INAPPLICABLE];
        if (n > 0 && inapplicable == n) {
            fprintf(stderr, "the children are never the first m\n    of the draft, which such a claim is about (--m 1 speaks of one)\n");
        } else if (n == 0) {
            fprintf(stderr, "no step has a draft row;\n    the log has what a draft would have to reach\n");
        } else {
            fprintf(stderr, "%.1f%% (%.1f / %.1f / %.1f) of %.0f; covered %.1f%%\n", 100 * ratio((double)c->certified, n),
                    100 * ratio((double)c->verdict[0][HM_CERT_YES], n), 100 * ratio((double)c->verdict[1][HM_CERT_YES], n),
                    100 * ratio((double)c->verdict[2][HM_CERT_YES], n), n, 100 * ratio((double)c->covered, n));
            print_vacuous((double)c->verdict[0][HM_CERT_VACUOUS], n);
            print_inapplicable(inapplicable);
        }
        free(rule);
    }
    if (stamps->counts && drafter && drafter->ids)
        fprintf(stderr, "  the draft has a part of the vocabulary, so KL(p||q) is infinite;\n"
                        "  hallmark report also shows what is certified within that part\n");
    if (stamps->undecided)
        fprintf(stderr, "undecided  %llu questions stayed open at 4096 bits\n", (unsigned long long)stamps->undecided);
}

static void print_check(const struct hm_decode_options *o, const struct hm_check_result *r,
                        const struct hm_session_counts *c, double waited)
{
    if (!o->check) return;
    double plain = ratio((double)r->tokens, r->seconds), ours = ratio((double)c->tokens, c->seconds + waited);
    if (r->different == 0) {
        fprintf(stderr, "check      %llu tokens of %llu answers equal plain decoding\n", (unsigned long long)r->tokens,
                (unsigned long long)r->compared);
    } else {
        fprintf(stderr, "check      %llu of %llu answers differ from plain decoding%s;\n"
                        "           first in sequence %u at token %u:\n"
                        "           %d here, %d plain",
                (unsigned long long)r->different, (unsigned long long)r->compared,
                o->accept == HM_ACCEPT_MATCH ? "" : " (this acceptance may)", r->sequence, r->t, r->ours, r->plain);
        if (!isnan(r->gap)) fprintf(stderr, " (logits %+.6g apart)", (double)r->gap);
        fputc('\n', stderr);
    }
    fprintf(stderr, "           plain %.1f tokens/s; this decode%s is %.2f times as fast\n", plain,
            o->certified ? ", certified," : "", ratio(ours, plain));
}

// Bytes of the log and its row shards.
static double log_bytes(const char *path)
{
    struct stat st;
    char shard[4096];
    double total = stat(path, &st) == 0 ? (double)st.st_size : 0;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < 100000; i++) {
            snprintf(shard, sizeof shard, "%s.%s-%05d.safetensors", path, kind ? "draft" : "target", i);
            if (stat(shard, &st) != 0) break;
            total += (double)st.st_size;
        }
    return total;
}

static void print_log(const struct hm_decode_options *o, const struct hm_stamp_summary *stamps, bool interrupted)
{
    if (stamps->counts) {
        fprintf(stderr, "certify    %.2f s of processor time, beside the decode and after it\n", stamps->seconds);
        if (o->keep_rows || o->hash_rows)
            fprintf(stderr, "hash       %.2f s of processor time, SHA-256 of the rows\n", stamps->hash_seconds);
        if (o->log) fprintf(stderr, "write      %.2f s of processor time, the log and its rows\n", stamps->write_seconds);
        fprintf(stderr, "filter     exact questions: %llu, %llu left to MPFR\n", (unsigned long long)stamps->decisions,
                (unsigned long long)stamps->filter_undecided);
    }
    if (!o->log) return;
    double bytes = log_bytes(o->log);
    bool large = bytes >= 999950; // prints as 1.0 MB
    fprintf(stderr, "log        %s, %.1f %s%s\n", o->log, bytes * (large ? 1e-6 : 1e-3), large ? "MB" : "KB",
            o->keep_rows ? " with its rows" : "");
    if (interrupted) fprintf(stderr, "           it ends where it was interrupted; what is there can be proved:\n");
    else if (!o->keep_rows) fprintf(stderr, "           without rows it can be checked, not proved (--keep-rows, or\n"
                                              "           verify --replay --model DIR%s, which computes them again):\n",
                                      o->draft ? " --draft DIR" : "");
    fprintf(stderr, "           hallmark verify %s%s\n", interrupted ? "--allow-truncated " : "", o->log);
}

static void print_text(const struct hm_decode_options *o, const struct hm_decode_models *m,
                       const struct hm_session_counts *c, const struct hm_stamp_summary *stamps,
                       double waited, const struct hm_check_result *check, bool interrupted)
{
    const struct hm_model_info *t = hm_model_info(m->target);
    fprintf(stderr, "\nmodel      %s (%s)", t->name, t->architecture);
    const char *draft = hm_decode_draft_checkpoint(m).name;
    if (draft) fprintf(stderr, ", draft %s%s", draft, strcmp(o->drafter, "eagle3") == 0 ? " (EAGLE-3)" : "");
    else if (strcmp(o->drafter, "none") != 0) fprintf(stderr, ", drafter %s", o->drafter);
    fprintf(stderr, "\ntokens     %llu in %.2f s: %.1f tokens/s (prompt before that: %.2f s)\n",
            (unsigned long long)c->tokens, c->seconds, ratio((double)c->tokens, c->seconds), c->prefill_seconds);
    if (stamps->counts)
        fprintf(stderr, "           with the wait for certificates after them (%.2f s): %.1f tokens/s\n", waited,
                ratio((double)c->tokens, c->seconds + waited));
    print_time(c);
    if (o->record_pool)
        fprintf(stderr, "record     %s; times and speed include it and a pass over every pool\n", o->record_pool);
    print_rounds(c);
    print_selection(o, c);
    print_warning(o, c);
    print_claims(o, stamps, m->drafter);
    print_check(o, check, c, waited);
    print_log(o, stamps, interrupted);
}

hm_status hm_print_summary(const struct hm_decode_options *options, const struct hm_decode_models *models,
                           const struct hm_session_counts *counts,
                           const struct hm_stamp_summary *stamps, double waited, const struct hm_check_result *check,
                           bool interrupted, struct hm_error *err)
{
    if (options->json) return print_json(options, counts, stamps, waited, check, interrupted, err);
    if (!options->quiet) print_text(options, models, counts, stamps, waited, check, interrupted);
    return HM_OK;
}
