// annulus/c.h in C++: every initialiser is valid, and the C++ interface can be included with it.

#include "annulus/c.h"
#include "annulus/c_batch.h"
#include "annulus/c_layout.h"
#include "annulus/c_ring.h"
#include "annulus/c_tools.h"
#include "annulus/c_tune.h"

#include <doctest/doctest.h>

#include "annulus/batch.h"
#include "annulus/communicator.h"
#include "annulus/device.h"
#include "annulus/join.h"
#include "annulus/layout.h"
#include "annulus/merge.h"
#include "annulus/oracle.h"
#include "annulus/selection.h"
#include "annulus/tune.h"

TEST_CASE("the defaults of C are those of C++") {
  const annulus_device_options device = ANNULUS_DEVICE_OPTIONS_INIT;
  const annulus::DeviceOptions options;
  CHECK(device.struct_size == sizeof(device));
  CHECK(device.log_level == static_cast<int>(options.log_level));
  CHECK(device.simulation_checked == (options.simulation.checked ? 1 : 0));
  CHECK(device.simulation_seed == options.simulation.seed);
  CHECK(device.simulation_threads == options.simulation.threads);
  CHECK(device.max_device_bytes == options.max_device_bytes);
  CHECK((device.log == nullptr && device.allocate == nullptr && device.release == nullptr));

  const annulus_problem c = ANNULUS_PROBLEM_INIT;
  const annulus::Problem problem;
  CHECK(c.struct_size == sizeof(c));
  CHECK(c.batch == problem.batch);
  CHECK(c.heads == problem.heads);
  CHECK(c.kv_heads == problem.kv_heads);
  CHECK(c.seq_q == problem.seq_q);
  CHECK(c.dim_v == problem.dim_v);
  CHECK(c.pattern == nullptr);
  CHECK(c.softcap == problem.score.softcap);
  CHECK(c.score == nullptr);
  CHECK(c.layer == problem.layer);
  CHECK(c.has_scale + c.has_q0 + c.has_k0 + c.has_total_k == 0);
  CHECK(c.dtype == static_cast<int>(problem.dtype));
  CHECK(c.lse_base == static_cast<int>(problem.lse_base));
  CHECK(c.want_lse + c.carry_in + c.carry_out == 0);

  const annulus_block_layout layout = ANNULUS_BLOCK_LAYOUT_INIT;
  CHECK(layout.struct_size == sizeof(layout));
  CHECK(layout.heads == annulus::BlockLayout().heads);
  CHECK(layout.head_map == nullptr);
  CHECK(layout.head_map_count == 0);
  const annulus_plan_options plan = ANNULUS_PLAN_OPTIONS_INIT;
  CHECK(plan.struct_size == sizeof(plan));
  CHECK(plan.block_rows == annulus::PlanOptions().block_rows);
  CHECK(plan.max_workspace_bytes == annulus::PlanOptions().max_workspace_bytes);
  const annulus_operands operands = ANNULUS_OPERANDS_INIT;
  CHECK(operands.struct_size == sizeof(operands));
  CHECK(operands.state_out.l == nullptr);
  const annulus_ring_options ring = ANNULUS_RING_OPTIONS_INIT;
  CHECK(ring.struct_size == sizeof(ring));
  CHECK(ring.shards == nullptr);
  CHECK(ring.route == ANNULUS_ROUTE_AUTO);
  const annulus_ring_info ring_info = ANNULUS_RING_INFO_INIT;
  CHECK(ring_info.struct_size == sizeof(ring_info));
  const annulus_ring_rank rank = ANNULUS_RING_RANK_INIT;
  CHECK(rank.struct_size == sizeof(rank));
  const annulus_ring_call call = ANNULUS_RING_CALL_INIT;
  CHECK(call.struct_size == sizeof(call));
  const annulus_plan_info info = ANNULUS_PLAN_INFO_INIT;
  CHECK(info.struct_size == sizeof(info));
  const annulus_device_info device_info = ANNULUS_DEVICE_INFO_INIT;
  CHECK(device_info.struct_size == sizeof(device_info));
}

