list(APPEND HALLMARK_SOURCES
  decode/bpe.c
  decode/chat.c
  decode/pretokenize.c
  decode/pretokenize_regex.c
  decode/tokenizer.c
  decode/tokenizer_added.c
  decode/tokenizer_load.c
  decode/tokenizer_model.c
  decode/tokenizer_nfc.c
  decode/tokenizer_stream.c
  decode/tokenizer_text.c
  decode/tokenizer_vocabulary.c)
