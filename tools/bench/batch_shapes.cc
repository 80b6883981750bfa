#include "batch_shapes.h"

namespace annulus::bench {

std::span<const BatchShape> decode_shapes() {
  static constexpr BatchShape kShapes[] = {
      {"B64 32/8 8k D128", 64, 32, 8, 8192, 128, 0.90},
      {"B32 64/8 4k D128", 32, 64, 8, 4096, 128, 0.90},
      {"B8 32/8 8k D128", 8, 32, 8, 8192, 128, 0.85},
      {"B1 32/8 128k D128", 1, 32, 8, 131072, 128, 0.90},
      {"B64 32/4 8k D64", 64, 32, 4, 8192, 64, 0.90},
      {"B64 16/1 8k D256", 64, 16, 1, 8192, 256, 0.90},
  };
  return kShapes;
}

PredictedBatch predict_batch(const device::DeviceInfo& info, const BatchShape& shape,
                             double element_bytes) {
  BatchProblem problem;
  problem.heads = shape.heads;
  problem.kv_heads = shape.kv_heads;
  problem.dim_qk = problem.dim_v = shape.dim;
  problem.pattern = causal();
  problem.page_rows = 16;
  problem.most = {.requests = shape.requests,
                  .rows = shape.requests,
                  .rows_of_one = 1,
                  .keys_of_one = shape.keys};
  attention::DeviceLimits limits = {.arch = jit::arch_of_capability(info.major, info.minor),
                                    .multiprocessors = info.multiprocessors,
                                    .clock_kilohertz = info.clock_kilohertz,
                                    .memory_clock_kilohertz = info.memory_clock_kilohertz,
                                    .memory_bus_bits = info.memory_bus_bits};
  limits.shared_bytes_per_block =
      info.shared_bytes_per_multiprocessor - info.shared_bytes_reserved_per_block;
  const std::vector<batch::StepRequest> step(static_cast<std::size_t>(shape.requests),
                                             {1, shape.keys});
  PredictedBatch predicted;
  predicted.plan = batch::make_plan(problem, {}, limits);
  const auto on = [&](const attention::PipeDevice& device) {
    return batch::predict_step(device, problem, predicted.plan.classes.front(), step,
                               element_bytes);
  };
  predicted.made = on(attention::pipe_device(info));
  predicted.share =
      attention::predict_range(info, predicted.made.share(),
                               [&](const attention::PipeDevice& at) { return on(at).share(); });
  predicted.micros = attention::predict_range(
      info, predicted.made.predicted_micros,
      [&](const attention::PipeDevice& at) { return on(at).predicted_micros; });
  return predicted;
}

}  // namespace annulus::bench
