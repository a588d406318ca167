list(APPEND HALLMARK_SOURCES
  kernels/cpu/device.c
  kernels/cpu/kernels_portable.c
  kernels/cpu/matmul_portable.c
  kernels/cpu/pack.c
  kernels/cpu/reference.c
  kernels/cpu/threads.c)
