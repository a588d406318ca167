hallmark_test(ival_math)
hallmark_test(level)
