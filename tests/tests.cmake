# One CMocka program per module: tests/test_NAME.c, run from the source folder so that tests/data is found.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

function(hallmark_test name)
  add_executable(test_${name} tests/test_${name}.c ${ARGN})
  target_link_libraries(test_${name} PRIVATE hallmark PkgConfig::CMOCKA)
  add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
endfunction()

# Each area lists its own tests.
foreach(area arb base kernels bounds certify check evidence decode session tokenizer reports stamp study cli)
  include(tests/${area}.cmake)
endforeach()
