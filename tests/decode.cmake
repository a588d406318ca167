hallmark_test(safetensors)
hallmark_test(checkpoint)
hallmark_test(model)
hallmark_test(model_bits)
hallmark_test(model_config)
hallmark_test(model_parity)
hallmark_test(model_rope)
hallmark_test(model_untrusted)

# Logits of a checkpoint, for tools/parity.
add_executable(hallmark_logits tools/logits.c)
target_link_libraries(hallmark_logits PRIVATE hallmark)
