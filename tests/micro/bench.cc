#include "micro/bench.h"

#include "abi/libraries.h"
#include "api/impl.h"
#include "base/env.h"
#include "base/float8.h"
#include "base/half.h"
#include "base/random.h"
#include "device/stream.h"

// Made by tools/cmake/embed_files.cmake from the .cu files of this folder.
namespace annulus::jit {
std::span<const EmbeddedFile> embedded_micro();
}

namespace annulus::micro {
namespace {

std::shared_ptr<const jit::TemplateSet> templates_and_ours() {
  auto files = jit::TemplateSet::embedded()->files();
  for (const jit::EmbeddedFile& file : jit::embedded_micro()) {
    files[std::string("micro/") + file.name] = std::string(file.text);
  }
  return std::make_shared<const jit::TemplateSet>(std::move(files));
}

}  // namespace

Bench::Bench(const std::string& device_name)
    : device_(Device::open(device_name)),
      context_(api::inside(device_).context),
      arch_(api::inside(device_).arch),
      compiler_(std::make_unique<jit::Compiler>(
          std::make_shared<const abi::NvrtcLibrary>(
              abi::open_nvrtc(abi::default_search(base::read_environment()),
                              context_->info().simulated ? 0 : context_->driver().version())),
          templates_and_ours(),
          context_->info().simulated ? jit::ImageKind::kPtx : jit::ImageKind::kCubin)) {}

device::Function Bench::kernel(const std::string& file, const std::string& entry,
                               std::vector<jit::Constant> shape,
                               std::vector<std::string> defines) const {
  jit::KernelSpec spec{
      .family = entry, .arch = arch_, .file = "micro/" + file, .entry = entry, .structs = {}};
  if (!shape.empty()) spec.structs.push_back({"Shape", std::move(shape), {}});
  defines.push_back("ANNULUS_TRAP_LATE_WAITS");
  spec.defines = std::move(defines);
  const jit::CompiledKernel compiled = compiler_->compile(spec);
  const std::string_view image(reinterpret_cast<const char*>(compiled.image.data()),
                               compiled.image.size());
  return device::Module::load(context_, image)->function(compiled.symbol);
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

void Bench::run(const device::Function& kernel, const Launch& launch,
                std::initializer_list<const void*> parameters) const {
  kernel.allow_dynamic_shared(launch.shared_bytes);
  device::launch(kernel, {launch.grid}, {launch.threads}, launch.shared_bytes, nullptr, parameters);
  device::synchronize(*context_, nullptr);
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
      {"registers_and_turns", "setmaxnreg or named barriers hang or miscount", registers_and_turns},
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