TEST_CASE("and so are those of what chooses, tunes and checks") {
  const annulus_selection c = ANNULUS_SELECTION_INIT;
  const annulus::Selection selection;
  CHECK(c.block_rows == selection.block_rows);
  CHECK(c.block_columns == selection.block_columns);
  CHECK(c.rule == static_cast<int>(selection.rule));
  CHECK(c.pool == static_cast<int>(selection.pool));
  CHECK(c.max_blocks == selection.max_blocks);
  CHECK(c.mass == selection.mass);
  CHECK(c.stride == selection.stride);
  CHECK(c.coarse_factor + c.coarse_blocks == 0);
  CHECK(c.sink_blocks == selection.sink_blocks);
  CHECK(c.diagonal_blocks == selection.diagonal_blocks);
  const annulus_tracker_options tracker = ANNULUS_TRACKER_OPTIONS_INIT;
  CHECK(tracker.max_added == annulus::TrackerOptions().max_added);
  CHECK(tracker.max_dropped == annulus::TrackerOptions().max_dropped);
  const annulus_tune_options tune = ANNULUS_TUNE_OPTIONS_INIT;
  CHECK(tune.time_limit_seconds == annulus::TuneOptions().time_limit_seconds);
  CHECK(tune.exhaustive + tune.force + tune.dry_run + tune.cold_cache == 0);
  const annulus_step_requests step = ANNULUS_STEP_REQUESTS_INIT;
  CHECK(step.requests == annulus::StepRequests().requests);
  CHECK(step.queries == annulus::StepRequests().queries);
  CHECK(step.keys == annulus::StepRequests().keys);
  const annulus_reference_options oracle = ANNULUS_REFERENCE_OPTIONS_INIT;
  const annulus::ReferenceOptions reference;
  CHECK(oracle.max_pairs == reference.max_pairs);
  CHECK(oracle.tile_rows == reference.tile_rows);
  CHECK(oracle.sampled_rows == reference.sampled_rows);
  CHECK(oracle.seed == reference.seed);
  CHECK(oracle.threads == reference.threads);
  const annulus_layout_sizes sizes = ANNULUS_LAYOUT_SIZES_INIT;
  CHECK(sizes.heads == annulus::LayoutSizes().heads);
  const annulus_cache_limits limits = ANNULUS_CACHE_LIMITS_INIT;
  CHECK(limits.bytes == annulus::LayoutCacheLimits().bytes);
  CHECK(limits.entries == annulus::LayoutCacheLimits().entries);
  const annulus_simulation simulation = ANNULUS_SIMULATION_INIT;
  CHECK(simulation.checked == 1);
  const annulus_pairs pairs = ANNULUS_PAIRS_INIT;
  CHECK(pairs.total_k == annulus::PatternContext().seq_k);
  CHECK(pairs.batch == annulus::PatternContext().batch);
}

TEST_CASE("and so are those of appending") {
  const annulus_append_problem c = ANNULUS_APPEND_PROBLEM_INIT;
  const annulus::AppendProblem problem;
  CHECK(c.heads == problem.heads);
  CHECK(c.kv_heads == problem.kv_heads);
  CHECK(c.dim_qk == problem.dim_qk);
  CHECK(c.dim_v == problem.dim_v);
  CHECK(c.most.rows + c.most.requests + c.most.keys_of_one == 0);
  CHECK(c.page_rows == problem.page_rows);
  CHECK(c.rotary_dims == problem.rotary.dims);
  CHECK(c.rotary_base == problem.rotary.base);
  CHECK(c.frequencies == nullptr);
  CHECK(c.dtype == static_cast<int>(problem.dtype));
  CHECK(c.place == static_cast<int>(problem.place));
  CHECK(c.rotary_order == static_cast<int>(problem.rotary.order));
  CHECK(c.table_dtype == 0);
  const annulus_append_operands operands = ANNULUS_APPEND_OPERANDS_INIT;
  CHECK((operands.slots == nullptr && operands.step == nullptr && operands.status == nullptr));
  CHECK(operands.k_pages + operands.table_stride + operands.table_rows == 0);
  const annulus_append_status status = ANNULUS_APPEND_STATUS_INIT;
  CHECK(status.rule == static_cast<int>(annulus::AppendStatus().rule));
}

