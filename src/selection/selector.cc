#include "selection/selector.h"

#include <algorithm>
#include <numeric>

#include "base/fail.h"
#include "base/math.h"
#include "selection/grid.h"

namespace annulus::selection {
namespace {

template <typename T>
T* at(void* workspace, std::int64_t offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + offset);
}

// A pointer to the part of an array that begins at a batch, if each batch has `each` elements.
template <typename T>
T* of_batch(T* data, std::int64_t batch, std::int64_t each) {
  return data == nullptr ? nullptr : data + batch * each;
}

kernels::SelectionTensor tensor(const void* data, const Strides& strides, std::int64_t first_batch,
                                std::int64_t rows, const pattern::Interval& read,
                                std::int64_t heads, std::int64_t block) {
  return {.data = static_cast<const std::uint16_t*>(data) + first_batch * strides.batch,
          .batch = strides.batch,
          .head = strides.head,
          .row = strides.row,
          .begin = static_cast<int>(read.begin),
          .end = static_cast<int>(read.end),
          .heads = static_cast<int>(heads),
          .block = static_cast<int>(block),
          .blocks = static_cast<int>(base::ceil_div(rows, block))};
}

}  // namespace

struct Selector::Call {
  device::LaunchSink& to;
  const Operands& operands;
  const SelectionBuffers& buffers;
  void* workspace;
  attention::BatchRange range;

  template <typename T>
  T* part(std::int64_t offset, std::int64_t each_batch) const {
    return of_batch(at<T>(workspace, offset), range.first_batch, each_batch);
  }
  kernels::SelectionTensor queries(const Problem& problem, std::int64_t block) const {
    return tensor(operands.q, operands.q_strides, range.first_batch, problem.seq_q,
                  {0, problem.seq_q}, problem.heads, block);
  }
  kernels::SelectionTensor keys(const SelectionPlan& plan, std::int64_t block) const {
    const Problem& problem = plan.problem;
    return tensor(operands.k, operands.k_strides, range.first_batch, problem.seq_k, plan.keys,
                  problem.kv_heads, block);
  }
};

struct Selector::Kernel {
  const char* name;
  device::Function Selector::*to;
  bool (*launched)(const SelectionPlan& plan);
};
constexpr Selector::Kernel Selector::kKernels[] = {
    {"mark_blocks", &Selector::mark_,
     [](const SelectionPlan& plan) { return !plan.blocks.scored(); }},
    {"pool_blocks", &Selector::pool_,
     [](const SelectionPlan& plan) { return plan.blocks.pooled() || plan.coarse.has_value(); }},
    {"score_blocks", &Selector::score_,
     [](const SelectionPlan& plan) { return plan.blocks.pooled() || plan.coarse.has_value(); }},
    {"score_antidiagonals", &Selector::antidiagonals_,
     [](const SelectionPlan& plan) { return plan.blocks.scored() && !plan.blocks.pooled(); }},
    {"select_blocks", &Selector::select_,
     [](const SelectionPlan& plan) { return plan.blocks.scored(); }},
    {"export_blocks", &Selector::export_, [](const SelectionPlan&) { return true; }},
    {"list_tiles", &Selector::list_tiles_, [](const SelectionPlan&) { return true; }},
    {"order_rows", &Selector::order_rows_, [](const SelectionPlan&) { return true; }},
};

namespace {

jit::KernelSpec spec_of(const char* name, jit::Arch arch) {
  return {.family = name,
          .arch = arch,
          .file = std::string("kernels/selection/") + name + ".cu",
          .entry = name,
          .structs = {}};
}

bool launches_nothing(const SelectionPlan& plan) {
  return plan.problem.batch == 0 || plan.problem.seq_q == 0;
}

}  // namespace

std::vector<jit::KernelSpec> kernels_of(const SelectionPlan& plan, jit::Arch arch) {
  std::vector<jit::KernelSpec> specs;
  if (launches_nothing(plan)) return specs;
  for (const Selector::Kernel& kernel : Selector::kKernels) {
    if (kernel.launched(plan)) specs.push_back(spec_of(kernel.name, arch));
  }
  return specs;
}

