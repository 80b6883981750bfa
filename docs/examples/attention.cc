// Block-sparse attention in twenty lines: open a device, plan, run, read the answer.

#include <annulus/device.h>

#include <cstdint>
#include <cstdio>
#include <vector>

int main() {
  annulus::Device device = annulus::Device::open();  // the first GPU, else a simulated one
  annulus::Problem problem;  // batch 1, bf16, and 4 query heads that share 2 key/value heads
  problem.heads = 4, problem.kv_heads = 2, problem.seq_q = problem.seq_k = 500;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = annulus::Pattern::parse("causal & (window(127,0) | global(16))");
  annulus::Plan plan = device.plan(problem);  // compiles the kernel, or finds it in the cache

  std::vector<std::uint16_t> host(500 * 4 * 64, 0x3f80);  // 1.0 in bf16, everywhere
  annulus::DeviceMemory q = device.allocate(host.size() * 2), kv = device.allocate(host.size());
  device.copy_to_device(q.data(), host.data(), q.bytes());
  device.copy_to_device(kv.data(), host.data(), kv.bytes());
  annulus::Operands operands;
  operands.q = operands.o = q.data(), operands.k = operands.v = kv.data();  // O goes over Q
  operands.q_strides = operands.o_strides = annulus::Strides::bshd(500, 4, 64);
  operands.k_strides = operands.v_strides = annulus::Strides::bshd(500, 2, 64);
  annulus::DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  plan.run(nullptr, operands, workspace.data());  // asynchronous, on the default stream
  device.copy_to_host(host.data(), q.data(), q.bytes());
  std::printf("%s on %s: %#06x\n", plan.info().config.c_str(), device.info().name.c_str(), host[0]);
  return host[0] == 0x3f80 ? 0 : 1;  // an average of ones is one
}
