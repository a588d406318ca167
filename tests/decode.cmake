hallmark_test(row_file)
hallmark_test(safetensors)
hallmark_test(checkpoint)
hallmark_test(model)
hallmark_test(model_bits)
hallmark_test(model_config)
hallmark_test(model_memory)
target_link_options(test_model_memory PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup)
hallmark_test(model_parity)
hallmark_test(model_rope)
hallmark_test(model_taps)
hallmark_test(model_untrusted)

# Logits of a checkpoint, for tools/parity.
add_executable(hallmark_logits tools/logits.c)
target_link_libraries(hallmark_logits PRIVATE hallmark)

# The corpus of the fuzz target, replayed.
add_executable(fuzz_safetensors tests/fuzz/fuzz_safetensors.c tests/fuzz/driver.c)
target_link_libraries(fuzz_safetensors PRIVATE hallmark)
file(GLOB corpus tests/fuzz/corpus/safetensors/*)
add_test(NAME fuzz_safetensors COMMAND fuzz_safetensors ${corpus})

# Files of rows that other programs saved.
add_executable(fuzz_npy tests/fuzz/fuzz_npy.c tests/fuzz/driver.c)
target_link_libraries(fuzz_npy PRIVATE hallmark)
file(GLOB corpus tests/fuzz/corpus/npy/*)
add_test(NAME fuzz_npy COMMAND fuzz_npy ${corpus})

# EAGLE-3 heads, against golden files that tools/train_eagle3.py wrote.
hallmark_test(eagle3)
hallmark_test(eagle3_bits)
hallmark_test(eagle3_load)
hallmark_test(eagle3_memory)
target_link_options(test_eagle3_memory PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup)
hallmark_test(eagle3_refusals)
hallmark_test(eagle3_untrusted)
