// The specification of the kernels of wgmma and wgmma8: the constants of Shape that
// templates/README.md lists.

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <vector>

#include "attention/kernels/wgmma/config.h"

namespace annulus::attention {
namespace {

// The products that the kernel computes.
std::vector<std::string> products(const KernelConfig& any, const KernelFeatures& features) {
  constexpr std::int64_t kPartColumns = 32;  // the same as in kernels/wgmma/parts.cuh
  const bool in_parts = any.family->element_bytes == 1 && promote_steps(any, features.dims) == 0;
  const std::int64_t scores = wgmma_config(any).step_columns();
  const std::int64_t values = in_parts ? kPartColumns : std::int64_t{features.dims.v};
  return product_names(features.dtype, scores, values);
}

// Keys of a tile that share their scales; 0 if the kernel reads scales once for a work.
std::int64_t scale_columns(const KernelConfig& any, const KernelFeatures& features) {
  if (!reads_scales_by_step(any, features)) return 0;
  return std::gcd(std::int64_t{wgmma_config(any).tile_columns}, features.scale_block);
}

}  // namespace

std::vector<std::string> product_names(Dtype dtype, std::int64_t scores, std::int64_t values) {
  const char* type = dtype == Dtype::kFloat8E4M3 ? "E4M3"
                     : dtype == Dtype::kFloat16  ? "F16"
                                                 : "BF16";
  std::vector<std::string> names = {fmt::format("ANNULUS_WGMMA_{}", type),
                                    fmt::format("ANNULUS_WGMMA_{}", scores)};
  if (values != scores) names.push_back(fmt::format("ANNULUS_WGMMA_{}", values));
  return names;
}

jit::KernelSpec wgmma_spec(const KernelConfig& any, const KernelFeatures& features,
                           jit::Arch arch) {
  using jit::Constant;
  const WgmmaConfig config = wgmma_config(any);
  const Dims& dims = features.dims;
  std::vector<Constant> tile = {
      Constant::integer("kConsumers", config.warpgroups()),
      Constant::integer("kColumns", config.step_columns()),
      Constant::integer("kBlocks", config.blocks),
      Constant::boolean("kPackedHeads", config.heads > 1),
      Constant::integer("kCluster", config.cluster),
      Constant::boolean("kQueryInRegisters", config.query_in_registers),
      Constant::boolean("kOutputApart", output_apart(any, dims)),
      Constant::type("Output", element_of(features.dtype_o)),
      Constant::integer("kPromoteSteps", promote_steps(any, dims)),
      Constant::integer("kResident", config.resident),
      Constant::boolean("kTurns", !config.without_turns),
      Constant::boolean("kDrawsWork", features.draws_work && !features.general)};
  if (any.family->element_bytes == 1) {
    tile.push_back(Constant::integer("kScaleColumns", scale_columns(any, features)));
  }
  const char* entry = config.cluster > 1 ? "wgmma_cluster_forward" : "wgmma_forward";
  jit::KernelSpec spec =
      forward_spec(entry, family_of(any).source, config.stages, tile, features, arch);
  spec.defines = products(any, features);
  return spec;
}

}  // namespace annulus::attention
