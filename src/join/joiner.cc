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

constexpr std::int64_t kAlignment = 256;
// Up to so many bytes sent, one exchange of everything is taken to beat two of a P-th each: what a
// link of 400 GB/s moves in the 10 us that an exchange is assumed to cost whatever it holds. No
// measurement stands behind it yet.
constexpr std::int64_t kMostAtOnce = std::int64_t{4} << 20;

std::int64_t length(const SliceRange& range) { return range.end - range.begin; }

Slice make_slice(const JoinProblem& problem, std::int64_t rows, std::int64_t heads) {
  Slice slice = {rows, heads, 0, 0};
  slice.lse_at = rows * heads * problem.dim_v * 2;
  slice.bytes = base::round_up(slice.lse_at + rows * heads * 4, kAlignment);
  return slice;
}

}  // namespace

Layout lay_out(const JoinProblem& problem, std::int64_t rows, int ranks, int rank) {
  Layout layout;
  const Slice everything = make_slice(problem, rows, problem.heads);
  layout.cut = problem.slices;
  if (problem.slices == JoinedSlices::kAll && everything.bytes * (ranks - 1) > kMostAtOnce) {
    layout.gathers = true;
    layout.cut = rows >= problem.heads ? JoinedSlices::kRows : JoinedSlices::kHeads;
  }
  std::int64_t at = 0;
  for (int one = 0; one < ranks; ++one) {
    Slice slice = everything;
    if (layout.cut == JoinedSlices::kRows) {
      slice = make_slice(problem, length(slice_of(rows, ranks, one)), problem.heads);
    } else if (layout.cut == JoinedSlices::kHeads) {
      slice = make_slice(problem, rows, length(slice_of(problem.heads, ranks, one)));
    }
    layout.begins[static_cast<std::size_t>(one)] = at;
    layout.slices[static_cast<std::size_t>(one)] = slice;
    // With everything for everybody there is one slice, which all take.
    if (layout.cut != JoinedSlices::kAll) at += slice.bytes;
    if (one != rank) layout.bytes_sent += slice.bytes;
  }
  const Slice& own = layout.slices[static_cast<std::size_t>(rank)];
  layout.sent_at = 0;
  layout.received_at = layout.cut == JoinedSlices::kAll ? everything.bytes : at;
  layout.merged_at = layout.received_at + own.bytes * ranks;
  layout.end = layout.merged_at + (layout.gathers ? at : 0);
  if (layout.gathers) layout.bytes_sent += own.bytes * (ranks - 1);
  return layout;
}

std::int64_t most_workspace(const JoinProblem& problem, int ranks) {
  const bool all = problem.slices == JoinedSlices::kAll;
  const std::int64_t rows = base::ceil_div(problem.most_rows, std::int64_t{ranks});
  const std::int64_t heads = base::ceil_div(problem.heads, std::int64_t{ranks});
  const Slice everything = make_slice(problem, problem.most_rows, problem.heads);
  std::int64_t slice = 0;
  if (problem.slices != JoinedSlices::kHeads) {
    slice = make_slice(problem, rows, problem.heads).bytes;
  }
  if (problem.slices != JoinedSlices::kRows) {
    slice = std::max(slice, make_slice(problem, problem.most_rows, heads).bytes);
  }
  const std::int64_t in_slices = slice * ranks * (all ? 3 : 2);
  if (!all) return in_slices;
  if (everything.bytes * (ranks - 1) <= kMostAtOnce) return everything.bytes * (ranks + 1);
  return std::max(in_slices, kMostAtOnce / (ranks - 1) * (ranks + 1));
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
        to_string(layout.cut), layout.bytes_sent, kMostAtOnce);
  }
  return fmt::format(
      "one exchange of everything: {} bytes sent, which take less time than a second "
      "exchange up to {}",
      layout.bytes_sent, kMostAtOnce);
}

jit::KernelSpec move_spec(bool packs, jit::Arch arch) {
  jit::Struct shape;
  shape.name = "Shape";
  shape.constants = {jit::Constant::boolean("kPacks", packs)};
  return {.family = "move_slices",
          .arch = arch,
          .file = "kernels/batch/move_slices.cu",
          .entry = "move_slices",
          .structs = {std::move(shape)}};
}

