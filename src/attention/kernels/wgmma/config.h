#ifndef ANNULUS_ATTENTION_KERNELS_WGMMA_CONFIG_H_
#define ANNULUS_ATTENTION_KERNELS_WGMMA_CONFIG_H_

// The configurations of the families wgmma and wgmma8: templates/kernels/wgmma/wgmma_forward.cu for
// elements of 16 and of 8 bits, on sm_90a only. The two families differ in the size of an element,
// which the family's record states.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/family.h"

namespace annulus::attention {

struct WgmmaConfig {
  int tile_rows = 128;  // M = 64 rows of each warpgroup, added up over the heads of a CTA
  int tile_columns = 128;
  int warps = 8;                    // warps that compute, four for 64 rows; four more warps copy
  int stages = 2;                   // buffers of K and V
  bool query_in_registers = false;  // otherwise every step reads Q from shared memory again
  int blocks = 1;                   // tiles of the list in one step, which has blocks x N keys
  int heads = 1;                    // heads of a CTA
  int cluster = 1;   // CTAs that share the copies of K and V; they compute further heads, or the
                     // next tile row if its queries see the same keys
  int resident = 1;  // CTAs of a multiprocessor; two have one warpgroup each
  bool without_turns = false;  // consumers start products whenever they can

  constexpr KernelConfig of(const Family& family) const {
    return {&family,
            tile_rows,
            tile_columns,
            {warps, stages, query_in_registers, blocks, heads, cluster, resident, without_turns}};
  }
  int warpgroups() const { return warps / 4; }
  std::int64_t step_columns() const { return std::int64_t{blocks} * tile_columns; }
};

// Requires: a configuration of one of the two families.
constexpr WgmmaConfig wgmma_config(const KernelConfig& config) {
  return {config.tile_rows, config.tile_columns, config.own[0], config.own[1], config.own[2] != 0,
          config.own[3],    config.own[4],       config.own[5], config.own[6], config.own[7] != 0};
}

inline constexpr ConfigField kWgmmaFields[] = {
    {"warps", 'w', ConfigField::Form::kNumber, 32},
    {"stages", 's', ConfigField::Form::kNumber, 16, 1},
    {"query_in_registers", 'q', ConfigField::Form::kFlag, 1, 1},
    {"blocks", 'b', ConfigField::Form::kOption, 16},
    {"heads", 'h', ConfigField::Form::kOption, 16},
    {"cluster", 'c', ConfigField::Form::kOption, 16},
    {"resident", 'x', ConfigField::Form::kOption, 32},
    {"without_turns", 'f', ConfigField::Form::kFlag, 1},
};

// Bytes of a row of the panels in which V is copied. ValuePanels in templates/tile/panel.cuh
// computes the same on the device.
std::int64_t value_row_bytes(std::int64_t dim_v, std::int64_t element_bytes);

// The macros that the source of a kernel defines for its products: products of scores with `scores`
// columns, and products with V with `values` columns. templates/ptx/wgmma.cuh has the names.
std::vector<std::string> product_names(Dtype dtype, std::int64_t scores, std::int64_t values);

// Whether O has shared memory of its own. Otherwise O is staged in the memory of Q, and the copy of
// the next Q waits for it.
bool output_apart(const KernelConfig& config, const Dims& dims);

// For 8-bit elements, the number of steps after which the output is promoted to a sum in fp32,
// because tensor cores sum 8-bit products with few bits. 0 if shared memory has no room for the
// sum; products with V then come a few columns at a time, and each part is added to the output in
// fp32 (templates/kernels/wgmma/parts.cuh). 0 for 16-bit elements.
int promote_steps(const KernelConfig& config, const Dims& dims);

// Whether a kernel of 8-bit elements reads scales in each step. It reads them once for a work if
// Q, K and V have one scale for a head and no state is carried in (Scales in
// templates/kernels/wgmma/scales.cuh). False for 16-bit elements.
bool reads_scales_by_step(const KernelConfig& config, const KernelFeatures& features);

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
                           const TileContext& context);
KernelWork wgmma_row_work(const KernelConfig& config, const KernelFeatures& features);
Pace wgmma_pace(const KernelConfig& config);
LaunchShape wgmma_shape(const KernelConfig& config, const Problem& problem, const WorkGroup& group,
                        std::int64_t rows, int multiprocessors);
void wgmma_bind(const BindRequest& request, BoundLaunch* launch);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_WGMMA_CONFIG_H_
