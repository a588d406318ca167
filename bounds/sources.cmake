list(APPEND HALLMARK_SOURCES
  bounds/arithmetic.c
  bounds/exp_filter.c
  bounds/ival_math.c
  bounds/level.c
  bounds/level_filter.c
  bounds/level_filter_margin.c
  bounds/level_filter_reverse.c
  bounds/level_filter_terms.c
  bounds/level_reverse.c
  bounds/margin.c
  bounds/mpi.c
  bounds/sequence.c
  bounds/weights.c)
