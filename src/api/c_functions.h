#ifndef ANNULUS_API_C_FUNCTIONS_H_
#define ANNULUS_API_C_FUNCTIONS_H_

// What every file of functions of the C interface begins with, behind the headers of its subject.
// For the files c_*.cc alone: their functions are in no namespace and use the words of two.

#include "api/c_call.h"
#include "api/c_objects.h"
#include "base/fail.h"

using namespace annulus;       // the facade's words
using namespace annulus::api;  // and this room's

#endif  // ANNULUS_API_C_FUNCTIONS_H_
