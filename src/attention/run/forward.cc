#include "attention/run/forward.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "attention/kernels/family.h"
#include "attention/run/score_upload.h"
#include "attention/tiles/packed.h"
#include "base/fail.h"
#include "base/math.h"

namespace annulus::attention {
namespace {

// The address of element `elements` of a tensor; null stays null.
template <typename T>
T* advance(T* data, std::int64_t elements, Dtype dtype) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  const auto bytes = static_cast<std::int64_t>(size_in_bytes(dtype));
  return data == nullptr ? nullptr : reinterpret_cast<Byte*>(data) + elements * bytes;
}

template <typename T>
T* advance_state(T* data, std::int64_t elements) {
  return data == nullptr ? nullptr : data + elements;
}

// Sets ScaleParams' shift and number of blocks of one operand: row i has scale i >> shift. With
// block 0 the whole head has one scale, and a shift of 31 maps every row to scale 0.
void set_scale_blocks(std::int64_t rows, std::int64_t block, int& shift, int& blocks) {
  shift = block == 0 ? 31 : std::countr_zero(static_cast<std::uint64_t>(block));
  blocks = block == 0 ? 1 : static_cast<int>(base::ceil_div(rows, block));
}

// Sets the numbers that a kernel reads, which are the same for all operands.
void set_numbers(const LaunchPlan& plan, kernels::AttentionParams* parameters) {
  kernels::SplitParams& split = parameters->split;
  split.segment_count = static_cast<int>(plan.split.segment_count);
  split.merged_count = static_cast<int>(plan.split.merged_count);
  split.slots = static_cast<int>(plan.split.slots);
  std::copy(plan.mask.numbers.begin(), plan.mask.numbers.end(), parameters->mask.numbers);

  const Problem& problem = plan.problem;
  parameters->heads = static_cast<int>(problem.heads);
  parameters->group = static_cast<int>(problem.heads / problem.kv_heads);
  parameters->seq_q = static_cast<int>(problem.seq_q);
  parameters->seq_k = static_cast<int>(problem.seq_k);
  parameters->key_begin = static_cast<int>(plan.keys.begin);
  parameters->key_count = static_cast<int>(plan.keys.size());
  parameters->q_position = static_cast<int>(problem.q_position());
  parameters->k_position = static_cast<int>(problem.k_position());
  if (plan.features.positions == kernels::Positions::kTwoSegments) {
    parameters->q_second = second_segment(plan.placement.q, plan.config.tile_rows);
    parameters->k_second = second_segment(plan.placement.k, plan.config.tile_columns);
  }
  parameters->scale = plan.score.scale;
  parameters->softcap = plan.score.softcap;
  parameters->lse_factor = plan.lse_factor;
  parameters->softmax_factor =
      plan.features.score == kernels::Score::kPositiveScale ? plan.score.scale : 1.0f;
  kernels::ScaleParams& scales = parameters->scales;
  set_scale_blocks(problem.seq_q, problem.scale_blocks.q, scales.q_shift, scales.q_blocks);
  set_scale_blocks(problem.seq_k, problem.scale_blocks.k, scales.k_shift, scales.k_blocks);
  set_scale_blocks(problem.seq_k, problem.scale_blocks.v, scales.v_shift, scales.v_blocks);
}

// The order of works, or an empty vector if it is the order of their indices.
std::vector<std::int32_t> order_of(const LaunchPlan& plan) {
  if (plan.head_start.empty()) return {};
  const Problem& problem = plan.problem;
  const std::int64_t works = work_count(problem, plan.group, launched_rows(plan), problem.batch);
  const SetQuestion question = set_question(plan.config, problem, plan.group, problem.batch);
  return work_order(plan.head_start, question.groups, groups_in_set(question),
                    works / question.groups);
}

}  // namespace

