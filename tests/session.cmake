hallmark_test(pool)
hallmark_test(stop)
hallmark_test(session)
hallmark_test(session_legal)
hallmark_test(session_parts)
hallmark_test(session_stochastic)
hallmark_test(session_trees)
hallmark_test(tree_select)
hallmark_test(accept_law)
hallmark_test(budget)

# Through the command, on the bundled models.
add_test(NAME identical COMMAND ${CMAKE_SOURCE_DIR}/tests/identical $<TARGET_FILE:hallmark_command>)
set_tests_properties(identical PROPERTIES TIMEOUT 1800)
