// Sums of products of 8-bit floats, with words that an H200 computed.

#include <doctest/doctest.h>
#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/float8.h"
#include "simulator/ops/wgmma_product.h"

namespace annulus::simulator {
namespace {

// A row of A and a column of B of e4m3, the accumulator, and D of one wgmma and of two in a row.
struct Sum {
  const char* a;
  const char* b;
  std::uint32_t c;
  std::uint32_t once;
  std::uint32_t twice;
};
// Each of these rules gives at least two wrong words: 12 or 14 bits below the largest exponent, a
// sum of 13, 15 or 24 bits, exponents of the products themselves, two steps of 16 products, terms
// rounded down or to nearest, a sum rounded to nearest, an accumulator that is not cut, an exact
// sum.
constexpr Sum kSums[] = {
    {"c02a0088fb5eb8db992046fe94117c3f5e1f62a4e34bf6cee974db47ec97e8dd",
     "9ded053becf17303f8fa4bf5de58c394d6a6ee892f3f3fbd338ae7f20626d9a7", 0x45402aa7u, 0x47ecdc00u,
     0x4869dc00u},
    {"f29752f3a841b64544b9f3b24ba68d67896cbfe1381b514ba9fdb09f8b5f9657",
     "67d821ddbab14806e52f14af4b8b72eaa9d3bb8c4599b506240918cc8322cd4a", 0x00000000u, 0xc62b1400u,
     0xc6ab1800u},
    {"8459aae172e806a33f52b935af906b6e5649082a665cf575f5dbba9c135c0d2a",
     "777a1dae3ed3f23d6a3ff7f7904192840d4af8ce4dd8f321942ac09516c49df0", 0xba6f443eu, 0x472a0400u,
     0x47aa0000u},
    {"402ae665836f490d073d894c65ea1ab2e603eb694f33865366e80168c3fe3c28",
     "27fcd46c242c8353049cfb038a67a6cf079e086f968d3bb355d88ed2945c1885", 0xc3fb0880u, 0xc4322000u,
     0xc466c000u},
    {"7e9b3312a90428092cc00d8202261a340834ac4086a1131baf8d2e123f3d1bb6",
     "7eba82219ab891992f1f9c9d9d8c40aca5804085b48a229eaf98bc973a949382", 0x00000000u, 0x48440000u,
     0x48c40000u},
    {"3a3cba3f3eb9383b3dbe3cbc3abcb8be39bdb9bcbbb9baba3fb9bf38bcb9be3a",
     "bcbe3b3ab8bbbabcbcbb3a3e3939bcba3ebeba383cbf393ebe3d3eba393ebdba", 0xc8dc28adu, 0xc8dc2800u,
     0xc8dc2800u},
    {"5838383838383838383838383838383838383838383838383838383838383838",
     "3838383838383838383838383838383838383838383838383838383838383838", 0x00000000u, 0x423c0000u,
     0x42bc0000u},
    {"3838383838383838383838383838383838383838383838383838383838383838",
     "3838383838383838383838383838383838383838383838383838383838383838", 0x4cb717d7u, 0x4cb71400u,
     0x4cb71400u},
    {"f0c98118959e1cb67aa787a04597073938acf332f1dd1feddff4f088705aa87b",
     "0e4f728151a7ad5b419fb28fc99355240253e633c7da1241cd976bdcaa44bb23", 0x47b9715du, 0x47ba2000u,
     0x47bad000u},
    {"f0c98118959e1cb67aa787a04597073938acf332f1dd1feddff4f088705aa87b",
     "55b34b2ca997c3000bbf9b146678749745fa2b54a8f2be124c20a0ae0c943aae", 0xc81364e1u, 0xc8110000u,
     0xc80e9c00u},
    {"a2692e77f4399decc0a1ee6b9adbbe7c9c7194492a99079ff2e94dcf9017c6e8",
     "9ded053becf17303f8fa4bf5de58c394d6a6ee892f3f3fbd338ae7f20626d9a7", 0xc963dae5u, 0xc9658400u,
     0xc9673000u},
    {"a2692e77f4399decc0a1ee6b9adbbe7c9c7194492a99079ff2e94dcf9017c6e8",
     "55b34b2ca997c3000bbf9b146678749745fa2b54a8f2be124c20a0ae0c943aae", 0xc5669bc6u, 0xc75cdc00u,
     0xc7d5a800u},
};

float element(const char* digits, int k) {
  const std::string byte(digits + 2 * k, 2);
  return base::e4m3_to_float(static_cast<std::uint8_t>(std::stoi(byte, nullptr, 16)));
}

// Sum i is in row i and column kSpread * i of a product of 16 x 72, which has a whole slab of
// columns and a part of one.
constexpr int kBlocks = 9;
constexpr int kSpread = 6;

void check(const Float8Product& product) {
  std::vector<float> a(32 * 64), b(32 * 8 * kBlocks), d(4 * kBlocks * 32);
  float* arrays[4 * kBlocks];
  for (int i = 0; i < 4 * kBlocks; ++i) arrays[i] = &d[static_cast<std::size_t>(i) * 32];
  const auto place = [&](int i) -> float& {
    const int column = kSpread * i;
    return arrays[column / 8 * 4 + i / 8 * 2 + column % 2][i % 8 * 4 + column % 8 / 2];
  };
  int i = 0;
  for (const Sum& sum : kSums) {
    const int column = kSpread * i;
    for (int k = 0; k < 32; ++k) {
      for (int t = 0; t < 4; ++t) {
        a[static_cast<std::size_t>(k * 64 + i / 8 * 32 + i % 8 * 4 + t)] = element(sum.a, k);
      }
      b[static_cast<std::size_t>((column / 8 * 32 + k) * 8 + column % 2 * 4 + column % 8 / 2)] =
          element(sum.b, k);
    }
    place(i++) = std::bit_cast<float>(sum.c);
  }
  Float8Columns columns;
  REQUIRE(product.split(b.data(), -6, kBlocks, columns));
  for (const auto expected : {&Sum::once, &Sum::twice}) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | _MM_ROUND_DOWN);
    const bool multiplied =
        product.multiply(a.data(), -6, b.data(), columns, kBlocks, arrays, true);
    _mm_setcsr(before);
    REQUIRE(multiplied);
    i = 0;
    for (const Sum& sum : kSums) {
      CAPTURE(i);
      CHECK(std::bit_cast<std::uint32_t>(place(i++)) == sum.*expected);
    }
  }
}

TEST_CASE("sums of e4m3 products are those of an H200, for every vector width") {
  check(kFloat8Product256);
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  if (wide) check(kFloat8Product512);
}

}  // namespace
}  // namespace annulus::simulator
