#ifndef ANNULUS_ATTENTION_KERNELS_WGMMA_RECORD_H_
#define ANNULUS_ATTENTION_KERNELS_WGMMA_RECORD_H_

// Makes the record of a family whose kernels are in templates/kernels/wgmma. Everything that wgmma
// and wgmma8 have in common is here; each family's own members are in its folder.

#include <cstdint>
#include <span>

#include "attention/kernels/family.h"
#include "attention/kernels/wgmma/config.h"
#include "attention/kernels/wgmma/tensor_maps.h"

namespace annulus::attention {

// The members of Family in which the two families differ.
struct WgmmaOwn {
  const char* name;
  int revision;
  std::int64_t element_bytes;
  std::int64_t second_segment_rows;
  std::span<const ShippedConfig> shipped;
  bool (*supports_kv_splits)(const KernelConfig& config);
  void (*for_blocks)(const AddCandidates& add) = nullptr;
  std::span<const ShippedConfig> general = {};
};

// kFamily is the record that this function makes; the configurations of the record point to it.
template <const Family& kFamily>
constexpr Family wgmma_record(const WgmmaOwn& own) {
  return {
      ConfigFamily{
          .name = own.name,
          .revision = own.revision,
          .instructions = "tensor maps and warpgroup products of",
          .element_bytes = own.element_bytes,
          .fields = kWgmmaFields,
          .why_illegal = wgmma_why_illegal,
          .enumerate = [](const AddCandidates& add) { wgmma_enumerate(kFamily, add); },
          .cta = wgmma_cta,
          .footprint = wgmma_footprint,
      },
      ProblemKernels{
          .source = "kernels/wgmma/wgmma_forward.cu",
          .second_segment_rows = own.second_segment_rows,
          .persistent = true,
          .shipped = own.shipped,
          .general = own.general,
          .for_blocks = own.for_blocks,
          .supports_kv_splits = own.supports_kv_splits,
          .why_unsuited = wgmma_why_unsuited,
          .why_no_strides = why_no_tensor_maps,
          .spec = wgmma_spec,
          .tile_work = wgmma_tile_work,
          .row_work = wgmma_row_work,
          .pace = wgmma_pace,
          .shape = wgmma_shape,
          .bind = wgmma_bind,
      },
  };
}

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_WGMMA_RECORD_H_
