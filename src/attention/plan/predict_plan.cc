#include "attention/plan/predict_plan.h"

namespace annulus::attention {

TileCounts count_tiles(const LaunchPlan& plan) { return count_tiles(*plan.tiles, plan.problem); }

Prediction predict(const PipeDevice& device, const LaunchPlan& plan) {
  const bool split = !plan.split.empty();
  const TileCounts tiles =
      split ? count_parts(*plan.tiles, plan.split, plan.problem) : count_tiles(plan);
  const KernelFeatures& features = plan.features;
  Prediction made =
      predict(device, plan.config, features.dims, tiles,
              estimate_work(plan.config, features, tiles), least_bytes(plan.problem), 0,
              features.draws_work ? Dealt::kDrawn : Dealt::kCountedOff, plan.head_start);
  if (split) {
    made.predicted_cycles += merge_cycles(device, plan.split, plan.problem, tiles.tile_rows);
    made.predicted_micros = made.predicted_cycles / device.clock_hertz * 1e6;
  }
  return made;
}

}  // namespace annulus::attention