Joiner::Joiner(jit::KernelCache& kernels, jit::Arch arch, const JoinProblem& problem, int ranks,
               int rank)
    : problem_(problem),
      ranks_(ranks),
      rank_(rank),
      most_(lay_out(problem, problem.most_rows, ranks, rank)),
      workspace_bytes_(most_workspace(problem, ranks)),
      pack_(kernels.get(move_spec(true, arch))),
      unpack_(kernels.get(move_spec(false, arch))) {
  if (ranks == 1) return;
  MergeProblem merge = {.heads = problem.heads,
                        .dim_v = problem.dim_v,
                        .dtype = problem.dtype,
                        .lse_base = problem.lse_base,
                        .inputs = ranks,
                        .most_rows = problem.most_rows};
  if (problem.slices != JoinedSlices::kHeads) all_heads_.emplace(kernels, arch, merge);
  merge.heads = length(slice_of(problem.heads, ranks, rank));
  if (problem.slices != JoinedSlices::kRows && merge.heads > 0) {
    own_heads_.emplace(kernels, arch, merge);
  }
}

void Joiner::check(const JoinOperands& operands, const Layout& layout,
                   const void* workspace) const {
  const Slice& own = layout.slices[static_cast<std::size_t>(rank_)];
  const bool all = problem_.slices == JoinedSlices::kAll;
  const std::int64_t rows = all ? operands.rows : own.rows;
  const std::int64_t heads = all ? problem_.heads : own.heads;
  batch::check_rows("O", operands.o, operands.o_strides);
  attention::check_address("LSE", operands.lse, 4);
  batch::check_distinct("O", operands.o_strides, operands.rows, problem_.heads);
  batch::check_distinct("LSE", operands.lse_strides, operands.rows, problem_.heads);
  if (rows * heads > 0) {
    batch::check_rows("joined O", operands.joined_o, operands.joined_o_strides);
    batch::check_distinct("joined O", operands.joined_o_strides, rows, heads);
    batch::check_optional("joined LSE", operands.joined_lse, 4);
    if (operands.joined_lse != nullptr) {
      batch::check_distinct("joined LSE", operands.joined_lse_strides, rows, heads);
    }
  }
  if (layout.end > 0) attention::check_address("the workspace", workspace, kAlignment);
  const std::array<attention::Place, 5> places = {{{"O", operands.o, false, 0},
                                                   {"LSE", operands.lse, false, 0},
                                                   {"joined O", operands.joined_o, true, 0},
                                                   {"joined LSE", operands.joined_lse, true, 0},
                                                   {"the workspace", workspace, true, 0}}};
  std::array<attention::Place, 5> there;
  std::size_t count = 0;
  for (const attention::Place& place : places) {
    if (place.data != nullptr) there[count++] = place;
  }
  attention::check_overlaps(std::span<const attention::Place>(there.data(), count));
}

void Joiner::move(device::LaunchSink& to, const jit::LoadedKernel& kernel, const Layout& layout,
                  std::int64_t rows, char* slices, void* o, const RowStrides& o_strides, float* lse,
                  const RowStrides& lse_strides) const {
  const bool cut = layout.cut != JoinedSlices::kAll;
  kernels::SlicesParams params{};
  params.o = o;
  params.lse = lse;
  params.o_row = o_strides.row, params.o_head = o_strides.head;
  params.lse_row = lse_strides.row, params.lse_head = lse_strides.head;
  params.slices = slices;
  params.count = cut ? ranks_ : 1;
  for (int i = 0; i < params.count; ++i) {
    params.begins[i] = layout.begins[static_cast<std::size_t>(i)];
    params.lses[i] = layout.slices[static_cast<std::size_t>(i)].lse_at;
  }
  params.of_rows = layout.cut == JoinedSlices::kHeads ? 0 : 1;
  params.rows = static_cast<int>(rows);
  params.heads = static_cast<int>(problem_.heads);
  params.chunks = static_cast<int>(problem_.dim_v / 8);
  const std::int64_t ctas =
      base::ceil_div(rows * problem_.heads, std::int64_t{kernels::kMergeHeads});
  to.launch(kernel.function, {static_cast<unsigned>(ctas)}, {kernels::kMergeThreads}, 0, params);
}

