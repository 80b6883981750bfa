// Prints the largest errors of the kernels against the float64 oracle for each dtype, over all head
// dims and features, on standard normal operands. It also prints the whole error of O, including
// the rounding of Q, K and V, if some of their elements are outliers. It uses simulated devices.
// The figures do not depend on the machine, because the same inputs give the same bits. So each
// figure is computed once and repeated in every round.

#include <annulus/device.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attention/oracle/reference.h"
#include "attention/problem/dims.h"
#include "base/half.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "harness.h"
#include "program/run/operands.h"

namespace {

using annulus::Dtype;
using annulus::Problem;
using annulus::program::HostTensor;

constexpr std::int64_t kScaleBlock = 64;

struct Tensors {
  HostTensor q, k, v;
};

Tensors make_tensors(const Problem& problem) {
  const auto tensor = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return annulus::program::make_tensor(problem.batch, rows, heads, dim,
                                         annulus::program::Order::kBshd);
  };
  return {tensor(problem.seq_q, problem.heads, problem.dim_qk),
          tensor(problem.seq_k, problem.kv_heads, problem.dim_qk),
          tensor(problem.seq_k, problem.kv_heads, problem.dim_v)};
}

Tensors quantised(const Tensors& tensors, Dtype dtype, std::int64_t block) {
  using annulus::program::quantise;
  return {quantise(tensors.q, dtype, block), quantise(tensors.k, dtype, block),
          quantise(tensors.v, dtype, block)};
}

annulus::Device open(const char* name) {
  annulus::DeviceOptions options;
  options.name = name;
  options.simulation.checked = false;
  return annulus::Device::open(options);
}

struct Answer {
  HostTensor o;
  std::vector<float> lse;
};

Answer run(const annulus::Device& device, const Problem& problem, const Tensors& tensors) {
  Answer answer;
  answer.o = annulus::program::make_tensor(problem.batch, problem.seq_q, problem.heads,
                                           problem.dim_v, annulus::program::Order::kBshd);
  const annulus::program::DeviceOperands memory =
      annulus::program::upload(device, tensors.q, tensors.k, tensors.v, answer.o);
  const annulus::Plan plan = device.plan(problem);
  const annulus::DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  plan.run(nullptr, memory.operands, workspace.data());
  device.copy_to_host(answer.o.bits.data(), memory.o.data(), memory.o.bytes());
  answer.lse.resize(memory.lse.bytes() / sizeof(float));
  device.copy_to_host(answer.lse.data(), memory.lse.data(), memory.lse.bytes());
  return answer;
}

annulus::Reference oracle_of(const Problem& problem, const Tensors& tensors,
                             annulus::base::ThreadPool& pool) {
  return annulus::attention::reference(
      problem, annulus::program::host_inputs(tensors.q, tensors.k, tensors.v), pool);
}

struct Errors {
  double row = 0;
  double frobenius = 0;
  double lse = 0;
};

// The largest errors over all head dims and some patterns, with grouped heads, odd lengths and a
// soft-cap.
Errors worst_of(Dtype dtype) {
  const bool float8 = dtype == Dtype::kFloat8E4M3;
  const annulus::Device device = open(float8 ? "sim:sm_90a" : "sim:sm_80");
  annulus::base::ThreadPool pool;
  Errors worst;
  std::uint64_t seed = 1;
  for (const annulus::attention::Dims dims : annulus::attention::supported_dims()) {
    if (float8 && dims.qk < 64) continue;
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
        Tensors tensors = make_tensors(problem);
        const Dtype made_as = float8 ? Dtype::kBfloat16 : dtype;
        for (HostTensor* tensor : {&tensors.q, &tensors.k, &tensors.v}) {
          annulus::program::fill_normal(*tensor, made_as, seed++);
        }
        if (float8) {
          problem.scale_blocks = {kScaleBlock, kScaleBlock, kScaleBlock};
          tensors = quantised(tensors, made_as, kScaleBlock);
        }
        const Answer answer = run(device, problem, tensors);
        const auto errors = annulus::compare(
            problem, oracle_of(problem, tensors, pool),
            {answer.o.bits.data(), answer.o.strides(), answer.lse.data(), nullptr});
        worst.row = std::max(worst.row, errors.error_row_max);
        worst.frobenius = std::max(worst.frobenius, errors.error_o);
        worst.lse = std::max(worst.lse, errors.error_lse);
      }
    }
  }
  return worst;
}

