annulus_test(api LABEL unit LIBRARIES annulus_api SOURCES api/api_test.cc api/callbacks_test.cc api/streams_test.cc)