// Partial answers are taken in the order of the ranks, this rank's own from what it would send.
void Joiner::merge(device::LaunchSink& to, const JoinOperands& operands, const Layout& layout,
                   char* workspace) const {
  const Slice& own = layout.slices[static_cast<std::size_t>(rank_)];
  if (own.rows * own.heads == 0) return;
  std::array<MergeInput, kMostMergeInputs> inputs;
  for (int one = 0; one < ranks_; ++one) {
    const char* const from =
        one == rank_ ? workspace + layout.sent_at + layout.begins[static_cast<std::size_t>(one)]
                     : workspace + layout.received_at + one * own.bytes;
    inputs[static_cast<std::size_t>(one)] = {from,
                                             reinterpret_cast<const float*>(from + own.lse_at)};
  }
  MergeOperands merged;
  merged.inputs = std::span<const MergeInput>(inputs.data(), static_cast<std::size_t>(ranks_));
  const RowStrides packed_o = {.row = own.heads * problem_.dim_v, .head = problem_.dim_v};
  const RowStrides packed_lse = {.row = own.heads, .head = 1};
  merged.input_o_strides = packed_o;
  merged.input_lse_strides = packed_lse;
  if (layout.gathers) {
    char* const to_all =
        workspace + layout.merged_at + layout.begins[static_cast<std::size_t>(rank_)];
    merged.o = to_all;
    merged.lse = reinterpret_cast<float*>(to_all + own.lse_at);
    merged.o_strides = packed_o;
    merged.lse_strides = packed_lse;
  } else {
    merged.o = operands.joined_o;
    merged.lse = operands.joined_lse;
    merged.o_strides = operands.joined_o_strides;
    merged.lse_strides = operands.joined_lse_strides;
  }
  const auto& merger = layout.cut == JoinedSlices::kHeads ? own_heads_ : all_heads_;
  merger->run(to, merged, own.rows);
}

void Joiner::run(device::LaunchSink& to, const JoinOperands& operands, void* workspace,
                 const Exchange& exchange) const {
  attention::check_count("rows", operands.rows, 0, problem_.most_rows);
  if (operands.rows == 0) return;
  const Layout layout = lay_out(problem_, operands.rows, ranks_, rank_);
  check(operands, layout, workspace);
  auto* const base = static_cast<char*>(workspace);
  const auto at = [](std::int64_t index) { return static_cast<std::size_t>(index); };
  const Slice& own = layout.slices[at(rank_)];

  // The kernel that packs writes nothing through these two.
  void* const o = const_cast<void*>(operands.o);
  float* const lse = const_cast<float*>(operands.lse);
  move(to, *pack_.kernel, layout, operands.rows, base + layout.sent_at, o, operands.o_strides, lse,
       operands.lse_strides);
  if (ranks_ == 1) {
    // All of it is this rank's. A row without keys becomes zeros, whatever its O held.
    move(to, *unpack_.kernel, layout, operands.rows, base + layout.sent_at, operands.joined_o,
         operands.joined_o_strides, operands.joined_lse, operands.joined_lse_strides);
    return;
  }
  std::array<SentBytes, kMostMergeInputs> sends;
  std::array<ReceivedBytes, kMostMergeInputs> receives;
  std::size_t sent = 0, received = 0;
  for (int one = 0; one < ranks_; ++one) {
    if (one == rank_) continue;
    const Slice& theirs = layout.slices[at(one)];
    if (theirs.rows * theirs.heads > 0) {
      sends[sent++] = {one, base + layout.sent_at + layout.begins[at(one)], at(theirs.bytes)};
    }
    if (own.rows * own.heads > 0) {
      receives[received++] = {one, base + layout.received_at + one * own.bytes, at(own.bytes)};
    }
  }
  exchange({sends.data(), sent}, {receives.data(), received});
  merge(to, operands, layout, base);
  if (!layout.gathers) return;

  sent = received = 0;
  for (int one = 0; one < ranks_; ++one) {
    if (one == rank_) continue;
    const Slice& theirs = layout.slices[at(one)];
    char* const merged = base + layout.merged_at;
    if (own.rows * own.heads > 0) {
      sends[sent++] = {one, merged + layout.begins[at(rank_)], at(own.bytes)};
    }
    if (theirs.rows * theirs.heads > 0) {
      receives[received++] = {one, merged + layout.begins[at(one)], at(theirs.bytes)};
    }
  }
  exchange({sends.data(), sent}, {receives.data(), received});
  move(to, *unpack_.kernel, layout, operands.rows, base + layout.merged_at, operands.joined_o,
       operands.joined_o_strides, operands.joined_lse, operands.joined_lse_strides);
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
    base::fail(ErrorCode::kInvalidArgument, "slice {} of {} of {} rows or heads", rank, ranks,
               count);
  }
  return {rank * count / ranks, (rank + 1) * count / ranks};
}

void validate(const JoinProblem& problem) {
  attention::check_count("slices", static_cast<int>(problem.slices),
                         static_cast<int>(JoinedSlices::kAll),
                         static_cast<int>(JoinedSlices::kRows));
  validate(MergeProblem{.heads = problem.heads,
                        .dim_v = problem.dim_v,
                        .dtype = problem.dtype,
                        .lse_base = problem.lse_base,
                        .most_rows = problem.most_rows});
}

}  // namespace annulus::inline v0
