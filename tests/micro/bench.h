#ifndef ANNULUS_TESTS_MICRO_BENCH_H_
#define ANNULUS_TESTS_MICRO_BENCH_H_

// The equipment of a micro test: a device, kernels of tests/micro compiled for it, and memory.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ahead_kernels.h"
#include "annulus/device.h"
#include "annulus/problem.h"
#include "device/buffer.h"
#include "device/tensor_map.h"
#include "jit/kernel_cache.h"

namespace annulus::micro {

using Json = nlohmann::ordered_json;

// The arguments of a kernel launch, apart from the kernel's parameters.
struct Launch {
  unsigned grid = 1;
  unsigned threads = 128;
  std::size_t shared_bytes = 0;
};

class Bench {
 public:
  // With `ahead`, no kernel runs. Kernels that would run are added to `ahead`, and their outputs
  // stay zero.
  explicit Bench(const std::string& device_name, bench::AheadKernels* ahead = nullptr);

  const Device& device() const { return device_; }
  const device::ContextPointer& context() const { return context_; }
  // Whether the kernels are for a simulated device, on which loops are shorter.
  bool simulated() const { return ahead_ ? ahead_->simulated() : device_.info().simulated; }

  // A kernel of tests/micro, such as "products.cu", "score_product", with its Shape if it has one.
  // It comes from the same places as the library's kernels: the cache, folders of kernels compiled
  // ahead, or NVRTC. Waits of the kernel that take too long trap.
  jit::KernelRequest kernel(const std::string& file, const std::string& entry,
                            std::vector<jit::Constant> shape = {},
                            std::vector<std::string> defines = {}) const;
  // The registers of a thread, as the driver reports them.
  int registers(const jit::KernelRequest& kernel) const;

  template <typename T>
  device::Buffer upload(const std::vector<T>& values) const {
    return device::upload<T>(context_, values);
  }
  template <typename T>
  device::Buffer zeros(std::size_t count) const {
    return upload(std::vector<T>(count));
  }
  template <typename T>
  std::vector<T> download(const device::Buffer& buffer) const {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    device::copy_to_host(*context_, values.data(), buffer.address(), buffer.bytes());
    return values;
  }
  // The tensor map of a matrix that fills its whole buffer.
  abi::CUtensorMap map(const device::Buffer& buffer, std::int64_t rows, std::int64_t columns,
                       std::uint32_t box_rows, std::int64_t element_bytes = 2,
                       std::int64_t box_row_bytes = 128) const;

  // Runs the kernel and waits. Throws the error of the device.
  void run(const jit::KernelRequest& kernel, const Launch& launch,
           std::initializer_list<const void*> parameters) const;
  // Plans the problem with a kernel of the library, runs the plan and waits.
  void run(const Problem& problem, const PlanOptions& options, const Operands& operands) const;

 private:
  Device device_;
  device::ContextPointer context_;
  bench::AheadKernels* ahead_;
  jit::Arch arch_;
  std::shared_ptr<const jit::Compiler> compiler_;
  std::unique_ptr<jit::KernelCache> kernels_;
};

// A row-major matrix of small integers from -limit to limit.
struct Matrix {
  int rows = 0, columns = 0;
  std::vector<int> values;
  int at(int row, int column) const {
    return values[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                  static_cast<std::size_t>(column)];
  }
};
Matrix random_matrix(int rows, int columns, int limit, std::uint64_t seed);
std::vector<std::uint16_t> to_bf16(const Matrix& matrix);
std::vector<std::uint8_t> to_e4m3(const Matrix& matrix);

// The outcome of a case.
struct Result {
  bool passed = true;
  Json numbers = Json::object();
};

struct MicroCase {
  const char* name;
  const char* tells;  // the meaning of a failure; docs/gpu-backlog.md describes the consequences
  Result (*run)(const Bench& bench);
};

// All cases, in the order in which a device should run them.
std::span<const MicroCase> all_cases();

Result load_and_base(const Bench& bench);
Result one_box(const Bench& bench);
Result step_clocks(const Bench& bench);
Result drawn_works(const Bench& bench);
Result endless_rows(const Bench& bench);
Result boxes_of_rows(const Bench& bench);
Result boxes_outside(const Bench& bench);
Result scores_by_rows(const Bench& bench);
Result any_strides(const Bench& bench);
Result score_products(const Bench& bench);
Result value_products(const Bench& bench);
Result value_products_narrow_panels(const Bench& bench);
Result value_products_half_panel(const Bench& bench);
Result e4m3_values(const Bench& bench);
Result registers_and_turns(const Bench& bench);
Result pair_of_ctas(const Bench& bench);
Result pair_clocks(const Bench& bench);
Result store_and_reuse(const Bench& bench);
Result tiny_works(const Bench& bench);

}  // namespace annulus::micro

#endif  // ANNULUS_TESTS_MICRO_BENCH_H_
