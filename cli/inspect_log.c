// What a log is: see inspect.h. The header in words, its sequences, how it ends.
#include "cli/inspect.h"

#include "base/json.h"
#include "cli/command.h"
#include "reports/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES_SHOWN = 20 };

struct counts {
    uint64_t sequences, rounds, steps, nodes, rows;
    int64_t sequence, t, row; // of the last record
    bool ended;               // with an end record
    int64_t undecided;        // which says so
};

// ---- the header

static void print_model(const char *label, const struct hm_record_model *m)
{
    if (!m->name) {
        hm_inspect_field(label, "none");
        return;
    }
    hm_inspect_field(label, "%s%s%s, vocabulary of %" PRId64, m->name,
                     m->architecture && m->architecture[0] ? ", " : "", m->architecture ? m->architecture : "",
                     m->vocab);
    if (m->sha256 && m->sha256[0]) hm_inspect_field("  sha256", "%s", m->sha256);
}

// Puts words together, a comma between them.
struct list {
    char text[1024];
    size_t size;
};

static void add(struct list *list, const char *word)
{
    size_t room = sizeof list->text - list->size;
    int n = snprintf(list->text + list->size, room, "%s%s", list->size ? ", " : "", word);
    if (n > 0) list->size += (size_t)n < room ? (size_t)n : room - 1;
}

static void print_claims(const struct hm_record_header *h)
{
    struct list rules = {0}, m = {0}, with = {0};
    char number[24];
    for (size_t i = 0; i < h->claim_count; i++) add(&rules, h->claims[i]);
    for (size_t i = 0; i < h->m_count; i++) {
        snprintf(number, sizeof number, "%" PRId64, h->m[i]);
        add(&m, h->m[i] ? number : "the tree's");
    }
    hm_inspect_field("claims", "%s", rules.text);
    hm_inspect_field("", "for m = %s, at temperature %s", m.text, h->certify_temperature);
    if (h->margin) add(&with, "margins");
    if (h->universal) add(&with, "rule-universal bounds");
    if (h->law[HM_PROPOSAL_IID]) add(&with, "laws of iid proposals");
    if (h->law[HM_PROPOSAL_TOPK]) add(&with, "laws of topk proposals");
    for (size_t i = 0; i < h->divergence_count; i++) add(&with, h->divergences[i]);
    if (with.size) hm_inspect_field("", "with %s", with.text);
}

static void print_decoder(const struct hm_record_header *h)
{
    if (h->audit) {
        hm_inspect_field("decoder", "none: an audit of rows that another program saved");
        return;
    }
    hm_inspect_field("decoder",
                     "drafter %s; width %" PRId64 ", depth %" PRId64 ", budget %" PRId64 "; traversal %s%s%s%s%s",
                     h->drafter, h->width, h->depth, h->budget, h->traversal, h->selection ? ", selection " : "",
                     h->selection ? h->selection : "", h->score ? ", score " : "", h->score ? h->score : "");
    hm_inspect_field("sampling", "temperature %s, top-k %" PRId64 ", top-p %s; acceptance %s, proposal %s",
                     h->temperature, h->top_k, h->top_p, h->acceptance, h->proposal ? h->proposal : "not said");
    if (h->budget_kind)
        hm_inspect_field("fidelity", "a budget of %s %s for each sequence", h->budget_limit, h->budget_kind);
}

static void print_header(const struct hm_inspect_options *o, const struct hm_record_header *h)
{
    hm_inspect_heading("%s: certificate log of %s%s%s%s%s%s%s", o->path, h->audit ? "an audit" : "a decode",
                       h->version ? ", hallmark " : "", h->version ? h->version : "", h->date ? ", " : "",
                       h->date ? h->date : "", h->host ? ", on " : "", h->host ? h->host : "");
    print_model("target", &h->target);
    print_model("draft", &h->draft);
    print_claims(h);
    print_decoder(h);
    if (h->weights || h->backend)
        hm_inspect_field("numerics", "weights %s, backend %s, rows from %s", h->weights ? h->weights : "?",
                         h->backend ? h->backend : "?", h->row_source ? h->row_source : "?");
    if (h->has_rows)
        hm_inspect_field("rows", "kept in shards beside the log%s%s", h->target_rows ? ": " : "",
                         h->target_rows ? h->target_rows : "");
    else
        hm_inspect_field("rows", h->rows_hashed ? "hashed, not kept: they can be recomputed (verify --replay)"
                                                : "neither kept nor hashed");
    hm_inspect_field("each step", "lists the first %" PRId64 " tokens; %s", h->top,
                     h->all_nodes ? "every node of a tree has a record" : "nodes off the path have no record");
}

// ---- the records

