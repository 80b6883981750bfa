#include "join/joiner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/math.h"
#include "batch/step_operands.h"

namespace annulus::join {
namespace {

// If at most this number of bytes is sent, one exchange of everything is assumed to be faster than
// two exchanges of 1/P each. It is the data that a link of 400 GB/s moves in 10 us, the assumed
// fixed cost of an exchange. No measurement supports the number yet.
constexpr std::int64_t kMaxAtOnce = std::int64_t{4} << 20;

SliceForm partial_form(const JoinProblem& problem) {
  return problem.form == PartialForm::kStates ? kStates : kOutputs;
}
SliceForm joined_form(const JoinProblem& problem) { return problem.carry_out ? kStates : kOutputs; }

StatePointers state_at(char* begin, const Slice& slice) {
  auto* const m = reinterpret_cast<float*>(begin + slice.lse_at);
  return {reinterpret_cast<float*>(begin), m, m + slice.rows * slice.heads};
}

}  // namespace

Layout lay_out(const JoinProblem& problem, std::int64_t rows, int ranks, int rank) {
  Layout layout;
  const SliceForm form = partial_form(problem);
  const Slice everything = make_slice(form, problem.dim_v, rows, problem.heads);
  layout.cut = problem.slices;
  if (problem.slices == JoinedSlices::kAll && everything.bytes * (ranks - 1) > kMaxAtOnce) {
    layout.gathers = true;
    layout.cut = rows >= problem.heads ? JoinedSlices::kRows : JoinedSlices::kHeads;
  }
  const auto cut = [&](const SliceForm& as) {
    return cut_slices(as, problem.dim_v, layout.cut, rows, problem.heads, ranks);
  };
  layout.partial = cut(form);
  if (layout.gathers) layout.merged = cut(joined_form(problem));
  // With one rank, the rank has all keys and merges its output in place.
  if (ranks == 1) return layout;
  for (int one = 0; one < ranks; ++one) {
    if (one != rank) layout.bytes_sent += layout.partial.at(one).bytes;
  }
  layout.sent_at = 0;
  layout.received_at = layout.partial.bytes;
  layout.merged_at = layout.received_at + layout.partial.at(rank).bytes * ranks;
  layout.end = layout.merged_at + layout.merged.bytes;
  if (layout.gathers) layout.bytes_sent += layout.merged.at(rank).bytes * (ranks - 1);
  return layout;
}

std::int64_t max_workspace(const JoinProblem& problem, int ranks) {
  if (ranks == 1) return 0;
  const bool all = problem.slices == JoinedSlices::kAll;
  const std::int64_t rows = base::ceil_div(problem.max_rows, std::int64_t{ranks});
  const std::int64_t heads = base::ceil_div(problem.heads, std::int64_t{ranks});
  const auto largest = [&](const SliceForm& form) {
    std::int64_t bytes = 0;
    if (problem.slices != JoinedSlices::kHeads) {
      bytes = make_slice(form, problem.dim_v, rows, problem.heads).bytes;
    }
    if (problem.slices != JoinedSlices::kRows) {
      bytes = std::max(bytes, make_slice(form, problem.dim_v, problem.max_rows, heads).bytes);
    }
    return bytes;
  };
  const SliceForm form = partial_form(problem);
  const std::int64_t slice = largest(form);
  if (!all) return slice * ranks * 2;
  const std::int64_t in_slices = slice * ranks * 2 + largest(joined_form(problem)) * ranks;
  const std::int64_t everything =
      make_slice(form, problem.dim_v, problem.max_rows, problem.heads).bytes;
  if (everything * (ranks - 1) <= kMaxAtOnce) return everything * (ranks + 1);
  return std::max(in_slices, kMaxAtOnce / (ranks - 1) * (ranks + 1));
}

std::string reason_of(const JoinProblem& problem, const Layout& layout, int ranks) {
  if (ranks == 1) return "one rank has all keys: nothing is exchanged";
  if (problem.slices != JoinedSlices::kAll) {
    return fmt::format("one exchange: each rank sends {} bytes, to every other rank its {}",
                       layout.bytes_sent, to_string(problem.slices));
  }
  if (layout.gathers) {
    return fmt::format(
        "two exchanges, of {} to be merged and of what was merged: {} bytes sent, where one "
        "exchange "
        "of everything would send more than {}",
        to_string(layout.cut), layout.bytes_sent, kMaxAtOnce);
  }
  return fmt::format(
      "one exchange of everything: {} bytes sent, which take less time than a second "
      "exchange up to {}",
      layout.bytes_sent, kMaxAtOnce);
}

Joiner::Joiner(jit::KernelCache& kernels, jit::Arch arch, const JoinProblem& problem, int ranks,
               int rank)
    : problem_(problem),
      ranks_(ranks),
      rank_(rank),
      most_(lay_out(problem, problem.max_rows, ranks, rank)),
      workspace_bytes_(max_workspace(problem, ranks)),
      pack_(kernels, arch, partial_form(problem), true),
      unpack_(kernels, arch, joined_form(problem), false) {
  MergeProblem merge = {.heads = problem.heads,
                        .dim_v = problem.dim_v,
                        .dtype = problem.dtype,
                        .lse_base = problem.lse_base,
                        .inputs = ranks,
                        .max_rows = problem.max_rows,
                        .form = problem.form,
                        .carry_out = problem.carry_out,
                        .sink_logits = problem.sink_logits};
  if (problem.slices != JoinedSlices::kHeads) all_heads_.emplace(kernels, arch, merge);
  const SliceRange heads = slice_of(problem.heads, ranks, rank);
  merge.heads = heads.end - heads.begin;
  if (problem.slices != JoinedSlices::kRows && merge.heads > 0) {
    own_heads_.emplace(kernels, arch, merge);
  }
}

void Joiner::check_partial(const JoinOperands& operands) const {
  if (problem_.form == PartialForm::kStates) {
    constexpr const char* kReason = "the partial answers are states (form)";
    attention::check_unused("O", operands.o, kReason);
    attention::check_unused("LSE", operands.lse, kReason);
    attention::check_address("state.acc", operands.state.acc, 16);
    attention::check_address("state.m", operands.state.m, 4);
    attention::check_address("state.l", operands.state.l, 4);
    return;
  }
  attention::check_unused("state.acc", operands.state.acc,
                          "the partial answers are O and LSE (form)");
  batch::check_rows("O", operands.o, operands.o_strides);
  attention::check_address("LSE", operands.lse, 4);
  batch::check_given("O", operands.o_strides, operands.rows, problem_.heads);
  batch::check_given("LSE", operands.lse_strides, operands.rows, problem_.heads);
}

void Joiner::check_joined(const JoinOperands& operands, std::int64_t rows,
                          std::int64_t heads) const {
  if (problem_.carry_out) {
    constexpr const char* kReason = "the state is carried out (carry_out)";
    attention::check_unused("joined O", operands.joined_o, kReason);
    attention::check_unused("joined LSE", operands.joined_lse, kReason);
    if (rows * heads == 0) return;
    attention::check_address("joined_state.acc", operands.joined_state.acc, 16);
    attention::check_address("joined_state.m", operands.joined_state.m, 4);
    attention::check_address("joined_state.l", operands.joined_state.l, 4);
    return;
  }
  attention::check_unused("joined_state.acc", operands.joined_state.acc,
                          "no state is carried out (carry_out)");
  if (rows * heads == 0) return;
  batch::check_rows("joined O", operands.joined_o, operands.joined_o_strides);
  batch::check_distinct("joined O", operands.joined_o_strides, rows, heads, problem_.dim_v);
  batch::check_optional("joined LSE", operands.joined_lse, 4);
  if (operands.joined_lse != nullptr) {
    batch::check_distinct("joined LSE", operands.joined_lse_strides, rows, heads, 1);
  }
}

void Joiner::check(const JoinOperands& operands, const Layout& layout,
                   const void* workspace) const {
  const Slice& own = layout.partial.at(rank_);
  const bool all = problem_.slices == JoinedSlices::kAll;
  check_partial(operands);
  check_joined(operands, all ? operands.rows : own.rows, all ? problem_.heads : own.heads);
  if (problem_.sink_logits) {
    attention::check_address("sink_logits", operands.sink_logits, 4);
  } else {
    attention::check_unused("sink_logits", operands.sink_logits,
                            "the problem has none (sink_logits)");
  }
  if (layout.end > 0) attention::check_address("the workspace", workspace, kSliceAlignment);
  const std::array<attention::Place, 12> places = {
      {{"O", operands.o, false, 0},
       {"LSE", operands.lse, false, 0},
       {"state.acc", operands.state.acc, false, 0},
       {"state.m", operands.state.m, false, 0},
       {"state.l", operands.state.l, false, 0},
       {"sink_logits", operands.sink_logits, false, 0},
       {"joined O", operands.joined_o, true, 0},
       {"joined LSE", operands.joined_lse, true, 0},
       {"joined_state.acc", operands.joined_state.acc, true, 0},
       {"joined_state.m", operands.joined_state.m, true, 0},
       {"joined_state.l", operands.joined_state.l, true, 0},
       {"the workspace", layout.end > 0 ? workspace : nullptr, true, 0}}};
  std::array<attention::Place, 12> there;
  std::size_t count = 0;
  for (const attention::Place& place : places) {
    if (place.data != nullptr) there[count++] = place;
  }
  attention::check_overlaps(std::span<const attention::Place>(there.data(), count));
}

WholeTensors Joiner::partial(const JoinOperands& operands) const {
  if (problem_.form == PartialForm::kStates) {
    return {operands.state.acc,
            operands.state.m,
            operands.state.l,
            {.row = problem_.heads * problem_.dim_v, .head = problem_.dim_v},
            {.row = problem_.heads, .head = 1}};
  }
  // Nothing is written through these two pointers.
  return {const_cast<void*>(operands.o), const_cast<float*>(operands.lse), nullptr,
          operands.o_strides, operands.lse_strides};
}

WholeTensors Joiner::joined(const JoinOperands& operands) const {
  if (problem_.carry_out) {
    return {operands.joined_state.acc,
            operands.joined_state.m,
            operands.joined_state.l,
            {.row = problem_.heads * problem_.dim_v, .head = problem_.dim_v},
            {.row = problem_.heads, .head = 1}};
  }
  return {operands.joined_o, operands.joined_lse, nullptr, operands.joined_o_strides,
          operands.joined_lse_strides};
}

MergeInput Joiner::input(const JoinOperands& operands, const Layout& layout, char* workspace,
                         int rank) const {
  if (ranks_ == 1) {
    return {.o = operands.o, .lse = operands.lse, .state = operands.state};
  }
  const Slice& own = layout.partial.at(rank_);
  char* const from = rank == rank_ ? workspace + layout.sent_at + layout.partial.begin(rank_)
                                   : workspace + layout.received_at + rank * own.bytes;
  if (problem_.form == PartialForm::kStates) {
    return {.o = nullptr, .lse = nullptr, .state = state_at(from, own)};
  }
  return {.o = from, .lse = reinterpret_cast<const float*>(from + own.lse_at), .state = {}};
}

// Merges the partial outputs in the order of the ranks. This rank's own one is read from the slice
// that it would send.
void Joiner::merge(device::LaunchSink& to, const JoinOperands& operands, const Layout& layout,
                   char* workspace) const {
  const Slice& own = layout.partial.at(rank_);
  if (own.empty()) return;
  std::array<MergeInput, kMaxMergeInputs> inputs;
  for (int one = 0; one < ranks_; ++one) {
    inputs[static_cast<std::size_t>(one)] = input(operands, layout, workspace, one);
  }
  MergeOperands merged;
  merged.inputs = std::span<const MergeInput>(inputs.data(), static_cast<std::size_t>(ranks_));
  const RowStrides packed_o = {.row = own.heads * problem_.dim_v, .head = problem_.dim_v};
  const RowStrides packed_lse = {.row = own.heads, .head = 1};
  merged.input_o_strides = ranks_ == 1 ? operands.o_strides : packed_o;
  merged.input_lse_strides = ranks_ == 1 ? operands.lse_strides : packed_lse;
  if (problem_.sink_logits) {
    const bool of_heads = layout.cut == JoinedSlices::kHeads;
    merged.sink_logits =
        operands.sink_logits + (of_heads ? slice_of(problem_.heads, ranks_, rank_).begin : 0);
  }
  if (!layout.gathers) {
    merged.o = operands.joined_o;
    merged.lse = operands.joined_lse;
    merged.o_strides = operands.joined_o_strides;
    merged.lse_strides = operands.joined_lse_strides;
    merged.state = operands.joined_state;
  } else {
    const Slice& slice = layout.merged.at(rank_);
    char* const to_all = workspace + layout.merged_at + layout.merged.begin(rank_);
    if (problem_.carry_out) {
      merged.state = state_at(to_all, slice);
    } else {
      merged.o = to_all;
      merged.lse = reinterpret_cast<float*>(to_all + slice.lse_at);
      merged.o_strides = packed_o;
      merged.lse_strides = packed_lse;
    }
  }
  const auto& merger = layout.cut == JoinedSlices::kHeads ? own_heads_ : all_heads_;
  merger->run(to, merged, own.rows);
}

void Joiner::run(device::LaunchSink& to, const JoinOperands& operands, void* workspace,
                 const Exchange& exchange) const {
  attention::check_count("rows", operands.rows, 0, problem_.max_rows);
  if (operands.rows == 0) return;
  const Layout layout = lay_out(problem_, operands.rows, ranks_, rank_);
  check(operands, layout, workspace);
  auto* const base = static_cast<char*>(workspace);
  if (ranks_ == 1) {
    merge(to, operands, layout, base);
    return;
  }
  const auto at = [](std::int64_t index) { return static_cast<std::size_t>(index); };
  const Slice& own = layout.partial.at(rank_);
  const bool cut = layout.cut != JoinedSlices::kAll;
  const bool of_rows = layout.cut != JoinedSlices::kHeads;
  pack_.run(to, layout.partial, cut ? ranks_ : 1, of_rows, base + layout.sent_at, partial(operands),
            operands.rows, problem_.heads, problem_.dim_v);
  std::array<SentBytes, kMaxMergeInputs> sends;
  std::array<ReceivedBytes, kMaxMergeInputs> receives;
  std::size_t sent = 0, received = 0;
  for (int one = 0; one < ranks_; ++one) {
    if (one == rank_) continue;
    const Slice& theirs = layout.partial.at(one);
    if (!theirs.empty()) {
      sends[sent++] = {one, base + layout.sent_at + layout.partial.begin(one), at(theirs.bytes)};
    }
    if (!own.empty()) {
      receives[received++] = {one, base + layout.received_at + one * own.bytes, at(own.bytes)};
    }
  }
  exchange({sends.data(), sent}, {receives.data(), received});
  merge(to, operands, layout, base);
  if (!layout.gathers) return;
  gather_slices(layout.merged, ranks_, rank_, base + layout.merged_at, exchange);
  unpack_.run(to, layout.merged, ranks_, of_rows, base + layout.merged_at, joined(operands),
              operands.rows, problem_.heads, problem_.dim_v);
}

}  // namespace annulus::join

