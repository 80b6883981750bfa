#ifndef ANNULUS_RING_RANK_ERROR_H_
#define ANNULUS_RING_RANK_ERROR_H_

// A failure of a ring says which rank's it is: its device, its memory or its operands.

#include "annulus/types.h"
#include "base/fail.h"

namespace annulus::ring {

// Returns f(). An Error comes out with the same code and "rank N: " before its text.
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
