hallmark_test(pool)
hallmark_test(stop)
hallmark_test(session)
hallmark_test(tree_select)
