// annulus/c.h in C++: every initialiser is one, and the C++ interface may stand beside it.

#include "annulus/c.h"
#include "annulus/c_ring.h"

#include <doctest/doctest.h>

#include "annulus/device.h"

TEST_CASE("the defaults of C are those of C++") {
  const annulus_device_options device = ANNULUS_DEVICE_OPTIONS_INIT;
  const annulus::DeviceOptions options;
  CHECK(device.struct_size == sizeof(device));
  CHECK(device.log_level == static_cast<int>(options.log_level));
  CHECK(device.simulation_checked == (options.simulation.checked ? 1 : 0));
  CHECK(device.simulation_seed == options.simulation.seed);
  CHECK(device.simulation_threads == options.simulation.threads);
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
  const annulus_operands operands = ANNULUS_OPERANDS_INIT;
  CHECK(operands.struct_size == sizeof(operands));
  CHECK(operands.state_out.l == nullptr);
  const annulus_ring_options ring = ANNULUS_RING_OPTIONS_INIT;
  CHECK(ring.struct_size == sizeof(ring));
  CHECK(ring.shards == nullptr);
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
