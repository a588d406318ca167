list(APPEND HALLMARK_SOURCES
  certify/log_reader.c
  certify/log_reader_claim.c
  certify/log_reader_fields.c
  certify/log_reader_records.c
  certify/log_reader_skip.c
  certify/log_reader_step.c)
