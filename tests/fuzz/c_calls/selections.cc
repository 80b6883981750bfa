// Calls on plans with selections, recall meters and importance trackers.

#include <algorithm>
#include <limits>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

// The sizes of blocks are compiled into the kernels. So sizes other than 16 are given only if they
// are refused.
Sized<annulus_selection> Program::selection(std::int32_t rule) {
  static constexpr std::int64_t kSizes[] = {0, -1, INT64_MIN, INT64_MAX};
  Sized<annulus_selection> made(ANNULUS_SELECTION_INIT, bytes_);
  made->block_rows = made->block_columns = 16;
  if (bytes_.below(24) == 0) made->block_rows = kSizes[bytes_.below(4)];
  if (bytes_.below(24) == 0) made->block_columns = kSizes[bytes_.below(3)];
  made->rule = bytes_.below(24) == 0 ? tiny(4) : rule;
  made->max_blocks = small(5);
  made->sink_blocks = small(2);
  made->diagonal_blocks = small(2);
  if (made->rule == ANNULUS_TOP_P) made->mass = static_cast<double>(bytes_.between(-1, 11)) / 10;
  return made;
}

const std::int32_t* Program::listed() {
  std::int32_t numbers[16] = {};
  for (std::int32_t& number : numbers) number = static_cast<std::int32_t>(bytes_.number());
  void* const memory = setting().memory[6];
  annulus_device_copy_to_device(setting().device, memory, numbers, sizeof numbers);
  return place<const std::int32_t>(6);
}

void Program::call_selected() {
  annulus_plan* plan = nullptr;
  switch (bytes_.below(5)) {
    case 0:
    case 1: {
      annulus_device* device = pick<annulus_device>(Kind::kDevice);
      auto described = problem(true);
      if (bytes_.below(16) == 0) described->pattern = "sum(causal, dense)";
      auto chosen = selection(bytes_.below(3) == 0 ? ANNULUS_GIVEN : ANNULUS_TOP_K);
      auto options = plan_options();
      options->selection = chosen.get();
      return made(annulus_plan_create(device, described.get(), options.get(), &plan), plan,
                  Kind::kPlan, "annulus_plan_create with a selection");
    }
    case 2: {
      float shares[8] = {0.5f, 1.0f, std::numeric_limits<float>::quiet_NaN()};
      const std::size_t shown = count(9);
      double mean = 0, least = 0;
      if (returned(annulus_recall_summarise(bytes_.below(8) == 0 ? nullptr : shares, shown, &mean,
                                            bytes_.below(16) == 0 ? nullptr : &least),
                   "annulus_recall_summarise") &&
          shown == 0 && mean != 1) {
        wrong("the recall of nothing is {}", mean);
      }
      return;
    }
    default: {
      plan = pick<annulus_plan>(Kind::kPlan);
      auto given = operands();
      Sized<annulus_selection_buffers> buffers(ANNULUS_SELECTION_BUFFERS_INIT, bytes_);
      if (bytes_.below(2) == 0) buffers->given = listed();
      if (bytes_.below(2) == 0) buffers->chosen = place<std::int32_t>(7);
      // At most 4 rows of blocks are chosen, whose entries fit into the memory.
      buffers->max_chosen = bytes_.between(-1, 20);
      void* const workspace = scratch();
      if (!may_launch()) return;
      if (bytes_.below(8) != 0) given->selection = buffers.get();
      returned(annulus_plan_run(plan, nullptr, given.get(), workspace),
               "annulus_plan_run with buffers");
    }
  }
}

void Program::call_meter() {
  annulus_recall_meter* meter = nullptr;
  switch (bytes_.below(4)) {
    case 0: {
      annulus_device* device = pick<annulus_device>(Kind::kDevice);
      auto described = problem_with_lse();
      auto options = plan_options();
      return made(annulus_recall_meter_create(device, described.get(), options.get(), &meter),
                  meter, Kind::kMeter, "annulus_recall_meter_create");
    }
    case 1: {
      std::size_t size = 0;
      if (returned(
              annulus_recall_meter_workspace_bytes(pick<annulus_recall_meter>(Kind::kMeter), &size),
              "annulus_recall_meter_workspace_bytes") &&
          size > Setting::kBytes) {
        wrong("a meter needs {} bytes of workspace", size);
      }
      return;
    }
    default: {
      meter = pick<annulus_recall_meter>(Kind::kMeter);
      auto given = operands_with_lse(true);
      float* const recall = place<float>(8);
      void* const workspace = scratch();
      if (!may_launch()) return;
      returned(annulus_recall_meter_run(meter, nullptr, given.get(), recall, workspace),
               "annulus_recall_meter_run");
    }
  }
}

void Program::call_tracker() {
  annulus_importance_tracker* tracker = nullptr;
  switch (bytes_.below(5)) {
    case 0: {
      annulus_device* device = pick<annulus_device>(Kind::kDevice);
      auto described = problem_with_lse();
      auto chosen = selection(ANNULUS_GIVEN);
      Sized<annulus_tracker_options> options(ANNULUS_TRACKER_OPTIONS_INIT, bytes_);
      options->max_added = small(3), options->max_dropped = small(3);
      return made(annulus_importance_tracker_create(device, described.get(), chosen.get(),
                                                    bytes_.below(4) == 0 ? nullptr : options.get(),
                                                    &tracker),
                  tracker, Kind::kTracker, "annulus_importance_tracker_create");
    }
    case 1: {
      std::size_t state = 0, workspace = 0;
      if (returned(
              annulus_importance_tracker_sizes(pick<annulus_importance_tracker>(Kind::kTracker),
                                               bytes_.below(8) == 0 ? nullptr : &state,
                                               bytes_.below(8) == 0 ? nullptr : &workspace),
              "annulus_importance_tracker_sizes") &&
          std::max(state, workspace) > Setting::kBytes) {
        wrong("a tracker needs {} and {} bytes", state, workspace);
      }
      return;
    }
    default: {
      tracker = pick<annulus_importance_tracker>(Kind::kTracker);
      const bool updates = bytes_.below(2) == 0;
      auto given = operands_with_lse(false);
      const std::int32_t* const kept = listed();
      auto* const state = place<void>(7);
      void* const workspace = scratch();
      if (!may_launch()) return;
      if (updates) {
        returned(
            annulus_importance_tracker_update(tracker, nullptr, given.get(),
                                              const_cast<std::int32_t*>(kept), state, workspace),
            "annulus_importance_tracker_update");
      } else {
        returned(annulus_importance_tracker_measure(tracker, nullptr, given.get(), kept, state,
                                                    workspace),
                 "annulus_importance_tracker_measure");
      }
    }
  }
}

}  // namespace annulus::fuzz
