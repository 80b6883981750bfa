#ifndef ANNULUS_ATTENTION_KERNELS_WGMMA_CONFIG_H_
#define ANNULUS_ATTENTION_KERNELS_WGMMA_CONFIG_H_

// The configurations of the families wgmma and wgmma8: templates/kernels/wgmma/wgmma_forward.cu for
// elements of 16 and of 8 bits, sm_90a alone. Where the two differ, they do by the size of an
// element, which the record of the family tells.

#include <cstdint>
#include <optional>
#include <string>

#include "attention/kernels/family.h"

namespace annulus::attention {

struct WgmmaConfig {
  int tile_rows = 128;  // M = 64 rows of each warpgroup, over the heads of a CTA
  int tile_columns = 128;
  int warps = 8;                    // four of them own 64 rows, and four more copy
  int stages = 2;                   // buffers of K and V
  bool query_in_registers = false;  // else Q is read again from shared memory in every step
  int blocks = 1;                   // tiles of the list that are one step of `blocks` N keys
  int heads = 1;                    // heads of a CTA
  int cluster = 1;  // CTAs that share the copies of K and V: of further heads, or where every
                    // query sees every key, of the next tile row

  constexpr KernelConfig of(const Family& family) const {
    return {&family,
            tile_rows,
            tile_columns,
            {warps, stages, query_in_registers, blocks, heads, cluster}};
  }
  int warpgroups() const { return warps / 4; }
  std::int64_t step_columns() const { return std::int64_t{blocks} * tile_columns; }
};

// Requires: a configuration of one of the two families.
constexpr WgmmaConfig wgmma_config(const KernelConfig& config) {
  return {config.tile_rows,   config.tile_columns, config.own[0], config.own[1],
          config.own[2] != 0, config.own[3],       config.own[4], config.own[5]};
}

inline constexpr ConfigField kWgmmaFields[] = {
    {"warps", 'w', ConfigField::Form::kNumber, 32},
    {"stages", 's', ConfigField::Form::kNumber, 16, 1},
    {"query_in_registers", 'q', ConfigField::Form::kFlag, 1, 1},
    {"blocks", 'b', ConfigField::Form::kOption, 16},
    {"heads", 'h', ConfigField::Form::kOption, 16},
    {"cluster", 'c', ConfigField::Form::kOption, 16},
};

// Whether O has shared memory of its own. Else it leaves through that of Q, and the next Q waits
// for it.
bool output_apart(const KernelConfig& config, const Dims& dims);

// Steps of 8-bit elements after which the output is promoted to a sum in fp32, because tensor cores
// add their products up with few bits. 0 where there is no room: their products with V then come a
// few columns at a time, each part added to the output in fp32 (kernels/wgmma/parts.cuh).
int promote_steps(const KernelConfig& config, const Dims& dims);

// The functions of the record that both families share.
std::optional<std::string> wgmma_why_illegal(const KernelConfig& config, const Dims& dims,
                                             jit::Arch arch);
void wgmma_enumerate(const Family& family, const AddCandidates& add);
CtaShape wgmma_cta(const KernelConfig& config);
Footprint wgmma_footprint(const KernelConfig& config, const Dims& dims);
std::optional<std::string> wgmma_why_unsuited(const KernelConfig& config,
                                              const SuitQuestion& question);
jit::KernelSpec wgmma_spec(const KernelConfig& config, const KernelFeatures& features,
                           jit::Arch arch);
KernelWork wgmma_tile_work(const KernelConfig& config, const KernelFeatures& features,
                           const ElementWork& element);
KernelWork wgmma_row_work(const KernelConfig& config, const KernelFeatures& features);
Pace wgmma_pace(const KernelConfig& config);
LaunchShape wgmma_shape(const KernelConfig& config, const Problem& problem, const WorkGroup& group,
                        std::int64_t rows, int multiprocessors);
void wgmma_bind(const BindRequest& request, BoundLaunch* launch);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_WGMMA_CONFIG_H_
