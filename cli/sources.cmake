add_executable(hallmark_command
  cli/audit.c
  cli/audit_arguments.c
  cli/audit_evidence.c
  cli/audit_input.c
  cli/audit_options.c
  cli/audit_result.c
  cli/audit_rows.c
  cli/audit_table.c
  cli/audit_temperature.c
  cli/audit_token.c
  cli/bench.c
  cli/bench_decode.c
  cli/bench_rows.c
  cli/bench_trees.c
  cli/compare.c
  cli/compare_json.c
  cli/compare_judge.c
  cli/compare_markdown.c
  cli/compare_options.c
  cli/compare_pairs.c
  cli/compare_position.c
  cli/compare_rescore.c
  cli/compare_side.c
  cli/compare_spool.c
  cli/compare_store.c
  cli/compare_text.c
  cli/compare_walk.c
  cli/compare_words.c
  cli/conversation.c
  cli/decode.c
  cli/decode_check.c
  cli/decode_help.c
  cli/decode_models.c
  cli/decode_options.c
  cli/decode_settle.c
  cli/decode_summary.c
  cli/draft_vocabulary.c
  cli/flags.c
  cli/inspect.c
  cli/inspect_claim.c
  cli/inspect_find.c
  cli/inspect_log.c
  cli/inspect_model.c
  cli/inspect_print.c
  cli/inspect_step.c
  cli/inspect_tree.c
  cli/kept_rows.c
  cli/main.c
  cli/merge.c
  cli/outputs.c
  cli/parts.c
  cli/parts_merge.c
  cli/parts_read.c
  cli/parts_write.c
  cli/print.c
  cli/prompts.c
  cli/record.c
  cli/replay.c
  cli/report.c
  cli/select.c
  cli/select_print.c
  cli/shards.c
  cli/shortened.c
  cli/stamping.c
  cli/timing.c
  cli/verify.c
  cli/verify_summary.c)
target_compile_definitions(hallmark_command PRIVATE HM_VERSION="${PROJECT_VERSION}")
target_link_libraries(hallmark_command PRIVATE hallmark)
set_target_properties(hallmark_command PROPERTIES OUTPUT_NAME hallmark)
install(TARGETS hallmark_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The checker for reading alone, without the library.
add_executable(hallmark_check_simple ${HALLMARK_SIMPLE_SOURCES} certify/check/simple/program.c)
target_link_libraries(hallmark_check_simple PRIVATE hallmark_flags PkgConfig::DEPS m)
set_target_properties(hallmark_check_simple PROPERTIES OUTPUT_NAME hallmark-check)
