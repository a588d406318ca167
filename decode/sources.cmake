include(decode/tokenizer.cmake)
include(decode/model.cmake)
include(decode/session.cmake)
