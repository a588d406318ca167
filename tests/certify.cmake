hallmark_test(philox)
hallmark_test(row)
hallmark_test(rule)
hallmark_test(oracle)
