# The producer of logs. The synthetic decode and the files it leaves are shared by the programs that run a stamper.
set(stamp_fixture tests/test_stamp_fixture.c tests/test_stamp_tree.c tests/test_stamp_files.c)
hallmark_test(shard)
hallmark_test(sampling)
hallmark_test(stamp_line)
hallmark_test(stamp_queue)
hallmark_test(stamp_order)
hallmark_test(stamp_round)
hallmark_test(stamp_speculative)
hallmark_test(stamp ${stamp_fixture})
hallmark_test(stamp_audit ${stamp_fixture})
hallmark_test(stamp_run ${stamp_fixture})
hallmark_test(stamp_proved ${stamp_fixture}) # by the independent checker
