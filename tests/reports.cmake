hallmark_test(log_reader)
hallmark_test(report)
hallmark_test(report_length)
hallmark_test(report_parts)