Forward::Forward(const device::ContextPointer& context, jit::KernelCache& kernels, LaunchPlan plan,
                 DeviceTileCache* lists)
    : context_(context), plan_(std::move(plan)), parameters_{} {
  if (plan_.launches.empty()) return;
  lookup_ = kernels.get(plan_.spec);
  // The kernel is shared with other plans of the same spec. All of them set the same number,
  // because the bytes follow from the configuration and the head dims, which the spec holds.
  lookup_.kernel->function.allow_dynamic_shared(static_cast<std::size_t>(plan_.shape.shared_bytes));

  if (!plan_.split.empty()) combine_ = kernels.get(plan_.combine_spec);

  tiles_ = lists != nullptr ? lists->get(plan_.tiles)
                            : std::make_shared<const DeviceTiles>(context, plan_.tiles);
  parameters_.tiles = tiles_->parameters();
  upload_tables(lists);
  set_numbers(plan_, &parameters_);
}

void Forward::upload_tables(DeviceTileCache* cache) {
  Packed packed;
  const std::size_t segments = packed.add(plan_.split.segments);
  const std::size_t merged = packed.add(plan_.split.merged);
  const std::size_t mask_lists = packed.add(plan_.mask.lists);
  const std::size_t q_positions = packed.add(plan_.q_positions);
  const std::size_t k_positions = packed.add(plan_.k_positions);
  const ScoreUpload score(plan_.problem.score, plan_.score_tables, plan_.score_code, &packed);
  const auto in_order = order_of(plan_);
  const std::size_t order = packed.add(in_order);
  tables_ = cache != nullptr ? cache->get(packed.bytes())
                             : std::make_shared<const device::Buffer>(
                                   packed.upload(context_, device::MemoryUse::kTables));

  parameters_.split.segments = pointer<kernels::RowSegment>(*tables_, segments);
  parameters_.split.merged = pointer<kernels::MergedRow>(*tables_, merged);
  parameters_.mask.lists = pointer<int>(*tables_, mask_lists);
  parameters_.q_positions = pointer<int>(*tables_, q_positions);
  parameters_.k_positions = pointer<int>(*tables_, k_positions);
  parameters_.score = score.params(*tables_);
  order_ = pointer<int>(*tables_, order);
}

void Forward::launch(device::LaunchSink& to, const Operands& operands, const BatchRange& range,
                     const kernels::AttentionParams& parameters, void* workspace) const {
  const LaunchShape& shape = plan_.shape;
  unsigned* next = nullptr;
  if (plan_.features.draws_work) {
    next = reinterpret_cast<unsigned*>(static_cast<std::byte*>(workspace) + plan_.drawn_offset);
    const int cluster = cta_shape(plan_.config).cluster;
    to.fill(*context_, next, shape.grid_x / static_cast<unsigned>(cluster), 1);
  }
  BoundLaunch bound;
  family_of(plan_.config)
      .bind({*context_, plan_.config, plan_.problem, plan_.group, shape, launched_rows(plan_),
             operands, range, parameters, next, order_},
            &bound);
  to.add(lookup_.kernel->function, bound.grid, {shape.threads},
         static_cast<std::size_t>(shape.shared_bytes), bound.arguments.parameters());
}

