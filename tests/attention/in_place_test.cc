// O is written over Q, in every shipped configuration, with grouped heads, rows that see nothing,
// ragged tails, and strides with gaps. The answer has the same bits as a run with separate memory.

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "annulus/device.h"
#include "attention/kernels/family.h"
#include "attention/kernels/kernel_config.h"
#include "support/device.h"
#include "support/device_case.h"

namespace {

using namespace annulus;

TEST_CASE("O may be Q") {
  const Device device = Device::open(test::device_name());
  const jit::Arch arch = jit::parse_arch(device.info().architecture);
  int cases = 0;
  for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
    if (attention::why_illegal(shipped.config, shipped.dims, arch)) continue;
    // On architectures with the wgmma family, the mma family is tested on other devices only,
    // because it is the same there.
    if (arch.feature == 'a' && shipped.config.family == &attention::mma_family) continue;
    if (shipped.config.family->element_bytes == 1) continue;  // O is not as wide as Q
    PlanOptions options;
    options.config = attention::to_string(shipped.config);
    CAPTURE(options.config);
    Problem problem;
    problem.batch = 2;
    problem.heads = 4;
    problem.kv_heads = attention::cta_shape(shipped.config).packed_heads() == 4 ? 1 : 2;
    problem.seq_q = 2 * shipped.config.tile_rows + 5;
    problem.seq_k = 2 * shipped.config.tile_columns + 3;
    problem.q0 = -shipped.config.tile_rows;  // the first tile row sees nothing
    problem.dim_qk = shipped.dims.qk;
    problem.dim_v = shipped.dims.v;
    problem.pattern = causal();
    const test::Case host =
        test::make_case(problem, 40, cases++ % 2 == 0 ? test::Order::kBshd : test::Order::kPadded);
    const test::DeviceCase memory(device, host);
    const Plan plan = device.plan(problem, options);
    plan.run(nullptr, memory.operands());
    const test::HostTensor expected = memory.answer().o;

    Operands in_place = memory.operands();
    in_place.o = const_cast<void*>(in_place.q);
    in_place.o_strides = in_place.q_strides;
    plan.run(nullptr, in_place);
    std::vector<std::uint16_t> q(host.q.bits.size());
    device.copy_to_host(q.data(), in_place.o, q.size() * 2);

    std::int64_t different = 0;
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t row = 0; row < problem.seq_q; ++row) {
        for (std::int64_t head = 0; head < problem.heads; ++head) {
          for (std::int64_t d = 0; d < problem.dim_v; ++d) {
            different += q[static_cast<std::size_t>(host.q.offset(b, row, head) + d)] !=
                         expected.bits[static_cast<std::size_t>(expected.offset(b, row, head) + d)];
          }
        }
      }
    }
    CHECK(different == 0);
  }
  CHECK(cases > 0);
}

}  // namespace
