list(APPEND HALLMARK_SOURCES
  decode/accept.c
  decode/beside.c
  decode/budget.c
  decode/drafter_eagle3.c
  decode/drafter_ngram.c
  decode/drafter_standalone.c
  decode/pool.c
  decode/selection.c
  decode/session.c
  decode/session_emit.c
  decode/session_legal.c
  decode/session_pass.c
  decode/session_round.c
  decode/stop.c
  decode/topk.c
  decode/tree.c)
