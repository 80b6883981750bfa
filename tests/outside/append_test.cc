// Appending to pages and rotating, through the public interface only.
#include "annulus/batch.h"

#include <cmath>
#include <cstring>

#include "outside/outside.h"

namespace {

using namespace annulus;

float value_of(std::uint16_t bf16) {
  const std::uint32_t bits = static_cast<std::uint32_t>(bf16) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

TEST_CASE("a key that was appended and the query at its position have the product that they had") {
  const Device& device = test::device();
  AppendProblem problem;
  problem.heads = 1;
  problem.dim_qk = problem.dim_v = 64;
  problem.page_rows = 2;
  problem.rotary.order = RotaryOrder::kInterleaved;
  problem.rotary.dims = 32;
  problem.most.rows = 3;
  REQUIRE_NOTHROW(validate(problem));
  const AppendPlan plan = plan_append(device, problem);
  CHECK(plan.problem().rotary.dims == 32);
  CHECK(plan.info().registers > 0);
  CHECK(plan.info().device_bytes > 0);

  std::vector<std::uint16_t> rows;
  for (int i = 0; i < 3 * 64; ++i) rows.push_back(static_cast<std::uint16_t>(0x3f80 + i % 50));
  const std::vector<std::int32_t> slots = {5, -1, 8}, positions = {1 << 20, 7, 1};
  const DeviceMemory q = test::upload(device, rows), new_k = test::upload(device, rows);
  const DeviceMemory k = test::upload(device, rows), v = device.allocate(k.bytes());
  const DeviceMemory on_slots = test::upload(device, slots);
  const DeviceMemory on_positions = test::upload(device, positions);
  const DeviceMemory status = device.allocate(4);
  AppendOperands operands;
  operands.q = q.data(), operands.rotated_q = q.data();
  operands.new_k = operands.new_v = new_k.data();
  operands.q_strides = operands.rotated_q_strides = {.row = 64, .head = 64};
  operands.new_k_strides = operands.new_v_strides = operands.q_strides;
  operands.k = k.data(), operands.v = v.data();
  operands.k_strides = operands.v_strides = {.page = 128, .row = 64, .head = 64};
  operands.k_pages = operands.v_pages = 1;
  operands.slots_32 = static_cast<const std::int32_t*>(on_slots.data());
  operands.positions_32 = static_cast<const std::int32_t*>(on_positions.data());
  operands.status = static_cast<std::uint32_t*>(status.data());
  plan.clear_status(nullptr, operands.status);
  plan.run(nullptr, operands);
  device.synchronize();
  const AppendStatus found = plan.status(operands.status);
  CHECK(found.rule == AppendRule::kSlot);
  CHECK(found.row == 0);
  CHECK(std::string(to_string(found.rule)) == "a slot that does not exist");

  // Appends row 0 again, and has no places for the others.
  const std::vector<std::int32_t> first = {1, -1, -1};
  device.copy_to_device(const_cast<std::int32_t*>(operands.slots_32), first.data(), 12);
  device.copy_to_device(q.data(), rows.data(), q.bytes());
  plan.run(nullptr, operands);
  std::vector<std::uint16_t> rotated_q(64), rotated_k(64);
  device.copy_to_host(rotated_q.data(), q.data(), 128);
  device.copy_to_host(rotated_k.data(), static_cast<std::uint16_t*>(k.data()) + 64, 128);
  CHECK(rotated_q == rotated_k);
  CHECK(rotated_q != std::vector<std::uint16_t>(rows.begin(), rows.begin() + 64));
  double before = 0, after = 0;
  for (std::size_t d = 0; d < 64; ++d) {
    before += std::pow(value_of(rows[d]), 2);
    after += value_of(rotated_q[d]) * value_of(rotated_k[d]);
  }
  CHECK(std::abs(after - before) < 4e-3 * before);
  operands.new_k = nullptr;
  test::check_fails(ErrorCode::kInvalidArgument, "new_k is null",
                    [&] { plan.run(nullptr, operands); });
  problem.dtype = Dtype::kFloat8E4M3;
  test::check_fails(ErrorCode::kUnsupported, "convert to fp16 or bf16", [&] { validate(problem); });
}

}  // namespace
