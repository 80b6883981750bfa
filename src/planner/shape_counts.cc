#include "planner/shape_counts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "pattern/node.h"
#include "planner/shape_line.h"

namespace annulus::planner {
namespace {

// The bytes of lists that may be long, as a number.
std::uint64_t number_of(std::span<const double> list) {
  if (list.empty()) return 0;
  const base::Digest digest = base::digest(std::as_bytes(list));
  std::uint64_t number = 0;
  std::memcpy(&number, digest.bytes.data(), sizeof(number));
  return number;
}

std::uint64_t number_of(std::string_view text) {
  if (text.empty()) return 0;
  const base::Digest digest = base::digest(text);
  std::uint64_t number = 0;
  std::memcpy(&number, digest.bytes.data(), sizeof(number));
  return number;
}

// All that shape_line() states, where pattern and expression are known by their addresses.
base::Digest key_of(const Problem& problem, const PlanOptions& options) {
  const auto maybe = [](const std::optional<std::int64_t>& value) {
    return std::pair(static_cast<std::uint64_t>(value.has_value()),
                     static_cast<std::uint64_t>(value.value_or(0)));
  };
  const auto [has_q0, q0] = maybe(problem.q0);
  const auto [has_k0, k0] = maybe(problem.k0);
  const auto [has_total, total] = maybe(problem.total_k);
  const Score& score = problem.score;
  std::uint64_t bias = score.bias.size();
  for (const std::vector<double>& each : score.bias) bias = bias * 31 + number_of(each);
  const std::uint64_t numbers[] = {
      static_cast<std::uint64_t>(problem.batch),
      static_cast<std::uint64_t>(problem.heads),
      static_cast<std::uint64_t>(problem.kv_heads),
      static_cast<std::uint64_t>(problem.seq_q),
      static_cast<std::uint64_t>(problem.seq_k),
      static_cast<std::uint64_t>(problem.dim_qk),
      static_cast<std::uint64_t>(problem.dim_v),
      static_cast<std::uint64_t>(problem.dtype),
      static_cast<std::uint64_t>(problem.output_dtype()),
      static_cast<std::uint64_t>(problem.scale_blocks.k),
      static_cast<std::uint64_t>(problem.scale_blocks.v),
      static_cast<std::uint64_t>(problem.layer),
      has_q0 | has_k0 << 1 | has_total << 2 | std::uint64_t{problem.carry_in} << 3 |
          std::uint64_t{problem.carry_out} << 4 | std::uint64_t{score.scale.has_value()} << 5,
      q0,
      k0,
      total,
      reinterpret_cast<std::uintptr_t>(&problem.pattern.node()),
      score.score_mod ? reinterpret_cast<std::uintptr_t>(&score.score_mod->node()) : 0,
      std::bit_cast<std::uint64_t>(score.scale.value_or(0)),
      std::bit_cast<std::uint64_t>(score.softcap),
      number_of(score.alibi),
      bias,
      number_of(score.sink_logit),
      number_of(options.config),
      static_cast<std::uint64_t>(options.kv_splits),
      static_cast<std::uint64_t>(options.max_multiprocessors)};
  return base::digest(std::as_bytes(std::span(numbers)));
}

// Whether a line can be read again: one line of bounded length, and no layout that came from no
// file.
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
  if (problem.batch == 0 || problem.seq_q == 0) return true;
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
  // Objects that are gone are forgotten all together.
  if (known_.size() >= 4 * kMostShapes) known_.clear();
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

std::optional<std::pair<std::string, Problem>> ShapeCounts::most_frequent(
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

bool ShapeCounts::count(Shape* shape, const Problem& problem, const PlanOptions& options) {
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
  if (shapes_.size() >= kMostShapes || bytes_ + line.size() > kMostShapeBytes) return nullptr;
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

}  // namespace annulus::planner
