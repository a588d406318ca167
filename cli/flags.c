// Values of command-line flags: see flags.h.
#include "cli/flags.h"

#include "certify/stamp.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M_LARGEST = 1000000 };

hm_status hm_flag_count(const char *flag, const char *text, uint64_t least, uint64_t most, uint64_t *out,
                        struct hm_error *err)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value < least || value > most)
        return hm_fail(err, HM_USAGE, "--%s: expected a whole number from %llu to %llu, found \"%s\"", flag,
                       (unsigned long long)least, (unsigned long long)most, text);
    *out = value;
    return HM_OK;
}

hm_status hm_flag_size(const char *flag, const char *text, uint64_t least, uint64_t most, size_t *out,
                       struct hm_error *err)
{
    uint64_t value = 0;
    hm_status rc = hm_flag_count(flag, text, least, most, &value, err);
    if (!rc) *out = (size_t)value;
    return rc;
}

static void add_dashes(const char *flag, char prefix[64])
{
    strcpy(prefix, "--");
    strncat(prefix, flag, 61);
}

static hm_status check_digits(const char *where, const struct hm_rational *r, struct hm_error *err)
{
    if (mpz_sizeinbase(mpq_numref(r->value), 10) <= 40 && mpz_sizeinbase(mpq_denref(r->value), 10) <= 40) return HM_OK;
    return hm_fail(err, HM_USAGE, "%s: expected a fraction of at most 40 digits above and below the bar", where);
}

hm_status hm_flag_rational(const char *flag, const char *text, bool positive, long most, struct hm_rational *out,
                           struct hm_error *err)
{
    char prefix[64];
    add_dashes(flag, prefix);
    if (hm_rational_parse(text, out, err)) return hm_fail_prefix(err, prefix);
    hm_status rc = check_digits(prefix, out, err);
    if (rc) return rc;
    if (hm_rational_sign(out) < positive || mpq_cmp_si(out->value, most, 1) > 0)
        return hm_fail(err, HM_USAGE, "--%s: expected a number in %s0, %ld], found \"%s\"", flag, positive ? "(" : "[",
                       most, text);
    return HM_OK;
}

hm_status hm_flag_temperature(const char *flag, const char *text, bool positive, struct hm_rational *out,
                              struct hm_error *err)
{
    hm_status rc = hm_flag_rational(flag, text, positive, 100, out, err);
    if (!rc && hm_rational_sign(out) > 0 && mpq_cmp_ui(out->value, 1, 100000) < 0)
        rc = hm_fail(err, HM_USAGE, "--%s: expected %sat least 1/100000, found \"%s\"", flag, positive ? "" : "0 or ", text);
    return rc;
}

hm_status hm_flag_one_of(const char *flag, const char *text, const char *const *words, struct hm_error *err)
{
    char list[256] = "";
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) return HM_OK;
        strncat(list, i ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, words[i], sizeof list - strlen(list) - 1);
    }
    return hm_fail(err, HM_USAGE, "--%s: expected %s, found \"%s\"", flag, list, text);
}

hm_status hm_flag_rule(const char *flag, const char *text, struct hm_rule *out, struct hm_error *err)
{
    char prefix[64];
    add_dashes(flag, prefix);
    if (hm_rule_parse(text, out, err)) return hm_fail_prefix(err, prefix);
    hm_status rc = check_digits(prefix, &out->a, err);
    if (!rc) rc = check_digits(prefix, &out->b, err);
    if (rc) hm_rule_clear(out);
    return rc;
}

void hm_flag_warn_of_swapped(const char *flag, const char *text, const struct hm_rule *rule)
{
    if (hm_rule_looks_swapped(rule))
        fprintf(stderr, "hallmark: warning: --%s %s: delta < eps: are the two swapped?\n", flag, text);
}

static hm_status twice(const char *flag, const char *text, struct hm_error *err)
{
    return hm_fail(err, HM_USAGE, "--%s: \"%s\" was given twice", flag, text);
}

