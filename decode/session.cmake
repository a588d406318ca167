list(APPEND HALLMARK_SOURCES
  decode/accept.c
  decode/drafter_ngram.c
  decode/drafter_standalone.c
  decode/pool.c
  decode/session.c
  decode/stop.c
  decode/topk.c
  decode/tree.c)
