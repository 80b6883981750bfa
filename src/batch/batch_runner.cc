#include "batch/batch_runner.h"

#include <algorithm>

#include "attention/problem/operands.h"
#include "attention/run/score_upload.h"
#include "attention/tiles/packed.h"
#include "base/fail.h"
#include "batch/batch_maps.h"
#include "batch/step_operands.h"

namespace annulus::batch {
namespace {

using attention::check_address;
using attention::check_unused;
using attention::Packed;

template <typename T>
T* at(void* workspace, std::int64_t offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + offset);
}

void set_operands(const BatchOperands& operands, kernels::BatchParams* params) {
  params->q = operands.q;
  params->k = operands.k;
  params->v = operands.v;
  params->o = operands.o;
  params->lse = operands.lse;
  params->acc_in = operands.state_in.acc;
  params->m_in = operands.state_in.m;
  params->l_in = operands.state_in.l;
  params->acc_out = operands.state_out.acc;
  params->m_out = operands.state_out.m;
  params->l_out = operands.state_out.l;
  params->q_row = operands.q_strides.row, params->q_head = operands.q_strides.head;
  params->k_page = operands.k_strides.page, params->k_row = operands.k_strides.row;
  params->k_head = operands.k_strides.head;
  params->v_page = operands.v_strides.page, params->v_row = operands.v_strides.row;
  params->v_head = operands.v_strides.head;
  params->o_row = operands.o_strides.row, params->o_head = operands.o_strides.head;
  params->lse_row = operands.lse_strides.row, params->lse_head = operands.lse_strides.head;
  params->k_page_count = page_count(operands.k_pages);
  params->v_page_count = page_count(operands.v_pages);
}

kernels::BatchTables tables_of(const ClassPlan& of, const BatchBounds& most, void* workspace) {
  const ListLayout& lists = of.lists;
  return {.header = at<kernels::BatchHeader>(workspace, lists.header_at),
          .requests = at<kernels::BatchRequest>(workspace, lists.requests_at),
          .row_begin = at<int>(workspace, lists.row_begin_at),
          .rows = at<kernels::BatchRow>(workspace, lists.rows_at),
          .works = at<kernels::BatchWork>(workspace, lists.works_at),
          .joined = at<int>(workspace, lists.joined_at),
          .acc = at<float>(workspace, lists.acc_at),
          .m = at<float>(workspace, lists.m_at),
          .l = at<float>(workspace, lists.l_at),
          .max_requests = static_cast<int>(most.requests),
          .max_rows = static_cast<int>(lists.rows),
          .max_works = static_cast<int>(lists.works),
          .max_slots = static_cast<int>(lists.slots)};
}

// There are no tables if the problem has no lists of blocks.
kernels::BlockTables block_tables_of(const BatchPlanData& plan, void* workspace) {
  const BatchProblem& problem = plan.problem;
  if (problem.block_keys == 0) return {};
  const Divisor divisor = divisor_of(problem.block_keys);
  return {.lists = at<kernels::BlockList>(workspace, plan.blocks.lists_at),
          .blocks = at<int>(workspace, plan.blocks.blocks_at),
          .most = static_cast<int>(problem.max_blocks),
          .block_keys = static_cast<int>(problem.block_keys),
          .block_factor = divisor.factor,
          .block_shift = divisor.shift};
}

int part_tiles(const ClassPlan& of) {
  return static_cast<int>(base::ceil_div(of.part_keys, of.config.tile_columns));
}

}  // namespace