hm_status hm_flag_add_rule(const char *flag, const char *text, struct hm_rule rule[HM_MOST_RULES], size_t *count,
                           struct hm_error *err)
{
    if (*count == HM_MOST_RULES) return hm_fail(err, HM_USAGE, "--%s: expected at most %d rules", flag, HM_MOST_RULES);
    struct hm_rule *added = &rule[*count];
    hm_status rc = hm_flag_rule(flag, text, added, err);
    if (rc) return rc;
    for (const struct hm_rule *r = rule; r < added && !rc; r++)
        if (r->kind == added->kind && r->count == added->count && mpq_equal(r->a.value, added->a.value) &&
            mpq_equal(r->b.value, added->b.value))
            rc = twice(flag, text, err);
    if (rc) hm_rule_clear(added);
    else ++*count;
    return rc;
}

hm_status hm_flag_add_m(const char *text, bool tree, uint32_t m[HM_MOST_M], size_t *count, struct hm_error *err)
{
    uint64_t value = HM_M_TREE;
    if (*count == HM_MOST_M) return hm_fail(err, HM_USAGE, "--m: expected at most %d values", HM_MOST_M);
    hm_status rc = HM_OK;
    bool is_tree = tree && strcmp(text, "tree") == 0;
    if (!is_tree && hm_flag_count("m", text, 1, M_LARGEST, &value, err))
        rc = hm_fail(err, HM_USAGE, "--m: expected a whole number from 1 to %d%s, found \"%s\"", M_LARGEST,
                     tree ? " or tree" : "", text);
    for (size_t i = 0; i < *count && !rc; i++)
        if (m[i] == value) rc = twice("m", text, err);
    if (!rc) m[(*count)++] = (uint32_t)value;
    return rc;
}

hm_status hm_flag_add_divergence(const char *text, struct hm_divergence divergence[HM_MOST_DIVERGENCES], size_t *count,
                                 struct hm_error *err)
{
    if (*count == HM_MOST_DIVERGENCES)
        return hm_fail(err, HM_USAGE, "--divergence: expected at most %d divergences", HM_MOST_DIVERGENCES);
    struct hm_divergence *added = &divergence[*count];
    if (hm_divergence_parse(text, added, err)) return hm_fail_prefix(err, "--divergence");
    hm_status rc = check_digits("--divergence", &added->order, err);
    for (size_t i = 0; i < *count && !rc; i++)
        if (divergence[i].kind == added->kind && mpq_equal(divergence[i].order.value, added->order.value))
            rc = twice("divergence", text, err);
    if (rc) hm_divergence_clear(added);
    else ++*count;
    return rc;
}

hm_status hm_flag_law(const char *text, bool *iid, bool *topk, struct hm_error *err)
{
    static const char *const laws[] = {"iid", "topk", NULL};
    hm_status rc = hm_flag_one_of("law", text, laws, err);
    if (rc) return rc;
    bool *which = strcmp(text, "iid") == 0 ? iid : topk;
    if (*which) return twice("law", text, err);
    *which = true;
    return HM_OK;
}

hm_status hm_flag_refuse(int found, char *const *argv, const char *command, struct hm_error *err)
{
    char letter[3] = {'-', (char)optopt, 0};
    const char *word = argv[optind - 1];
    if (found == ':') return hm_fail(err, HM_USAGE, "%s: expected a value after it", word);
    if (found != '?') return HM_OK;
    return hm_fail(err, HM_USAGE, "unknown or ambiguous flag \"%s\" (hallmark %s --help)", optopt ? letter : word, command);
}

hm_status hm_flag_format(const char *flag, const char *text, const char **out, struct hm_error *err)
{
    const char *names[HM_FORMATS + 1] = {NULL};
    for (int i = 0; i < HM_FORMATS; i++) names[i] = hm_format_name((enum hm_format)i);
    *out = text;
    return hm_flag_one_of(flag, text, names, err);
}

hm_status hm_flag_printing(const char *text, enum hm_printing *out, struct hm_error *err)
{
    static const char *const words[] = {"rounded", "round-trip", NULL};
    *out = strcmp(text, words[1]) == 0 ? HM_PRINTING_ROUND_TRIP : HM_PRINTING_ROUNDED;
    return hm_flag_one_of("printing", text, words, err);
}
