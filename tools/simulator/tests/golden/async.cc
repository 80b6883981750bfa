// cp.async: the programs in tools/simulator/tests/ptx/ and the words that they must write.

#include <cstring>

#include "base/random.h"
#include "golden/golden.h"

namespace annulus::golden {
namespace {

std::vector<u64> random_words(std::size_t count, u64 seed) {
  base::Random random(seed);
  std::vector<u64> words(count);
  for (u64& word : words) word = random.next() | static_cast<u64>(random.next()) << 32;
  return words;
}

void cp_async(const Golden&, Words in, Expected expected) {
  for (u32 t = 0; t < 64; ++t) {
    const Words from = in.subspan(t * 8, 8);
    const Expected to = expected.subspan(t * 8, 8);
    to[0].bits = from[0] & 0xffffffff;  // the second copy reads nothing: zeros
    for (int i = 1; i < 4; ++i)
      to[static_cast<std::size_t>(i)].bits = from[static_cast<std::size_t>(i)];
    std::uint8_t bytes[16] = {};
    std::memcpy(bytes, &from[4], t & 15);
    std::memcpy(&to[4].bits, bytes, 8);
    std::memcpy(&to[5].bits, bytes + 8, 8);
    const u64 own = t | static_cast<u64>(t) << 32;
    to[6].bits = t % 2 == 0 ? from[6] : own;
    to[7].bits = t % 2 == 0 ? from[7] : own;
  }
}

void cp_async_pipeline(const Golden& self, Words in, Expected expected) {
  for (u32 t = 0; t < 128; ++t) {
    u32 sum = 0;
    for (u32 tile = 0; tile < 8; ++tile) sum += static_cast<u32>(in[(tile * 128 + (t ^ 127)) * 2]);
    expected[t].bits = (self.filler & ~0xffffffffull) | sum;
  }
}

}  // namespace

void add_async(Set& set) {
  set.file("cp_async", {1}, {64}, 64 * 8, cp_async).in = random_words(64 * 8, 11);
  set.file("cp_async_pipeline", {1}, {128}, 128, cp_async_pipeline).in =
      random_words(8 * 128 * 2, 12);
}

}  // namespace annulus::golden
