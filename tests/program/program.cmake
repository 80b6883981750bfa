if(TARGET annulus_program)
  annulus_test(program LABEL unit LIBRARIES annulus_base annulus_layout SOURCES program/pattern_program_test.cc
    program/program_test.cc
    program/tune_program_test.cc)
  target_compile_definitions(test_program PRIVATE
    ANNULUS_PROGRAM="$<TARGET_FILE:annulus_program>"
    ANNULUS_TEMPLATES="${PROJECT_SOURCE_DIR}/templates")
  add_dependencies(test_program annulus_program)
endif()
