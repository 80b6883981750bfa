// Registers that share a slot, and registers that must not.

#include "simulator/decode/assign_slots.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace annulus::simulator {
namespace {

using Registers = std::vector<std::uint32_t>;

Liveness instruction(const Registers& reads, const Registers& writes) {
  Liveness one;
  one.reads = reads;
  one.writes = writes;
  return one;
}

TEST_CASE("a register that is no longer needed leaves its slot to the result") {
  const Assignment made = assign_slots(
      {instruction({}, {0}), instruction({0}, {1}), instruction({1}, {2}), instruction({2}, {})},
      {32, 32, 32});
  CHECK(made.slots[0] == made.slots[1]);
  CHECK(made.slots[1] == made.slots[2]);
}

TEST_CASE("results of one instruction share no slot, whether or not all of them are read") {
  for (const std::uint32_t unread : {0u, 1u, 2u}) {
    Registers read = {0, 1, 2};
    std::erase(read, unread);
    const Assignment made =
        assign_slots({instruction({}, {0, 1, 2}), instruction(read, {})}, {32, 32, 32});
    CHECK(made.slots[0] != made.slots[1]);
    CHECK(made.slots[0] != made.slots[2]);
    CHECK(made.slots[1] != made.slots[2]);
  }
}

}  // namespace
}  // namespace annulus::simulator