// Gets only the kernels that this selection launches, and uploads the bits of its passes and the
// list of heads.
Selector::Selector(const device::ContextPointer& context, jit::KernelCache& kernels, jit::Arch arch,
                   SelectionPlan plan)
    : context_(context), plan_(std::move(plan)) {
  if (launches_nothing(plan_)) return;
  for (const Kernel& kernel : kKernels) {
    if (kernel.launched(plan_)) {
      this->*kernel.to = kernels.get(spec_of(kernel.name, arch)).kernel->function;
    }
  }
  const Pass& blocks = plan_.blocks;
  const auto upload = [&](const Pass& pass) {
    std::vector<std::uint32_t> bits = pass.visible;
    bits.insert(bits.end(), pass.forced.begin(), pass.forced.end());
    return device::upload(context, std::span<const std::uint32_t>(bits),
                          device::MemoryUse::kSelection);
  };
  bits_ = upload(blocks);
  if (plan_.coarse) coarse_bits_ = upload(*plan_.coarse);
  std::vector<std::int32_t> heads(static_cast<std::size_t>(plan_.problem.heads));
  std::iota(heads.begin(), heads.end(), 0);
  head_list_ =
      device::upload(context, std::span<const std::int32_t>(heads), device::MemoryUse::kSelection);
}

void Selector::check(const SelectionBuffers& buffers, const void* workspace) const {
  const bool given = !plan_.blocks.scored();
  const auto check_indices = [](const char* name, const void* data) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    if (address % 4 == 0) return;
    base::fail(ErrorCode::kInvalidArgument, "{} at {:#x} is not a multiple of 4 bytes", name,
               address);
  };
  if (given != (buffers.given != nullptr)) {
    base::fail(ErrorCode::kInvalidArgument, "{}",
               given ? "given is null, but the selection reads its blocks from there"
                     : "given is not null although the selection scores blocks; leave it null");
  }
  check_indices("given", buffers.given);
  check_indices("chosen", buffers.chosen);
  if (buffers.chosen != nullptr && (buffers.max_chosen < 1 || buffers.max_chosen > kMaxPosition)) {
    base::fail(ErrorCode::kInvalidArgument, "max_chosen is {}; give a number from 1 to 2^30",
               buffers.max_chosen);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  if (address == 0 || address % 16 != 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "the workspace at {:#x} must be {} bytes of device memory at a multiple of 16",
               address, plan_.workspace_bytes);
  }
}

const unsigned* Selector::visible(const Pass& pass) const {
  const device::Buffer& bits = &pass == &plan_.blocks ? bits_ : coarse_bits_;
  return reinterpret_cast<const unsigned*>(bits.address());
}

kernels::CandidateParams Selector::candidates(const Call& call, const Pass& pass) const {
  const Problem& problem = plan_.problem;
  kernels::CandidateParams params = {.visible = visible(pass),
                                     .coarse = nullptr,
                                     .visible_heads = static_cast<int>(pass.visible_heads),
                                     .heads = static_cast<int>(problem.heads),
                                     .rows = static_cast<int>(pass.rows),
                                     .words = static_cast<int>(pass.words),
                                     .coarse_factor = 1,
                                     .coarse_rows = 0,
                                     .coarse_words = 0,
                                     .padding = 0};
  if (&pass == &plan_.blocks && plan_.coarse) {
    const Pass& coarse = *plan_.coarse;
    params.coarse =
        call.part<const unsigned>(coarse.chosen, problem.heads * coarse.rows * coarse.words);
    params.coarse_factor = static_cast<int>(pass.selection.coarse_factor);
    params.coarse_rows = static_cast<int>(coarse.rows);
    params.coarse_words = static_cast<int>(coarse.words);
  }
  return params;
}

