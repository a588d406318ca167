# The checker reads the golden logs in tests/data/logs; tools/make_log.py wrote them.
hallmark_test(check tests/test_check_support.c)
hallmark_test(check_fixed)
hallmark_test(check_ties)
hallmark_test(check_coin)
hallmark_test(check_replay tests/test_check_support.c)
hallmark_test(check_mutations tests/test_check_support.c)
set_tests_properties(check_mutations PROPERTIES TIMEOUT 1800) # under sanitizers, on a busy machine
hallmark_test(check_hostile tests/test_check_support.c)
hallmark_test(check_decoders tests/test_check_support.c)
hallmark_test(check_simple tests/test_check_support.c)
hallmark_test(check_simple_walk tests/test_check_simple_scene.c tests/test_check_simple_scene_log.c
              tests/test_check_support.c)

# The corpus of its fuzz target, replayed.
add_executable(fuzz_check tests/fuzz/fuzz_check.c tests/fuzz/driver.c)
target_link_libraries(fuzz_check PRIVATE hallmark)
file(GLOB corpus tests/fuzz/corpus/check/*)
add_test(NAME fuzz_check COMMAND fuzz_check ${corpus})
set_tests_properties(fuzz_check PROPERTIES WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
