# The producer of logs: row shards, lines, and the stamper that makes them beside a decode.
list(APPEND HALLMARK_SOURCES
  certify/log_json.c
  certify/log_writer.c
  certify/queue.c
  certify/sampling.c
  certify/shard.c
  certify/stamp.c
  certify/stamp_claim.c
  certify/stamp_config.c
  certify/stamp_header.c
  certify/stamp_job.c
  certify/stamp_order.c
  certify/stamp_record.c
  certify/stamp_round.c
  certify/stamp_speculative.c
  certify/stamp_step.c)
set_source_files_properties(certify/stamp_record.c PROPERTIES COMPILE_DEFINITIONS HALLMARK_VERSION="${PROJECT_VERSION}")
