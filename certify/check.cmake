# The independent checker: nothing else of ours is included there.
list(APPEND HALLMARK_SOURCES
  certify/check/certify.c
  certify/check/check.c
  certify/check/claim.c
  certify/check/coin.c
  certify/check/dist.c
  certify/check/emitted.c
  certify/check/fixed.c
  certify/check/flat.c
  certify/check/header.c
  certify/check/interval.c
  certify/check/jobs.c
  certify/check/json.c
  certify/check/known.c
  certify/check/ladder.c
  certify/check/law.c
  certify/check/level.c
  certify/check/margin.c
  certify/check/noise.c
  certify/check/order.c
  certify/check/pair.c
  certify/check/power.c
  certify/check/power_certify.c
  certify/check/radius.c
  certify/check/record.c
  certify/check/replay.c
  certify/check/restricted.c
  certify/check/round.c
  certify/check/row.c
  certify/check/rows.c
  certify/check/rule.c
  certify/check/threshold.c
  certify/check/universal.c
  certify/check/verdict.c
  certify/check/walk.c)

# The second checker, for reading: the same file is a program of its own (certify/check/simple/simple.h).
set(HALLMARK_SIMPLE_SOURCES certify/check/simple/check.c)
list(APPEND HALLMARK_SOURCES ${HALLMARK_SIMPLE_SOURCES})
