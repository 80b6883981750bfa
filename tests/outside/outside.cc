#include "outside/outside.h"

#include <bit>
#include <filesystem>
#include <random>

namespace annulus::test {

ScratchFolder::ScratchFolder() {
  folder_ = (std::filesystem::temp_directory_path() / "annulus_outside_XXXXXX").string();
  REQUIRE(mkdtemp(folder_.data()) != nullptr);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

const Device& device() {
  static const Device opened = [] {
    DeviceOptions options;
    options.name = "sim:sm_80";
    options.tuned_path = "";
    return Device::open(options);
  }();
  return opened;
}

namespace {

std::vector<std::uint16_t> random_bf16(std::int64_t count, std::mt19937* random) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::uint16_t& value : values) {
    const float number = static_cast<float>((*random)() % 2001) / 1000.0f - 1.0f;
    value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
  }
  return values;
}

}  // namespace

Tensors::Tensors(const Device& device, const Problem& problem, std::uint32_t seed) {
  std::mt19937 random(seed);
  const std::int64_t rows_q = problem.batch * problem.seq_q * problem.heads;
  const std::int64_t rows_k = problem.batch * problem.seq_k * problem.kv_heads;
  q = random_bf16(rows_q * problem.dim_qk, &random);
  k = random_bf16(rows_k * problem.dim_qk, &random);
  v = random_bf16(rows_k * problem.dim_v, &random);
  o.resize(static_cast<std::size_t>(rows_q * problem.dim_v));
  lse.resize(static_cast<std::size_t>(rows_q));
  on_device[0] = upload(device, q);
  on_device[1] = upload(device, k);
  on_device[2] = upload(device, v);
  on_device[3] = device.allocate(o.size() * sizeof o[0]);
  on_device[4] = device.allocate(lse.size() * sizeof lse[0]);
  operands.q = on_device[0].data();
  operands.k = on_device[1].data();
  operands.v = on_device[2].data();
  operands.o = on_device[3].data();
  if (problem.want_lse) operands.lse = static_cast<float*>(on_device[4].data());
  operands.q_strides = Strides::bshd(problem.seq_q, problem.heads, problem.dim_qk);
  operands.k_strides = Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_qk);
  operands.v_strides = Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_v);
  operands.o_strides = Strides::bshd(problem.seq_q, problem.heads, problem.dim_v);
}

void Tensors::read_back(const Device& device) {
  device.copy_to_host(o.data(), on_device[3].data(), o.size() * sizeof o[0]);
  device.copy_to_host(lse.data(), on_device[4].data(), lse.size() * sizeof lse[0]);
}

HostInputs inputs_of(const Tensors& tensors) {
  HostInputs inputs;
  inputs.q = tensors.q.data(), inputs.k = tensors.k.data(), inputs.v = tensors.v.data();
  inputs.q_strides = tensors.operands.q_strides;
  inputs.k_strides = tensors.operands.k_strides;
  inputs.v_strides = tensors.operands.v_strides;
  return inputs;
}

}  // namespace annulus::test
