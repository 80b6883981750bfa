#ifndef ANNULUS_BASE_HASH_H_
#define ANNULUS_BASE_HASH_H_

// XXH3-128, used as a key for contents and to detect corruption. It is not a defence against an
// attacker.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace annulus::base {

struct Digest {
  std::array<std::uint8_t, 16> bytes{};  // canonical (big-endian) order, the same on every machine

  std::string hex() const;  // 32 lower-case digits
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

Digest digest(std::span<const std::byte> bytes);
Digest digest(std::string_view text);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_HASH_H_
