list(APPEND HALLMARK_SOURCES
  bounds/mpi.c
  bounds/weights.c)
