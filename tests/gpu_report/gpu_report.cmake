# Tests of tools/gpu_report with recorded folders of results, and a check that docs/performance.md
# shows the kept results. Both are skipped on a machine without Python 3.
python_test(gpu_report unit ${CMAKE_CURRENT_SOURCE_DIR}/gpu_report/gpu_report_test.py)
set_tests_properties(gpu_report PROPERTIES TIMEOUT 300 ENVIRONMENT
  "ANNULUS_BUILD=${PROJECT_BINARY_DIR};ANNULUS_CACHE_DIR=${ANNULUS_TEST_CACHE}")
python_test(house_measured house ${PROJECT_SOURCE_DIR}/tools/gpu_report --check)
