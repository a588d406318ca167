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
