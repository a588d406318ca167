hallmark_test(tokenizer)
hallmark_test(tokenizer_bad)
hallmark_test(chat)

# Prints ids for tools/check_qwen_vocabulary.
add_executable(tokenize tests/tokenize_main.c)
target_link_libraries(tokenize PRIVATE hallmark)
