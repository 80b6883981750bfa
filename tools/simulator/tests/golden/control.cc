// Branches, loops, calls, exits, barriers, variables, parameters and atomics under contention: the
// programs in tools/simulator/tests/ptx/ and the words that they must write.

#include <array>
#include <bit>
#include <cstring>

#include "base/random.h"
#include "golden/golden.h"

namespace annulus::golden {
namespace {

// An output word of which a program wrote only the lower half. The other bytes keep the filler.
u64 low_half(const Golden& self, u32 low) { return (self.filler & ~0xffffffffull) | low; }

std::vector<u64> random_words(std::size_t count, u64 seed) {
  base::Random random(seed);
  std::vector<u64> words(count);
  for (u64& word : words) word = both(random.next(), random.next());
  return words;
}

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

void special_registers(const Golden&, Words, Expected expected) {
  for (std::size_t i = 0; i < expected.size() / 2; ++i) {
    expected[i * 2].bits = both(static_cast<u32>(i), 30202);
    expected[i * 2 + 1].bits = both(static_cast<u32>(i % 60), 1);
  }
}

void divergence(const Golden&, Words in, Expected expected) {
  std::vector<u32> steps(expected.size());
  for (std::size_t t = 0; t < steps.size(); ++t) {
    for (u64 n = in[t] & 1023; n > 1; ++steps[t]) n = n % 2 ? 3 * n + 1 : n / 2;
  }
  for (std::size_t t = 0; t < steps.size(); ++t) {
    u32 votes = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) votes |= (steps[t / 32 * 32 + lane] & 1) << lane;
    expected[t].bits = both(steps[t], votes);
  }
}

u32 nested_sum(u32 t) {
  u32 sum = 0;
  for (u32 i = 0; i < (t & 7) + 1; ++i) {
    for (u32 j = 0; j <= i; ++j) {
      if (j == 2) continue;
      sum += i * j + 1;
      if (sum > 60) return sum + 1000;
    }
  }
  return sum;
}
void nested_loops(const Golden& self, Words, Expected expected) {
  for (u32 t = 0; t < expected.size(); ++t) {
    expected[t].bits = low_half(self, nested_sum(t) + nested_sum(t ^ 8));
  }
}

void jump_table(const Golden&, Words in, Expected expected) {
  std::vector<u32> values(expected.size());
  for (u32 t = 0; t < values.size(); ++t) {
    const std::array<u32, 4> choices = {5, t + 100, 5, t * 7};
    values[t] = choices[in[t] & 3];
  }
  for (std::size_t t = 0; t < values.size(); ++t) {
    u32 sum = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) sum += values[t / 32 * 32 + lane];
    expected[t].bits = both(values[t], sum);
  }
}

void early_exit(const Golden& self, Words, Expected expected) {
  for (u32 t = 0; t < expected.size(); ++t) {
    const bool leaves = t / 32 == 1 || (t / 32 == 0 && t % 2 == 1);
    expected[t].bits = low_half(self, leaves ? 1 : 3);
  }
}

void calls(const Golden&, Words in, Expected expected) {
  for (u32 t = 0; t < in.size(); ++t) {
    const u32 v = static_cast<u32>(in[t]);
    const u32 square = v * v + t;
    const u32 sum = square + t + 5;
    const u32 three = sum & 0x80000000u ? sum : sum + 1;
    expected[t * 2].bits = both(t % 2 ? three : square, t * t + 1);
    expected[t * 2 + 1].bits = t % 2 ? ~u64{v} : u64{v};
  }
}

void variables(const Golden&, Words, Expected expected) {
  const std::array<u32, 8> counts = {1, 2, 3, 0xffffffff, 5, 0, 0, 0};
  const std::array<float, 4> weights = {0.5f, -2.0f, 1.0f, 1000.0f};
  const std::array<int, 8> bytes = {1, 2, 3, 4, -6, -5, -4, -3};
  for (u32 t = 0; t < 32; ++t) {
    expected[t * 4].bits = both(counts[t & 7], std::bit_cast<u32>(weights[t & 3]));
    expected[t * 4 + 1].bits = both(static_cast<u32>(bytes[t & 7]), counts[2] + counts[3]);
    expected[t * 4 + 2].bits = both(42, static_cast<u32>(-5));
    expected[t * 4 + 3].bits = std::bit_cast<u64>(1.5);
  }
}

