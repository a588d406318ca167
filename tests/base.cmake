hallmark_test(base)
hallmark_test(json_text)
