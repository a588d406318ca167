// What `hallmark bench` measures, one file each. argv[0] is the word that names it; each returns an exit code.
#ifndef HM_CLI_BENCH_H
#define HM_CLI_BENCH_H

int hm_bench_decode(int argc, char **argv);
int hm_bench_trees(int argc, char **argv);
int hm_bench_rows(int argc, char **argv);

#endif
