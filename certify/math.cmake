list(APPEND HALLMARK_SOURCES
  certify/certificate.c
  certify/certificate_identity.c
  certify/certificate_level.c
  certify/certificate_radius.c
  certify/certificate_restricted.c
  certify/certificate_verdict.c
  certify/draw.c
  certify/philox.c
  certify/row.c
  certify/row_distance.c
  certify/row_filter.c
  certify/row_filter_decide.c
  certify/row_questions.c
  certify/row_sums.c
  certify/row_weights.c
  certify/rule.c
  certify/rule_accepts.c)
