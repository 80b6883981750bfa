#ifndef ANNULUS_C_API_TUNED_ENTRY_H_
#define ANNULUS_C_API_TUNED_ENTRY_H_

// An entry for C callers, which lists of results and reports of packs give out.

#include "annulus/c_tools.h"
#include "annulus/c_tune.h"
#include "annulus/tune.h"
#include "c_api/call.h"

namespace annulus::c_api {

inline constexpr StructName kTunedEntry = {"annulus_tuned_entry", "ANNULUS_TUNED_ENTRY_INIT"};

// Its texts are those of the entry.
annulus_tuned_entry to_c(const TunedEntry& entry);

}  // namespace annulus::c_api

#endif  // ANNULUS_C_API_TUNED_ENTRY_H_
