// prmt: bytes of two registers in any order (PTX ISA 9.0, section 9.7.9).

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

struct Permute {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t selector) const {
    const std::uint64_t both = (std::uint64_t{b} << 32) | a;
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t nibble = (selector >> (4 * i)) & 15u;
      std::uint32_t byte = static_cast<std::uint32_t>(both >> (8 * (nibble & 7u))) & 0xffu;
      if (nibble & 8u) byte = byte & 0x80u ? 0xffu : 0u;  // all bits become the sign bit
      result |= byte << (8 * i);
    }
    return result;
  }
};

// The modes of prmt, as selectors for each value of the low two bits of c (PTX ISA, table of prmt).
template <int kMode>
struct PermuteMode {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    static constexpr std::uint32_t kTable[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543},   // f4e
                                                   {0x5670, 0x6701, 0x7012, 0x0123},   // b4e
                                                   {0x0000, 0x1111, 0x2222, 0x3333},   // rc8
                                                   {0x3210, 0x3211, 0x3222, 0x3333},   // ecl
                                                   {0x0000, 0x1110, 0x2210, 0x3210},   // ecr
                                                   {0x1010, 0x3232, 0x1010, 0x3232}};  // rc16
    return Permute{}(a, b, kTable[kMode][c & 3u]);
  }
};

}  // namespace

void decode_prmt(Decoder& decoder) {
  take_ternary(decoder, kU32, Class::kInteger);
  using U = std::uint32_t;
  use(decoder, decoder.has("f4e")    ? ternary<U, U, PermuteMode<0>>
               : decoder.has("b4e")  ? ternary<U, U, PermuteMode<1>>
               : decoder.has("rc8")  ? ternary<U, U, PermuteMode<2>>
               : decoder.has("ecl")  ? ternary<U, U, PermuteMode<3>>
               : decoder.has("ecr")  ? ternary<U, U, PermuteMode<4>>
               : decoder.has("rc16") ? ternary<U, U, PermuteMode<5>>
                                     : ternary<U, U, Permute>);
}

}  // namespace annulus::simulator