TEST_CASE("and so are those of merging") {
  const annulus_merge_problem c = ANNULUS_MERGE_PROBLEM_INIT;
  const annulus::MergeProblem problem;
  CHECK(c.heads == problem.heads);
  CHECK(c.dim_v == problem.dim_v);
  CHECK(c.inputs == problem.inputs);
  CHECK(c.max_rows == problem.max_rows);
  CHECK(c.dtype == static_cast<int>(problem.dtype));
  CHECK(c.lse_base == static_cast<int>(problem.lse_base));
  CHECK(c.form == static_cast<int>(problem.form));
  CHECK(c.carry_out + c.sink_logits == 0);
  const annulus_merge_operands operands = ANNULUS_MERGE_OPERANDS_INIT;
  CHECK((operands.inputs == nullptr && operands.o == nullptr && operands.lse == nullptr));
  CHECK((operands.rows == nullptr && operands.o_strides.row == 0));
  CHECK((operands.sink_logits == nullptr && operands.state.acc == nullptr));
}

TEST_CASE("and so are those of joining") {
  const annulus_join_problem c = ANNULUS_JOIN_PROBLEM_INIT;
  const annulus::JoinProblem problem;
  CHECK(c.heads == problem.heads);
  CHECK(c.dim_v == problem.dim_v);
  CHECK(c.max_rows == problem.max_rows);
  CHECK(c.dtype == static_cast<int>(problem.dtype));
  CHECK(c.lse_base == static_cast<int>(problem.lse_base));
  CHECK(c.slices == static_cast<int>(problem.slices));
  CHECK(c.form == static_cast<int>(problem.form));
  CHECK(c.carry_out + c.sink_logits == 0);
  const annulus_join_operands operands = ANNULUS_JOIN_OPERANDS_INIT;
  CHECK((operands.o == nullptr && operands.state.l == nullptr && operands.rows == 0));
  CHECK((operands.joined_state.acc == nullptr && operands.joined_lse_strides.head == 0));
  const annulus_gather_problem gather = ANNULUS_GATHER_PROBLEM_INIT;
  CHECK(gather.heads == annulus::GatherProblem().heads);
  CHECK(gather.dtype == static_cast<int>(annulus::GatherProblem().dtype));
}

TEST_CASE("and so are those of batches") {
  const annulus_batch_problem c = ANNULUS_BATCH_PROBLEM_INIT;
  const annulus::BatchProblem problem;
  CHECK(c.heads == problem.heads);
  CHECK(c.kv_heads == problem.kv_heads);
  CHECK(c.dim_qk == problem.dim_qk);
  CHECK(c.dim_v == problem.dim_v);
  CHECK((c.pattern == nullptr && c.score == nullptr));
  CHECK(c.softcap == problem.score.softcap);
  CHECK(c.most.requests == problem.most.requests);
  CHECK(c.most.keys == problem.most.keys);
  CHECK(c.page_rows == problem.page_rows);
  CHECK(c.dtype == static_cast<int>(problem.dtype));
  CHECK(c.lse_base == static_cast<int>(problem.lse_base));
  CHECK(c.has_scale + c.want_lse + c.carry_in + c.carry_out == 0);
  CHECK(c.interleave.block == problem.interleave.block);
  CHECK(c.interleave.ranks == problem.interleave.ranks);
  CHECK(c.interleave.rank == problem.interleave.rank);
  const annulus_batch_options options = ANNULUS_BATCH_OPTIONS_INIT;
  CHECK(options.part_keys == annulus::BatchOptions().part_keys);
  CHECK(options.max_workspace_bytes == annulus::BatchOptions().max_workspace_bytes);
  CHECK(options.max_multiprocessors == annulus::BatchOptions().max_multiprocessors);
  CHECK(options.check_status == (annulus::BatchOptions().check_status ? 1 : 0));
  CHECK((options.config == nullptr && annulus::BatchOptions().config.empty()));
  const annulus_batch_metadata metadata = ANNULUS_BATCH_METADATA_INIT;
  CHECK((metadata.q_begin == nullptr && metadata.v_pages.ids == nullptr));
  CHECK((metadata.k_pages.width == 0 && metadata.v_begin == nullptr));
  const annulus_batch_operands operands = ANNULUS_BATCH_OPERANDS_INIT;
  CHECK((operands.q == nullptr && operands.lse == nullptr));
  CHECK((operands.lse_strides.head == 0 && operands.v_pages == 0));
  CHECK((operands.state_in.acc == nullptr && operands.state_out.l == nullptr));
  const annulus_batch_status status = ANNULUS_BATCH_STATUS_INIT;
  CHECK(status.rule == static_cast<int>(annulus::BatchStatus().rule));
}

