# The page's style and script are files of their own, two of each, embedded as one character array per kind.
set(assets ${CMAKE_BINARY_DIR}/report_assets.c)
set(text "// Made by reports/sources.cmake from reports/{report,figures}.{css,js}.\n#include \"reports/html.h\"\n")
foreach(kind css js)
  set(hex "")
  foreach(source ${CMAKE_SOURCE_DIR}/reports/report.${kind} ${CMAKE_SOURCE_DIR}/reports/figures.${kind})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(READ ${source} part HEX)
    string(APPEND hex "${part}")
  endforeach()
  # A hexadecimal pair never starts with another's second digit: pairs are matched from the left.
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(REPLACE "'\\x0a'," "'\\x0a',\n" bytes "${bytes}")
  string(APPEND text "const char hm_report_${kind}[] = {\n${bytes}0};\n")
endforeach()
file(CONFIGURE OUTPUT ${assets} CONTENT "${text}" @ONLY)

list(APPEND HALLMARK_SOURCES
  ${assets}
  reports/aggregate.c
  reports/chart_course.c
  reports/closest.c
  reports/course.c
  reports/example.c
  reports/figures.c
  reports/findings.c
  reports/findings_read.c
  reports/html_charts.c
  reports/html_claims.c
  reports/html_course.c
  reports/html_findings.c
  reports/html_how.c
  reports/html_known.c
  reports/html_missed.c
  reports/html_navigation.c
  reports/html_parts.c
  reports/html_region.c
  reports/html_requirement.c
  reports/html_run.c
  reports/html_sections.c
  reports/html_simplex.c
  reports/html_speculative.c
  reports/html_summary.c
  reports/html_text.c
  reports/html_theory.c
  reports/html_trees.c
  reports/json_course.c
  reports/json_findings.c
  reports/json_lists.c
  reports/json_requirement.c
  reports/json_speculative.c
  reports/json_theory.c
  reports/json_trees.c
  reports/keep.c
  reports/markdown_answers.c
  reports/markdown_course.c
  reports/markdown_findings.c
  reports/markdown_requirement.c
  reports/markdown_speculative.c
  reports/markdown_theory.c
  reports/number.c
  reports/output.c
  reports/picture.c
  reports/region.c
  reports/report_csv.c
  reports/report_html.c
  reports/report_json.c
  reports/report_markdown.c
  reports/requirement.c
  reports/rounds.c
  reports/speculative.c
  reports/theory.c)