static void count(struct counts *c, const struct hm_record *r)
{
    c->sequences += r->kind == HM_RECORD_SEQUENCE;
    c->rounds += r->kind == HM_RECORD_ROUND;
    c->steps += r->kind == HM_RECORD_STEP;
    c->nodes += r->kind == HM_RECORD_NODE;
    c->rows += r->kind == HM_RECORD_ROW;
    if (r->kind == HM_RECORD_SEQUENCE) c->sequence = r->sequence->sequence, c->t = -1;
    if (r->kind == HM_RECORD_STEP) c->t = r->step->t;
    if (r->kind == HM_RECORD_ROW) c->row = r->step->index;
    if (r->kind != HM_RECORD_END) return;
    c->ended = true;
    c->undecided = r->end->undecided;
}

static void print_sequence(const struct hm_record_sequence *s)
{
    hm_inspect_field("sequence",
                     "%" PRId64 ": id %s, turn %" PRId64 "%s%s, prompt of %zu tokens, seed %s, at most %" PRId64
                     " tokens",
                     s->sequence, hm_inspect_quote(s->id, 24).text, s->turn, s->category[0] ? ", " : "", s->category,
                     s->prompt_length, s->seed, s->max_tokens);
}

// Where it stops, for a log that does.
static void describe_end(const struct counts *c, enum hm_log_state state, char *out, size_t size)
{
    const char *how = state == HM_LOG_CUT_LINE ? ", inside a line" : "";
    if (c->ended)
        snprintf(out, size, "complete; %" PRId64 " answers undecided", c->undecided);
    else if (c->rows)
        snprintf(out, size, "truncated after row %" PRId64 "%s", c->row, how);
    else if (c->steps && c->t >= 0)
        snprintf(out, size, "truncated after step %" PRId64 ":%" PRId64 "%s", c->sequence, c->t, how);
    else
        snprintf(out, size, "truncated before the first %s%s", c->sequences ? "step of its last sequence" : "record",
                 how);
}

static void print_counts(const struct hm_log_reader *reader, const struct counts *c)
{
    char state[128];
    const struct hm_record_header *h = hm_log_reader_header(reader);
    describe_end(c, hm_log_reader_state(reader), state, sizeof state);
    if (c->sequences > SEQUENCES_SHOWN)
        hm_inspect_field("", "and %" PRIu64 " more sequences", c->sequences - SEQUENCES_SHOWN);
    if (h->audit)
        hm_inspect_field("holds", "%s", hm_number_of(c->rows, "row").text);
    else
        hm_inspect_field("holds", "%s, %s, %s, %s", hm_number_of(c->sequences, "sequence").text,
                         hm_number_of(c->rounds, "round").text, hm_number_of(c->steps, "step").text,
                         hm_number_of(c->nodes, "node record").text);
    hm_inspect_field("state", "%s", state);
    hm_inspect_field("chain", "%s", hm_log_reader_chain(reader));
    hm_inspect_field("", "as the last line has it, nothing is checked here: hallmark verify");
}

static cJSON *count_json(const struct hm_log_reader *reader, const struct counts *c)
{
    char state[128];
    cJSON *o = cJSON_CreateObject();
    describe_end(c, hm_log_reader_state(reader), state, sizeof state);
    const struct {
        const char *key;
        uint64_t value;
    } all[] = {{"sequences", c->sequences},
               {"rounds", c->rounds},
               {"steps", c->steps},
               {"nodes", c->nodes},
               {"rows", c->rows}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) cJSON_AddNumberToObject(o, all[i].key, (double)all[i].value);
    cJSON_AddBoolToObject(o, "complete", c->ended);
    cJSON_AddStringToObject(o, "state", state);
    if (cJSON_AddStringToObject(o, "chain", hm_log_reader_chain(reader))) return o;
    cJSON_Delete(o);
    return NULL;
}

// The header's line as it is, then the counts as an object.
hm_status hm_inspect_log(const struct hm_inspect_options *o, struct hm_error *err)
{
    struct hm_log_reader *reader;
    struct hm_record record = {.kind = HM_RECORD_SEQUENCE};
    struct counts counts = {.sequence = -1, .t = -1, .row = -1};
    size_t size;
    hm_status rc = hm_log_reader_open(o->path, &reader, err);
    if (rc) return rc;
    const char *line = hm_log_reader_line(reader, &size);
    if (o->json)
        printf("%.*s\n", (int)size, line);
    else
        print_header(o, hm_log_reader_header(reader));
    while (!rc && record.kind != HM_RECORD_NONE) {
        rc = hm_log_reader_next(reader, &record, err);
        if (rc) break;
        count(&counts, &record);
        if (record.kind == HM_RECORD_SEQUENCE && !o->json && counts.sequences <= SEQUENCES_SHOWN)
            print_sequence(record.sequence);
    }
    if (!rc && o->json)
        rc = hm_cli_print_json(count_json(reader, &counts), err);
    else if (!rc)
        print_counts(reader, &counts);
    hm_log_reader_close(reader);
    return rc;
}
