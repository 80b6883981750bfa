#ifndef ANNULUS_API_COMMUNICATOR_IMPL_H_
#define ANNULUS_API_COMMUNICATOR_IMPL_H_

// The contents of a communicator's handle.

#include <memory>

#include "annulus/communicator.h"
#include "base/process.h"
#include "exchange/rank.h"

namespace annulus::inline v0 {

struct Communicator::Impl {
  std::shared_ptr<exchange::Rank> rank;
  base::ProcessMark process{};

  exchange::Rank& here() const {
    process.check("communicator");
    return *rank;
  }
};

}  // namespace annulus::inline v0

namespace annulus::api {

// The rank of a handle. Throws Error{kDevice} in a child of the process that opened it.
std::shared_ptr<exchange::Rank> inside(const Communicator& communicator);

}  // namespace annulus::api

#endif  // ANNULUS_API_COMMUNICATOR_IMPL_H_
