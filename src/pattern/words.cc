#include "pattern/words.h"

#include <fmt/core.h>

#include <numeric>
#include <vector>

#include "base/join.h"

namespace annulus::pattern {
namespace {

// The least number of insertions, deletions and replacements that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// A name of a leaf in other libraries.
struct OtherName {
  std::string_view name;
  std::string_view word;
};
constexpr OtherName kOtherNames[] = {
    {"sliding_window", "window"},
    {"sliding", "window"},
    {"swa", "window"},
    {"band", "window"},
    {"attention_sink", "sink"},
    {"attention_sinks", "sink"},
    {"full", "dense"},
    {"bidirectional", "dense"},
    {"document", "documents"},
    {"varlen", "documents"},
    {"block_diagonal", "documents"},
    {"block_sparse", "blocks"},
    {"block_mask", "blocks"},
    {"neighborhood", "natten"},
    {"neighbourhood", "natten"},
    {"prefix_lm", "prefix"},
    {"global_tokens", "global"},
    {"lower_triangular", "causal"},
};

}  // namespace

std::string_view word_of_others(std::string_view name) {
  for (const OtherName& other : kOtherNames) {
    if (other.name == name) return other.word;
  }
  return name;
}

std::string advice(std::string_view name, std::span<const std::string_view> known) {
  std::string_view nearest;
  // Up to two wrong letters are a typing error; with three it is another word.
  std::size_t least = 3;
  for (const std::string_view word : known) {
    if (name.size() > 32) break;
    const std::size_t distance = edit_distance(name, word);
    if (distance < least) {
      least = distance;
      nearest = word;
    }
  }
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  return fmt::format("known are {}", base::join(known, ", "));
}

}  // namespace annulus::pattern
