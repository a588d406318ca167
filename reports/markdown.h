// Private to reports/: the parts of the Markdown report that have files of their own.
#ifndef HM_REPORTS_MARKDOWN_H
#define HM_REPORTS_MARKDOWN_H

#include "reports/figures.h"
#include "reports/output.h"

enum {
    HM_MARKDOWN_MOST = 60000, // bytes of the whole: what a comment of an issue takes, with room
    HM_MARKDOWN_CLAIMS = 24,  // rows of a table by claim
    HM_MARKDOWN_LOGS = 12,
    HM_MARKDOWN_FORKS = 20,
    HM_MARKDOWN_MISSED = 10   // uncertified steps listed
};

void hm_markdown_answers(struct hm_output *o, const struct hm_report *r);  // markdown_answers.c: what is asked first
void hm_markdown_missed(struct hm_output *o, const struct hm_report *r);
void hm_markdown_course(struct hm_output *o, const struct hm_report *r);   // markdown_course.c
void hm_markdown_findings(struct hm_output *o, const struct hm_report *r); // markdown_findings.c
void hm_markdown_again(struct hm_output *o, const struct hm_report *r);    // the commands that do it again

// A file name in a command inside `...`: quoted for a shell where needed; what cannot stand there becomes a sign.
void hm_markdown_word(struct hm_output *o, const char *word);

#endif
