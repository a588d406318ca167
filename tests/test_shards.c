// --shard i/n, and what `auto` makes of the environments of engines.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/shards.h"

#include <string.h>

enum { VARIABLES = 8 };

static const struct {
    const char *text;
    const char *environment[VARIABLES];
    size_t index, count; // 0: refused, and the error contains
    const char *error;
} cases[] = {
    {"1/1", {0}, 1, 1, NULL},
    {"3/16", {0}, 3, 16, NULL},
    {"99999/99999", {0}, 99999, 99999, NULL},
    {"0/4", {0}, 0, 0, "expected i/n with i from 1 to n and n to 99999, or auto, found \"0/4\""},
    {"5/4", {0}, 0, 0, "found \"5/4\""},
    {"1/100000", {0}, 0, 0, "found \"1/100000\""},
    {"1/18446744073709551617", {0}, 0, 0, "found"},
    {"1/4 ", {0}, 0, 0, "found \"1/4 \""},
    {"-1/4", {0}, 0, 0, "found"},
    {"/4", {0}, 0, 0, "found"},
    {"1/", {0}, 0, 0, "found"},
    {"1", {0}, 0, 0, "found"},
    {"", {0}, 0, 0, "found \"\""},
    {"automatic", {0}, 0, 0, "expected auto/N with N from 1 to 99999, found \"automatic\""},
    {"auto/0", {0}, 0, 0, "found \"auto/0\""},
    {"auto/4x", {0}, 0, 0, "found \"auto/4x\""},
    {"auto/", {0}, 0, 0, "found \"auto/\""},
    // given by hand: the environment is not asked
    {"2/3", {"SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_TASK_COUNT=9", "SLURM_ARRAY_TASK_MIN=1"}, 2, 3, NULL},

    // a Slurm array: --array=0-15, 1-16, 0-30:2, and one process of a larger task
    {"auto",
     {"SLURM_ARRAY_TASK_ID=0", "SLURM_ARRAY_TASK_COUNT=16", "SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_STEP=1"},
     1,
     16,
     NULL},
    {"auto", {"SLURM_ARRAY_TASK_ID=16", "SLURM_ARRAY_TASK_COUNT=16", "SLURM_ARRAY_TASK_MIN=1"}, 16, 16, NULL},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=30", "SLURM_ARRAY_TASK_COUNT=16", "SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_STEP=2"},
     16,
     16,
     NULL},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=3", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_ARRAY_TASK_MIN=1", "SLURM_ARRAY_TASK_STEP=1",
      "SLURM_PROCID=0", "SLURM_NTASKS=8"},
     3,
     4,
     NULL},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=3", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_ARRAY_TASK_MIN=1", "SLURM_PROCID=1",
      "SLURM_NTASKS=8"},
     0,
     0,
     "expected one process in each task of the array, found SLURM_PROCID=1"},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=7", "SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_MIN=1", "SLURM_ARRAY_TASK_STEP=1"},
     0,
     0, // --array=1,3,7
     "SLURM_ARRAY_TASK_ID: expected one of 3 numbers from 1 in steps of 1, found 7"},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=3", "SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_STEP=2"},
     0,
     0,
     "found 3"},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=3", "SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_MIN=3", "SLURM_ARRAY_TASK_STEP=0"},
     0,
     0,
     "steps of 0"},
    {"auto", {"SLURM_ARRAY_TASK_ID=0", "SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_MIN=1"}, 0, 0, "found 0"},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_TASK_MIN=1"},
     0,
     0,
     "expected SLURM_ARRAY_TASK_COUNT to be set as well"},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_TASK_COUNT=3"},
     0,
     0,
     "expected SLURM_ARRAY_TASK_MIN to be set as well"},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=one", "SLURM_ARRAY_TASK_COUNT=3"},
     0,
     0,
     "SLURM_ARRAY_TASK_ID: expected a number, found \"one\""},
    {"auto/4", {"SLURM_ARRAY_TASK_ID=2", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_ARRAY_TASK_MIN=1"}, 2, 4, NULL},
    {"auto/5",
     {"SLURM_ARRAY_TASK_ID=2", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_ARRAY_TASK_MIN=1"},
     0,
     0,
     "--shard auto/5: expected SLURM_ARRAY_TASK_COUNT=5, found 4"},

    // srun and MPI launchers
    {"auto", {"SLURM_PROCID=0", "SLURM_NTASKS=4"}, 1, 4, NULL},
    {"auto", {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "HOME=/root"}, 4, 4, NULL},
    {"auto", {"PMI_RANK=1", "PMI_SIZE=2"}, 2, 2, NULL},
    {"auto",
     {"OMPI_COMM_WORLD_RANK=4", "OMPI_COMM_WORLD_SIZE=4"},
     0,
     0,
     "OMPI_COMM_WORLD_RANK: expected one of 4 numbers from 0"},
    {"auto", {"OMPI_COMM_WORLD_RANK=0"}, 0, 0, "expected OMPI_COMM_WORLD_SIZE to be set as well"},
    {"auto",
     {"OMPI_COMM_WORLD_RANK=-1", "OMPI_COMM_WORLD_SIZE=4"},
     0,
     0,
     "OMPI_COMM_WORLD_RANK: expected a number, found \"-1\""},
    {"auto", {"PMI_RANK=0", "PMI_SIZE=0"}, 0, 0, "PMI_SIZE: expected a number from 1 to 99999, found 0"},
    {"auto", {"PMI_RANK=0", "PMI_SIZE=100000"}, 0, 0, "found 100000"},
    {"auto",
     {"PMI_RANK=0", "PMI_SIZE=99999999999999999999"},
     0,
     0,
     "PMI_SIZE: expected a number, found \"99999999999999999999\""},

    // two engines: they agree, they do not, one of them started a single process or does not say enough
    {"auto", {"SLURM_PROCID=2", "SLURM_NTASKS=4", "PMI_RANK=2", "PMI_SIZE=4"}, 3, 4, NULL},
    {"auto",
     {"SLURM_PROCID=0", "SLURM_NTASKS=4", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4"},
     0,
     0,
     "Slurm and Open MPI disagree: SLURM_PROCID=0 of 4, OMPI_COMM_WORLD_RANK=2 of 4 (give --shard i/n)"},
    {"auto", {"SLURM_PROCID=2", "SLURM_NTASKS=4", "PMI_RANK=2", "PMI_SIZE=8"}, 0, 0, "Slurm and PMI disagree"},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_ARRAY_TASK_MIN=1", "OMPI_COMM_WORLD_RANK=2",
      "OMPI_COMM_WORLD_SIZE=4"},
     0,
     0,
     "Slurm and Open MPI disagree: SLURM_ARRAY_TASK_ID=1 of 4"},
    {"auto", {"SLURM_PROCID=0", "SLURM_NTASKS=1", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4"}, 3, 4, NULL},
    {"auto", {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "PMI_RANK=0", "PMI_SIZE=1"}, 3, 4, NULL},
    {"auto", {"SLURM_PROCID=0", "SLURM_NTASKS=1"}, 1, 1, NULL},
    {"auto", {"SLURM_PROCID=0", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4"}, 3, 4, NULL},

    // an indexed job of Kubernetes
    {"auto/16", {"JOB_COMPLETION_INDEX=0"}, 1, 16, NULL},
    {"auto/16", {"JOB_COMPLETION_INDEX=15"}, 16, 16, NULL},
    {"auto", {"JOB_COMPLETION_INDEX=3", "JOB_COMPLETIONS=8"}, 4, 8, NULL},
    {"auto/16",
     {"JOB_COMPLETION_INDEX=16"},
     0,
     0,
     "JOB_COMPLETION_INDEX: expected one of 16 numbers from 0 in steps of 1, found 16"},
    {"auto", {"JOB_COMPLETION_INDEX=3"}, 0, 0, "expected --shard auto/N, or JOB_COMPLETIONS in the job's manifest"},
    {"auto", {"JOB_COMPLETION_INDEX=3", "JOB_COMPLETIONS="}, 0, 0, "expected --shard auto/N"},

    // nothing
    {"auto",
     {0},
     0,
     0,
     "expected one of SLURM_ARRAY_TASK_ID, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK and JOB_COMPLETION_INDEX to be "
     "set, found none"},
    {"auto/4", {"HOME=/root", "SLURM_NTASKS=4", "XPMI_RANK=1", "PMI_RANKS=1"}, 0, 0, "to be set, found none"},
};

static void environments(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *environment[VARIABLES + 1] = {0};
        struct hm_shards found;
        struct hm_error err = {0};
        for (size_t j = 0; j < VARIABLES; j++) environment[j] = (char *)cases[i].environment[j];
        hm_status rc = hm_shards_parse(cases[i].text, environment, &found, &err);
        if (found.index != cases[i].index || found.count != cases[i].count ||
            (rc == HM_USAGE) != (cases[i].count == 0) || (cases[i].error && !strstr(err.message, cases[i].error)))
            fail_msg("%s, case %zu: expected %zu/%zu %s, found %zu/%zu %s", cases[i].text, i, cases[i].index,
                     cases[i].count, cases[i].error ? cases[i].error : "", found.index, found.count,
                     rc ? err.message : "");
    }
}

// Each input has exactly one share.
static void shares_divide(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 9; n++)
        for (size_t j = 0; j < 40; j++)
            for (size_t i = 1; i <= n; i++)
                assert_int_equal(hm_shards_take((struct hm_shards){i, n}, j), j % n == i - 1);
    assert_true(hm_shards_take((struct hm_shards){0, 0}, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(environments), cmocka_unit_test(shares_divide)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
