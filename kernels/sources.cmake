list(APPEND HALLMARK_SOURCES
  kernels/bench.c
  kernels/cpu/device.c
  kernels/cpu/kernels_portable.c
  kernels/cpu/matmul_portable.c
  kernels/cpu/operations.c
  kernels/cpu/pack.c
  kernels/cpu/reference.c
  kernels/cpu/threads.c)

# Each instruction set has files of its own; device.c calls them only where it has found the instructions.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(HALLMARK_AVX2_SOURCES kernels/cpu/kernels_avx2.c kernels/cpu/matmul_avx2.c)
  set(HALLMARK_AVX512_SOURCES kernels/cpu/kernels_avx512.c kernels/cpu/matmul_avx512.c)
  list(APPEND HALLMARK_SOURCES ${HALLMARK_AVX2_SOURCES} ${HALLMARK_AVX512_SOURCES})
  set_source_files_properties(${HALLMARK_AVX2_SOURCES} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
  set_source_files_properties(${HALLMARK_AVX512_SOURCES} PROPERTIES
    COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c;-mprefer-vector-width=512")
  set_source_files_properties(kernels/cpu/device.c PROPERTIES COMPILE_DEFINITIONS HM_KERNELS_X86)
endif()
