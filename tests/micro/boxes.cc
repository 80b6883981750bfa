// The begin of shared memory, and copies of boxes into and out of it.

#include "attention/oracle/reference.h"
#include "base/thread_pool.h"
#include "micro/bench.h"
#include "support/random_problem.h"

namespace annulus::micro {
namespace {

constexpr int kBoxRows = 64;
constexpr int kBoxColumns = 64;

int wrong_in_box(const std::vector<std::uint16_t>& box, const std::vector<std::uint16_t>& tensor,
                 std::int64_t first, std::int64_t row_stride, int rows) {
  int wrong = 0;
  for (int row = 0; row < kBoxRows; ++row) {
    for (int column = 0; column < kBoxColumns; ++column) {
      // The 128-byte swizzle exchanges chunks of eight elements by row % 8.
      const int at = row * kBoxColumns + (((column / 8) ^ (row % 8)) * 8) + column % 8;
      const std::uint16_t want =
          row < rows ? tensor[static_cast<std::size_t>(first + row * row_stride + column)] : 0;
      wrong += box[static_cast<std::size_t>(at)] != want;
    }
  }
  return wrong;
}

}  // namespace

Result load_and_base(const Bench& bench) {
  Result result;
  const unsigned bytes = 232448;  // the largest shared memory of a CTA of sm_90
  for (const bool cluster : {false, true}) {
    const jit::KernelRequest kernel =
        bench.kernel("boxes.cu", cluster ? "shared_base_of_cluster" : "shared_base");
    const device::Buffer out = bench.upload(std::vector<unsigned>(2, 0xffffffff));
    const abi::CUdeviceptr to = out.address();
    bench.run(kernel, {.grid = 2, .threads = 32, .shared_bytes = bytes}, {&bytes, &to});
    const auto beyond = bench.download<unsigned>(out);
    result.numbers[cluster ? "cluster" : "plain"] = {{"bytes_behind_a_multiple_of_1024", beyond},
                                                     {"registers", bench.registers(kernel)}};
    result.passed = result.passed && beyond == std::vector<unsigned>(2, 0);
  }
  return result;
}

Result one_box(const Bench& bench) {
  Result result;
  const jit::KernelRequest kernel = bench.kernel("boxes.cu", "copy_box");
  struct Shape {
    const char* name;
    int rows, heads, batches;
    std::int64_t row_stride, head_stride, batch_stride;
    int head, batch;
  };
  const Shape shapes[] = {
      {"one head, five rows beyond the end", 59, 1, 1, 64, 7, 0, 0, 0},
      {"heads within a row", 59, 3, 2, 3 * 72, 72, 59 * 3 * 72, 2, 1},
      {"heads around the rows", 64, 3, 2, 64, 64 * 64, 3 * 64 * 64, 1, 1},
      {"one row", 1, 2, 2, 8, 64, 128, 1, 1},
  };
  for (const Shape& s : shapes) {
    std::vector<std::uint16_t> tensor(40000);
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<std::uint16_t>(i + 1);
    const device::Buffer memory = bench.upload(tensor);
    const device::Buffer out = bench.zeros<std::uint16_t>(kBoxRows * kBoxColumns);
    const auto map = device::encode_tensor_map(
        *bench.context(), {.data = reinterpret_cast<const void*>(memory.address()),
                           .columns = kBoxColumns,
                           .rows = s.rows,
                           .heads = s.heads,
                           .batches = s.batches,
                           .row_stride = s.row_stride,
                           .head_stride = s.head_stride,
                           .batch_stride = s.batch_stride,
                           .box_rows = kBoxRows});
    const int row = 0;
    const abi::CUdeviceptr to = out.address();
    bench.run(kernel, {.shared_bytes = kBoxRows * kBoxColumns * 2 + 8},
              {&map, &row, &s.head, &s.batch, &to});
    const int wrong =
        wrong_in_box(bench.download<std::uint16_t>(out), tensor,
                     s.head * s.head_stride + s.batch * s.batch_stride, s.row_stride, s.rows);
    result.numbers["wrong_elements"][s.name] = wrong;
    result.passed = result.passed && wrong == 0;
  }
  return result;
}

Result store_and_reuse(const Bench& bench) {
  constexpr int kRows = 5, kColumns = 96, kPitch = 128;
  constexpr std::uint16_t kUntouched = 0xabcd;
  Result result;
  const device::Buffer memory =
      bench.upload(std::vector<std::uint16_t>(std::size_t{64} * kPitch, kUntouched));
  const auto map = device::encode_tensor_map(
      *bench.context(), {.data = reinterpret_cast<const void*>(memory.address()),
                         .columns = kColumns,
                         .rows = kRows,
                         .heads = 1,
                         .batches = 1,
                         .row_stride = kPitch,
                         .box_rows = kBoxRows});
  bench.run(bench.kernel("boxes.cu", "store_box"), {.shared_bytes = 64 * 256}, {&map});
  const auto got = bench.download<std::uint16_t>(memory);
  int wrong = 0, touched = 0;
  for (int i = 0; i < 64 * kPitch; ++i) {
    const bool inside = i / kPitch < kRows && i % kPitch < kColumns;
    const std::uint16_t value = got[static_cast<std::size_t>(i)];
    wrong += inside && value != i + 1;
    touched += !inside && value != kUntouched;
  }
  result.numbers = {{"wrong_elements", wrong}, {"touched_outside", touched}};
  result.passed = wrong == 0 && touched == 0;
  return result;
}

// Runs many works of few steps on one CTA with Q in registers. Each work frees its buffer of Q as
// soon as it has read it.
Result tiny_works(const Bench& bench) {
  Result result;
  Problem problem;
  problem.heads = problem.kv_heads = bench.simulated() ? 24 : 1000;
  problem.seq_q = 70;
  problem.seq_k = 130;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  const test::Case host = test::make_case(problem, 7);
  PlanOptions options;
  options.config = "wgmma m128 n128 w8 s2 q";
  options.max_multiprocessors = 1;
  const device::Buffer q = bench.upload(host.q.bits);
  const device::Buffer k = bench.upload(host.k.bits);
  const device::Buffer v = bench.upload(host.v.bits);
  const device::Buffer o = bench.upload(host.o.bits);
  Operands operands;
  operands.q = reinterpret_cast<const void*>(q.address());
  operands.k = reinterpret_cast<const void*>(k.address());
  operands.v = reinterpret_cast<const void*>(v.address());
  operands.o = reinterpret_cast<void*>(o.address());
  operands.q_strides = host.q.strides;
  operands.k_strides = host.k.strides;
  operands.v_strides = host.v.strides;
  operands.o_strides = host.o.strides;
  bench.run(problem, options, operands);
  const auto got = bench.download<std::uint16_t>(o);
  HostResult answer;
  answer.o = got.data();
  answer.o_strides = host.o.strides;
  base::ThreadPool pool;
  const Reference oracle = attention::reference(problem, host.inputs(), pool);
  const auto comparison = annulus::compare(problem, oracle, answer);
  result.numbers = {{"works", problem.heads},
                    {"wrong_rows", comparison.wrong_rows},
                    {"error_of_a_row", comparison.error_row_max}};
  result.passed = comparison.within_tolerance;
  return result;
}

}  // namespace annulus::micro
