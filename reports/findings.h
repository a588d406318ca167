// Findings of `hallmark compare --json` and `hallmark audit --json` (docs/compare.md, docs/evidence.md): read line by line,
// counted whole, listed in part. Memory does not grow with the files. Gathered by findings.c and findings_read.c.
#ifndef HM_REPORTS_FINDINGS_H
#define HM_REPORTS_FINDINGS_H

#include "base/error.h"
#include "bounds/ival.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hm_fork_word { HM_FORK_WORD_UNEXPLAINED, HM_FORK_WORD_UNDECIDED, HM_FORK_WORD_EXPLAINED, HM_FORK_WORD_TIE, HM_FORK_WORDS };

enum {
    HM_FINDINGS_FILES = 64,
    HM_FINDINGS_FORKS = 100,   // listed, of each class
    HM_FINDINGS_OUTLIERS = 60,
    HM_FINDINGS_KINDS = 40,    // told apart; later ones count as "other"
    HM_FINDINGS_LISTED = 12,   // of each kind
    HM_FINDINGS_GROUPS = 64,
    HM_FINDINGS_TEMPERATURES = 16,
    HM_FINDINGS_MISSING = 40,
    HM_FINDINGS_NOISES = 8,
    HM_FINDINGS_BINS = 128,    // of a noise histogram, joined where there are more
    HM_FINDINGS_NAME = 64,
    HM_FINDINGS_TEXT = 48,
    HM_FINDINGS_MESSAGE = 240,
    HM_FINDINGS_LONGEST_LINE = 1 << 20 // bytes
};

// A number of a line: one, an enclosure, or nothing.
struct hm_finding_number {
    bool has;
    double lo, hi;
};

struct hm_fork_side_shown {
    int64_t token, first, second; // -1: not said
    char token_text[HM_FINDINGS_TEXT], first_text[HM_FINDINGS_TEXT], second_text[HM_FINDINGS_TEXT];
    struct hm_finding_number gap, radius;
};

struct hm_fork_shown {
    size_t file;
    int64_t prompt, t;
    char id[HM_FINDINGS_NAME], category[HM_FINDINGS_NAME], why[HM_FINDINGS_MESSAGE];
    struct hm_finding_number needs, noise, level;
    struct hm_fork_side_shown a, b;
};

struct hm_outlier_shown {
    size_t file;
    int64_t prompt, t, most, least;
    char id[HM_FINDINGS_NAME];
    struct hm_finding_number noise, ulps, level;
};

struct hm_finding_shown {
    size_t file;
    int64_t input, sequence, t;
    char side[8], where[HM_FINDINGS_MESSAGE], message[HM_FINDINGS_MESSAGE];
};

struct hm_finding_count {
    char name[HM_FINDINGS_NAME];
    uint64_t count;
    size_t listed;
    struct hm_finding_shown *list; // [HM_FINDINGS_LISTED]
};

struct hm_findings_file {
    char *path;
    uint64_t lines, unknown;                   // lines of a kind this page does not know
    bool comparison, audit, has_summary;
    char a[HM_FINDINGS_NAME], b[HM_FINDINGS_NAME]; // of a comparison: its two sides
    uint64_t forks[HM_FORK_WORDS], outliers;
    bool says;                                 // the summary of a comparison says:
    uint64_t prompts, identical, said[HM_FORK_WORDS], said_outliers;
    struct hm_finding_number shared_prefix;
    uint64_t sequences, tokens, with_row;      // of an audit's summaries
};

struct hm_noise_shown {
    size_t file;
    uint64_t positions, most; // most: the largest count of a bin
    char type[HM_FINDINGS_NAME];
    struct hm_finding_number quantile[5]; // 50, 90, 99, 99.9, 100 %
    size_t bins;
    struct {
        double edge;
        uint64_t count;
    } bin[HM_FINDINGS_BINS];
};

struct hm_finding_group {
    size_t file;
    char by[16], name[HM_FINDINGS_NAME];
    uint64_t prompts, forks, unexplained, positions;
    struct hm_finding_number noise;
};

struct hm_finding_temperature {
    size_t file;
    char side[8], claimed[HM_FINDINGS_NAME];
    uint64_t tokens, first;
    struct hm_finding_number p_value;
    bool refuted;
};

struct hm_finding_missing {
    size_t file;
    char field[HM_FINDINGS_NAME], flag[HM_FINDINGS_NAME];
    uint64_t tokens;
};

struct hm_findings {
    struct hm_findings_file file[HM_FINDINGS_FILES];
    size_t files;
    uint64_t forks[HM_FORK_WORDS];
    struct hm_fork_shown *fork[HM_FORK_WORDS]; // [HM_FINDINGS_FORKS], NULL before the first
    size_t fork_listed[HM_FORK_WORDS];
    uint64_t outliers, refuted, findings, missing_more;
    struct hm_outlier_shown outlier[HM_FINDINGS_OUTLIERS];
    size_t outliers_listed;
    struct hm_finding_count kind[HM_FINDINGS_KINDS];
    size_t kinds;
    struct hm_noise_shown noise[HM_FINDINGS_NOISES];
    size_t noises;
    struct hm_finding_group group[HM_FINDINGS_GROUPS];
    size_t groups;
    struct hm_finding_temperature temperature[HM_FINDINGS_TEMPERATURES];
    size_t temperatures;
    struct hm_finding_missing missing[HM_FINDINGS_MISSING];
    size_t missings;
};

// Reads one file to its end. "-" reads standard input. HM_FORMAT names file, line, what was expected and found.
hm_status hm_findings_add(struct hm_findings *f, const char *path, struct hm_error *err);
void hm_findings_clear(struct hm_findings *f);

const char *hm_fork_word(enum hm_fork_word word); // "unexplained", ...

// What calls for an explanation: unexplained forks, outliers, refuted temperatures and findings; and what is open.
uint64_t hm_findings_unexplained(const struct hm_findings *f);
uint64_t hm_findings_undecided(const struct hm_findings *f);
bool hm_findings_compared(const struct hm_findings *f); // some file is a comparison

// A file whose end is missing, or whose lines add up to something else than its summary says.
bool hm_findings_doubtful(const struct hm_findings_file *file);

// One line, parsed (findings_read.c). `where` is "FILE: line N".
struct cJSON;
hm_status hm_findings_line(struct hm_findings *f, size_t file, const struct cJSON *line, const char *where,
                           struct hm_error *err);

#endif
