#include "base/hash.h"

#define XXH_INLINE_ALL
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#include <xxhash.h>
#pragma GCC diagnostic pop

#include <cstring>

namespace annulus::base {

std::string Digest::hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Digest digest(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Digest result;
  std::memcpy(result.bytes.data(), canonical.digest, result.bytes.size());
  return result;
}

Digest digest(std::string_view text) { return digest(std::as_bytes(std::span(text))); }

}  // namespace annulus::base
