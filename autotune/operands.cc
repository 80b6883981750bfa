#include "autotune/operands.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "base/random.h"

namespace annulus::autotune {
namespace {

std::vector<std::uint8_t> normal_bytes(base::Random& random, std::int64_t count, Dtype dtype) {
  const std::size_t size = size_in_bytes(dtype);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count) * size);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    const std::uint16_t bits = base::from_float(dtype, random.normal());
    std::memcpy(bytes.data() + at, &bits, size);
  }
  return bytes;
}

HostState random_state(base::Random& random, std::int64_t rows, std::int64_t dim_v) {
  HostState state = HostState::empty(rows, dim_v);
  const auto dim = static_cast<std::size_t>(dim_v);
  for (std::size_t row = 0; row < state.m.size(); ++row) {
    if (random.below(8) == 0) continue;
    state.m[row] = 4 * random.normal();
    state.l[row] = 1 + 20 * static_cast<float>(random.uniform());
    for (std::size_t d = 0; d < dim; ++d) {
      state.acc[row * dim + d] = state.l[row] * 0.5f * random.normal();
    }
  }
  return state;
}

template <typename T>
T* pointer(const device::Buffer& buffer) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(buffer.address()));
}

// A buffer of `bytes` bytes, filled with those of `from` over and over.
device::Buffer repeated(const device::ContextPointer& context, std::size_t bytes,
                        const std::vector<std::uint8_t>& from) {
  device::Buffer buffer(context, bytes);
  const std::size_t step = from.size();
  for (std::size_t at = 0; at < buffer.bytes(); at += step) {
    device::copy_to_device(*context, buffer.address() + at, from.data(),
                           std::min(step, buffer.bytes() - at));
  }
  return buffer;
}

std::int64_t rows_of(const Problem& problem) {
  return problem.batch * problem.heads * problem.seq_q;
}

}  // namespace

Strides q_strides(const Problem& problem) {
  return Strides::bshd(problem.seq_q, problem.heads, problem.dim_qk);
}
Strides k_strides(const Problem& problem) {
  return Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_qk);
}
Strides v_strides(const Problem& problem) {
  return Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_v);
}
Strides o_strides(const Problem& problem) {
  return Strides::bshd(problem.seq_q, problem.heads, problem.dim_v);
}

HostInputs HostOperands::inputs(const Problem& problem) const {
  return {q.data(),
          k.data(),
          v.data(),
          q_strides(problem),
          k_strides(problem),
          v_strides(problem),
          problem.carry_in ? &state_in : nullptr};
}

HostOperands random_operands(const Problem& problem, std::int64_t max_elements,
                             std::uint64_t seed) {
  base::Random random(seed);
  HostOperands host;
  const auto bits = [&](const Strides& strides) {
    return normal_bytes(random, std::min(problem.batch * strides.batch, max_elements),
                        problem.dtype);
  };
  host.q = bits(q_strides(problem));
  host.k = bits(k_strides(problem));
  host.v = bits(v_strides(problem));
  if (problem.carry_in) host.state_in = random_state(random, rows_of(problem), problem.dim_v);
  return host;
}

// Uploads Q, K, V and a carried state, and allocates what the problem writes: the state or O (of
// 16-bit elements), and LSE where it is wanted. Scales stay null, which means 1.
DeviceOperands::DeviceOperands(const device::ContextPointer& on, const Problem& problem,
                               const HostOperands& host)
    : context(on) {
  const auto bytes = [&](const Strides& strides) {
    return static_cast<std::size_t>(problem.batch * strides.batch) * size_in_bytes(problem.dtype);
  };
  q = repeated(on, bytes(q_strides(problem)), host.q);
  k = repeated(on, bytes(k_strides(problem)), host.k);
  v = repeated(on, bytes(v_strides(problem)), host.v);
  operands.q = pointer<void>(q);
  operands.k = pointer<void>(k);
  operands.v = pointer<void>(v);
  operands.q_strides = q_strides(problem);
  operands.k_strides = k_strides(problem);
  operands.v_strides = v_strides(problem);
  operands.o_strides = o_strides(problem);
  const auto rows = static_cast<std::size_t>(rows_of(problem));
  const std::size_t acc_bytes = rows * static_cast<std::size_t>(problem.dim_v) * sizeof(float);
  if (problem.carry_in) {
    acc_in = device::upload(on, std::span(host.state_in.acc));
    m_in = device::upload(on, std::span(host.state_in.m));
    l_in = device::upload(on, std::span(host.state_in.l));
    operands.state_in = {pointer<float>(acc_in), pointer<float>(m_in), pointer<float>(l_in)};
  }
  if (problem.carry_out) {
    acc_out = device::Buffer(on, acc_bytes);
    m_out = device::Buffer(on, rows * sizeof(float));
    l_out = device::Buffer(on, rows * sizeof(float));
    operands.state_out = {pointer<float>(acc_out), pointer<float>(m_out), pointer<float>(l_out)};
  } else {
    const std::int64_t elements = problem.batch * o_strides(problem).batch;
    o = device::Buffer(on, static_cast<std::size_t>(elements) * 2);
    operands.o = pointer<void>(o);
  }
  if (problem.want_lse) {
    lse = device::Buffer(on, rows * sizeof(float));
    operands.lse = pointer<float>(lse);
  }
  forget_results();
}

void DeviceOperands::forget_results() const {
  for (const device::Buffer* buffer : {&o, &lse, &acc_out, &m_out, &l_out}) {
    device::fill_bytes_async(*context, buffer->address(), 0xff, buffer->bytes(), nullptr);
  }
}

}  // namespace annulus::autotune
