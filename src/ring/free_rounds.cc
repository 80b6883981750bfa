#include "ring/free_rounds.h"

#include <algorithm>

namespace annulus::ring {
namespace {

// The number with all but its first four binary digits cleared.
std::int64_t rounded(std::int64_t rows) {
  const int digits = std::bit_width(static_cast<std::uint64_t>(rows));
  const int cleared = std::max(0, digits - 4);
  return rows >> cleared << cleared;
}

}  // namespace

FreeRounds::FreeRounds(std::size_t rounds, const std::array<std::vector<std::int64_t>, 2>& capacity)
    : rounds_(rounds), ranks_(capacity[0].size()) {
  base::charge(static_cast<std::int64_t>(rounds * ranks_ / 4));
  room_.reserve(rounds * ranks_);
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::vector<std::int64_t>& of_round = capacity[round % 2];
    room_.insert(room_.end(), of_round.begin(), of_round.end());
  }
}

void FreeRounds::take(int rank, std::size_t round, std::int64_t rows) {
  std::int64_t& room = room_[index(rank, round)];
  const std::int64_t before = room;
  room -= rows;
  auto level = std::ranges::upper_bound(levels_, room, {}, &Level::rows);
  for (; level != levels_.end() && level->rows <= before; ++level) {
    level->words[index(rank, round / 64)] &= ~(std::uint64_t{1} << round % 64);
  }
}

FreeRounds::Level FreeRounds::make_level(std::int64_t rows) const {
  base::charge(static_cast<std::int64_t>(8 + room_.size() / 4));
  Level level = {rows, std::vector<std::uint64_t>((rounds_ + 63) / 64 * ranks_, 0),
                 std::vector<std::uint32_t>(ranks_, 0)};
  for (std::size_t round = 0; round < rounds_; ++round) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const bool has_room = room_[round * ranks_ + rank] >= rows;
      level.words[round / 64 * ranks_ + rank] |= std::uint64_t{has_room} << round % 64;
    }
  }
  return level;
}

FreeSet FreeRounds::at_least(int rank, std::int64_t rows) {
  rows = rounded(rows);
  auto level = std::ranges::lower_bound(levels_, rows, {}, &Level::rows);
  if (level == levels_.end() || level->rows != rows) {
    level = levels_.insert(level, make_level(rows));
  }
  const auto at = static_cast<std::size_t>(rank);
  return {&level->words[at], (rounds_ + 63) / 64, ranks_, &level->first_words[at]};
}

}  // namespace annulus::ring
