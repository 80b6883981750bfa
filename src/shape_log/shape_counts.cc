#include "shape_log/shape_counts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "pattern/node.h"
#include "shape_log/shape_line.h"

namespace annulus::shape_log {
namespace {

// A number that stands for a list or a text, which may be long.
template <typename List>
std::uint64_t number_of(const List& list) {
  if (list.empty()) return 0;
  const base::Digest digest = base::digest(std::as_bytes(std::span(list)));
  std::uint64_t number = 0;
  std::memcpy(&number, digest.bytes.data(), sizeof(number));
  return number;
}

template <typename... Flag>
std::uint64_t flags_of(Flag... flags) {
  std::uint64_t all = 0;
  ((all = all << 1 | std::uint64_t{flags}), ...);
  return all;
}

// Pattern and score as numbers. The pattern and the score expression are identified by their
// addresses.
struct PairNumbers {
  PairNumbers(const Pattern& of, const Score& score)
      : pattern(reinterpret_cast<std::uintptr_t>(&of.node())),
        expression(score.score_mod ? reinterpret_cast<std::uintptr_t>(&score.score_mod->node())
                                   : 0),
        scale(std::bit_cast<std::uint64_t>(score.scale.value_or(0))),
        softcap(std::bit_cast<std::uint64_t>(score.softcap)),
        alibi(number_of(score.alibi)),
        bias(score.bias.size()),
        sink_logit(number_of(score.sink_logit)) {
    for (const std::vector<double>& each : score.bias) bias = bias * 31 + number_of(each);
  }
  std::uint64_t pattern, expression, scale, softcap, alibi, bias, sink_logit;
};

template <typename... Number>
base::Digest digest_of(Number... numbers) {
  const std::uint64_t all[] = {static_cast<std::uint64_t>(numbers)...};
  static_assert(sizeof(all) <= 240, "XXH3 takes twice as long for more bytes");
  return base::digest(std::as_bytes(std::span(all)));
}

// The digest of everything that shape_line() states.
base::Digest key_of(const Problem& problem, const PlanOptions& options) {
  const PairNumbers pairs(problem.pattern, problem.score);
  return digest_of(
      problem.batch, problem.heads, problem.kv_heads, problem.seq_q, problem.seq_k, problem.dim_qk,
      problem.dim_v, problem.dtype, problem.output_dtype(), problem.scale_blocks.k,
      problem.scale_blocks.v, problem.layer, problem.q0.value_or(0), problem.k0.value_or(0),
      problem.total_k.value_or(0),
      flags_of(problem.q0.has_value(), problem.k0.has_value(), problem.total_k.has_value(),
               problem.carry_in, problem.carry_out, problem.score.scale.has_value()),
      pairs.pattern, pairs.expression, pairs.scale, pairs.softcap, pairs.alibi, pairs.bias,
      pairs.sink_logit, number_of(options.config), options.kv_splits, options.max_multiprocessors);
}

base::Digest key_of(const BatchProblem& problem, const BatchOptions& options) {
  constexpr std::int64_t kNoProblem = -1;  // no Problem has this number of batches
  const BatchBounds& most = problem.most;
  const PairNumbers pairs(problem.pattern, problem.score);
  return digest_of(kNoProblem, most.requests, most.rows, most.rows_of_one, most.keys_of_one,
                   most.keys, problem.heads, problem.kv_heads, problem.dim_qk, problem.dim_v,
                   problem.dtype, problem.page_rows, problem.block_keys, problem.max_blocks,
                   problem.interleave.block, problem.interleave.ranks, problem.interleave.rank,
                   flags_of(problem.row_limits, problem.carry_in, problem.carry_out,
                            problem.score.scale.has_value()),
                   pairs.pattern, pairs.expression, pairs.scale, pairs.softcap, pairs.alibi,
                   pairs.bias, pairs.sink_logit, number_of(options.config), options.part_keys,
                   options.max_multiprocessors);
}

// Whether a line can be read again: it is one line of limited length, and all of its layouts came
// from files.
bool can_be_read(const std::string& line) {
  return line.size() <= kLongestShape && line.find('\n') == line.npos &&
         line.find("blocks(\"#") == line.npos;
}

}  // namespace

std::size_t ShapeCounts::Hash::operator()(const base::Digest& digest) const {
  std::size_t number = 0;
  std::memcpy(&number, digest.bytes.data(), sizeof(number));
  return number;
}

bool ShapeCounts::add(const Problem& problem, const PlanOptions& options) {
  return problem.batch == 0 || problem.seq_q == 0 || add_planned(problem, options);
}

bool ShapeCounts::add(const BatchProblem& problem, const BatchOptions& options) {
  return add_planned(problem, options);
}

template <typename Planned, typename Options>
bool ShapeCounts::add_planned(const Planned& problem, const Options& options) {
  const base::Digest key = key_of(problem, options);
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end() && !found->second.pattern.expired() &&
        !(found->second.has_score && found->second.score.expired())) {
      return count(found->second.shape, problem, options);
    }
  }
  std::string line = shape_line(problem, options);
  Known known{problem.pattern.shared_node(), {}, problem.score.score_mod.has_value()};
  if (known.has_score) known.score = problem.score.score_mod->shared_node();
  const std::lock_guard lock(mutex_);
  if (can_be_read(line)) known.shape = find_or_add(std::move(line));
  // If the map is full, all entries are removed, because some of their objects no longer exist.
  if (known_.size() >= 4 * kMaxShapes) known_.clear();
  Shape* const shape = known.shape;
  known_.insert_or_assign(key, std::move(known));
  return count(shape, problem, options);
}

