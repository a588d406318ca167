# Against Arb, a yardstick for tests only: built where Debian's libflint-arb-dev (or another Arb) is found.
find_path(ARB_INCLUDE arb.h)
find_library(ARB_LIBRARY NAMES flint-arb arb)
find_library(FLINT_LIBRARY NAMES flint)
if(ARB_INCLUDE AND ARB_LIBRARY AND FLINT_LIBRARY)
  hallmark_test(arb)
  target_include_directories(test_arb SYSTEM PRIVATE ${ARB_INCLUDE})
  target_link_libraries(test_arb PRIVATE ${ARB_LIBRARY} ${FLINT_LIBRARY})
endif()