// Pools the rows of Q and K of each block, and scores blocks by the products of these vectors.
void Selector::score_pooled(const Call& call, const Pass& pass) const {
  const Problem& problem = plan_.problem;
  const auto heads = static_cast<unsigned>(problem.heads);
  const auto batches = static_cast<unsigned>(call.range.batches);
  float* const q = call.part<float>(pass.pooled_q, problem.heads * pass.rows * problem.dim_qk);
  float* const k =
      call.part<float>(pass.pooled_k, problem.kv_heads * pass.columns * problem.dim_qk);
  kernels::PoolParams pool = {.tensors = {call.queries(problem, pass.selection.block_rows),
                                          call.keys(plan_, pass.selection.block_columns)},
                              .pooled = {q, k},
                              .dim = static_cast<int>(problem.dim_qk),
                              .bfloat16 = problem.dtype == Dtype::kBfloat16,
                              .maximum = pass.selection.pool == Pool::kMax,
                              .padding = 0};
  call.to.launch(pool_,
                 {static_cast<unsigned>(std::max(pass.rows, pass.columns)),
                  heads + static_cast<unsigned>(problem.kv_heads), batches},
                 {kernels::kSelectionThreads}, 0, pool);
  kernels::BlockScoreParams scores = {
      .candidates = candidates(call, pass),
      .q = q,
      .k = k,
      .scores = call.part<float>(pass.scores, problem.heads * pass.rows * pass.words * 32),
      .dim = static_cast<int>(problem.dim_qk),
      .group = static_cast<int>(problem.heads / problem.kv_heads),
      .columns = static_cast<int>(pass.columns),
      .scale = base_two_scale(problem)};
  call.to.launch(
      score_,
      {blocks_for(pass.rows, kernels::kScoreTile) * blocks_for(pass.columns, kernels::kScoreTile),
       heads, batches},
      {kernels::kScoreThreads}, 0, scores);
}

void Selector::score_antidiagonals(const Call& call) const {
  const Problem& problem = plan_.problem;
  const Pass& pass = plan_.blocks;
  const std::int64_t stride = pass.selection.stride;
  kernels::AntidiagonalParams params = {
      .candidates = candidates(call, pass),
      .q = call.queries(problem, stride),
      .k = call.keys(plan_, stride),
      .scores =
          call.part<float>(pass.scores, problem.heads * pass.rows * pass.parts * pass.words * 32),
      .dim = static_cast<int>(problem.dim_qk),
      .bfloat16 = problem.dtype == Dtype::kBfloat16,
      .group = static_cast<int>(problem.heads / problem.kv_heads),
      .parts = static_cast<int>(pass.parts),
      .columns = static_cast<int>(pass.columns),
      .cells = static_cast<int>(pass.selection.block_columns / stride),
      .scale = base_two_scale(problem) / static_cast<float>(stride),
      .padding = 0};
  call.to.launch(antidiagonals_,
                 {blocks_for(params.q.blocks, kernels::kScoreTile) *
                      blocks_for(params.k.blocks, kernels::kScoreTile),
                  static_cast<unsigned>(problem.heads), static_cast<unsigned>(call.range.batches)},
                 {kernels::kScoreThreads}, 0, params);
}

// Sets the bits of the blocks that are chosen by their scores.
void Selector::choose(const Call& call, const Pass& pass) const {
  const Problem& problem = plan_.problem;
  const Selection& selection = pass.selection;
  kernels::SelectParams select = {
      .candidates = candidates(call, pass),
      .scores =
          call.part<float>(pass.scores, problem.heads * pass.rows * pass.parts * pass.words * 32),
      .forced = visible(pass) + pass.visible.size(),
      .chosen = call.part<unsigned>(pass.chosen, problem.heads * pass.rows * pass.words),
      .mass = mass_target(selection),
      .most = static_cast<int>(selection.max_blocks > 0 ? selection.max_blocks : pass.columns),
      .parts = static_cast<int>(pass.parts),
      .score_rows = static_cast<int>(
          pass.parts == 1 ? pass.rows : base::ceil_div(problem.seq_q, selection.stride)),
      .padding = 0};
  call.to.launch(select_,
                 {blocks_for(pass.rows, kernels::kSelectionWarps),
                  static_cast<unsigned>(problem.heads), static_cast<unsigned>(call.range.batches)},
                 {kernels::kSelectionThreads}, 0, select);
}

