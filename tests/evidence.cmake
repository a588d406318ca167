hallmark_test(decimal)
hallmark_test(known)
hallmark_test(sanity)
