// The C interface of chosen blocks. Each function converts its arguments and calls
// annulus/selection.h.
#include "annulus/c.h"
#include "annulus/c_tools.h"

#include "annulus/selection.h"
#include "c_api/functions.h"
#include "c_api/problems.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_TOP_K == static_cast<int>(SelectionRule::kTopK));
static_assert(ANNULUS_TOP_P == static_cast<int>(SelectionRule::kTopP));
static_assert(ANNULUS_GIVEN == static_cast<int>(SelectionRule::kGiven));
static_assert(ANNULUS_POOL_MEAN == static_cast<int>(Pool::kMean));
static_assert(ANNULUS_POOL_MAX == static_cast<int>(Pool::kMax));
static_assert(ANNULUS_POOL_ANTIDIAGONAL == static_cast<int>(Pool::kAntidiagonal));

constexpr StructName kSelection = {"annulus_selection", "ANNULUS_SELECTION_INIT"};
constexpr StructName kSelectionBuffers = {"annulus_selection_buffers",
                                          "ANNULUS_SELECTION_BUFFERS_INIT"};
constexpr StructName kTrackerOptions = {"annulus_tracker_options", "ANNULUS_TRACKER_OPTIONS_INIT"};

}  // namespace

Selection selection_of(const annulus_selection* given) {
  const annulus_selection c =
      read_struct(kSelection, given, annulus_selection ANNULUS_SELECTION_INIT);
  Selection selection;
  selection.block_rows = c.block_rows;
  selection.block_columns = c.block_columns;
  selection.rule = static_cast<SelectionRule>(c.rule);
  selection.max_blocks = c.max_blocks;
  selection.mass = c.mass;
  selection.pool = static_cast<Pool>(c.pool);
  selection.stride = c.stride;
  selection.coarse_factor = c.coarse_factor;
  selection.coarse_blocks = c.coarse_blocks;
  selection.sink_blocks = c.sink_blocks;
  selection.diagonal_blocks = c.diagonal_blocks;
  return selection;
}

SelectionBuffers selection_buffers_of(const annulus_selection_buffers* given) {
  const annulus_selection_buffers c = read_struct(
      kSelectionBuffers, given, annulus_selection_buffers ANNULUS_SELECTION_BUFFERS_INIT);
  return {c.given, c.chosen, c.max_chosen};
}

namespace {

TrackerOptions tracker_options_of(const annulus_tracker_options* given) {
  if (given == nullptr) return {};
  const annulus_tracker_options c =
      read_struct(kTrackerOptions, given, annulus_tracker_options ANNULUS_TRACKER_OPTIONS_INIT);
  return {c.max_added, c.max_dropped};
}

struct MeterObject {
  RecallMeter meter;
};
HandleTable<MeterObject>& meters() {
  static auto* table = new HandleTable<MeterObject>("recall meter", 0x97,
                                                    HandleTable<MeterObject>::Use::kInItsProcess);
  return *table;
}
using MeterPin = HandleTable<MeterObject>::Pin;

struct TrackerObject {
  ImportanceTracker tracker;
};
HandleTable<TrackerObject>& trackers() {
  static auto* table = new HandleTable<TrackerObject>(
      "importance tracker", 0xa9, HandleTable<TrackerObject>::Use::kInItsProcess);
  return *table;
}
using TrackerPin = HandleTable<TrackerObject>::Pin;

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_recall_meter_create(annulus_device* device, const annulus_problem* problem,
                                           const annulus_plan_options* options,
                                           annulus_recall_meter** meter) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("meter (where the handle goes)", meter);
    give(meter, meters(),
         std::make_unique<MeterObject>(
             MeterObject{RecallMeter(pin->device, problem_of(problem), plan_options_of(options))}));
  });
}

annulus_status annulus_recall_meter_destroy(annulus_recall_meter* meter) {
  return guarded([&] { meters().erase(number(meter)); });
}

annulus_status annulus_recall_meter_workspace_bytes(annulus_recall_meter* meter, size_t* bytes) {
  return guarded([&] {
    const MeterPin pin(meters(), number(meter));
    check_pointer("bytes (where the size goes)", bytes);
    *bytes = pin->meter.workspace_bytes();
  });
}

annulus_status annulus_recall_meter_run(annulus_recall_meter* meter, void* stream,
                                        const annulus_operands* operands, float* recall,
                                        void* workspace) {
  return guarded([&] {
    const MeterPin pin(meters(), number(meter));
    pin->meter.run(stream, run_operands_of(operands).operands, recall, workspace);
  });
}

annulus_status annulus_recall_summarise(const float* recall, size_t count, double* mean,
                                        double* least) {
  return guarded([&] {
    if (count > 0) check_pointer("recall", recall);
    check_pointer("mean (where the number goes)", mean);
    check_pointer("least (where the number goes)", least);
    const RecallSummary summary = summarise_recall({recall, count});
    *mean = summary.mean;
    *least = summary.least;
  });
}

annulus_status annulus_importance_tracker_create(annulus_device* device,
                                                 const annulus_problem* problem,
                                                 const annulus_selection* selection,
                                                 const annulus_tracker_options* options,
                                                 annulus_importance_tracker** tracker) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("tracker (where the handle goes)", tracker);
    give(tracker, trackers(),
         std::make_unique<TrackerObject>(TrackerObject{
             ImportanceTracker(pin->device, problem_of(problem), selection_of(selection),
                               tracker_options_of(options))}));
  });
}

annulus_status annulus_importance_tracker_destroy(annulus_importance_tracker* tracker) {
  return guarded([&] { trackers().erase(number(tracker)); });
}

annulus_status annulus_importance_tracker_sizes(annulus_importance_tracker* tracker,
                                                size_t* state_bytes, size_t* workspace_bytes) {
  return guarded([&] {
    const TrackerPin pin(trackers(), number(tracker));
    if (state_bytes != nullptr) *state_bytes = pin->tracker.state_bytes();
    if (workspace_bytes != nullptr) *workspace_bytes = pin->tracker.workspace_bytes();
  });
}

annulus_status annulus_importance_tracker_measure(annulus_importance_tracker* tracker, void* stream,
                                                  const annulus_operands* operands,
                                                  const int32_t* given, void* state,
                                                  void* workspace) {
  return guarded([&] {
    const TrackerPin pin(trackers(), number(tracker));
    pin->tracker.measure(stream, run_operands_of(operands).operands, given, state, workspace);
  });
}

annulus_status annulus_importance_tracker_update(annulus_importance_tracker* tracker, void* stream,
                                                 const annulus_operands* operands, int32_t* given,
                                                 void* state, void* workspace) {
  return guarded([&] {
    const TrackerPin pin(trackers(), number(tracker));
    pin->tracker.update(stream, run_operands_of(operands).operands, given, state, workspace);
  });
}

}  // extern "C"
