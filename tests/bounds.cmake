hallmark_test(level)
