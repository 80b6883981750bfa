annulus_test(api LABEL unit LIBRARIES annulus_c_api annulus_test_devices SOURCES api/api_test.cc
  api/architecture_test.cc api/background_tuning_test.cc api/bound_call_test.cc api/callbacks_test.cc api/driver_entry_test.cc
  api/fork_test.cc api/handle_table_test.cc api/late_plan_test.cc api/memory_test.cc
  api/recompile_test.cc api/streams_test.cc api/work_limit_test.cc
  ALONE api/fork_test.cc api/memory_test.cc api/streams_test.cc
  SLOW api/background_tuning_test.cc)
# The tests read the list of the simulated driver's functions.
target_include_directories(test_api PRIVATE ${PROJECT_SOURCE_DIR}/tools/simulator/src)

# The test replaces malloc, and so do the sanitizers.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  annulus_test(hot_path LABEL unit LIBRARIES annulus_c_api SOURCES api/hot_path_test.cc)
endif()