BatchRunner::BatchRunner(const device::ContextPointer& context, jit::KernelCache& kernels,
                         BatchPlanData plan)
    : context_(context), plan_(std::move(plan)), largest_(largest_request(plan_.problem)) {
  const BatchProblem& problem = plan_.problem;
  const attention::Dims dims{problem.dim_qk, problem.dim_v};
  prepare_ = kernels.get(plan_.prepare);
  if (plan_.features.listed) list_blocks_ = kernels.get(plan_.list_blocks);
  for (const ClassPlan& of : plan_.classes) {
    Class& made = classes_.emplace_back();
    made.kernel = kernels.get(of.spec);
    made.kernel.kernel->function.allow_dynamic_shared(
        static_cast<std::size_t>(attention::shared_bytes(of.config, dims)));
    if (of.joins) made.combine = kernels.get(of.combine);
  }

  Packed packed;
  // The forms of all heads one after another, and the index at which the forms of each row begin.
  std::vector<kernels::RowForm> all_forms;
  std::vector<kernels::ColumnForms> places;
  for (const HeadForms& of : plan_.forms) {
    const auto add = [&](const std::vector<kernels::RowForm>& more) {
      const int begin = static_cast<int>(all_forms.size());
      all_forms.insert(all_forms.end(), more.begin(), more.end());
      return begin;
    };
    kernels::ColumnForms& place = places.emplace_back();
    place = {add(of.some), static_cast<int>(of.some.size()), 0, static_cast<int>(of.all.size())};
    place.all = add(of.all);
  }
  const std::size_t forms = packed.add(all_forms);
  std::vector<std::size_t> class_forms;
  std::vector<std::vector<kernels::ColumnForms>> of_classes(plan_.classes.size());
  for (std::size_t which = 0; which < plan_.classes.size(); ++which) {
    for (const int i : plan_.classes[which].forms) {
      of_classes[which].push_back(places[static_cast<std::size_t>(i)]);
    }
    class_forms.push_back(packed.add(of_classes[which]));
  }
  const std::size_t lists = packed.add(plan_.mask.lists);
  const attention::ScoreUpload score(problem.score, plan_.score_tables, plan_.score_code, &packed);
  tables_ = packed.upload(context, device::MemoryUse::kTables);

  const BatchBounds& most = problem.most;
  prepare_params_.forms = attention::pointer<kernels::RowForm>(tables_, forms);
  prepare_params_.rows = static_cast<int>(most.rows);
  prepare_params_.rows_of_one = static_cast<int>(most.rows_of_one);
  prepare_params_.keys_of_one = static_cast<int>(most.keys_of_one);
  prepare_params_.keys = most.keys;
  prepare_params_.page_rows = static_cast<int>(problem.page_rows);
  prepare_params_.kv_heads = static_cast<int>(problem.kv_heads);
  prepare_params_.interleave = interleave_of(problem.interleave);
  list_params_.max_requests = static_cast<int>(most.requests);
  list_params_.kv_heads = static_cast<int>(problem.kv_heads);
  list_params_.keys_of_one = static_cast<int>(most.keys_of_one);
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const ClassPlan& of = plan_.classes[i];
    prepare_params_.classes[i] = {
        .tables = {},
        .least_queries = static_cast<int>(of.least_queries),
        .max_queries = static_cast<int>(of.max_queries),
        .tile_queries = static_cast<int>(of.packing.tile_queries),
        .tile_columns = of.config.tile_columns,
        .part_tiles = part_tiles(of),
        .rows_of_tile = static_cast<int>(of.forms.size()),
        .head_tiles = static_cast<int>(of.packing.head_tiles),
        .padding = 0,
        .forms = attention::pointer<kernels::ColumnForms>(tables_, class_forms[i])};
  }

  kernels::BatchParams params{};
  std::copy(plan_.mask.numbers.begin(), plan_.mask.numbers.end(), params.mask.numbers);
  params.mask.lists = attention::pointer<int>(tables_, lists);
  params.score = score.params(tables_);
  if (problem.page_rows > 0) {
    const Divisor divisor = divisor_of(problem.page_rows);
    params.page_factor = divisor.factor;
    params.page_shift = divisor.shift;
  }
  params.page_rows = static_cast<int>(problem.page_rows);
  params.heads = static_cast<int>(problem.heads);
  params.group = static_cast<int>(problem.heads / problem.kv_heads);
  params.scale = plan_.score.scale;
  params.softcap = plan_.score.softcap;
  params.lse_factor = plan_.lse_factor;
  params.interleave = prepare_params_.interleave;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const ClassPlan& of = plan_.classes[i];
    params.tile_heads = static_cast<int>(of.packing.tile_heads);
    params.head_tiles = static_cast<int>(of.packing.head_tiles);
    params.columns = static_cast<int>(of.packing.columns);
    params.row_columns = static_cast<int>(of.packing.row_columns);
    params.part_tiles = part_tiles(of);
    params.slot_rows = static_cast<int>(of.lists.slot_rows);
    classes_[i].params = params;
  }
}

