hallmark_test(study)
hallmark_test(study_record cli/kept_rows.c cli/record.c)
hallmark_test(study_recording)
hallmark_test(study_sample)
hallmark_test(study_tables)

# Recordings of real decodes.
add_test(NAME study_command COMMAND ${CMAKE_SOURCE_DIR}/tests/study $<TARGET_FILE:hallmark_command>)
set_tests_properties(study_command PROPERTIES TIMEOUT 900)

# The corpus of the fuzz target, replayed.
add_executable(fuzz_recording tests/fuzz/fuzz_recording.c tests/fuzz/driver.c)
target_link_libraries(fuzz_recording PRIVATE hallmark)
file(GLOB corpus tests/fuzz/corpus/recording/*)
add_test(NAME fuzz_recording COMMAND fuzz_recording ${corpus})
