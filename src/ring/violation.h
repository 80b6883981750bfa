#ifndef ANNULUS_RING_VIOLATION_H_
#define ANNULUS_RING_VIOLATION_H_

// The violations that the checks of rings find (check_schedule.h, check_tiles.h), and their
// collection.

#include <fmt/core.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace annulus::ring {

struct Violation {
  enum class Kind {
    kPairMissing,  // no launch computes a visible (query, key) pair
    kPairTwice,    // several launches compute a visible pair
    kPairHidden,   // a tile is listed as full but holds a pair that is not visible
    kUnmatched,    // a send without its receive, or a receive without its send
    kNotThere,     // an op reads a buffer that does not hold the right rows at that time
    kOverwritten,  // a buffer is written while an op may still read it
    kStuck,        // ops wait for each other in a circle
    kState,        // the first or last launch is not marked, or rows are never finished
    kTooMany,      // more than (rounds + 1) * branches launches
    kUnneeded,  // a rank receives rows that it does not see, and the schedule does not declare them
    kTooMuch,   // a rank holds more rows than it may, or receives more than fit into its slot
    // a rank, op or buffer does not exist, or a launch has a configuration other than the ring's
    kIllFormed,
  };
  Kind kind;
  std::string text;  // the rank, the step and the problem
};
const char* to_string(Violation::Kind kind);

// Collects the violations that one check finds, at most a few of each kind.
class ViolationReport {
 public:
  template <typename... Arguments>
  void add(Violation::Kind kind, fmt::format_string<Arguments...> format,
           Arguments&&... arguments) {
    constexpr int kMaxOfAKind = 8;
    if (++count_[kind] > kMaxOfAKind) return;
    violations_.push_back({kind, fmt::format(format, std::forward<Arguments>(arguments)...)});
  }
  bool has(Violation::Kind kind) const { return count_.contains(kind); }
  std::vector<Violation> take() { return std::move(violations_); }

 private:
  std::map<Violation::Kind, int> count_;
  std::vector<Violation> violations_;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_VIOLATION_H_