// Root mean square errors of O against the oracle of fp16 operands. They include the rounding of
// operands.
struct Outliers {
  double fp16 = 0;
  double blocks = 0;     // e4m3 with one scale for each kScaleBlock rows
  double heads = 0;      // e4m3 with one scale for each head
  double kernel = 0;     // error of `blocks` against the oracle of the rounded operands
  double of_oracle = 0;  // root mean square of O itself
};

double rmse(const HostTensor& o, Dtype dtype, const std::vector<double>& exact) {
  double sum = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double error = static_cast<double>(annulus::base::to_float(dtype, o.bits[i])) - exact[i];
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(exact.size()));
}

// Operands as in FlashAttention-3 (arXiv 2407.08608, 4.3). They are standard normal, and one
// element in a thousand has a normal number with a standard deviation of 10 added. There is one
// head, so O is in the oracle's order.
Outliers outliers() {
  Problem problem;
  problem.seq_q = problem.seq_k = 2048;
  problem.dim_qk = problem.dim_v = 128;
  problem.dtype = Dtype::kFloat16;
  problem.want_lse = true;
  Tensors tensors = make_tensors(problem);
  annulus::base::Random random(1);
  for (HostTensor* tensor : {&tensors.q, &tensors.k, &tensors.v}) {
    for (std::uint16_t& bits : tensor->bits) {
      float value = random.normal();
      if (random.uniform() < 0.001) value += 10 * random.normal();
      bits = annulus::base::float_to_fp16(value);
    }
  }
  const annulus::Device device = open("sim:sm_90a");
  annulus::base::ThreadPool pool;
  const std::vector<double> exact = oracle_of(problem, tensors, pool).o;
  Outliers errors;
  errors.fp16 = rmse(run(device, problem, tensors).o, Dtype::kFloat16, exact);
  problem.dtype = Dtype::kFloat8E4M3;
  problem.dtype_o = Dtype::kFloat16;
  for (const std::int64_t block : {std::int64_t{0}, kScaleBlock}) {
    problem.scale_blocks = {block, block, block};
    const Tensors rounded = quantised(tensors, Dtype::kFloat16, block);
    const HostTensor o = run(device, problem, rounded).o;
    (block == 0 ? errors.heads : errors.blocks) = rmse(o, Dtype::kFloat16, exact);
    if (block == 0) continue;
    errors.kernel = rmse(o, Dtype::kFloat16, oracle_of(problem, rounded, pool).o);
  }
  for (const double value : exact) errors.of_oracle += value * value;
  errors.of_oracle = std::sqrt(errors.of_oracle / static_cast<double>(exact.size()));
  return errors;
}

}  // namespace

int main(int argc, char** argv) {
  annulus::bench::Bench bench("accuracy_bench", argc, argv);
  std::map<Dtype, Errors> known;
  for (const Dtype dtype : {Dtype::kBfloat16, Dtype::kFloat16, Dtype::kFloat8E4M3}) {
    const auto errors = [&known, dtype]() -> const Errors& {
      const auto found = known.find(dtype);
      return found != known.end() ? found->second : known[dtype] = worst_of(dtype);
    };
    const annulus::Tolerance law = annulus::tolerance(dtype);
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
  std::optional<Outliers> measured;
  const auto add = [&](const char* what, double Outliers::*member) {
    bench.add(
        {.name = std::string("D128 S2048, an outlier in a thousand: ") + what, .unit = "absolute"},
        [&measured, member] {
          if (!measured) measured = outliers();
          return *measured.*member;
        });
  };
  add("root mean square of O", &Outliers::of_oracle);
  add("RMSE of fp16", &Outliers::fp16);
  add("RMSE of e4m3, a scale for a head", &Outliers::heads);
  add("RMSE of e4m3, a scale for 64 rows", &Outliers::blocks);
  add("of that the kernel's own", &Outliers::kernel);
  return bench.run();
}
