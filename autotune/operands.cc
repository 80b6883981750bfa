#include "autotune/operands.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "base/random.h"

namespace annulus::autotune {

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

DeviceRows::DeviceRows(const device::ContextPointer& on, const RowFeatures& wanted,
                       const HostState& in)
    : context(on), features(wanted) {
  const auto rows = static_cast<std::size_t>(features.rows);
  const std::size_t elements = rows * static_cast<std::size_t>(features.dim_v);
  if (features.carry_in) {
    acc_in = device::upload(on, std::span(in.acc));
    m_in = device::upload(on, std::span(in.m));
    l_in = device::upload(on, std::span(in.l));
    state_in = {pointer<float>(acc_in), pointer<float>(m_in), pointer<float>(l_in)};
  }
  if (features.carry_out) {
    acc_out = device::Buffer(on, elements * sizeof(float));
    m_out = device::Buffer(on, rows * sizeof(float));
    l_out = device::Buffer(on, rows * sizeof(float));
    state_out = {pointer<float>(acc_out), pointer<float>(m_out), pointer<float>(l_out)};
  } else {
    o = device::Buffer(on, elements * 2);
  }
  if (features.want_lse) lse = device::Buffer(on, rows * sizeof(float));
  forget_results();
}

void DeviceRows::forget_results() const {
  for (const device::Buffer* buffer : {&o, &lse, &acc_out, &m_out, &l_out}) {
    device::fill_bytes_async(*context, buffer->address(), 0xff, buffer->bytes(), nullptr);
  }
}

HostRows DeviceRows::results() const {
  HostRows made;
  const auto fetch = [&](const device::Buffer& from, auto* to) {
    to->resize(from.bytes() / sizeof((*to)[0]));
    device::copy_to_host(*context, to->data(), from.address(), from.bytes());
  };
  if (features.carry_out) {
    made.state = HostState::empty(features.rows, features.dim_v);
    fetch(acc_out, &made.state.acc);
    fetch(m_out, &made.state.m);
    fetch(l_out, &made.state.l);
  }
  fetch(o, &made.o);
  fetch(lse, &made.lse);
  return made;
}

namespace {

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

// The scales stay null, which means 1.
DeviceOperands::DeviceOperands(const device::ContextPointer& on, const Problem& problem,
                               const HostOperands& host)
    : rows(on,
           {.rows = rows_of(problem),
            .dim_v = problem.dim_v,
            .want_lse = problem.want_lse,
            .carry_in = problem.carry_in,
            .carry_out = problem.carry_out},
           host.state_in) {
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
  operands.state_in = rows.state_in;
  operands.state_out = rows.state_out;
  operands.o = pointer<void>(rows.o);
  operands.lse = pointer<float>(rows.lse);
}

}  // namespace annulus::autotune
