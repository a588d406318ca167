// `hallmark decode`: models and prompts in; text, a certificate log and a summary out.
#include "cli/command.h"
#include "base/clock.h"
#include "cli/conversation.h"
#include "cli/decode_check.h"
#include "cli/decode_models.h"
#include "cli/decode_options.h"
#include "cli/decode_summary.h"
#include "cli/prompts.h"
#include "cli/record.h"
#include "cli/stamping.h"
#include "decode/chat.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile bool interrupted;
static volatile sig_atomic_t interrupting_signal;

static void on_interrupt(int signal_number)
{
    if (interrupted) { // the second time, at once
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    interrupting_signal = signal_number;
    interrupted = true;
}

// Everything a decode holds, in the order of opening.
struct decode {
    struct hm_decode_options options;
    struct hm_prompts prompts;
    struct hm_decode_models models;
    struct hm_session *session;
    struct hm_stamping stamping;
    struct hm_record *record; // of pools; NULL: none
    struct hm_session_counts counts;
    struct hm_check_result check;
    bool progress_shown;
    double waited; // for certificates, after the last token
};

// ---- progress: on a terminal only, in one line that is wiped

static bool shows_progress(const struct decode *d)
{
    return !d->options.quiet && isatty(STDERR_FILENO);
}

static void say(const struct decode *d, const char *what, const char *name)
{
    if (shows_progress(d)) fprintf(stderr, "\r\033[K%s%s%s", what, *name ? " " : "", name);
}

// ---- opening

static hm_status load_prompts(struct decode *d, struct hm_error *err)
{
    const struct hm_decode_options *o = &d->options;
    if (o->prompt) return hm_prompts_from_text(o->prompt, &d->prompts, err);
    if (o->prompt_file) return hm_prompts_from_file(o->prompt_file, &d->prompts, err);
    return hm_prompts_from_jsonl(o->prompts, o->limit, &d->prompts, err);
}

static void on_loading(const char *dir)
{
    fprintf(stderr, "\r\033[Kloading %s", dir);
}

// Every first turn must fit before a log is opened: what an old log holds is not given up for a run that cannot start.
static hm_status check_first_turns(struct decode *d, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (size_t i = 0; i < d->prompts.count && !rc; i++) {
        struct hm_conversation c = {.tokenizer = d->models.tokenizer, .chat = d->options.chat, .format = d->models.chat};
        if (d->options.system) rc = hm_conversation_system(&c, d->options.system, err);
        if (!rc) rc = hm_conversation_ask(&c, d->prompts.prompt[i].turn[0], err);
        if (!rc) rc = hm_session_check(d->session, c.length, d->options.max_tokens, err);
        hm_conversation_clear(&c);
        char where[64];
        snprintf(where, sizeof where, "prompt %zu", i + 1);
        if (rc && d->options.prompts) hm_fail_prefix(err, where);
    }
    return rc;
}

static hm_status open_record(struct decode *d, struct hm_error *err)
{
    const struct hm_decode_options *o = &d->options;
    char task[64] = "prompt", name[256];
    if (o->prompts || o->prompt_file) hm_record_task(o->prompts ? o->prompts : o->prompt_file, task, sizeof task);
    snprintf(name, sizeof name, "%s %.200s", d->models.drafter->name,
             hm_decode_draft_checkpoint(&d->models).name);
    struct hm_record_options options = {.target = hm_model_info(d->models.target)->name,
                                        .drafter = name,
                                        .task = task,
                                        .temperature = &o->temperature,
                                        .probability_temperature = &o->certify_temperature,
                                        .top_k = o->top_k,
                                        .top_p = o->has_top_p ? &o->top_p : NULL,
                                        .seed = o->seed,
                                        .vocab = hm_model_info(d->models.target)->vocab,
                                        .width = o->width,
                                        .depth = o->depth,
                                        .budget = o->budget};
    return hm_record_open(o->record_pool, &options, &d->record, err);
}

static hm_status open_all(struct decode *d, struct hm_error *err)
{
    struct hm_session_options options = hm_decode_session_options(&d->options, &d->models);
    hm_status rc = hm_session_legal(&options, err);
    if (!rc) rc = load_prompts(d, err);
    if (!rc) rc = hm_decode_models_open(&d->options, shows_progress(d) ? on_loading : NULL, &d->models, err);
    options = hm_decode_session_options(&d->options, &d->models);
    if (!rc) rc = hm_session_open(&options, &d->session, err);
    if (!rc) rc = check_first_turns(d, err);
    if (!rc && d->options.log) rc = hm_stamping_check_path(d->options.log, err);
    if (!rc && d->options.certified)
        rc = hm_stamping_open(&d->options, &d->models, &d->stamping, err);
    if (!rc && d->options.record_pool) rc = open_record(d, err);
    say(d, "", "");
    return rc;
}

static void close_all(struct decode *d)
{
    hm_session_close(d->session);
    hm_decode_models_close(&d->models);
    hm_prompts_clear(&d->prompts);
}

// ---- events

static hm_status on_round(void *user, const struct hm_round_event *event, struct hm_error *err)
{
    struct decode *d = user;
    hm_status rc = d->record ? hm_record_round(d->record, event, err) : HM_OK;
    return rc || !d->stamping.stamper ? rc : hm_stamping_round(&d->stamping, event, err);
}

static hm_status on_step(void *user, const struct hm_step_event *event, struct hm_error *err)
{
    struct decode *d = user;
    hm_status rc = d->record ? hm_record_step(d->record, event, err) : HM_OK;
    return rc || !d->stamping.stamper ? rc : hm_stamping_step(&d->stamping, event, err);
}

static hm_status on_pool(void *user, const struct hm_pool_event *event, struct hm_error *err)
{
    struct decode *d = user;
    return hm_record_pool(d->record, event, err);
}

static hm_status on_node(void *user, const struct hm_node_event *event, struct hm_error *err)
{
    struct decode *d = user;
    return hm_stamping_node(&d->stamping, event, err);
}

static hm_status on_text(void *user, const char *text, size_t size, struct hm_error *err)
{
    (void)user;
    if (fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0) return HM_OK;
    return hm_fail(err, HM_IO, "cannot write the text to standard output: %s", strerror(errno));
}

static void on_prefill(void *user, size_t done, size_t total)
{
    struct decode *d = user;
    if (done == total && !d->progress_shown) return; // short prompts pass in one piece
    d->progress_shown = true;
    fprintf(stderr, "\rreading the prompt: %zu of %zu tokens%s", done, total, done == total ? "\r\033[K" : "");
    if (done == total) d->progress_shown = false;
}

// ---- running

static hm_status log_sequence(struct decode *d, uint32_t sequence, const struct hm_prompt *prompt, size_t turn,
                              const struct hm_conversation *c, struct hm_error *err)
{
    struct hm_log_sequence record = {
        .sequence = sequence,
        .turn = (uint32_t)turn,
        .id = prompt->id,
        .category = prompt->category,
        .prompt = c->context,
        .prompt_length = c->length,
        .seed = d->options.seed,
        .eos = d->models.eos,
        .eos_count = d->models.eos_count,
        .max_tokens = d->options.max_tokens,
        .stop = d->options.stop,
        .stop_count = d->options.stop_count,
    };
    d->stamping.sequence = sequence;
    return hm_stamper_sequence(d->stamping.stamper, &record, err);
}

// Text without the special tokens and, at a stop string, only what stands before it.
static hm_status answer_text(struct decode *d, struct hm_answer *answer, struct hm_error *err)
{
    int32_t *plain = malloc((answer->count + 1) * sizeof *plain);
    size_t n = 0;
    if (!plain) return hm_fail(err, HM_MEMORY, "out of memory for an answer");
    for (size_t i = 0; i < answer->count; i++)
        if (!hm_tokenizer_is_special(d->models.tokenizer, answer->token[i])) plain[n++] = answer->token[i];
    hm_status rc = hm_tokenizer_decode(d->models.tokenizer, plain, n, &answer->text, &answer->size, err);
    free(plain);
    size_t whole = answer->size;
    for (size_t i = 0; i < d->options.stop_count && !rc; i++) {
        const char *at = memmem(answer->text, whole, d->options.stop[i], strlen(d->options.stop[i]));
        if (at && (size_t)(at - answer->text) < answer->size) answer->size = (size_t)(at - answer->text);
    }
    return rc;
}

static hm_status run_turn(struct decode *d, uint32_t sequence, const struct hm_prompt *prompt, size_t turn,
                          struct hm_conversation *c, struct hm_error *err)
{
    struct hm_listener listener = {
        .user = d,
        .round = on_round,
        .step = on_step,
        .node = d->stamping.stamper && d->options.all_nodes ? on_node : NULL,
        .pool = d->record ? on_pool : NULL,
        .text = d->options.json ? NULL : on_text,
        .prefill = shows_progress(d) ? on_prefill : NULL,
        .interrupted = &interrupted,
    };
    struct hm_answer answer = {.sequence = sequence, .turn = turn, .prompt = prompt, .prompt_tokens = c->length};
    hm_status rc = hm_conversation_ask(c, prompt->turn[turn], err);
    if (!rc && d->options.prompts && !d->options.json) printf("[%s, turn %zu]\n", prompt->id, turn);
    if (!rc && d->record) rc = hm_record_sequence(d->record, sequence, prompt->id, prompt->category, (uint32_t)turn, err);
    if (!rc && d->stamping.stamper) rc = log_sequence(d, sequence, prompt, turn, c, err);
    if (!rc)
        rc = hm_session_run(d->session, sequence, c->context, c->length, d->options.max_tokens, &listener, &d->counts,
                            &answer.token, &answer.count, err);
    answer.prompt_tokens = c->length;
    if (!rc) rc = answer_text(d, &answer, err);
    if (!rc && d->options.json) rc = hm_print_answer(&answer, err);
    if (!rc && !d->options.json) rc = on_text(d, "\n", 1, err);
    if (!rc && d->options.check && !interrupted) {
        struct hm_session *plain = NULL;
        struct hm_session_options options = hm_decode_plain_session_options(&d->options, &d->models);
        rc = hm_session_open(&options, &plain, err);
        if (!rc) rc = hm_decode_check(plain, &answer, c->context, d->options.max_tokens, &d->check, err);
        hm_session_close(plain);
    }
    if (!rc) rc = hm_conversation_answer(c, answer.token, answer.count, answer.text, answer.size, err);
    free(answer.token);
    free(answer.text);
    return rc;
}

static hm_status run_prompts(struct decode *d, struct hm_error *err)
{
    uint32_t sequence = 0;
    hm_status rc = HM_OK;
    for (size_t i = 0; i < d->prompts.count && !rc && !interrupted; i++) {
        const struct hm_prompt *prompt = &d->prompts.prompt[i];
        struct hm_conversation c = {.tokenizer = d->models.tokenizer, .chat = d->options.chat, .format = d->models.chat};
        if (d->options.system) rc = hm_conversation_system(&c, d->options.system, err);
        for (size_t turn = 0; turn < prompt->turns && !rc && !interrupted; turn++)
            rc = run_turn(d, sequence++, prompt, turn, &c, err);
        hm_conversation_clear(&c);
    }
    return rc;
}

static int finish(struct decode *d, hm_status rc, struct hm_error *err)
{
    struct hm_stamp_summary stamps = {0};
    struct hm_error late;
    hm_status closed;
    if (d->stamping.stamper) {
        say(d, "certifying the last tokens", "");
        double start = hm_now();
        closed = hm_stamper_close(d->stamping.stamper, &stamps, &late);
        d->waited = hm_now() - start;
        if (closed && !rc) {
            rc = closed;
            *err = late;
        }
        say(d, "", "");
    }
    closed = hm_record_close(d->record, &late);
    if (closed && !rc) {
        rc = closed;
        *err = late;
    }
    if (!rc) rc = hm_print_summary(&d->options, &d->models, &d->counts, &stamps, d->waited, &d->check, interrupted, err);
    hm_stamp_summary_clear(&stamps);
    if (rc) return hm_cli_fail(err);
    if (interrupted) return 128 + interrupting_signal;
    return d->check.different && d->options.accept == HM_ACCEPT_MATCH ? HM_EXIT_FINDING : HM_EXIT_OK;
}

int hm_cmd_decode(int argc, char **argv)
{
    struct hm_error err;
    struct decode *d = calloc(1, sizeof *d);
    enum hm_parsed what;
    int code = HM_EXIT_OK;
    if (!d) {
        hm_fail(&err, HM_MEMORY, "out of memory");
        return hm_cli_fail(&err);
    }
    if (hm_decode_options_parse(argc, argv, &d->options, &what, &err)) {
        code = hm_cli_fail(&err);
    } else if (what == HM_PARSED_HELP) {
        for (size_t i = 0; hm_decode_help[i]; i++) fputs(hm_decode_help[i], stdout);
    } else {
        struct sigaction action = {.sa_handler = on_interrupt};
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        hm_status rc = open_all(d, &err);
        if (!rc && d->options.chat && !d->options.quiet) fprintf(stderr, "chat format: %s\n", hm_chat_name(d->models.chat));
        if (!rc) rc = run_prompts(d, &err);
        code = finish(d, rc, &err);
    }
    close_all(d);
    hm_decode_options_clear(&d->options);
    free(d);
    return code;
}
