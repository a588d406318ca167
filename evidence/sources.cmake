list(APPEND HALLMARK_SOURCES
  evidence/finding.c)
