#ifndef ANNULUS_RING_FREE_ROUNDS_H_
#define ANNULUS_RING_FREE_ROUNDS_H_

// The number of rows that each rank of a ring can still receive, or send, in each round, and the
// rounds in which a rank can take at least a given number of rows.
//
// Messages are assigned to rounds one by one. Each gets the first round in which its sender and its
// receiver both have room. A ring of P ranks may have P * P messages in 2 * P rounds, so that
// checking each round for each message would take a time in O(P^3). So the rounds of a rank that
// have room for a number of rows are a set of bits, and 64 rounds of two ranks are compared at
// once.
//
// Consecutive messages are mostly between neighbouring ranks in the same rounds. So the numbers and
// bit words of all ranks are adjacent in memory, round by round.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/work.h"

namespace annulus::ring {

// Rounds of one rank, as a set of bits.
class FreeSet {
 public:
  FreeSet(const std::uint64_t* words, std::size_t count, std::size_t stride, std::uint32_t* first)
      : words_(words), count_(count), stride_(stride), first_(first) {}

  std::size_t word_count() const { return count_; }
  std::uint64_t word(std::size_t index) const { return words_[index * stride_]; }
  // The first word that is not 0, or word_count(). Rounds are only removed from a set, so the
  // result never decreases.
  std::size_t first_word() const {
    while (*first_ < count_ && word(*first_) == 0) ++*first_;
    return *first_;
  }

 private:
  const std::uint64_t* words_;
  std::size_t count_, stride_;
  std::uint32_t* first_;
};

class FreeRounds {
 public:
  // capacity[round % 2][rank]: the rows that the rank can take in an empty round.
  FreeRounds(std::size_t rounds, const std::array<std::vector<std::int64_t>, 2>& capacity);

  std::int64_t room(int rank, std::size_t round) const { return room_[index(rank, round)]; }
  // Requires: the rank has room for the rows.
  void take(int rank, std::size_t round, std::int64_t rows);

  // All rounds in which the rank has room for `rows` rows. The set may also have rounds with room
  // for fewer rows, but for more than 7/8 of them. Valid until the next call. Requires: rows > 0.
  FreeSet at_least(int rank, std::int64_t rows);

 private:
  // The rounds of all ranks that have room for `rows` rows.
  struct Level {
    std::int64_t rows = 0;
    std::vector<std::uint64_t> words;        // [round / 64][rank]
    std::vector<std::uint32_t> first_words;  // [rank]: all words before this one are 0
  };

  std::size_t index(int rank, std::size_t round) const {
    return round * ranks_ + static_cast<std::size_t>(rank);
  }
  Level make_level(std::int64_t rows) const;

  std::size_t rounds_, ranks_;
  std::vector<std::int64_t> room_;  // [round][rank]
  // one for each number of rows that at_least() needed, by ascending rows
  std::vector<Level> levels_;
};

// The first round that is in both sets and for which accepts(round) is true; `none` if there is no
// such round.
template <typename Accepts>
std::size_t first_common(const FreeSet& a, const FreeSet& b, std::size_t none,
                         const Accepts& accepts) {
  std::int64_t looked_at = 8;
  std::size_t found = none;
  const std::size_t first_of_a = a.first_word(), first_of_b = b.first_word();
  for (std::size_t word = first_of_a > first_of_b ? first_of_a : first_of_b;
       word < a.word_count() && found == none; ++word) {
    ++looked_at;
    for (std::uint64_t bits = a.word(word) & b.word(word); bits != 0; bits &= bits - 1) {
      const std::size_t round = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      looked_at += 4;
      if (accepts(round)) {
        found = round;
        break;
      }
    }
  }
  base::charge(looked_at / 4);
  return found;
}

}  // namespace annulus::ring

#endif  // ANNULUS_RING_FREE_ROUNDS_H_
