list(APPEND HALLMARK_SOURCES
  evidence/decimal.c
  evidence/finding.c
  evidence/known.c
  evidence/sanity.c)
