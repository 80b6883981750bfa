#ifndef ANNULUS_RING_RANK_ERROR_H_
#define ANNULUS_RING_RANK_ERROR_H_

// Adds the number of the failing rank to the errors of a ring, because they concern the rank's
// device, memory or operands.

#include "annulus/types.h"
#include "base/fail.h"

namespace annulus::ring {

// Returns f(). If f() throws an Error, it is thrown again with the same code and with "rank N: "
// before its text.
template <typename F>
auto of_rank(int rank, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    base::fail(error.code(), "rank {}: {}", rank, error.what());
  }
}

}  // namespace annulus::ring

#endif  // ANNULUS_RING_RANK_ERROR_H_
