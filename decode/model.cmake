list(APPEND HALLMARK_SOURCES
  decode/cache.c
  decode/checkpoint.c
  decode/checkpoint_hash.c
  decode/config.c
  decode/config_generation.c
  decode/config_rope.c
  decode/eagle3_config.c
  decode/eagle3_load.c
  decode/eagle3_vocabulary.c
  decode/model.c
  decode/model_forward.c
  decode/model_layer.c
  decode/model_load.c
  decode/model_rope.c
  decode/npy.c
  decode/row_file.c
  decode/safetensors.c)
