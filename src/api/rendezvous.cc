// The functions of the public handle of a rendezvous, each a few lines that call src/exchange.
#include "annulus/rendezvous.h"

#include "base/files.h"
#include "base/process.h"
#include "base/span.h"
#include "exchange/control.h"

namespace annulus::inline v0 {

struct Rendezvous::Impl {
  std::unique_ptr<exchange::Control> control;
  base::ProcessMark process{};

  explicit Impl(exchange::World world)
      : control(std::make_unique<exchange::Control>(std::move(world))) {}
  // A child of fork has the object and not its thread, for which it would wait.
  ~Impl() {
    if (!process.is_here()) static_cast<void>(control.release());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  exchange::Control& here() const {
    process.check("rendezvous");
    return *control;
  }
};

Rendezvous Rendezvous::meet(const RendezvousOptions& options) {
  const base::Span span("meet the other ranks", options.address);
  base::FileSystem files;
  return Rendezvous(std::make_shared<Impl>(exchange::meet(options, files)));
}

Rendezvous Rendezvous::over(const AllGather& all_gather, const RendezvousOptions& options) {
  const base::Span span("meet the other ranks", "over an all-gather");
  return Rendezvous(std::make_shared<Impl>(exchange::meet_over(all_gather, options)));
}

int Rendezvous::rank() const { return impl_->control->rank(); }
int Rendezvous::ranks() const { return impl_->control->ranks(); }

std::vector<std::vector<std::byte>> Rendezvous::all_gather(
    std::span<const std::byte> own, std::chrono::milliseconds deadline) const {
  return impl_->here().all_gather(own, deadline);
}

Gathered Rendezvous::gather(std::span<const std::byte> own,
                            std::chrono::milliseconds deadline) const {
  return impl_->here().gather(own, deadline);
}

// In a child of fork the position is written to memory of its own, and the parent's carrier is
// only woken.
void Rendezvous::post(const Position& position) const noexcept { impl_->control->post(position); }

std::vector<RankState> Rendezvous::states() const { return impl_->here().states(); }

}  // namespace annulus::inline v0
