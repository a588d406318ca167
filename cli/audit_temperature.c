// What an audit says of a claimed temperature: see audit.h.
#include "cli/audit.h"

#include "reports/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

bool hm_audit_temperature_refuted(const struct hm_likelihood *l)
{
    return hm_likelihood_ln_p(l) < -6.9078; // ln 1/1000, rounded down
}

static void print_text(FILE *to, const char *claimed, const struct hm_likelihood *l)
{
    fprintf(to, "\ntemperature %s claimed: %" PRIu64 " of %" PRIu64 " tokens are their row's first", claimed, l->first,
            l->tokens);
    if (l->without)
        fprintf(to, ";\n           %" PRIu64 " without evidence, perhaps for what they are: not refuted\n", l->without);
    else if (hm_likelihood_ln_p(l) < 0)
        fprintf(to, ";\n           the chance of that is at most 10^%.1f: %s\n", ceil(l->log_p / log(10) * 10) / 10,
                hm_audit_temperature_refuted(l) ? "refuted, these are greedy" : "not refuted");
    else
        fprintf(to, ": not refuted\n");
}

static cJSON *to_json(size_t input, const char *claimed, const struct hm_likelihood *l)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", "temperature");
    cJSON_AddNumberToObject(object, "input", (double)input);
    cJSON_AddStringToObject(object, "claimed", claimed);
    cJSON_AddNumberToObject(object, "tokens", (double)l->tokens);
    cJSON_AddNumberToObject(object, "first", (double)l->first);
    cJSON_AddNumberToObject(object, "without", (double)l->without);
    cJSON_AddRawToObject(object, "p_value", hm_number_json_up(hm_likelihood_p_value(l)).text);
    cJSON_AddRawToObject(object, "ln_p", hm_number_json_up(hm_likelihood_ln_p(l)).text);
    cJSON_AddBoolToObject(object, "refuted", hm_audit_temperature_refuted(l));
    return object;
}

hm_status hm_audit_print_temperature(struct hm_audit_run *run, const struct hm_likelihood *l, struct hm_error *err)
{
    hm_status rc = HM_OK;
    if (!run->options->claims_temperature) return HM_OK;
    char *claimed = hm_rational_text(&run->options->claimed);
    if (!claimed) return hm_fail(err, HM_MEMORY, "out of memory for a temperature");
    if (run->options->json) rc = hm_audit_print_json(run, to_json(run->number, claimed, l), err);
    else print_text(run->to, claimed, l);
    free(claimed);
    return rc;
}
