list(APPEND HALLMARK_SOURCES
  base/clock.c
  base/error.c
  base/file.c
  base/histogram.c
  base/json.c
  base/json_text.c
  base/json_text_check.c
  base/memory.c
  base/rational.c
  base/sha256.c
  base/text.c)