void pointer_variables(const Golden&, Words, Expected expected) {
  expected[0].bits = both(3, 0xffffffff);
}

void parameters(const Golden& self, Words, Expected expected) {
  expected[0].bits = both(0xfe, static_cast<u32>(-300));
  expected[1].bits = static_cast<u64>(-300);
  expected[2].bits = both(0xdeadbeef, std::bit_cast<u32>(-2.5f));
  expected[3].bits = std::bit_cast<u64>(1e300);
  std::array<u32, 12> block;
  std::memcpy(block.data(), self.extra[5].data(), sizeof block);
  expected[4].bits = both(block[7], block[6]);
  expected[5].bits = both(block[5], block[4]);
  expected[6].bits = both(block[10], block[11]) - both(block[8], block[9]);
  expected[7].bits = both(block[1], (block[0] >> 8) & 0xff);
  expected[8].bits =
      static_cast<u64>(static_cast<std::int64_t>(static_cast<std::int32_t>(block[2])));
  expected[9].bits = 0x1122334455667788ull;
}

void dynamic_shared(const Golden&, Words in, Expected expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i].bits = ~in[i / 96 * 96 + 95 - i % 96];
  }
}

void debug_directives(const Golden& self, Words, Expected expected) {
  for (Word& word : expected) word.bits = low_half(self, 40);
}

void atomics(const Golden&, Words, Expected expected) {
  const u32 threads = 256;
  expected[0].bits = threads * (threads - 1) / 2;
  expected[1].bits = threads - 1;
  expected[2].bits = 0xffffffff;
  expected[3].bits = both(0, threads);  // the lock is free, and all threads have had it
  expected[4].bits = both(threads, threads * (threads - 1) / 2);  // every ticket was drawn once
  expected[5].bits = threads % 100;
  for (u32 block = 0; block < 2; ++block) {
    u32 sum = 0;
    for (u32 t = 0; t < 128; ++t) sum += block * 128 + t;
    expected[6 + block].bits = sum;
  }
}

void barriers(const Golden&, Words, Expected expected) {
  for (u32 t = 0; t < 128; ++t) {
    u32 sum = 0;
    for (u32 round = 0; round < 5; ++round) sum += round * 1000 + ((t & 63) ^ 1);
    expected[t * 2].bits = both(t < 64 ? 0 : sum, 43);
    expected[t * 2 + 1].bits = both(2, t & 63);
  }
}

}  // namespace

void add_control(Set& set) {
  set.file("special_registers", {3, 2, 2}, {5, 3, 4}, 12 * 60 * 2, special_registers);
  set.file("divergence", {1}, {128}, 128, divergence).in = random_words(128, 1);
  set.file("nested_loops", {1}, {64}, 64, nested_loops);
  set.file("jump_table", {1}, {64}, 64, jump_table).in = random_words(64, 2);
  set.file("early_exit", {1}, {128}, 128, early_exit);
  set.file("calls", {1}, {64}, 128, calls).in = random_words(64, 3);
  set.file("variables", {1}, {32}, 32 * 4, variables);
  set.file("pointer_variables", {1}, {1}, 1, pointer_variables);
  set.file("debug_directives", {1}, {128}, 128, debug_directives);
  set.file("barriers", {1}, {128}, 256, barriers);
  Golden& contended = set.file("atomics", {2}, {128}, 8, atomics);
  contended.filler = 0;
  Golden& shared = set.file("dynamic_shared", {3}, {96}, 288, dynamic_shared);
  shared.in = random_words(288, 4);
  shared.shared_bytes = 97 * 8;
  Golden& kinds = set.file("parameters", {1}, {1}, 10, parameters);
  std::array<u32, 12> block;
  for (u32 i = 0; i < 12; ++i) block[i] = 0x81020304u * (i + 1);
  kinds.extra = {bytes_of(std::uint8_t{0xfe}),
                 bytes_of(std::int16_t{-300}),
                 bytes_of(0xdeadbeefu),
                 bytes_of(-2.5f),
                 bytes_of(1e300),
                 bytes_of(block),
                 bytes_of(0x1122334455667788ull)};
}

}  // namespace annulus::golden
