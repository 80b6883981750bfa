#include "simulator/decode/assign_slots.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>

namespace annulus::simulator {
namespace {

constexpr std::uint32_t kNever = 0xffffffffu;

struct Life {
  std::uint32_t first = kNever;
  std::uint32_t last = 0;
};

// Finds the lives by a backward data flow to a fixed point. live[i] has a bit for each register
// whose value is needed on entry to instruction i.
std::vector<Life> find_lives(const std::vector<Liveness>& code, std::size_t registers) {
  const std::size_t words = (registers + 63) / 64;
  const std::size_t count = code.size();
  std::vector<std::uint64_t> live(count * words, 0);
  std::vector<std::uint64_t> now(words);
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::size_t i = count; i-- > 0;) {
      const Liveness& one = code[i];
      std::fill(now.begin(), now.end(), 0);
      const auto merge = [&](std::size_t next) {
        if (next >= count) return;
        for (std::size_t w = 0; w < words; ++w) now[w] |= live[next * words + w];
      };
      if (one.falls_through) merge(i + 1);
      if (one.target != kNever) merge(one.target);
      if (!one.guarded) {
        for (std::uint32_t reg : one.writes) now[reg / 64] &= ~(std::uint64_t{1} << (reg % 64));
      }
      for (std::uint32_t reg : one.reads) now[reg / 64] |= std::uint64_t{1} << (reg % 64);
      for (std::size_t w = 0; w < words; ++w) {
        if (live[i * words + w] == now[w]) continue;
        live[i * words + w] = now[w];
        changed = true;
      }
    }
  }
  std::vector<Life> lives(registers);
  const auto extend = [&](std::size_t reg, std::size_t at) {
    Life& life = lives[reg];
    life.first = std::min(life.first, static_cast<std::uint32_t>(at));
    life.last = std::max(life.last, static_cast<std::uint32_t>(at));
  };
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t w = 0; w < words; ++w) {
      for (std::uint64_t rest = live[i * words + w]; rest != 0; rest &= rest - 1) {
        extend(w * 64 + static_cast<std::size_t>(std::countr_zero(rest)), i);
      }
    }
    // A result that is never read is still written, so it must not share a slot with another result
    // of its instruction.
    for (std::uint32_t reg : code[i].writes) {
      extend(reg, i);
      extend(reg, i + 1);
    }
    // The data flow does not contain the moment at which an asynchronous result is written.
    for (std::uint32_t reg : code[i].keeps) {
      extend(reg, 0);
      extend(reg, count);
    }
  }
  return lives;
}

}  // namespace

// A linear scan: in the order of their first instructions, registers take the slot that became free
// last, or a new one.
Assignment assign_slots(const std::vector<Liveness>& code, const std::vector<int>& bits) {
  const std::vector<Life> lives = find_lives(code, bits.size());
  std::vector<std::uint32_t> by_start(bits.size());
  for (std::uint32_t reg = 0; reg < by_start.size(); ++reg) by_start[reg] = reg;
  std::stable_sort(by_start.begin(), by_start.end(), [&](std::uint32_t a, std::uint32_t b) {
    return lives[a].first < lives[b].first;
  });
  Assignment result;
  result.slots.assign(bits.size(), kNever);
  struct Taken {
    std::uint32_t until;
    std::uint32_t slot;
  };
  std::map<int, std::vector<Taken>> taken;         // by width
  std::map<int, std::vector<std::uint32_t>> free;  // by width
  // Predicates have four bytes each. All other registers have a multiple of 64 bytes. Predicates
  // come first, so that the slots of the others stay aligned to cache lines.
  for (const bool predicates : {true, false}) {
    result.bytes = (result.bytes + 63) / 64 * 64;
    for (std::uint32_t reg : by_start) {
      const int width = bits[reg];
      const Life& life = lives[reg];
      if ((width == 1) != predicates || life.first == kNever) continue;
      std::erase_if(taken[width], [&](const Taken& one) {
        // A register that an instruction reads for the last time leaves its slot to the
        // instruction's result.
        if (one.until > life.first) return false;
        free[width].push_back(one.slot);
        return true;
      });
      if (free[width].empty()) {
        free[width].push_back(result.bytes);
        result.bytes += predicates ? 4u : static_cast<std::uint32_t>(width) * 4u;
      }
      result.slots[reg] = free[width].back();
      free[width].pop_back();
      taken[width].push_back({life.last, result.slots[reg]});
    }
  }
  return result;
}

}  // namespace annulus::simulator
