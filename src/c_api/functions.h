#ifndef ANNULUS_C_API_FUNCTIONS_H_
#define ANNULUS_C_API_FUNCTIONS_H_

// Included by every .cc file of this room after the headers of its subject, and by no other file:
// the functions there are in no namespace and use the names of three.

#include "base/fail.h"
#include "c_api/call.h"
#include "c_api/objects.h"

namespace annulus::api {}

using namespace annulus;         // names of the facade
using namespace annulus::api;    // names of the room under it
using namespace annulus::c_api;  // names of this room

#endif  // ANNULUS_C_API_FUNCTIONS_H_
