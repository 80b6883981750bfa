#include "simulator/check/operation.h"

#include <algorithm>

namespace annulus::simulator {

std::uint64_t Order::time_seen(const Chain& chain, std::uint64_t number) {
  const auto found =
      std::lower_bound(chain.seen_.begin(), chain.seen_.end(), number,
                       [](const Chain::Seen& seen, std::uint64_t n) { return seen.number < n; });
  return found == chain.seen_.end() ? never() : found->time;
}

OperationPointer Order::submit(Operation operation, const ChainPointer& chain,
                               std::span<const OperationPointer> after) {
  std::lock_guard lock(mutex_);
  const auto know = [&](const ChainPointer& other, std::uint64_t number) {
    // The operation's own chain, and operations that the host has observed, need no entry.
    if (other == chain || time_seen(*other, number) != never()) return;
    const auto found =
        std::find_if(operation.known_.begin(), operation.known_.end(),
                     [&](const Operation::Known& known) { return known.chain == other; });
    if (found == operation.known_.end()) {
      operation.known_.push_back({other, number});
    } else {
      found->number = std::max(found->number, number);
    }
  };
  operation.known_.clear();
  for (const OperationPointer& earlier : after) {
    if (earlier == nullptr) continue;
    know(earlier->chain_, earlier->number_);
    for (const Operation::Known& known : earlier->known_) know(known.chain, known.number);
  }
  operation.chain_ = chain;
  operation.number_ = ++chain->last_;
  operation.submitted_ = time_;
  operation.serial = ++serial_;
  auto submitted = std::make_shared<const Operation>(std::move(operation));
  pending_.insert(submitted->submitted_);  // last, because it may throw: an entry must always be
                                           // removed again
  return submitted;
}

void Order::ended(const Operation& operation) {
  std::lock_guard lock(mutex_);
  pending_.erase(pending_.find(operation.submitted_));
}

void Order::see(Chain& chain, std::uint64_t number) {
  auto& seen = chain.seen_;
  if (!seen.empty() && seen.back().number >= number) return;
  // Entries older than the oldest pending operation are merged into the last of them. The
  // operations they name come before every operation that is pending or will be submitted, and no
  // other operation is compared with them.
  const std::uint64_t oldest = pending_.empty() ? time_ : *pending_.begin();
  std::size_t settled = 0;
  while (settled < seen.size() && seen[settled].time <= oldest) ++settled;
  if (settled > 1)
    seen.erase(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(settled - 1));
  seen.push_back({number, time_});
}

void Order::observe(const Operation& operation) {
  std::lock_guard lock(mutex_);
  ++time_;
  see(*operation.chain_, operation.number_);
  for (const Operation::Known& known : operation.known_) see(*known.chain, known.number);
}

bool Order::before(const Operation& first, const Operation& second) const {
  if (first.chain_ == second.chain_) return first.number_ <= second.number_;
  for (const Operation::Known& known : second.known_) {
    if (known.chain == first.chain_ && first.number_ <= known.number) return true;
  }
  std::lock_guard lock(mutex_);
  return time_seen(*first.chain_, first.number_) <= second.submitted_;
}

bool Order::observed(const Operation& operation) const {
  std::lock_guard lock(mutex_);
  return time_seen(*operation.chain_, operation.number_) != never();
}

bool Order::settled(const Operation& operation) const {
  std::lock_guard lock(mutex_);
  const std::uint64_t time = time_seen(*operation.chain_, operation.number_);
  return time != never() && (pending_.empty() || time <= *pending_.begin());
}

}  // namespace annulus::simulator
