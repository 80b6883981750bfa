// The family wgmma8: the kernels of wgmma for elements of 8 bits. It is the only family for them.

#include "attention/kernels/wgmma/record.h"

namespace annulus::attention {
namespace {

constexpr KernelConfig wgmma8(int rows, int columns, int warps, int stages, int blocks = 1,
                              int heads = 1) {
  return WgmmaConfig{rows, columns, warps, stages, false, blocks, heads}.of(wgmma8_family);
}

// At head dim 128, two warpgroups without turns were 1.02 times as fast as with turns in one run of
// an H200: products of 8-bit elements take half the time, so they rarely meet.
constexpr KernelConfig without_turns(KernelConfig config) {
  WgmmaConfig own = wgmma_config(config);
  own.without_turns = true;
  return own.of(wgmma8_family);
}

// The tiles of wgmma with half the bytes. The shared memory that this saves holds the transposed V.
constexpr ShippedConfig kShipped[] = {
    {{64, 64}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{64, 64}, wgmma8(128, 64, 8, 2, 2), Reach::kHopper},
    {{64, 64}, wgmma8(64, 64, 8, 2, 2, 2), Reach::kHopper},
    {{96, 96}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{96, 96}, wgmma8(128, 64, 8, 2, 2), Reach::kHopper},
    {{128, 128}, without_turns(wgmma8(128, 128, 8, 2)), Reach::kHopper},
    {{128, 128}, wgmma8(128, 64, 8, 2, 2), Reach::kHopper},
    {{128, 128}, wgmma8(64, 64, 8, 2, 2, 2), Reach::kHopper},
    {{192, 128}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{192, 192}, wgmma8(128, 64, 8, 2), Reach::kHopper},
    {{256, 256}, wgmma8(128, 64, 8, 2), Reach::kHopper},
};

// Kernels with two tiles to a step have no registers left for parts of rows.
bool can_split_rows(const KernelConfig& config) { return wgmma_config(config).blocks == 1; }

}  // namespace

constinit const Family wgmma8_family =
    wgmma_record<wgmma8_family>({.name = "wgmma8",
                                 .revision = 4,
                                 .element_bytes = 1,
                                 // It is 0, because scales belong to rows of the tensor.
                                 .second_segment_rows = 0,
                                 .shipped = kShipped,
                                 .supports_kv_splits = can_split_rows});

}  // namespace annulus::attention
