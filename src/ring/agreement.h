#ifndef ANNULUS_RING_AGREEMENT_H_
#define ANNULUS_RING_AGREEMENT_H_

// The terms that all ranks of a ring must agree on, so that no rank waits for a message that
// another rank never sends. Digests of the terms show whether two ranks agree. The texts of the
// terms show what they disagree about.

#include <span>
#include <string>
#include <vector>

#include "annulus/ring.h"
#include "base/hash.h"

namespace annulus::ring {

struct Term {
  std::string name;
  std::string value;
  friend bool operator==(const Term&, const Term&) = default;
};
using Terms = std::vector<Term>;

// The terms: library version, shapes, dtype, pattern (explicit layouts by their content), scores,
// shards, the requested route, architecture and driver (as one text, `device`) and the requested
// configuration.
Terms terms_of(const Problem& problem, const ShardMap& shards, Route route,
               const std::string& device, const std::string& config);

base::Digest digest_of(const Terms& terms);

// Throws Error{kInvalidArgument} for the first term that differs between ranks. The message names
// the ranks outside the majority, their values, and the value of the majority.
void require_agreement(std::span<const Terms> ranks);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_AGREEMENT_H_
