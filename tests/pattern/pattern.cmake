annulus_test(pattern LABEL unit LIBRARIES annulus_pattern SOURCES pattern/batches_test.cc pattern/parse_test.cc
  pattern/classify_test.cc pattern/leaves_test.cc pattern/layout_test.cc pattern/mask_code_test.cc
  pattern/presets_test.cc pattern/random_blocks_test.cc pattern/visible_pairs_test.cc pattern/work_test.cc)
target_include_directories(test_pattern PRIVATE ${PROJECT_SOURCE_DIR}/templates)
target_compile_definitions(test_pattern PRIVATE
  ANNULUS_PATTERNS_DOCUMENT="${PROJECT_SOURCE_DIR}/docs/patterns.md"
  ANNULUS_FUZZ_PATTERN_DICTIONARY="${PROJECT_SOURCE_DIR}/tests/fuzz/pattern.dict")