void BatchRunner::check_workspace(const void* workspace) const {
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  if (address != 0 && address % 16 == 0) return;
  base::fail(ErrorCode::kInvalidArgument,
             "the workspace at {:#x} must be {} bytes of device memory at a multiple of 16",
             address, plan_.workspace_bytes);
}

// Checks the metadata that only some problems have: lists of blocks, and limits of rows.
void BatchRunner::check_extras(const BatchMetadata& metadata) const {
  if (plan_.features.listed) {
    check_address("blocks", metadata.blocks, 4);
  } else {
    check_unused("blocks", metadata.blocks, "the problem has no lists of blocks (block_keys)");
  }
  if (!plan_.features.row_limits) {
    constexpr const char* kReason = "the problem's rows have no limits of their own (row_limits)";
    check_unused("row_end", metadata.row_end, kReason);
    check_unused("tree_bits", metadata.tree_bits, kReason);
    return;
  }
  check_optional("row_end", metadata.row_end, 4);
  check_optional("tree_bits", metadata.tree_bits, 8);
  if (metadata.row_end == nullptr && metadata.tree_bits == nullptr) {
    base::fail(ErrorCode::kInvalidArgument,
               "row_end and tree_bits are null, but the problem's rows have limits of their own "
               "(row_limits); give one of them");
  }
}

void BatchRunner::prepare(device::LaunchSink& to, const BatchMetadata& metadata,
                          void* workspace) const {
  check_workspace(workspace);
  check_metadata(metadata, plan_.problem.page_rows);
  check_extras(metadata);
  kernels::PrepareParams params = prepare_params_;
  params.q_begin = metadata.q_begin;
  params.k_length = metadata.k_length;
  params.requests = metadata.requests;
  params.k_position = metadata.k_position;
  params.places = places_of(metadata);
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    params.classes[i].tables = tables_of(plan_.classes[i], plan_.problem.most, workspace);
  }
  params.limits = {metadata.row_end,
                   reinterpret_cast<const unsigned long long*>(metadata.tree_bits)};
  if (plan_.features.listed) {
    const BatchProblem& problem = plan_.problem;
    params.listed = block_tables_of(plan_, workspace);
    kernels::ListBlocksParams lists = list_params_;
    lists.blocks = metadata.blocks;
    lists.k_length = metadata.k_length;
    lists.requests = metadata.requests;
    lists.listed = params.listed;
    const std::int64_t words =
        base::ceil_div(base::ceil_div(problem.most.keys_of_one, problem.block_keys), 32);
    to.launch(list_blocks_.kernel->function,
              {static_cast<unsigned>(problem.most.requests * problem.kv_heads)},
              {kernels::kListThreads}, static_cast<std::size_t>(words) * sizeof(unsigned), lists);
  }
  to.launch(prepare_.kernel->function, {static_cast<unsigned>(classes_.size())},
            {kernels::kPrepareThreads}, 0, params);
}

