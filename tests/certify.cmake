hallmark_test(philox)
hallmark_test(oracle)