namespace annulus::inline v0 {

const char* to_string(JoinedSlices slices) {
  switch (slices) {
    case JoinedSlices::kAll:
      return "all";
    case JoinedSlices::kHeads:
      return "heads";
    case JoinedSlices::kRows:
      return "rows";
  }
  return "unknown";
}

SliceRange slice_of(std::int64_t count, int ranks, int rank) {
  if (count < 0 || ranks < 1 || rank < 0 || rank >= ranks) {
    base::fail(ErrorCode::kInvalidArgument,
               "slice {} of {} of {} rows or heads; give 0 or more rows or heads, 1 or more slices "
               "(ranks), "
               "and a slice (rank) from 0 to ranks - 1",
               rank, ranks, count);
  }
  // floor(n * count / ranks), computed without n * count, which may overflow.
  const std::int64_t whole = count / ranks, rest = count % ranks;
  const auto bound = [&](std::int64_t n) { return n * whole + n * rest / ranks; };
  return {bound(rank), bound(std::int64_t{rank} + 1)};
}

void validate(const JoinProblem& problem) {
  attention::check_count("slices", static_cast<int>(problem.slices),
                         static_cast<int>(JoinedSlices::kAll),
                         static_cast<int>(JoinedSlices::kRows));
  validate(MergeProblem{.heads = problem.heads,
                        .dim_v = problem.dim_v,
                        .dtype = problem.dtype,
                        .lse_base = problem.lse_base,
                        .max_rows = problem.max_rows,
                        .form = problem.form,
                        .carry_out = problem.carry_out,
                        .sink_logits = problem.sink_logits});
}

}  // namespace annulus::inline v0
