annulus_test(layout LABEL unit LIBRARIES annulus_layout SOURCES layout/algebra_test.cc
  layout/formats_test.cc layout/heads_test.cc layout/import_size_test.cc layout/layout_cache_test.cc
  layout/make_layout_test.cc layout/picture_test.cc
  layout/statistics_test.cc layout/vertical_slash_test.cc layout/with_density_test.cc layout/work_scope_test.cc)
