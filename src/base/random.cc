#include "base/random.h"

#include <cmath>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace annulus::base {
namespace {

constexpr int kRounds = 10;
constexpr std::uint32_t kFactors[] = {0xD2511F53u, 0xCD9E8D57u};
constexpr std::uint32_t kKeySteps[] = {0x9E3779B9u, 0xBB67AE85u};

// The first two words of a counter, low word first.
std::uint64_t first_words(const std::array<std::uint32_t, 4>& counter,
                          const std::array<std::uint32_t, 2>& key) {
  const std::array<std::uint32_t, 4> words = philox(counter, key);
  return words[0] | static_cast<std::uint64_t>(words[1]) << 32;
}

#ifdef __x86_64__

// Four counters. Each 64-bit lane holds 32 bits of a counter. The upper bits are never read,
// because a product uses the lower halves of its lanes.
struct FourCounters {
  __m256i a, b, c, d;

  __attribute__((target("avx2"), always_inline)) void step(__m256i key0, __m256i key1) {
    const __m256i first = _mm256_mul_epu32(a, _mm256_set1_epi64x(kFactors[0]));
    const __m256i second = _mm256_mul_epu32(c, _mm256_set1_epi64x(kFactors[1]));
    a = _mm256_xor_si256(_mm256_srli_epi64(second, 32), _mm256_xor_si256(b, key0));
    b = second;
    c = _mm256_xor_si256(_mm256_srli_epi64(first, 32), _mm256_xor_si256(d, key1));
    d = first;
  }
  __attribute__((target("avx2"), always_inline)) void store(std::uint64_t* out) const {
    const __m256i words = _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), words);
  }
};

constexpr std::size_t kLanes = 8;  // the number of counters that are computed at once

// first_words() of kLanes counters.
__attribute__((target("avx2"))) void philox_lanes(const std::array<std::uint32_t, 4>& counter,
                                                  const std::array<std::uint32_t, 2>& key,
                                                  std::uint64_t* out) {
  const __m256i first = _mm256_set1_epi64x(counter[0]);
  FourCounters low = {_mm256_add_epi32(first, _mm256_set_epi64x(3, 2, 1, 0)),
                      _mm256_set1_epi64x(counter[1]), _mm256_set1_epi64x(counter[2]),
                      _mm256_set1_epi64x(counter[3])};
  FourCounters high = low;
  high.a = _mm256_add_epi32(first, _mm256_set_epi64x(7, 6, 5, 4));
  std::uint32_t key0 = key[0], key1 = key[1];
  for (int round = 0; round < kRounds; ++round) {
    const __m256i both[] = {_mm256_set1_epi64x(key0), _mm256_set1_epi64x(key1)};
    low.step(both[0], both[1]);
    high.step(both[0], both[1]);
    key0 += kKeySteps[0];
    key1 += kKeySteps[1];
  }
  low.store(out);
  high.store(out + 4);
}

#endif

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t first = std::uint64_t{kFactors[0]} * counter[0];
    const std::uint64_t second = std::uint64_t{kFactors[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key[0] += kKeySteps[0];
    key[1] += kKeySteps[1];
  }
  return counter;
}

void philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key,
            std::span<std::uint64_t> out) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) {
    for (; out.size() >= kLanes; out = out.subspan(kLanes)) {
      philox_lanes(counter, key, out.data());
      counter[0] += kLanes;
    }
  }
#endif
  for (std::uint64_t& words : out) {
    words = first_words(counter, key);
    ++counter[0];
  }
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

// Multiply-shift. Its bias is less than bound / 2^32, which no test here can detect.
std::uint32_t Random::below(std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{next()} * bound) >> 32);
}

double Random::uniform() { return next() * 0x1p-32; }

float Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(uniform() + 0x1p-33));
  return static_cast<float>(radius * std::cos(6.283185307179586 * uniform()));
}

}  // namespace annulus::base
