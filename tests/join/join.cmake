annulus_test(join LABEL device SIMULATED LIBRARIES annulus_test_batches SOURCES join/decode_test.cc join/join_test.cc)
