hallmark_test(study)
hallmark_test(study_record cli/kept_rows.c cli/record.c)
hallmark_test(study_recording)
hallmark_test(study_sample)
