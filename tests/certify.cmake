hallmark_test(philox)
