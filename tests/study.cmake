hallmark_test(study)
