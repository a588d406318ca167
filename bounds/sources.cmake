list(APPEND HALLMARK_SOURCES
  bounds/arithmetic.c
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
  bounds/row_pass.c
  bounds/row_pass_portable.c
  bounds/weights.c)

# The passes over rows, once for each instruction set; row_pass.c calls them only where it has found the instructions.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND HALLMARK_SOURCES bounds/row_pass_avx2.c bounds/row_pass_avx512.c)
  set_source_files_properties(bounds/row_pass_avx2.c PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma")
  set_source_files_properties(bounds/row_pass_avx512.c PROPERTIES
    COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mprefer-vector-width=512")
  set_source_files_properties(bounds/row_pass.c PROPERTIES COMPILE_DEFINITIONS HM_ROW_PASS_X86)
endif()
