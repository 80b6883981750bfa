#include "micro/bench.h"

#include "api/impl.h"
#include "base/float8.h"
#include "base/half.h"
#include "base/random.h"
#include "device/stream.h"
#include "planner/planner.h"

// tools/cmake/embed_files.cmake generates this function from the .cu files of this folder.
namespace annulus::jit {
std::span<const EmbeddedFile> embedded_micro();
}

namespace annulus::micro {

Bench::Bench(const std::string& device_name, bench::AheadKernels* ahead)
    : device_(Device::open(device_name)),
      context_(api::inside(device_).context),
      ahead_(ahead),
      arch_(ahead ? ahead->limits().front().arch : api::inside(device_).arch) {
  const Device::Impl& impl = api::inside(device_);
  compiler_ = (ahead ? ahead->compiler() : impl.compiler)
                  ->with(jit::TemplateSet::embedded()->with("micro", jit::embedded_micro()));
  kernels_ = std::make_unique<jit::KernelCache>(context_, compiler_, impl.disk, impl.folders);
}

jit::KernelRequest Bench::kernel(const std::string& file, const std::string& entry,
                                 std::vector<jit::Constant> shape,
                                 std::vector<std::string> defines) const {
  jit::KernelSpec spec{
      .family = entry, .arch = arch_, .file = "micro/" + file, .entry = entry, .structs = {}};
  if (!shape.empty()) spec.structs.push_back({"Shape", std::move(shape), {}});
  defines.push_back("ANNULUS_TRAP_LATE_WAITS");
  spec.defines = std::move(defines);
  if (ahead_) ahead_->add(compiler_, spec);
  return compiler_->prepare(std::move(spec));
}

int Bench::registers(const jit::KernelRequest& kernel) const {
  return ahead_ ? 0 : kernels_->get(kernel).kernel->function.attributes().registers;
}

abi::CUtensorMap Bench::map(const device::Buffer& buffer, std::int64_t rows, std::int64_t columns,
                            std::uint32_t box_rows, std::int64_t element_bytes,
                            std::int64_t box_row_bytes) const {
  return device::encode_tensor_map(*context_,
                                   {.data = reinterpret_cast<const void*>(buffer.address()),
                                    .element_bytes = element_bytes,
                                    .columns = columns,
                                    .rows = rows,
                                    .heads = 1,
                                    .batches = 1,
                                    .row_stride = columns,
                                    .box_rows = box_rows,
                                    .box_row_bytes = box_row_bytes});
}

void Bench::run(const jit::KernelRequest& kernel, const Launch& launch,
                std::initializer_list<const void*> parameters) const {
  if (ahead_) return;
  const device::Function function = kernels_->get(kernel).kernel->function;
  function.allow_dynamic_shared(launch.shared_bytes);
  device::launch(function, {launch.grid}, {launch.threads}, launch.shared_bytes, nullptr,
                 parameters);
  device::synchronize(*context_, nullptr);
}

void Bench::run(const Problem& problem, const PlanOptions& options,
                const Operands& operands) const {
  if (!ahead_) {
    device_.plan(problem, options).run(nullptr, operands);
    device_.synchronize();
    return;
  }
  planner::Planner planner = api::planner_of(api::inside(device_));
  for (const attention::DeviceLimits& limits : ahead_->limits()) {
    planner.limits = limits;
    for (jit::KernelSpec& spec : planner.kernels_of({problem, options, nullptr})) {
      ahead_->add(ahead_->compiler(), std::move(spec));
    }
  }
}

Matrix random_matrix(int rows, int columns, int limit, std::uint64_t seed) {
  Matrix matrix{rows, columns, {}};
  base::Random random(seed);
  for (int i = 0; i < rows * columns; ++i) {
    matrix.values.push_back(
        static_cast<int>(random.below(static_cast<std::uint32_t>(2 * limit + 1))) - limit);
  }
  return matrix;
}

std::vector<std::uint16_t> to_bf16(const Matrix& matrix) {
  std::vector<std::uint16_t> bits;
  for (const int value : matrix.values)
    bits.push_back(base::float_to_bf16(static_cast<float>(value)));
  return bits;
}

std::vector<std::uint8_t> to_e4m3(const Matrix& matrix) {
  std::vector<std::uint8_t> bits;
  for (const int value : matrix.values)
    bits.push_back(base::float_to_e4m3(static_cast<float>(value)));
  return bits;
}

std::span<const MicroCase> all_cases() {
  static constexpr MicroCase kCases[] = {
      {"load_and_base",
       "the driver does not take cubins of this NVRTC, or not all of shared memory, "
       "or shared memory does not begin at a multiple of 1024",
       load_and_base},
      {"one_box", "strides, swizzle or zeros of a tensor map are not as the kernels think",
       one_box},
      {"step_clocks",
       "wrong contents: copies of many lanes that follow one another; the clocks judge nothing",
       step_clocks},
      {"drawn_works",
       "works that a cluster draws are lost or seen twice, or the CTAs wait for ever: the number "
       "that is stored asynchronously, or arrivals at the other CTA",
       drawn_works},
      {"endless_rows", "tensor maps whose rows have no end are refused, or address other rows",
       endless_rows},
      {"boxes_of_rows",
       "boxes of a few rows whose place is no multiple of 1024 bytes are swizzled otherwise",
       boxes_of_rows},
      {"boxes_outside",
       "a hang: boxes outside the tensor are not counted in full; wrong rows: they are no zeros",
       boxes_outside},
      {"scores_by_rows",
       "products over a tile that many lanes have copied are wrong, or begin before it is there",
       scores_by_rows},
      {"registers_and_turns", "setmaxnreg or named barriers hang or miscount", registers_and_turns},
      {"any_strides",
       "strides that do not grow from dimension to dimension are refused or mixed up", any_strides},
      {"scores", "K-major descriptors or register lists are wrong", score_products},
      {"values", "distances of MN-major descriptors, or the layout of a first operand in registers",
       value_products},
      {"values_narrow_panels",
       "head dims that no panel of 64 columns divides, in panels of 32: the 64-byte swizzle of "
       "boxes "
       "or of descriptors, or the distance between panels",
       value_products_narrow_panels},
      {"values_half_panel",
       "the same head dims in panels of 64 columns, the last of them half full, which the kernels "
       "do "
       "not use: columns from 64 on alone wrong: the half panel; all wrong: the distance between "
       "panels; if it passes, narrower panels are a matter of speed alone",
       value_products_half_panel},
      {"e4m3", "the byte order of transposed V, or that of P", e4m3_values},
      {"pair", "copies for both CTAs: peers, bytes counted before they are expected, the exit",
       pair_of_ctas},
      {"pair_clocks",
       "what an arrival at the other CTA costs, with release to the cluster and "
       "without; judges nothing",
       pair_clocks},
      {"store_and_reuse", "a store reads shared memory too late, or writes beyond the tensor",
       store_and_reuse},
      {"tiny_works", "Q in registers is overwritten before it has been read", tiny_works},
  };
  return kCases;
}

}  // namespace annulus::micro
