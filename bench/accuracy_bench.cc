// The largest errors of the kernels against the float64 oracle, over all head dims and features,
// per dtype, on a simulated sm_80. Standard normal operands. The figures do not depend on the
// machine: the same inputs give the same bits, so each is computed once and repeated in every
// round.

#include <annulus/device.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "attention/dims.h"
#include "attention/reference.h"
#include "base/half.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "harness.h"

namespace {

using annulus::Dtype;
using annulus::Problem;
using annulus::Strides;

struct Errors {
  double row = 0;
  double frobenius = 0;
  double lse = 0;
};

std::vector<std::uint16_t> normal_bits(annulus::base::Random& random, std::int64_t count,
                                       Dtype dtype) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(count));
  for (std::uint16_t& value : bits) {
    const float number = random.normal();
    value = dtype == Dtype::kBfloat16 ? annulus::base::float_to_bf16(number)
                                      : annulus::base::float_to_fp16(number);
  }
  return bits;
}

Errors errors_of(const annulus::Device& device, const Problem& problem, std::uint64_t seed,
                 annulus::base::ThreadPool& pool) {
  annulus::base::Random random(seed);
  const Strides q_strides = Strides::bshd(problem.seq_q, problem.heads, problem.dim_qk);
  const Strides k_strides = Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_qk);
  const Strides v_strides = Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_v);
  const Strides o_strides = Strides::bshd(problem.seq_q, problem.heads, problem.dim_v);
  const auto q = normal_bits(random, problem.batch * q_strides.batch, problem.dtype);
  const auto k = normal_bits(random, problem.batch * k_strides.batch, problem.dtype);
  const auto v = normal_bits(random, problem.batch * v_strides.batch, problem.dtype);
  std::vector<std::uint16_t> o(static_cast<std::size_t>(problem.batch * o_strides.batch));
  std::vector<float> lse(static_cast<std::size_t>(problem.batch * problem.heads * problem.seq_q));

  const auto upload = [&](const std::vector<std::uint16_t>& from) {
    annulus::DeviceMemory memory = device.allocate(from.size() * 2);
    device.copy_to_device(memory.data(), from.data(), memory.bytes());
    return memory;
  };
  const annulus::DeviceMemory device_q = upload(q), device_k = upload(k), device_v = upload(v);
  const annulus::DeviceMemory device_o = device.allocate(o.size() * 2);
  const annulus::DeviceMemory device_lse = device.allocate(lse.size() * sizeof(float));
  const annulus::Plan plan = device.plan(problem);
  const annulus::DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  annulus::Operands operands;
  operands.q = device_q.data();
  operands.k = device_k.data();
  operands.v = device_v.data();
  operands.o = device_o.data();
  operands.lse = static_cast<float*>(device_lse.data());
  operands.q_strides = q_strides;
  operands.k_strides = k_strides;
  operands.v_strides = v_strides;
  operands.o_strides = o_strides;
  plan.run(nullptr, operands, workspace.data());
  device.copy_to_host(o.data(), device_o.data(), device_o.bytes());
  device.copy_to_host(lse.data(), device_lse.data(), device_lse.bytes());

  const auto oracle = annulus::attention::reference(
      problem, {q.data(), k.data(), v.data(), q_strides, k_strides, v_strides, nullptr}, pool);
  const auto comparison =
      annulus::attention::compare(problem, oracle, {o.data(), o_strides, lse.data(), nullptr});
  return {comparison.error_row_max, comparison.error_o, comparison.error_lse};
}

// The worst of all head dims and of these patterns, with grouped heads, odd lengths and a soft-cap.
Errors worst_of(Dtype dtype) {
  annulus::DeviceOptions options;
  options.name = "sim:sm_80";
  options.simulation.checked = false;
  const annulus::Device device = annulus::Device::open(options);
  annulus::base::ThreadPool pool;
  Errors worst;
  std::uint64_t seed = 1;
  for (const annulus::attention::Dims dims : annulus::attention::supported_dims()) {
    for (const char* pattern : {"dense", "causal", "causal & (window(63,0) | global(8))"}) {
      for (const double softcap : {0.0, 5.0}) {
        Problem problem;
        problem.heads = 4;
        problem.kv_heads = 2;
        problem.seq_q = 301;
        problem.seq_k = 333;
        problem.dim_qk = dims.qk;
        problem.dim_v = dims.v;
        problem.dtype = dtype;
        problem.pattern = annulus::Pattern::parse(pattern);
        problem.score.softcap = softcap;
        problem.want_lse = true;
        const Errors errors = errors_of(device, problem, seed++, pool);
        worst.row = std::max(worst.row, errors.row);
        worst.frobenius = std::max(worst.frobenius, errors.frobenius);
        worst.lse = std::max(worst.lse, errors.lse);
      }
    }
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  annulus::bench::Bench bench("accuracy_bench", argc, argv);
  std::map<Dtype, Errors> known;
  for (const Dtype dtype : {Dtype::kBfloat16, Dtype::kFloat16}) {
    const auto errors = [&known, dtype]() -> const Errors& {
      const auto found = known.find(dtype);
      return found != known.end() ? found->second : known[dtype] = worst_of(dtype);
    };
    const annulus::attention::Tolerance law = annulus::attention::tolerance(dtype);
    const std::string name = annulus::to_string(dtype);
    const auto add = [&](const char* what, double bar, double Errors::*member) {
      bench.add(
          {.name = name + ": " + what, .unit = "relative", .bar = bar, .lower_is_better = true},
          [=] { return errors().*member; });
    };
    add("largest error of a row of O", law.row, &Errors::row);
    add("largest Frobenius error of a (batch, head)", law.frobenius, &Errors::frobenius);
    add("largest error of an LSE", law.lse, &Errors::lse);
  }
  return bench.run();
}
