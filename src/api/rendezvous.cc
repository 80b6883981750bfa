// The functions of a rendezvous's public handle. Each has a few lines that call src/exchange.
#include "annulus/communicator.h"

#include "api/rendezvous_impl.h"
#include "base/files.h"
#include "base/span.h"

namespace annulus::inline v0 {

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

// In a child process after fork, the position is written to memory of the child, and the parent's
// carrier thread is only woken.
void Rendezvous::post(const Position& position) const noexcept { impl_->post(position); }

std::vector<RankState> Rendezvous::states() const {
  exchange::Control& control = impl_->here();
  std::vector<RankState> states;
  for (exchange::Control::Known& known : control.known(control.engine_channel())) {
    states.push_back(std::move(known.state));
  }
  return states;
}

std::int64_t Rendezvous::generation() const { return impl_->control->generation(); }
const std::vector<int>& Rendezvous::members() const { return impl_->control->members(); }
std::uint64_t Rendezvous::members_digest() const { return impl_->control->members_digest(); }

Rendezvous Rendezvous::regroup(const RegroupOptions& options) const {
  const base::Span span("regroup", "");
  return Rendezvous(std::make_shared<Impl>(impl_->here().regroup(options)));
}

}  // namespace annulus::inline v0
