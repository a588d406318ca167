list(APPEND HALLMARK_SOURCES
  evidence/decimal.c
  evidence/finding.c
  evidence/hallmark_source.c
  evidence/known.c
  evidence/llama_kld.c
  evidence/rows_source.c
  evidence/sanity.c
  evidence/sglang.c
  evidence/vllm.c)
