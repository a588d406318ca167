hallmark_test(base)
