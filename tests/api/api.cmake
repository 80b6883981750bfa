annulus_test(api LABEL unit LIBRARIES annulus_api SOURCES api/api_test.cc)
