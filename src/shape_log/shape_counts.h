#ifndef ANNULUS_SHAPE_LOG_SHAPE_COUNTS_H_
#define ANNULUS_SHAPE_LOG_SHAPE_COUNTS_H_

// How often a device has planned which problems, in the words of a file of shapes. Counting is part
// of planning, so it costs a look-up of a hash where the same objects are planned again; the line
// is made for those alone that are new. What is held is bounded whatever is planned.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "annulus/batch.h"
#include "annulus/device.h"
#include "base/hash.h"

namespace annulus::shape_log {

// What a log holds at most, in memory and in its file. Plans of other problems are only counted.
inline constexpr std::size_t kMostShapes = 4096;
inline constexpr std::size_t kMostShapeBytes = std::size_t{4} << 20;  // of all lines
inline constexpr std::size_t kLongestShape = std::size_t{64} << 10;   // bytes of one line

// A batch is planned for all steps within its bounds.
using PlannedProblem = std::variant<Problem, BatchProblem>;

// All functions may be called from any thread.
class ShapeCounts {
 public:
  // Counts a plan, unless it launches nothing. False where it is one of those that are left out:
  // the problem has no line that could be read again, as with a layout that came from no file, or
  // the bounds are reached.
  bool add(const Problem& problem, const PlanOptions& options);
  bool add(const BatchProblem& problem, const BatchOptions& options);
  // Counts a plan of which no line can say what it was.
  void leave_out();

  // Until drop_problems() was called as often, shapes keep the problem that they are planned with,
  // where tuned results are looked up for it, and count the plans of it. ProblemKeeper calls both.
  void keep_problems();
  void drop_problems() noexcept;
  // How many problems were kept so far; it only grows.
  std::int64_t kept() const { return kept_.load(std::memory_order_acquire); }
  // Returns the problem that was planned most often since problems are kept, with its line, which
  // is none of `but`; of several the one whose line comes first.
  std::optional<std::pair<std::string, PlannedProblem>> most_frequent(
      const std::set<std::string>& but);

  // What was counted since the last call. The lines stay as long as this object.
  struct Taken {
    std::vector<std::pair<const std::string*, std::int64_t>> lines;
    std::int64_t left_out = 0;
    bool empty() const { return lines.empty() && left_out == 0; }
  };
  Taken take();
  // Counts again what could not be kept.
  void put_back(const Taken& taken);

 private:
  struct Shape {
    std::string line;
    std::int64_t unsaved = 0;
    std::int64_t plans = 0;  // since problems are kept
    std::optional<PlannedProblem> problem = {};
  };
  // The shape of objects that were planned before. Their addresses are part of the key, so it
  // counts while they live.
  struct Known {
    std::weak_ptr<const detail::PatternNode> pattern;
    std::weak_ptr<const detail::ScoreNode> score;
    bool has_score = false;
    Shape* shape = nullptr;  // null: left out
  };
  struct Hash {
    std::size_t operator()(const base::Digest& digest) const;
  };

  // Each takes a Problem with PlanOptions, or a BatchProblem with BatchOptions.
  template <typename Planned, typename Options>
  bool add_planned(const Planned& problem, const Options& options);
  template <typename Planned, typename Options>
  bool count(Shape* shape, const Planned& problem, const Options& options);  // mutex_ is held
  Shape* find_or_add(std::string line);                                      // likewise

  std::mutex mutex_;  // guards all below
  std::unordered_map<base::Digest, Known, Hash> known_;
  std::unordered_map<std::string_view, Shape*> by_line_;
  std::deque<Shape> shapes_;
  std::size_t bytes_ = 0;
  std::int64_t left_out_ = 0;
  int keepers_ = 0;
  std::atomic<std::int64_t> kept_{0};
};

// Somebody who wants to know the problems that are planned while it lives. With the last of them
// the problems go, and what patterns and layouts these hold.
class ProblemKeeper {
 public:
  explicit ProblemKeeper(std::shared_ptr<ShapeCounts> counts) : counts_(std::move(counts)) {
    counts_->keep_problems();
  }
  ~ProblemKeeper() { counts_->drop_problems(); }
  ProblemKeeper(const ProblemKeeper&) = delete;
  ProblemKeeper& operator=(const ProblemKeeper&) = delete;

 private:
  const std::shared_ptr<ShapeCounts> counts_;
};

}  // namespace annulus::shape_log

#endif  // ANNULUS_SHAPE_LOG_SHAPE_COUNTS_H_
