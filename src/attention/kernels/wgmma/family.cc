// The family wgmma: tensor maps and warpgroup products of 16-bit elements, on sm_90a only.

#include "attention/kernels/wgmma/record.h"

namespace annulus::attention {
namespace {

constexpr KernelConfig wgmma(int rows, int columns, int warps, int stages, int blocks = 1,
                             int heads = 1) {
  return WgmmaConfig{rows, columns, warps, stages, false, blocks, heads}.of(wgmma_family);
}

// The configuration in clusters of two CTAs, which copy K and V once for both.
constexpr KernelConfig in_twos(KernelConfig config) {
  WgmmaConfig own = wgmma_config(config);
  own.cluster = 2;
  return own.of(wgmma_family);
}

// The configuration with Q in registers, so products read only K and V from shared memory.
constexpr KernelConfig with_query(KernelConfig config) {
  WgmmaConfig own = wgmma_config(config);
  own.query_in_registers = true;
  return own.of(wgmma_family);
}

// The configuration with two CTAs to a multiprocessor, so that one multiplies while the other
// computes probabilities.
constexpr KernelConfig twice(KernelConfig config) {
  WgmmaConfig own = wgmma_config(config);
  own.resident = 2;
  return own.of(wgmma_family);
}

// A product of a warpgroup has 64 rows. Two warpgroups use all registers of a CTA; up to head dim
// 128, three warpgroups fit. Two heads to a CTA, or two tiles to a step, are for patterns whose
// blocks are smaller than the tile that keeps the tensor cores busy. Clusters are for kernels that
// would be bound by L2: on an H200 they gain 3 % at head dim 256 and nothing at head dim 128, so
// there a configuration without a cluster, which can also draw its works, comes first. Three
// warpgroups keep tensor cores busier at head dim 64 than two with Q in registers: 542 against 450
// TFLOP/s in one run of the H200. Other configurations keep Q in registers if enough are left, so
// products read less from shared memory.
constexpr ShippedConfig kShipped[] = {
    {{64, 64}, wgmma(192, 128, 12, 2), Reach::kHopper},
    {{64, 64}, with_query(wgmma(128, 128, 8, 2)), Reach::kHopper},
    {{64, 64}, with_query(wgmma(128, 64, 8, 2, 2)), Reach::kHopper},
    {{64, 64}, with_query(wgmma(64, 64, 8, 2, 2, 2)), Reach::kHopper},
    {{64, 64}, twice(with_query(wgmma(64, 64, 4, 2))), Reach::kHopper},
    {{64, 64}, twice(with_query(wgmma(64, 128, 4, 2))), Reach::kHopper},
    {{64, 64}, with_query(wgmma(64, 64, 4, 2, 2)), Reach::kHopper},
    {{96, 96}, wgmma(128, 128, 8, 2), Reach::kHopper},
    {{96, 96}, with_query(wgmma(128, 64, 8, 2, 2)), Reach::kHopper},
    {{96, 96}, with_query(wgmma(64, 64, 8, 2, 2, 2)), Reach::kHopper},
    {{96, 96}, wgmma(192, 96, 12, 2), Reach::kHopper},
    {{128, 128}, wgmma(128, 128, 8, 2), Reach::kHopper},
    {{128, 128}, in_twos(wgmma(128, 128, 8, 2)), Reach::kHopper},
    {{128, 128}, in_twos(wgmma(128, 176, 8, 2)), Reach::kHopper},
    {{128, 128}, wgmma(128, 64, 8, 2, 2), Reach::kHopper},
    {{128, 128}, in_twos(wgmma(128, 64, 8, 2, 2)), Reach::kHopper},
    {{128, 128}, wgmma(64, 64, 8, 2, 2, 2), Reach::kHopper},
    {{128, 128}, in_twos(wgmma(64, 64, 8, 2, 2, 2)), Reach::kHopper},
    {{128, 128}, wgmma(192, 80, 12, 2), Reach::kHopper},
    {{128, 128}, twice(with_query(wgmma(64, 64, 4, 2))), Reach::kHopper},
    {{128, 128}, wgmma(64, 64, 4, 2, 2), Reach::kHopper},
    {{192, 128}, in_twos(wgmma(128, 128, 8, 2)), Reach::kHopper},
    {{192, 128}, wgmma(128, 128, 8, 2), Reach::kHopper},
    {{192, 192}, wgmma(128, 96, 8, 2), Reach::kHopper},
    {{192, 192}, wgmma(128, 64, 8, 2), Reach::kHopper},
    {{256, 256}, in_twos(wgmma(128, 80, 8, 2)), Reach::kHopper},
    {{256, 256}, wgmma(128, 80, 8, 2), Reach::kHopper},
    {{256, 256}, in_twos(wgmma(128, 64, 8, 2)), Reach::kHopper},
    {{256, 256}, wgmma(128, 64, 8, 2), Reach::kHopper},
};

// One CTA of 128 rows, like the largest shipped configuration without clusters.
constexpr ShippedConfig kGeneral[] = {
    {{64, 64}, with_query(wgmma(128, 128, 8, 2)), Reach::kHopper},
    {{96, 96}, wgmma(128, 128, 8, 2), Reach::kHopper},
    {{128, 128}, wgmma(128, 128, 8, 2), Reach::kHopper},
    {{192, 128}, wgmma(128, 128, 8, 2), Reach::kHopper},
    {{192, 192}, wgmma(128, 96, 8, 2), Reach::kHopper},
    {{256, 256}, wgmma(128, 64, 8, 2), Reach::kHopper},
};

bool can_split_rows(const KernelConfig&) { return true; }

// Tiles of 64 rows for blocks of 32 to 112 columns, with two CTAs to a multiprocessor. A tile has
// the columns of a block.
void wgmma_for_blocks(const AddCandidates& add) {
  add({{twice(with_query(wgmma(64, 32, 4, 2, 2))), twice(with_query(wgmma(64, 48, 4, 2, 2))),
        twice(with_query(wgmma(64, 80, 4, 2))), twice(with_query(wgmma(64, 80, 4, 1))),
        twice(with_query(wgmma(64, 96, 4, 2))), twice(with_query(wgmma(64, 96, 4, 1))),
        twice(with_query(wgmma(64, 112, 4, 2))), twice(with_query(wgmma(64, 112, 4, 1)))}});
}

}  // namespace

constinit const Family wgmma_family =
    wgmma_record<wgmma_family>({.name = "wgmma",
                                .revision = 4,
                                .element_bytes = 2,
                                .second_segment_rows = 64,  // the rows of a box of O
                                .shipped = kShipped,
                                .supports_kv_splits = can_split_rows,
                                .for_blocks = wgmma_for_blocks,
                                .general = kGeneral});

}  // namespace annulus::attention
