#ifndef ANNULUS_SHAPE_LOG_SHAPE_COUNTS_H_
#define ANNULUS_SHAPE_LOG_SHAPE_COUNTS_H_

// Counts how often a device has planned each problem, by the problem's line in a file of shapes.
// Counting is part of planning. If the same objects are planned again, it only costs a hash lookup;
// a line is made only for new ones. The memory is bounded.

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

// The limits of a log, in memory and in its file. Plans of further problems are only counted as
// left out.
inline constexpr std::size_t kMaxShapes = 4096;
inline constexpr std::size_t kMaxShapeBytes = std::size_t{4} << 20;  // the total size of all lines
inline constexpr std::size_t kLongestShape = std::size_t{64} << 10;  // the size of one line

// A batch is planned for all steps within its bounds.
using PlannedProblem = std::variant<Problem, BatchProblem>;

// All functions may be called from any thread.
class ShapeCounts {
 public:
  // Counts a plan, unless it launches nothing. Returns false if the plan is counted as left out:
  // the problem has no line that can be read again, for example because its layout came from
  // memory, or the limits are reached.
  bool add(const Problem& problem, const PlanOptions& options);
  bool add(const BatchProblem& problem, const BatchOptions& options);
  // Counts a plan that cannot be stated in a line as left out.
  void leave_out();

  // After keep_problems(), shapes store the problem that they are planned with, if tuned results
  // are looked up for it, and count its plans. This ends when drop_problems() was called the same
  // number of times. ProblemKeeper calls both.
  void keep_problems();
  void drop_problems() noexcept;
  // The number of problems that were stored so far. It never decreases.
  std::int64_t kept() const { return kept_.load(std::memory_order_acquire); }
  // The problem that was planned most often since problems are stored, with its line. Lines in
  // `but` are excluded. Of equally frequent ones, it is the problem whose line sorts first.
  std::optional<std::pair<std::string, PlannedProblem>> most_frequent(
      const std::set<std::string>& but);

  // The counts since the last call. The lines are valid as long as this object.
  struct Taken {
    std::vector<std::pair<const std::string*, std::int64_t>> lines;
    std::int64_t left_out = 0;
    bool empty() const { return lines.empty() && left_out == 0; }
  };
  Taken take();
  // Adds counts that could not be written back again.
  void put_back(const Taken& taken);

 private:
  struct Shape {
    std::string line;
    std::int64_t unsaved = 0;
    std::int64_t plans = 0;  // since problems are stored
    std::optional<PlannedProblem> problem = {};
  };
  // The shape of objects that were planned before. Their addresses are part of the key, so it is
  // valid only while the objects exist.
  struct Known {
    std::weak_ptr<const detail::PatternNode> pattern;
    std::weak_ptr<const detail::ScoreNode> score;
    bool has_score = false;
    Shape* shape = nullptr;  // null: such plans are left out
  };
  struct Hash {
    std::size_t operator()(const base::Digest& digest) const;
  };

  // Called with a Problem and PlanOptions, or with a BatchProblem and BatchOptions.
  template <typename Planned, typename Options>
  bool add_planned(const Planned& problem, const Options& options);
  template <typename Planned, typename Options>
  // the caller holds mutex_
  bool count(Shape* shape, const Planned& problem, const Options& options);
  Shape* find_or_add(std::string line);  // the caller holds mutex_

  std::mutex mutex_;  // guards all members below
  std::unordered_map<base::Digest, Known, Hash> known_;
  std::unordered_map<std::string_view, Shape*> by_line_;
  std::deque<Shape> shapes_;
  std::size_t bytes_ = 0;
  std::int64_t left_out_ = 0;
  int keepers_ = 0;
  std::atomic<std::int64_t> kept_{0};
};

// While a ProblemKeeper exists, the problems that are planned are stored. When the last one is
// destroyed, the problems are released, with the patterns and layouts that they hold.
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
