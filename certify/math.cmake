list(APPEND HALLMARK_SOURCES
  certify/draw.c
  certify/philox.c
  certify/row.c
  certify/row_sums.c
  certify/row_weights.c
  certify/rule.c
  certify/rule_accepts.c)
