#ifndef ANNULUS_C_API_TUNED_ENTRY_H_
#define ANNULUS_C_API_TUNED_ENTRY_H_

// Converts an entry for C callers. Lists of results and reports of packs return such entries.

#include "annulus/c_tools.h"
#include "annulus/c_tune.h"
#include "annulus/tune.h"
#include "c_api/call.h"

namespace annulus::c_api {

inline constexpr StructName kTunedEntry = {"annulus_tuned_entry", "ANNULUS_TUNED_ENTRY_INIT"};

// The texts belong to the entry, which must outlive them.
annulus_tuned_entry to_c(const TunedEntry& entry);

}  // namespace annulus::c_api

#endif  // ANNULUS_C_API_TUNED_ENTRY_H_
