#ifndef ANNULUS_BATCH_DECODE_CONFIG_H_
#define ANNULUS_BATCH_DECODE_CONFIG_H_

// The configurations of templates/kernels/batch/decode_forward.cu.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_source.h"
#include "jit/spec.h"
#include "params/batch_params.h"

namespace annulus::batch {

struct DecodeConfig {
  int keys = 16;                   // that a warp takes at a time
  int stages = 2;                  // buffers of a warp, for so many keys each
  bool query_in_registers = true;  // else Q is read again from shared memory in every step
  int resident = 2;                // CTAs that one multiprocessor holds

  static constexpr int kWarps = 4;
  int tile_columns() const { return kWarps * keys; }
  int threads() const { return 32 * kWarps; }
  friend bool operator==(const DecodeConfig&, const DecodeConfig&) = default;
};

// "decode k16 s2 q x2".
std::string to_string(const DecodeConfig& config);

// Dynamic shared memory of a CTA.
std::int64_t shared_bytes(const DecodeConfig& config, const attention::Dims& dims);

// Bytes of K and V that a multiprocessor has under way while its warps compute with others.
std::int64_t bytes_under_way(const DecodeConfig& config, const attention::Dims& dims);

// The configurations for these head dims, the best first.
std::vector<DecodeConfig> configs_for(const attention::Dims& dims);

// Why a device cannot run a configuration, or nothing.
std::optional<std::string> why_not(const DecodeConfig& config, const attention::Dims& dims,
                                   const attention::DeviceLimits& limits);

// The first of configs_for() that the device can run. Throws Error{kUnsupported}.
DecodeConfig choose_config(const attention::Dims& dims, const attention::DeviceLimits& limits);

// What decode_forward is specialised by, besides the features of attention.
struct BatchFeatures {
  attention::KernelFeatures attention;
  kernels::Pages pages = kernels::Pages::kNone;
  int runs = 1;  // RowForms' most_runs()
};
jit::KernelSpec decode_spec(const DecodeConfig& config, const BatchFeatures& features,
                            jit::Arch arch);
jit::KernelSpec combine_spec(const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec prepare_spec(jit::Arch arch);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_DECODE_CONFIG_H_
