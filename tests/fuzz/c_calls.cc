// Sequences of calls of the C interface. They use every function of the interface, which the number
// not_fuzzed of the test house_gates checks. Each byte of an input chooses a function, its handles
// (live ones, released ones, ones of another kind, null, any number), sizes of structs, small
// numbers, cancellation flags, or the call from which the caller's allocator fails. In any order,
// each call must return a code of the header, with a text if it failed. A handle that does not
// exist, or no longer exists, must be refused.

#include "fuzz/c_calls/program.h"

// Compiles the kernels for the plans, rings and selections of inputs.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const auto check = [](annulus_status status) {
    if (status != ANNULUS_OK) annulus::fuzz::wrong("{}", annulus_last_error());
  };
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  problem.seq_q = problem.seq_k = problem.dim_qk = problem.dim_v = annulus::fuzz::kSide;
  problem.pattern = "causal";
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  options.config = annulus::fuzz::kConfig;
  options.kv_splits = 1;
  annulus_selection selection = ANNULUS_SELECTION_INIT;
  selection.block_rows = selection.block_columns = 16;
  annulus_ring_options sharded = ANNULUS_RING_OPTIONS_INIT;
  sharded.config = annulus::fuzz::kConfig;
  for (annulus_device* device :
       {annulus::fuzz::setting().device, annulus::fuzz::setting().limited}) {
    annulus_plan* plan = nullptr;
    problem.want_lse = 0;
    check(annulus_plan_create(device, &problem, &options, &plan));
    annulus_plan_destroy(plan);
    for (const std::int32_t rule : {ANNULUS_TOP_K, ANNULUS_TOP_P, ANNULUS_GIVEN}) {
      selection.rule = rule;
      selection.max_blocks = 2;
      annulus_plan_options selected = options;
      selected.selection = &selection;
      check(annulus_plan_create(device, &problem, &selected, &plan));
      annulus_plan_destroy(plan);
    }
    annulus_device* const devices[] = {device, device};
    for (const std::int32_t sharding : {ANNULUS_CONTIGUOUS, ANNULUS_ZIGZAG}) {
      sharded.sharding = sharding;
      annulus_ring* ring = nullptr;
      check(annulus_ring_create(devices, 2, &problem, &sharded, &ring));
      annulus_ring_destroy(ring);
    }
    // Uneven pieces that are not multiples of tiles.
    const annulus_segment pieces[] = {{0, 20}, {20, 44}};
    const annulus_shard shards[] = {{&pieces[0], 1, &pieces[0], 1}, {&pieces[1], 1, &pieces[1], 1}};
    sharded.shards = shards;
    annulus_ring* uneven = nullptr;
    check(annulus_ring_create(devices, 2, &problem, &sharded, &uneven));
    annulus_ring_destroy(uneven);
    sharded.shards = nullptr;
    problem.want_lse = 1;
    annulus_recall_meter* meter = nullptr;
    check(annulus_recall_meter_create(device, &problem, &options, &meter));
    annulus_recall_meter_destroy(meter);
    annulus_importance_tracker* tracker = nullptr;
    check(annulus_importance_tracker_create(device, &problem, &selection, nullptr, &tracker));
    annulus_importance_tracker_destroy(tracker);
    annulus_batch_problem batch = ANNULUS_BATCH_PROBLEM_INIT;
    batch.dim_qk = batch.dim_v = annulus::fuzz::kSide;
    batch.pattern = "causal";
    batch.most = {4, annulus::fuzz::kSide, 0, annulus::fuzz::kSide, 0};
    for (const std::int64_t page_rows : {0, 16}) {
      batch.page_rows = page_rows;
      annulus_batch_plan* of_batch = nullptr;
      check(annulus_batch_plan_create(device, &batch, nullptr, &of_batch));
      annulus_batch_plan_destroy(of_batch);
    }
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  annulus::fuzz::Bytes bytes(data, size);
  annulus::fuzz::Program(&bytes).run();
  return 0;
}