void ShapeCounts::keep_problems() {
  const std::lock_guard lock(mutex_);
  ++keepers_;
}

void ShapeCounts::drop_problems() noexcept {
  const std::lock_guard lock(mutex_);
  if (--keepers_ > 0) return;
  for (Shape& shape : shapes_) {
    shape.plans = 0;
    shape.problem.reset();
  }
}

std::optional<std::pair<std::string, PlannedProblem>> ShapeCounts::most_frequent(
    const std::set<std::string>& but) {
  const std::lock_guard lock(mutex_);
  const Shape* most = nullptr;
  for (const Shape& shape : shapes_) {
    if (!shape.problem || but.contains(shape.line)) continue;
    if (most == nullptr || shape.plans > most->plans ||
        (shape.plans == most->plans && shape.line < most->line)) {
      most = &shape;
    }
  }
  if (most == nullptr) return std::nullopt;
  return std::pair(most->line, *most->problem);
}

void ShapeCounts::leave_out() {
  const std::lock_guard lock(mutex_);
  ++left_out_;
}

template <typename Planned, typename Options>
bool ShapeCounts::count(Shape* shape, const Planned& problem, const Options& options) {
  if (shape == nullptr) {
    ++left_out_;
    return false;
  }
  ++shape->unsaved;
  if (keepers_ == 0) return true;
  ++shape->plans;
  if (!shape->problem && options.config.empty()) {
    shape->problem = problem;
    kept_.fetch_add(1, std::memory_order_release);
  }
  return true;
}

ShapeCounts::Shape* ShapeCounts::find_or_add(std::string line) {
  const auto found = by_line_.find(line);
  if (found != by_line_.end()) return found->second;
  if (shapes_.size() >= kMaxShapes || bytes_ + line.size() > kMaxShapeBytes) return nullptr;
  bytes_ += line.size();
  Shape& shape = shapes_.emplace_back(Shape{std::move(line)});
  by_line_.emplace(shape.line, &shape);
  return &shape;
}

ShapeCounts::Taken ShapeCounts::take() {
  Taken taken;
  const std::lock_guard lock(mutex_);
  for (Shape& shape : shapes_) {
    if (shape.unsaved == 0) continue;
    taken.lines.emplace_back(&shape.line, shape.unsaved);
    shape.unsaved = 0;
  }
  taken.left_out = std::exchange(left_out_, 0);
  return taken;
}

void ShapeCounts::put_back(const Taken& taken) {
  const std::lock_guard lock(mutex_);
  for (const auto& [line, count] : taken.lines) by_line_.at(*line)->unsaved += count;
  left_out_ += taken.left_out;
}

}  // namespace annulus::shape_log
