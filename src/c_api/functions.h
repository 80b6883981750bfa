#ifndef ANNULUS_C_API_FUNCTIONS_H_
#define ANNULUS_C_API_FUNCTIONS_H_

// Every .cc file of this folder includes this file after the headers of its subject, and no other
// file does. The functions in these files are in no namespace and use names of three namespaces.

#include "base/fail.h"
#include "c_api/call.h"
#include "c_api/objects.h"

namespace annulus::api {}

using namespace annulus;         // names of the public C++ interface
using namespace annulus::api;    // names of src/api
using namespace annulus::c_api;  // names of src/c_api

#endif  // ANNULUS_C_API_FUNCTIONS_H_
