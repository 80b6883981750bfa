#ifndef ANNULUS_ATTENTION_KERNELS_MMA_CONFIG_H_
#define ANNULUS_ATTENTION_KERNELS_MMA_CONFIG_H_

// The configurations of the family mma: templates/kernels/mma/mma_forward.cu, sm_80 and newer.

#include "attention/kernels/family.h"

namespace annulus::attention {

extern const Family mma_family;

struct MmaConfig {
  int tile_rows = 64;  // M, the rows that one CTA computes
  int tile_columns = 64;
  int warps = 4;                    // warps; each owns M / warps rows, 16 or 32
  int stages = 2;                   // buffers; with 1, V arrives while the scores are computed
  bool query_in_registers = false;  // otherwise every step reads Q from shared memory again
  int resident = 1;                 // CTAs whose registers one multiprocessor must hold

  constexpr operator KernelConfig() const {
    return {&mma_family, tile_rows, tile_columns, {warps, stages, query_in_registers, resident}};
  }
};

// Requires: a configuration of the family.
constexpr MmaConfig mma_config(const KernelConfig& config) {
  return {config.tile_rows, config.tile_columns, config.own[0],
          config.own[1],    config.own[2] != 0,  config.own[3]};
}

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_MMA_CONFIG_H_
