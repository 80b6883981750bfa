#ifndef ANNULUS_API_C_FUNCTIONS_H_
#define ANNULUS_API_C_FUNCTIONS_H_

// Included by every c_*.cc file behind the headers of its subject, and by no other file: the
// functions there are in no namespace and use the names of two.

#include "api/c_call.h"
#include "api/c_objects.h"
#include "base/fail.h"

using namespace annulus;       // names of the facade
using namespace annulus::api;  // names of this room

#endif  // ANNULUS_API_C_FUNCTIONS_H_
