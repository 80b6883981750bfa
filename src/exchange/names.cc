#include "exchange/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace annulus::exchange {

std::string name_ranks(std::span<const int> which, int ranks) {
  constexpr std::size_t kNamed = 8;
  if (which.size() == 1) return fmt::format("rank {} of {}", which[0], ranks);
  const bool all = which.size() <= kNamed;
  const std::size_t shown = all ? which.size() : kNamed;
  std::string text = "ranks ";
  for (std::size_t i = 0; i < shown; ++i) {
    const char* const before = i == 0 ? "" : all && i + 1 == shown ? " and " : ", ";
    text += fmt::format("{}{}", before, which[i]);
  }
  if (!all) text += fmt::format(" and {} others", which.size() - shown);
  return fmt::format("{} of {}", text, ranks);
}

const char* have(std::span<const int> which) { return which.size() == 1 ? "has" : "have"; }

}  // namespace annulus::exchange
