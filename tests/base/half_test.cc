#include "base/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace annulus::base {
namespace {

TEST_CASE("every fp16 and bf16 value survives the way to fp32 and back") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto word = static_cast<std::uint16_t>(bits);
    if (!std::isnan(fp16_to_float(word))) CHECK(float_to_fp16(fp16_to_float(word)) == word);
    if (!std::isnan(bf16_to_float(word))) CHECK(float_to_bf16(bf16_to_float(word)) == word);
  }
}

TEST_CASE("every e4m3 value survives the way to fp32 and back, and none is out of order") {
  CHECK(e4m3_to_float(0x7e) == 448);
  CHECK(e4m3_to_float(0x08) == 0x1p-6f);
  CHECK(e4m3_to_float(0x01) == 0x1p-9f);
  CHECK(e4m3_to_float(0xb8) == -1);
  for (int bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<std::uint8_t>(bits);
    if ((bits & 0x7f) == 0x7f) {
      CHECK(std::isnan(e4m3_to_float(byte)));
      CHECK(float_to_e4m3(e4m3_to_float(byte)) == 0x7f);
      continue;
    }
    CHECK(float_to_e4m3(e4m3_to_float(byte)) == byte);
    if (bits > 0 && bits < 0x7f) {
      const float before = e4m3_to_float(static_cast<std::uint8_t>(bits - 1));
      const float value = e4m3_to_float(byte);
      CHECK(before < value);
      // A half-way value rounds to the even number, and values on either side of it to the nearer
      // number.
      const float middle = (before + value) / 2;
      CHECK(float_to_e4m3(middle) == (bits % 2 == 0 ? bits : bits - 1));
      CHECK(float_to_e4m3(std::nextafter(middle, 1000.0f)) == bits);
      CHECK(float_to_e4m3(std::nextafter(middle, 0.0f)) == bits - 1);
    }
  }
  for (const float large : {449.0f, 464.0f, 480.0f, 1e30f, INFINITY}) {
    CHECK(float_to_e4m3(large) == 0x7e);
    CHECK(float_to_e4m3(-large) == 0xfe);
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
