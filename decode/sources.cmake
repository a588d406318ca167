include(decode/tokenizer.cmake OPTIONAL)
include(decode/model.cmake OPTIONAL)
include(decode/session.cmake OPTIONAL)
