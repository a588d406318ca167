list(APPEND HALLMARK_SOURCES
  study/context.c
  study/figure.c
  study/frame.c
  study/recording_read.c
  study/recording_write.c
  study/sample.c
  study/study.c
  study/tables_address.c
  study/tables_parts.c
  study/tables_selection.c
  study/tables_traversal.c)
