hallmark_test(arithmetic)
hallmark_test(ival_math)
hallmark_test(level)
