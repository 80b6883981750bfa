#include "base/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace annulus::base {
namespace {

TEST_CASE("every fp16 and bf16 value survives the way to fp32 and back") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto word = static_cast<std::uint16_t>(bits);
    if (!std::isnan(fp16_to_float(word))) CHECK(float_to_fp16(fp16_to_float(word)) == word);
    if (!std::isnan(bf16_to_float(word))) CHECK(float_to_bf16(bf16_to_float(word)) == word);
  }
}

TEST_CASE("conversion to fp16 agrees with the compiler's own type") {
  std::uint32_t bits = 1;
  for (int i = 0; i < 2'000'000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
    if (float_to_fp16(value) != expected) {
      FAIL("value " << value << " gives " << float_to_fp16(value) << ", expected " << expected);
    }
  }
}

}  // namespace
}  // namespace annulus::base
