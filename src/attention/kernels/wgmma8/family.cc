// The family wgmma8: the kernels of wgmma for elements of 8 bits, which no other family takes.

#include "attention/kernels/family.h"
#include "attention/kernels/wgmma/config.h"
#include "attention/kernels/wgmma/tensor_maps.h"

namespace annulus::attention {
namespace {

constexpr KernelConfig wgmma8(int rows, int columns, int warps, int stages, int blocks = 1,
                              int heads = 1) {
  return WgmmaConfig{rows, columns, warps, stages, false, blocks, heads}.of(wgmma8_family);
}

// The tiles of wgmma in half the bytes. What that leaves of shared memory holds V transposed.
constexpr ShippedConfig kShipped[] = {
    {{64, 64}, wgmma8(64, 64, 8, 2, 2, 2), Reach::kHopper},
    {{64, 64}, wgmma8(128, 64, 8, 2, 2), Reach::kHopper},
    {{64, 64}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{96, 96}, wgmma8(128, 64, 8, 2, 2), Reach::kHopper},
    {{96, 96}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{128, 128}, wgmma8(64, 64, 8, 2, 2, 2), Reach::kHopper},
    {{128, 128}, wgmma8(128, 64, 8, 2, 2), Reach::kHopper},
    {{128, 128}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{192, 128}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{192, 192}, wgmma8(128, 64, 8, 2), Reach::kHopper},
    {{256, 256}, wgmma8(128, 64, 8, 2), Reach::kHopper},
};

// Kernels of two tiles to a step have no register to spare for parts of rows.
bool takes_parts_of_rows(const KernelConfig& config) { return wgmma_config(config).blocks == 1; }

void enumerate(const AddCandidates& add) { wgmma_enumerate(wgmma8_family, add); }

}  // namespace

constinit const Family wgmma8_family = {
    .name = "wgmma8",
    .revision = 1,
    .instructions = "tensor maps and warpgroup products of",
    .source = "kernels/wgmma/wgmma_forward.cu",
    .element_bytes = 1,
    .persistent = true,
    .fits_blocks = true,
    .fields = kWgmmaFields,
    .shipped = kShipped,
    .why_illegal = wgmma_why_illegal,
    .enumerate = enumerate,
    .cta = wgmma_cta,
    .footprint = wgmma_footprint,
    .takes_parts = takes_parts_of_rows,
    .why_unsuited = wgmma_why_unsuited,
    .why_no_strides = why_no_tensor_maps,
    .spec = wgmma_spec,
    .tile_work = wgmma_tile_work,
    .row_work = wgmma_row_work,
    .pace = wgmma_pace,
    .shape = wgmma_shape,
    .bind = wgmma_bind,
};

}  // namespace annulus::attention