void BatchRunner::check(const BatchOperands& operands) const {
  const BatchProblem& problem = plan_.problem;
  check_address("Q", operands.q, 16);
  check_address("K", operands.k, 16);
  check_address("V", operands.v, 16);
  check_stride("Q", "row", operands.q_strides.row);
  check_stride("Q", "head", operands.q_strides.head);
  const bool one_row = problem.most.keys_of_one == 1 || problem.page_rows == 1;
  check_keys("K", operands.k_strides, operands.k_pages, one_row);
  check_keys("V", operands.v_strides, operands.v_pages, one_row);
  if (problem.carry_out) {
    check_unused("O", operands.o, "the state is carried out");
    check_address("state_out.acc", operands.state_out.acc, 16);
    check_address("state_out.m", operands.state_out.m, 4);
    check_address("state_out.l", operands.state_out.l, 4);
  } else {
    check_unused("state_out.acc", operands.state_out.acc, "nothing is carried out");
    check_address("O", operands.o, 16);
    check_stride("O", "row", operands.o_strides.row);
    check_stride("O", "head", operands.o_strides.head);
    check_distinct("O", operands.o_strides, certain_rows(problem.most.rows), problem.heads,
                   problem.dim_v);
    const bool same_strides = operands.q_strides.row == operands.o_strides.row &&
                              operands.q_strides.head == operands.o_strides.head;
    if (operands.q == operands.o && (!same_strides || problem.dim_qk != problem.dim_v)) {
      base::fail(ErrorCode::kInvalidArgument,
                 "O is Q's memory with other strides or another head dim, so that rows of O would "
                 "overwrite other rows of Q; use the same strides, or other memory");
    }
  }
  if (problem.want_lse) {
    check_address("LSE", operands.lse, 4);
    check_distinct_lse(operands.lse_strides, problem.most.rows, problem.heads);
  } else {
    check_unused("LSE", operands.lse, "want_lse of the problem is not set");
  }
  if (problem.carry_in) {
    check_address("state_in.acc", operands.state_in.acc, 16);
    check_address("state_in.m", operands.state_in.m, 4);
    check_address("state_in.l", operands.state_in.l, 4);
  } else {
    check_unused("state_in.acc", operands.state_in.acc, "nothing is carried in");
  }
  Operands addresses;
  addresses.q = operands.q, addresses.k = operands.k, addresses.v = operands.v;
  addresses.o = operands.o, addresses.lse = operands.lse;
  addresses.state_in = operands.state_in, addresses.state_out = operands.state_out;
  attention::check_overlaps(largest_, addresses);
}

void BatchRunner::run(device::LaunchSink& to, const BatchOperands& operands,
                      void* workspace) const {
  check_workspace(workspace);
  check(operands);
  const attention::Dims dims{plan_.problem.dim_qk, plan_.problem.dim_v};
  // The maps are made before anything is launched, because some strides have no maps. Only one
  // class uses maps.
  kernels::BatchMaps maps{};
  for (const ClassPlan& of : plan_.classes) {
    if (kernel_of(of.config).by_maps) maps = batch_maps(*context_, plan_, of, operands);
  }
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const ClassPlan& of = plan_.classes[i];
    const Class& made = classes_[i];
    kernels::BatchParams params = made.params;
    set_operands(operands, &params);
    params.tables = tables_of(of, plan_.problem.most, workspace);
    params.listed = block_tables_of(plan_, workspace);
    const device::Extent grid = {static_cast<unsigned>(of.ctas)};
    const device::Extent block = {static_cast<unsigned>(attention::threads(of.config))};
    const auto shared = static_cast<std::size_t>(attention::shared_bytes(of.config, dims));
    const auto& function = made.kernel.kernel->function;
    if (kernel_of(of.config).by_maps) {
      to.launch(function, grid, block, shared, params, maps);
    } else {
      to.launch(function, grid, block, shared, params);
    }
    if (!of.joins) continue;
    to.launch(made.combine.kernel->function, {static_cast<unsigned>(of.ctas)},
              {kernels::kCombineThreads}, 0, params);
  }
}

BatchStatus BatchRunner::status(const void* workspace) const {
  check_workspace(workspace);
  unsigned first = kernels::kNothingWrong;
  for (const ClassPlan& of : plan_.classes) {
    kernels::BatchHeader header{};
    const auto begin = reinterpret_cast<std::uintptr_t>(workspace);
    device::copy_to_host(*context_, &header,
                         begin + static_cast<std::uintptr_t>(of.lists.header_at), sizeof(header));
    first = std::min(first, header.status.first);
  }
  if (first == kernels::kNothingWrong) return {};
  return {static_cast<BatchRule>(first % 16), static_cast<std::int64_t>(first / 16)};
}

}  // namespace annulus::batch
