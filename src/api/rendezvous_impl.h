#ifndef ANNULUS_API_RENDEZVOUS_IMPL_H_
#define ANNULUS_API_RENDEZVOUS_IMPL_H_

// The contents of a rendezvous's handle.

#include <memory>

#include "annulus/communicator.h"
#include "base/process.h"
#include "exchange/control.h"

namespace annulus::inline v0 {

struct Rendezvous::Impl {
  std::shared_ptr<exchange::Control> control;
  base::ProcessMark process{};

  explicit Impl(exchange::World world)
      : control(base::share_in_process(std::make_unique<exchange::Control>(std::move(world)))) {}

  exchange::Control& here() const {
    process.check("rendezvous");
    return *control;
  }
  void post(const Position& position) const noexcept {
    control->post(control->engine_channel(), position);
  }
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_API_RENDEZVOUS_IMPL_H_
