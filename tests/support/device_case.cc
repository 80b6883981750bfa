#include "support/device_case.h"

#include <doctest/doctest.h>

#include <cstring>

#include "api/impl.h"
#include "device/stream.h"

namespace annulus::test {
namespace {

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

float* floats(const DeviceMemory& memory) { return static_cast<float*>(memory.data()); }

std::size_t rows_of(const Problem& problem) {
  return static_cast<std::size_t>(problem.batch * problem.heads * problem.seq_q);
}

}  // namespace

HostResult DeviceAnswer::result() const {
  HostResult result;
  if (carried) {
    result.state = &state;
  } else {
    result.o = o.bits.data();
    result.o_strides = o.strides;
    result.lse = lse.empty() ? nullptr : lse.data();
  }
  return result;
}

bool operator==(const DeviceAnswer& a, const DeviceAnswer& b) {
  return same_bits(a.o.bits, b.o.bits) && same_bits(a.lse, b.lse) &&
         same_bits(a.state.acc, b.state.acc) && same_bits(a.state.m, b.state.m) &&
         same_bits(a.state.l, b.state.l);
}

DeviceCase::DeviceCase(const Device& device, const Case& host) : device_(device), host_(host) {
  const Problem& problem = host.problem;
  const std::size_t rows = rows_of(problem);
  const std::size_t acc_bytes = rows * static_cast<std::size_t>(problem.dim_v) * sizeof(float);
  const auto upload_tensor = [&](const HostTensor& tensor) {
    return upload(tensor.bits.data(), tensor.bits.size() * 2);
  };
  q_ = upload_tensor(host.q);
  k_ = upload_tensor(host.k);
  v_ = upload_tensor(host.v);
  operands_.q = q_.data();
  operands_.k = k_.data();
  operands_.v = v_.data();
  operands_.q_strides = host.q.strides;
  operands_.k_strides = host.k.strides;
  operands_.v_strides = host.v.strides;
  operands_.o_strides = host.o.strides;
  const auto upload_scales = [&](const std::vector<float>& scales, DeviceMemory& to) {
    if (scales.empty()) return static_cast<const float*>(nullptr);
    to = upload(scales.data(), scales.size() * sizeof(float));
    return static_cast<const float*>(floats(to));
  };
  operands_.scale_q = upload_scales(host.scale_q, scale_q_);
  operands_.scale_k = upload_scales(host.scale_k, scale_k_);
  operands_.scale_v = upload_scales(host.scale_v, scale_v_);
  if (problem.carry_in) {
    acc_in_ = upload(host.state_in.acc.data(), acc_bytes);
    m_in_ = upload(host.state_in.m.data(), rows * sizeof(float));
    l_in_ = upload(host.state_in.l.data(), rows * sizeof(float));
    operands_.state_in = {floats(acc_in_), floats(m_in_), floats(l_in_)};
  }
  if (problem.carry_out) {
    acc_out_ = device.allocate(acc_bytes);
    m_out_ = device.allocate(rows * sizeof(float));
    l_out_ = device.allocate(rows * sizeof(float));
    operands_.state_out = {floats(acc_out_), floats(m_out_), floats(l_out_)};
  } else {
    o_ = device.allocate(host.o.bits.size() * 2);
    operands_.o = o_.data();
  }
  if (problem.want_lse) {
    lse_ = device.allocate(rows * sizeof(float));
    operands_.lse = floats(lse_);
  }
  reset();
}

DeviceMemory DeviceCase::upload(const void* data, std::size_t bytes) const {
  DeviceMemory memory = device_.allocate(bytes);
  device_.copy_to_device(memory.data(), data, bytes);
  return memory;
}

void DeviceCase::reset() {
  for (const DeviceMemory* memory : {&o_, &lse_, &acc_out_, &m_out_, &l_out_}) {
    const std::vector<std::uint16_t> nan((memory->bytes() + 1) / 2, 0x7fff);
    device_.copy_to_device(memory->data(), nan.data(), memory->bytes());
  }
}

DeviceAnswer DeviceCase::answer() const {
  device_.synchronize();
  const Problem& problem = host_.problem;
  const std::size_t rows = rows_of(problem);
  DeviceAnswer answer;
  answer.carried = problem.carry_out;
  if (problem.carry_out) {
    answer.state = HostState::empty(static_cast<std::int64_t>(rows), problem.dim_v);
    device_.copy_to_host(answer.state.acc.data(), acc_out_.data(), acc_out_.bytes());
    device_.copy_to_host(answer.state.m.data(), m_out_.data(), m_out_.bytes());
    device_.copy_to_host(answer.state.l.data(), l_out_.data(), l_out_.bytes());
  } else {
    answer.o = host_.o;
    device_.copy_to_host(answer.o.bits.data(), o_.data(), o_.bytes());
  }
  if (problem.want_lse) {
    answer.lse.resize(rows);
    device_.copy_to_host(answer.lse.data(), lse_.data(), lse_.bytes());
  }
  return answer;
}

void DeviceCase::check_replay(const std::function<void(void* stream)>& run,
                              const DeviceAnswer& expected) {
  const device::ContextPointer& context = api::inside(device_).context;
  const abi::CudaTable& table = context->table();
  if (table.stream_begin_capture == nullptr) return;
  const device::Stream stream(context);
  const device::ContextScope scope(*context);
  abi::CUgraph graph = nullptr;
  abi::CUgraphExec exec = nullptr;
  reset();
  REQUIRE(table.stream_begin_capture(stream.handle(), 0) == 0);
  run(stream.handle());
  REQUIRE(table.stream_end_capture(stream.handle(), &graph) == 0);
  CHECK_FALSE(answer() == expected);
  REQUIRE(table.graph_instantiate(&exec, graph, 0) == 0);
  for (int replay = 0; replay < 2; ++replay) {
    reset();
    REQUIRE(table.graph_launch(exec, stream.handle()) == 0);
    stream.synchronize();
    CHECK(answer() == expected);
  }
  CHECK(table.graph_exec_destroy(exec) == 0);
  CHECK(table.graph_destroy(graph) == 0);
}

DeviceAnswer run_case(const Device& device, const Case& host, const PlanOptions& options) {
  DeviceCase memory(device, host);
  const Plan plan = device.plan(host.problem, options);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  plan.run(nullptr, memory.operands(), workspace.data());
  return memory.answer();
}

}  // namespace annulus::test
