#include "program/input/host_memory.h"

#include <unistd.h>

#include "base/fail.h"

namespace annulus::program {

void check_host_memory(const Problem& problem) {
  const auto elements = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return static_cast<double>(problem.batch) * static_cast<double>(rows) *
           static_cast<double>(heads) * static_cast<double>(dim);
  };
  const double inputs = elements(problem.seq_q, problem.heads, problem.dim_qk) +
                        elements(problem.seq_k, problem.kv_heads, problem.dim_qk + problem.dim_v);
  const double output = elements(problem.seq_q, problem.heads, problem.dim_v);
  check_host_memory(inputs, output, "a smaller batch, fewer heads or a shorter sequence");
}

void check_host_memory(double inputs, double output, const char* advice) {
  // Each element takes two bytes on the host and two on the simulated device. The oracle's answer
  // takes eight.
  const double needed = 4 * (inputs + output) + 8 * output;
  const double there =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed > 0.8 * there) {
    base::fail(
        ErrorCode::kUnsupported,
        "the operands need about {:.1f} GB of host memory, this machine has {:.1f} GB; use {}",
        needed / 1e9, there / 1e9, advice);
  }
}

}  // namespace annulus::program
