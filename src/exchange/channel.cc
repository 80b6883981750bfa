#include "exchange/channel.h"

namespace annulus::exchange {

// The release order of each field's store keeps the store after the store of the odd number. The
// acquire order of each load keeps the second load of the number after the loads of the fields.
void PostedPosition::write(const Position& position) noexcept {
  const std::uint64_t before = writes_.load(std::memory_order_relaxed);
  writes_.store(before + 1, std::memory_order_relaxed);
  generation_.store(position.generation, std::memory_order_release);
  run_.store(position.run, std::memory_order_release);
  round_.store(position.round, std::memory_order_release);
  writes_.store(before + 2, std::memory_order_release);
}

std::uint64_t PostedPosition::read(Position* position) const noexcept {
  const std::uint64_t before = writes_.load(std::memory_order_acquire);
  position->generation = generation_.load(std::memory_order_acquire);
  position->run = run_.load(std::memory_order_acquire);
  position->round = round_.load(std::memory_order_acquire);
  const std::uint64_t after = writes_.load(std::memory_order_relaxed);
  return before == after ? after : after | 1;
}

}  // namespace annulus::exchange
