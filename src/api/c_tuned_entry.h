#ifndef ANNULUS_API_C_TUNED_ENTRY_H_
#define ANNULUS_API_C_TUNED_ENTRY_H_

// An entry for C callers, which lists of results and reports of packs give out.

#include "annulus/c_tune.h"
#include "annulus/tune.h"
#include "api/c_call.h"

namespace annulus::api {

inline constexpr StructName kTunedEntry = {"annulus_tuned_entry", "ANNULUS_TUNED_ENTRY_INIT"};

// Its texts are those of the entry.
annulus_tuned_entry to_c(const TunedEntry& entry);

}  // namespace annulus::api

#endif  // ANNULUS_API_C_TUNED_ENTRY_H_
