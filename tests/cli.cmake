# The command as its users see it.
foreach(script command_line verify_messages audit audit_evidence replay end_to_end scale inspect)
  add_test(NAME ${script} COMMAND ${CMAKE_SOURCE_DIR}/tests/${script} $<TARGET_FILE:hallmark_command>)
  set_tests_properties(${script} PROPERTIES TIMEOUT 900)
endforeach()
add_test(NAME scale_mpi COMMAND ${CMAKE_SOURCE_DIR}/tests/scale $<TARGET_FILE:hallmark_command> mpi)
set_tests_properties(scale_mpi PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77) # where there is no mpirun

# Parts of commands that can be asked by themselves.
hallmark_test(draft_vocabulary cli/draft_vocabulary.c)
hallmark_test(shards cli/shards.c)
hallmark_test(parts cli/parts.c cli/parts_merge.c cli/parts_read.c cli/parts_write.c cli/shards.c)
target_compile_definitions(test_parts PRIVATE HM_VERSION="${PROJECT_VERSION}")
hallmark_test(replay_rows cli/replay.c)
hallmark_test(audit_oracle)
target_compile_definitions(test_audit_oracle PRIVATE HM_COMMAND="$<TARGET_FILE:hallmark_command>")
add_dependencies(test_audit_oracle hallmark_command)
hallmark_test(scale_memory)
target_compile_definitions(test_scale_memory PRIVATE HM_COMMAND="$<TARGET_FILE:hallmark_command>")
add_dependencies(test_scale_memory hallmark_command)
set_tests_properties(scale_memory PROPERTIES TIMEOUT 3600) # a million steps with HM_LONG

# The package and the example of docs/library.md.
add_test(NAME install COMMAND ${CMAKE_SOURCE_DIR}/tests/install_check ${CMAKE_BINARY_DIR})
set_tests_properties(install PROPERTIES TIMEOUT 300)