// Sets the bits of the blocks that the caller lists.
void Selector::mark(const Call& call) const {
  const Problem& problem = plan_.problem;
  const Pass& pass = plan_.blocks;
  const std::int64_t most = pass.selection.max_blocks;
  kernels::MarkParams params = {
      .given =
          of_batch(call.buffers.given, call.range.first_batch, problem.heads * pass.rows * most),
      .visible = visible(pass),
      .forced = visible(pass) + pass.visible.size(),
      .chosen = call.part<unsigned>(pass.chosen, problem.heads * pass.rows * pass.words),
      .heads = static_cast<int>(problem.heads),
      .rows = static_cast<int>(pass.rows),
      .columns = static_cast<int>(pass.columns),
      .words = static_cast<int>(pass.words),
      .visible_heads = static_cast<int>(pass.visible_heads),
      .most = static_cast<int>(most)};
  call.to.launch(mark_,
                 {blocks_for(pass.rows, kernels::kSelectionWarps),
                  static_cast<unsigned>(problem.heads), static_cast<unsigned>(call.range.batches)},
                 {kernels::kSelectionThreads}, 0, params);
}

// Makes the lists of tiles of the batches; `tiles` has all fields except those that differ from
// batch to batch. list_tiles runs twice. The first run has no row_begin and only counts each row's
// tiles; order_rows then computes row_begin and the order of the rows from the counts; the second
// run writes the tiles.
void Selector::list(const Call& call, kernels::ListTilesParams tiles) const {
  const Problem& problem = plan_.problem;
  const auto heads = static_cast<unsigned>(problem.heads);
  const auto batches = static_cast<unsigned>(call.range.batches);
  auto* const row_begin =
      call.part<long long>(plan_.row_begin, problem.heads * (plan_.row_tiles + 1));
  const Pass& pass = plan_.blocks;
  tiles.chosen = call.part<unsigned>(pass.chosen, problem.heads * pass.rows * pass.words);
  tiles.counts = call.part<int>(plan_.counts, problem.heads * plan_.row_tiles);
  const device::Extent grid = {blocks_for(plan_.row_tiles, kernels::kSelectionWarps), heads,
                               batches};
  tiles.row_begin = nullptr;
  call.to.launch(list_tiles_, grid, {kernels::kSelectionThreads}, 0, tiles);
  kernels::OrderRowsParams order = {
      .counts = tiles.counts,
      .row_begin = row_begin,
      .row_order = call.part<int>(plan_.row_order, problem.heads * plan_.row_tiles),
      .capacity = plan_.capacity,
      .first = call.range.first_batch * problem.heads * plan_.capacity,
      .heads = static_cast<int>(problem.heads),
      .row_tiles = static_cast<int>(plan_.row_tiles)};
  call.to.launch(order_rows_, {blocks_for(plan_.row_tiles, kernels::kOrderThreads), heads, batches},
                 {kernels::kOrderThreads}, 0, order);
  tiles.row_begin = row_begin;
  call.to.launch(list_tiles_, grid, {kernels::kSelectionThreads}, 0, tiles);
}

// Writes the chosen blocks as indices.
void Selector::write(const Call& call) const {
  const Problem& problem = plan_.problem;
  const Pass& pass = plan_.blocks;
  kernels::ExportParams out = {
      .chosen = call.part<unsigned>(pass.chosen, problem.heads * pass.rows * pass.words),
      .indices = of_batch(call.buffers.chosen, call.range.first_batch,
                          problem.heads * pass.rows * call.buffers.max_chosen),
      .heads = static_cast<int>(problem.heads),
      .rows = static_cast<int>(plan_.blocks.rows),
      .words = static_cast<int>(plan_.blocks.words),
      .most = static_cast<int>(call.buffers.max_chosen)};
  call.to.launch(export_,
                 {blocks_for(pass.rows, kernels::kSelectionWarps),
                  static_cast<unsigned>(problem.heads), static_cast<unsigned>(call.range.batches)},
                 {kernels::kSelectionThreads}, 0, out);
}

