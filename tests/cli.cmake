# The command as its users see it.
foreach(script command_line end_to_end)
  add_test(NAME ${script} COMMAND ${CMAKE_SOURCE_DIR}/tests/${script} $<TARGET_FILE:hallmark_command>)
  set_tests_properties(${script} PROPERTIES TIMEOUT 900)
endforeach()
