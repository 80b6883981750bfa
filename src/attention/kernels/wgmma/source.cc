// The specification of the kernels of wgmma and wgmma8: Shape's constants in templates/README.md.

#include <numeric>

#include "attention/kernels/wgmma/config.h"

namespace annulus::attention {

jit::KernelSpec wgmma_spec(const KernelConfig& any, const KernelFeatures& features,
                           jit::Arch arch) {
  using jit::Constant;
  const WgmmaConfig config = wgmma_config(any);
  const Dims& dims = features.dims;
  std::vector<Constant> tile = {Constant::integer("kConsumers", config.warpgroups()),
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
                                Constant::boolean("kDrawsWork", features.draws_work)};
  if (any.family->element_bytes == 1) {
    tile.push_back(Constant::integer(
        "kScaleColumns", std::gcd(std::int64_t{config.tile_columns}, features.scale_block)));
  }
  const char* entry = config.cluster > 1 ? "wgmma_cluster_forward" : "wgmma_forward";
  return forward_spec(entry, any.family->source, config.stages, tile, features, arch);
}

}  // namespace annulus::attention
