#ifndef ANNULUS_RING_AGREEMENT_H_
#define ANNULUS_RING_AGREEMENT_H_

// The terms that all ranks of a ring must agree on, so that no rank waits for a message that
// another one never sends. Terms are compared by their text: digests tell whether two ranks agree,
// terms name what they disagree about.

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

// Library version, shapes, dtype, pattern (explicit layouts by their content), scores, shards, the
// route that was asked for, architecture and driver (as one text, `device`) and the configuration
// that was asked for.
Terms terms_of(const Problem& problem, const ShardMap& shards, Route route,
               const std::string& device, const std::string& config);

base::Digest digest_of(const Terms& terms);

// Throws Error{kInvalidArgument} for the first term about which ranks differ. The message names the
// ranks outside the majority, what they brought, and what the others brought.
void require_agreement(std::span<const Terms> ranks);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_AGREEMENT_H_
