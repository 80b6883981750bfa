// Mbarriers: the programs in tools/simulator/tests/ptx/ and the words that they must write.

#include "golden/golden.h"

namespace annulus::golden {
namespace {

void answers(Expected expected, std::initializer_list<u32> words) {
  std::size_t i = 0;
  for (const u32 word : words) expected[i++] = to_word(word);
}

// A state holds the phase before the arrival, and the arrivals that were still missing.
void mbarrier(const Golden&, Words, Expected expected) {
  answers(expected, {0, 2, 0, 1,           // phase 0: two of three have arrived
                     1, 1, 1, 0, 0, 2, 1,  // phase 1
                     0, 1, 1,              // phase 2
                     1, 1});               // initialised again
}

void mbarrier_bytes(const Golden&, Words, Expected expected) {
  answers(expected, {0, 1, 1, 0, 1, 0, 1, 1});
}

void mbarrier_pipeline(const Golden&, Words, Expected expected) {
  for (u32 t = 0; t < 128; ++t) {
    u32 sum = 0;
    for (u32 tile = 0; t >= 32 && tile < 11; ++tile) sum += tile * 1000 + (t % 32 ^ 31);
    expected[t] = to_word(sum);
  }
}

}  // namespace

void add_mbarrier(Set& set) {
  set.file("mbarrier", {1}, {1}, 8, mbarrier).word_bytes = 4;
  Golden& bytes = set.file("mbarrier_bytes", {1}, {1}, 4, mbarrier_bytes);
  Golden& pipeline = set.file("mbarrier_pipeline", {1}, {128}, 64, mbarrier_pipeline);
  bytes.word_bytes = pipeline.word_bytes = 4;
  bytes.hopper = pipeline.hopper = true;
}

}  // namespace annulus::golden
