list(APPEND HALLMARK_SOURCES
  evidence/decimal.c
  evidence/documents.c
  evidence/events.c
  evidence/finding.c
  evidence/hallmark_source.c
  evidence/known.c
  evidence/llama_kld.c
  evidence/llama_server.c
  evidence/openai_chat.c
  evidence/openai_completions.c
  evidence/rows_source.c
  evidence/sanity.c
  evidence/sglang.c
  evidence/source.c
  evidence/vllm.c)