TEST_CASE("and so are those of ranks") {
  const annulus_communicator_options c = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
  const annulus::CommunicatorOptions options;
  CHECK(c.blocking == (options.blocking ? 1 : 0));
  CHECK(c.deadline_ms == options.deadline.count());
  CHECK(c.planning_ms == options.planning.count());
  CHECK(c.watched == (options.watched ? 1 : 0));
  CHECK(c.ctas == options.ctas);
  const annulus_regroup_options regroup = ANNULUS_REGROUP_OPTIONS_INIT;
  const annulus::RegroupOptions regrouped;
  CHECK((regroup.without == nullptr && regroup.without_count == 0));
  CHECK(regroup.at_least == regrouped.at_least);
  CHECK(regroup.deadline_ms == regrouped.deadline.count());
  const annulus_rendezvous_options meeting = ANNULUS_RENDEZVOUS_OPTIONS_INIT;
  const annulus::RendezvousOptions met;
  CHECK((meeting.address == nullptr && meeting.token == nullptr && meeting.listen_on == nullptr));
  CHECK(meeting.rank == met.rank);
  CHECK(meeting.ranks == met.ranks);
  CHECK(meeting.deadline_ms == met.deadline.count());
}

TEST_CASE("every struct knows its size") {
#define CHECK_SIZE(type, init)                   \
  do {                                           \
    const type made = init;                      \
    CHECK(made.struct_size == sizeof(type));     \
    CHECK_MESSAGE(sizeof(type) % 8 == 0, #type); \
  } while (false)
  CHECK_SIZE(annulus_join_problem, ANNULUS_JOIN_PROBLEM_INIT);
  CHECK_SIZE(annulus_join_plan_info, ANNULUS_JOIN_PLAN_INFO_INIT);
  CHECK_SIZE(annulus_join_operands, ANNULUS_JOIN_OPERANDS_INIT);
  CHECK_SIZE(annulus_gather_problem, ANNULUS_GATHER_PROBLEM_INIT);
  CHECK_SIZE(annulus_gather_operands, ANNULUS_GATHER_OPERANDS_INIT);
  CHECK_SIZE(annulus_append_problem, ANNULUS_APPEND_PROBLEM_INIT);
  CHECK_SIZE(annulus_append_plan_info, ANNULUS_APPEND_PLAN_INFO_INIT);
  CHECK_SIZE(annulus_append_operands, ANNULUS_APPEND_OPERANDS_INIT);
  CHECK_SIZE(annulus_append_status, ANNULUS_APPEND_STATUS_INIT);
  CHECK_SIZE(annulus_batch_problem, ANNULUS_BATCH_PROBLEM_INIT);
  CHECK_SIZE(annulus_batch_options, ANNULUS_BATCH_OPTIONS_INIT);
  CHECK_SIZE(annulus_batch_plan_info, ANNULUS_BATCH_PLAN_INFO_INIT);
  CHECK_SIZE(annulus_batch_metadata, ANNULUS_BATCH_METADATA_INIT);
  CHECK_SIZE(annulus_batch_operands, ANNULUS_BATCH_OPERANDS_INIT);
  CHECK_SIZE(annulus_batch_status, ANNULUS_BATCH_STATUS_INIT);
  CHECK_SIZE(annulus_communicator_options, ANNULUS_COMMUNICATOR_OPTIONS_INIT);
  CHECK_SIZE(annulus_communicator_info, ANNULUS_COMMUNICATOR_INFO_INIT);
  CHECK_SIZE(annulus_communicator_failure, ANNULUS_COMMUNICATOR_FAILURE_INIT);
  CHECK_SIZE(annulus_communicator_event, ANNULUS_COMMUNICATOR_EVENT_INIT);
  CHECK_SIZE(annulus_regroup_options, ANNULUS_REGROUP_OPTIONS_INIT);
  CHECK_SIZE(annulus_rendezvous_options, ANNULUS_RENDEZVOUS_OPTIONS_INIT);
  CHECK_SIZE(annulus_rendezvous_info, ANNULUS_RENDEZVOUS_INFO_INIT);
  CHECK_SIZE(annulus_rank_state, ANNULUS_RANK_STATE_INIT);
  CHECK_SIZE(annulus_merge_problem, ANNULUS_MERGE_PROBLEM_INIT);
  CHECK_SIZE(annulus_merge_plan_info, ANNULUS_MERGE_PLAN_INFO_INIT);
  CHECK_SIZE(annulus_merge_operands, ANNULUS_MERGE_OPERANDS_INIT);
  CHECK_SIZE(annulus_prediction, ANNULUS_PREDICTION_INIT);
  CHECK_SIZE(annulus_cache_counters, ANNULUS_CACHE_COUNTERS_INIT);
  CHECK_SIZE(annulus_layout_options, ANNULUS_LAYOUT_OPTIONS_INIT);
  CHECK_SIZE(annulus_layout_statistics, ANNULUS_LAYOUT_STATISTICS_INIT);
  CHECK_SIZE(annulus_layout_difference, ANNULUS_LAYOUT_DIFFERENCE_INIT);
  CHECK_SIZE(annulus_picture_options, ANNULUS_PICTURE_OPTIONS_INIT);
  CHECK_SIZE(annulus_host_state, ANNULUS_HOST_STATE_INIT);
  CHECK_SIZE(annulus_host_inputs, ANNULUS_HOST_INPUTS_INIT);
  CHECK_SIZE(annulus_host_result, ANNULUS_HOST_RESULT_INIT);
  CHECK_SIZE(annulus_reference_rows, ANNULUS_REFERENCE_ROWS_INIT);
  CHECK_SIZE(annulus_comparison, ANNULUS_COMPARISON_INIT);
  CHECK_SIZE(annulus_tolerance, ANNULUS_TOLERANCE_INIT);
  CHECK_SIZE(annulus_pattern_info, ANNULUS_PATTERN_INFO_INIT);
  CHECK_SIZE(annulus_pattern_word, ANNULUS_PATTERN_WORD_INIT);
  CHECK_SIZE(annulus_preset, ANNULUS_PRESET_INIT);
  CHECK_SIZE(annulus_selection_buffers, ANNULUS_SELECTION_BUFFERS_INIT);
  CHECK_SIZE(annulus_tune_result, ANNULUS_TUNE_RESULT_INIT);
  CHECK_SIZE(annulus_tune_trial, ANNULUS_TUNE_TRIAL_INIT);
  CHECK_SIZE(annulus_tuned_info, ANNULUS_TUNED_INFO_INIT);
  CHECK_SIZE(annulus_tuned_entry, ANNULUS_TUNED_ENTRY_INIT);
  CHECK_SIZE(annulus_tuning_report_info, ANNULUS_TUNING_REPORT_INFO_INIT);
  CHECK_SIZE(annulus_tuned_report_info, ANNULUS_TUNED_REPORT_INFO_INIT);
  CHECK_SIZE(annulus_tuned_note, ANNULUS_TUNED_NOTE_INIT);
  CHECK_SIZE(annulus_tuned_filter, ANNULUS_TUNED_FILTER_INIT);
  CHECK_SIZE(annulus_tuned_verify_options, ANNULUS_TUNED_VERIFY_OPTIONS_INIT);
#undef CHECK_SIZE
}
