hallmark_test(kernels)