// For each range of batches: the coarse pass, then the fine pass (or the caller's blocks), then the
// lists. Batches come in ranges because a grid has at most 65535 CTAs in z.
kernels::TileListParams Selector::put(device::LaunchSink& to, const Operands& operands,
                                      const SelectionBuffers& buffers, void* workspace,
                                      const kernels::TileListParams& base) const {
  const Problem& problem = plan_.problem;
  if (problem.batch == 0 || problem.seq_q == 0) return base;
  check(buffers, workspace);
  kernels::TileListParams lists = base;
  lists.row_begin = at<long long>(workspace, plan_.row_begin);
  lists.row_order = at<int>(workspace, plan_.row_order);
  lists.tiles = at<unsigned>(workspace, plan_.tiles);
  lists.tile_masks = plan_.masked ? at<int>(workspace, plan_.tile_masks) : nullptr;
  lists.mask_words = plan_.masked ? at<unsigned>(workspace, plan_.mask_words) : nullptr;
  lists.head_list = reinterpret_cast<const int*>(head_list_.address());
  lists.granule_row_shift = plan_.granule_row_shift;
  lists.granule_column_shift = plan_.granule_column_shift;
  lists.batch_lists = static_cast<int>(problem.heads);

  const kernels::ListTilesParams tiles = {
      .base = base,
      .chosen = nullptr,
      .counts = nullptr,
      .row_begin = nullptr,
      .tiles = at<unsigned>(workspace, plan_.tiles),
      .tile_masks = plan_.masked ? at<int>(workspace, plan_.tile_masks) : nullptr,
      .mask_words = plan_.masked ? at<unsigned>(workspace, plan_.mask_words) : nullptr,
      .heads = static_cast<int>(problem.heads),
      .rows = static_cast<int>(plan_.blocks.rows),
      .words = static_cast<int>(plan_.blocks.words),
      .block_rows = static_cast<int>(plan_.blocks.selection.block_rows),
      .block_columns = static_cast<int>(plan_.blocks.selection.block_columns),
      .tile_rows = static_cast<int>(plan_.tile_rows),
      .tile_columns = static_cast<int>(plan_.tile_columns),
      .seq_q = static_cast<int>(problem.seq_q),
      .seq_k = static_cast<int>(problem.seq_k),
      .granule_row_shift = plan_.granule_row_shift,
      .granule_column_shift = plan_.granule_column_shift,
      .words_of_tile = static_cast<int>(plan_.words_of_tile)};
  for (std::int64_t first = 0; first < problem.batch; first += kMaxGridZ) {
    const Call call = {
        to, operands, buffers, workspace, {first, std::min(kMaxGridZ, problem.batch - first)}};
    // Without keys there is nothing to score, and a grid without CTAs cannot be launched. The fine
    // pass still has CTAs for the rows, which then write nothing.
    if (plan_.coarse && plan_.coarse->columns > 0) {
      score_pooled(call, *plan_.coarse);
      choose(call, *plan_.coarse);
    }
    if (!plan_.blocks.scored()) {
      mark(call);
    } else {
      if (plan_.blocks.columns > 0) {
        plan_.blocks.pooled() ? score_pooled(call, plan_.blocks) : score_antidiagonals(call);
      }
      choose(call, plan_.blocks);
    }
    list(call, tiles);
    if (buffers.chosen != nullptr) write(call);
  }
  return lists;
}

Scored Selector::score_only(abi::CUstream stream, const Operands& operands, void* workspace) const {
  const SelectionBuffers none;
  device::StreamSink to(stream);
  const Call call = {to, operands, none, workspace, {0, plan_.problem.batch}};
  const Pass& pass = plan_.blocks;
  score_pooled(call, pass);
  return {candidates(call, pass), at<const float>(workspace, pass.scores),
          visible(pass) + pass.visible.size()};
}

unsigned* Selector::mark_only(abi::CUstream stream, const SelectionBuffers& buffers,
                              void* workspace) const {
  const Operands none;
  device::StreamSink to(stream);
  mark({to, none, buffers, workspace, {0, plan_.problem.batch}});
  return at<unsigned>(workspace, plan_.blocks.chosen);
}

void Selector::write_chosen(abi::CUstream stream, const SelectionBuffers& buffers,
                            void* workspace) const {
  const Operands none;
  device::StreamSink to(stream);
  write({to, none, buffers, workspace, {0, plan_.problem.batch}});
}

}  // namespace annulus::selection
