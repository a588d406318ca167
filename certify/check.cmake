# The independent checker: nothing else of ours is included there.
list(APPEND HALLMARK_SOURCES
  certify/check/check.c
  certify/check/claims.c
  certify/check/header.c
  certify/check/interval.c
  certify/check/json.c
  certify/check/level.c
  certify/check/math.c
  certify/check/radius.c
  certify/check/rows.c
  certify/check/rule.c
  certify/check/walk.c)

# The second checker, for reading: the same files are a program of their own (certify/check/simple/simple.h).
set(HALLMARK_SIMPLE_SOURCES "")
foreach(part interval log row rule theory law claim walk main)
  list(APPEND HALLMARK_SIMPLE_SOURCES certify/check/simple/${part}.c)
endforeach()
list(APPEND HALLMARK_SOURCES ${HALLMARK_SIMPLE_SOURCES})
