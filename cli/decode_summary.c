// What `hallmark decode` prints: see decode_summary.h.
#include "cli/decode_summary.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hm_status print_object(cJSON *object, struct hm_error *err)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (!text) return hm_fail(err, HM_MEMORY, "out of memory for JSON");
    bool good = puts(text) >= 0 && fflush(stdout) == 0;
    free(text);
    return good ? HM_OK : hm_fail(err, HM_IO, "cannot write to standard output");
}

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
    return print_object(object, err);
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

// ---- for machines

static void add_verdicts(cJSON *claim, const struct hm_stamp_count *count)
{
    static const char *const divergence[] = {"klf", "klr", "tv"};
    static const char *const verdict[] = {"no", "yes", "vacuous", "inapplicable", "undecided"};
    for (int i = 0; i < 3; i++) {
        cJSON *object = cJSON_AddObjectToObject(claim, divergence[i]);
        for (int j = 0; j < 5; j++) cJSON_AddNumberToObject(object, verdict[j], (double)count->verdict[i][j]);
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
                            const struct hm_stamp_summary *stamps, const struct hm_check_result *check, bool interrupted,
                            struct hm_error *err)
{
    cJSON *s = cJSON_CreateObject();
    cJSON_AddStringToObject(s, "kind", "summary");
    cJSON_AddBoolToObject(s, "interrupted", interrupted);
    cJSON_AddNumberToObject(s, "tokens", (double)c->tokens);
    cJSON_AddNumberToObject(s, "rounds", (double)c->rounds);
    cJSON_AddNumberToObject(s, "accepted", (double)c->accepted);
    cJSON_AddNumberToObject(s, "drafted", (double)c->drafted);
    cJSON_AddNumberToObject(s, "verified", (double)c->verified);
    cJSON_AddNumberToObject(s, "full_rounds", (double)c->full);
    cJSON_AddNumberToObject(s, "mean_accepted", ratio((double)c->accepted, (double)c->rounds));
    cJSON_AddNumberToObject(s, "tokens_per_round", ratio((double)(c->accepted + c->rounds), (double)c->rounds));
    cJSON *reached = cJSON_AddArrayToObject(s, "reached_depth");
    for (size_t i = 0; i < 64 && c->reached[i]; i++) cJSON_AddItemToArray(reached, cJSON_CreateNumber((double)c->reached[i]));
    cJSON_AddNumberToObject(s, "seconds", c->seconds);
    cJSON_AddNumberToObject(s, "prefill_seconds", c->prefill_seconds);
    cJSON_AddNumberToObject(s, "draft_seconds", c->draft_seconds);
    cJSON_AddNumberToObject(s, "verify_seconds", c->verify_seconds);
    cJSON_AddNumberToObject(s, "tokens_per_second", ratio((double)c->tokens, c->seconds));
    if (stamps->counts) {
        cJSON_AddNumberToObject(s, "certify_processor_seconds", stamps->seconds);
        cJSON_AddNumberToObject(s, "undecided", (double)stamps->undecided);
        add_claims(s, o, stamps);
    }
    if (o->check) {
        cJSON *object = cJSON_AddObjectToObject(s, "check");
        cJSON_AddNumberToObject(object, "sequences", (double)check->compared);
        cJSON_AddNumberToObject(object, "different", (double)check->different);
    }
    return print_object(s, err);
}

// ---- for people

static void print_rounds(const struct hm_session_counts *c)
{
    double rounds = (double)c->rounds;
    if (c->rounds == 0 || c->verified == 0) return;
    fprintf(stderr, "rounds     %llu; tokens per round %.3f (accepted %.3f + 1); drafted %.1f, verified %.1f a round\n",
            (unsigned long long)c->rounds, ratio((double)c->accepted, rounds) + 1, ratio((double)c->accepted, rounds),
            ratio((double)c->drafted, rounds), ratio((double)c->verified, rounds));
    fprintf(stderr, "accepted   to depth");
    for (size_t i = 0; i < 8 && c->reached[i]; i++)
        fprintf(stderr, " %zu: %.1f%%", i + 1, 100 * ratio((double)c->reached[i], rounds));
    fprintf(stderr, "%s; fully accepted %.1f%%\n", c->accepted ? "" : " 1: 0.0%", 100 * ratio((double)c->full, rounds));
}

static void print_claims(const struct hm_decode_options *o, const struct hm_stamp_summary *stamps)
{
    if (stamps->counts) fprintf(stderr, "certified  of the steps with a draft row: any (forward / reverse / TV)\n");
    for (size_t i = 0; i < stamps->counts; i++) {
        const struct hm_stamp_count *c = &stamps->count[i];
        char *rule = hm_rule_text(&o->certify[i / o->m_count]);
        uint32_t m = o->m[i % o->m_count];
        char label[16] = "tree";
        if (m != HM_M_TREE) snprintf(label, sizeof label, "%u", m);
        fprintf(stderr, "  %s, m = %s: ", rule ? rule : "?", label);
        double n = 0; // steps with a verdict: those with a draft row
        for (int v = 0; v < 5; v++) n += (double)c->verdict[0][v];
        if (n == 0) fprintf(stderr, "no step has a draft row\n");
        else
            fprintf(stderr, "%.1f%% (%.1f / %.1f / %.1f) of %.0f; covered %.1f%%\n", 100 * ratio((double)c->certified, n),
                    100 * ratio((double)c->verdict[0][HM_CERT_YES], n), 100 * ratio((double)c->verdict[1][HM_CERT_YES], n),
                    100 * ratio((double)c->verdict[2][HM_CERT_YES], n), n, 100 * ratio((double)c->covered, n));
        free(rule);
    }
    if (stamps->undecided)
        fprintf(stderr, "undecided  %llu questions stayed open at 4096 bits\n", (unsigned long long)stamps->undecided);
}

static void print_check(const struct hm_decode_options *o, const struct hm_check_result *r)
{
    if (!o->check) return;
    if (r->different == 0) {
        fprintf(stderr, "check      %llu tokens of %llu answers equal plain decoding\n", (unsigned long long)r->tokens,
                (unsigned long long)r->compared);
        return;
    }
    fprintf(stderr, "check      %llu of %llu answers differ from plain decoding%s; first in sequence %u at token %u:\n"
                    "           %d here, %d plain", (unsigned long long)r->different, (unsigned long long)r->compared,
            o->match ? "" : " (the rule is relaxed)", r->sequence, r->t, r->ours, r->plain);
    if (!isnan(r->gap)) fprintf(stderr, ", plain logit higher by %.6g", (double)r->gap);
    fputc('\n', stderr);
}

static void print_text(const struct hm_decode_options *o, const struct hm_model *target, const struct hm_model *draft,
                       const struct hm_session_counts *c, const struct hm_stamp_summary *stamps,
                       const struct hm_check_result *check, bool interrupted)
{
    const struct hm_model_info *t = hm_model_info(target);
    fprintf(stderr, "\nmodel      %s (%s)", t->name, t->architecture);
    if (draft) fprintf(stderr, ", draft %s", hm_model_info(draft)->name);
    else if (strcmp(o->drafter, "none") != 0) fprintf(stderr, ", drafter %s", o->drafter);
    fprintf(stderr, "\ntokens     %llu in %.2f s: %.1f tokens/s (draft %.2f s, verify %.2f s); prompt %.2f s\n",
            (unsigned long long)c->tokens, c->seconds, ratio((double)c->tokens, c->seconds), c->draft_seconds,
            c->verify_seconds, c->prefill_seconds);
    print_rounds(c);
    print_claims(o, stamps);
    print_check(o, check);
    if (interrupted) fprintf(stderr, "interrupted: the log ends here and says so\n");
    if (o->log) fprintf(stderr, "log        %s; prove it with: hallmark verify %s\n", o->log, o->log);
}

hm_status hm_print_summary(const struct hm_decode_options *options, const struct hm_model *target,
                           const struct hm_model *draft, const struct hm_session_counts *counts,
                           const struct hm_stamp_summary *stamps, const struct hm_check_result *check, bool interrupted,
                           struct hm_error *err)
{
    if (options->json) return print_json(options, counts, stamps, check, interrupted, err);
    if (!options->quiet) print_text(options, target, draft, counts, stamps, check, interrupted);
    return HM_OK;
}
