hallmark_test(check_mutations tests/test_check_support.c)