kernels::AttentionParams Forward::parameters(const Operands& operands,
                                             const kernels::TileListParams& lists,
                                             const BatchRange& range) const {
  const Problem& problem = plan_.problem;
  kernels::AttentionParams parameters = parameters_;
  const auto set = [](const Strides& strides, long long& batch, long long& head, long long& row) {
    batch = strides.batch;
    head = strides.head;
    row = strides.row;
  };
  set(operands.q_strides, parameters.q_batch, parameters.q_head, parameters.q_row);
  set(operands.k_strides, parameters.k_batch, parameters.k_head, parameters.k_row);
  set(operands.v_strides, parameters.v_batch, parameters.v_head, parameters.v_row);
  set(operands.o_strides, parameters.o_batch, parameters.o_head, parameters.o_row);
  // Every pointer is moved on to the launch's first batch, because the kernel counts batches from
  // 0. List pointers are moved only if each batch has its own lists (batch_lists). These are lists
  // of tiles, and only the row order and the row begins have to move.
  const std::int64_t rows = range.first_batch * problem.heads * problem.seq_q;
  const std::int64_t skipped = range.first_batch * lists.batch_lists;
  parameters.tiles = lists;
  parameters.first_batch = static_cast<int>(range.first_batch);
  parameters.tiles.row_begin += skipped * (lists.row_tiles + 1);
  parameters.tiles.row_order += skipped * lists.row_tiles;
  parameters.q = advance(operands.q, range.first_batch * operands.q_strides.batch, problem.dtype);
  parameters.k = advance(operands.k, range.first_batch * operands.k_strides.batch, problem.dtype);
  parameters.v = advance(operands.v, range.first_batch * operands.v_strides.batch, problem.dtype);
  parameters.o =
      advance(operands.o, range.first_batch * operands.o_strides.batch, problem.output_dtype());
  parameters.lse = advance_state(operands.lse, rows);
  // A general kernel reads these pointers to find out what the problem needs, so a pointer is null
  // if the problem does not use it.
  if (problem.carry_in) {
    parameters.acc_in = advance_state(operands.state_in.acc, rows * problem.dim_v);
    parameters.m_in = advance_state(operands.state_in.m, rows);
    parameters.l_in = advance_state(operands.state_in.l, rows);
  }
  if (problem.carry_out) {
    parameters.acc_out = advance_state(operands.state_out.acc, rows * problem.dim_v);
    parameters.m_out = advance_state(operands.state_out.m, rows);
    parameters.l_out = advance_state(operands.state_out.l, rows);
  }
  kernels::ScaleParams& scales = parameters.scales;
  const std::int64_t kv_heads = range.first_batch * problem.kv_heads;
  scales.q = advance_state(operands.scale_q, range.first_batch * problem.heads * scales.q_blocks);
  scales.k = advance_state(operands.scale_k, kv_heads * scales.k_blocks);
  scales.v = advance_state(operands.scale_v, kv_heads * scales.v_blocks);
  return parameters;
}

void Forward::check(const Operands& operands) const {
  validate(plan_.problem, operands);
  check_strides(plan_.config, plan_.problem, operands);
}

// Sets the pointers to the slots in the workspace. All launches use the same slots, one after
// another, because launches on one stream do not overlap.
void Forward::place_slots(void* workspace, kernels::SplitParams* split) const {
  const std::int64_t slots =
      plan_.launches.front().batches * plan_.problem.heads * plan_.split.slots;
  split->acc = static_cast<float*>(workspace);
  split->m = split->acc + slots * plan_.tiles->tile_rows * plan_.problem.dim_v;
  split->l = split->m + slots * plan_.tiles->tile_rows;
}

void Forward::combine(device::LaunchSink& to, const BatchRange& range,
                      const kernels::AttentionParams& parameters) const {
  const std::int64_t blocks =
      plan_.split.merged_count * (plan_.tiles->tile_rows / kernels::kMergeWarps);
  to.launch(combine_.kernel->function,
            {static_cast<unsigned>(blocks), static_cast<unsigned>(plan_.problem.heads),
             static_cast<unsigned>(range.batches)},
            {32 * kernels::kMergeWarps}, 0, parameters);
}

void Forward::put(device::LaunchSink& to, const Operands& operands,
                  const kernels::TileListParams& lists, void* workspace) const {
  check(operands);
  for (std::int64_t i = 0; i < plan_.launches.size(); ++i) {
    put_range(to, operands, lists, plan_.launches[i], workspace);
  }
}

void Forward::put_range(device::LaunchSink& to, const Operands& operands,
                        const kernels::TileListParams& lists, const BatchRange& range,
                        void* workspace) const {
  kernels::AttentionParams parameters = this->parameters(operands, lists, range);
  if (!plan_.split.empty()) place_slots(workspace, &parameters.split);
  launch(to, operands, range, parameters, workspace);
  if (!plan_.split.empty()) combine(to, range, parameters);
}

}  // namespace annulus::attention
