#ifndef ANNULUS_BATCH_BATCH_CONFIG_H_
#define ANNULUS_BATCH_BATCH_CONFIG_H_

// The configurations of the kernels that compute requests: decode_forward, for few queries, and
// chunk_forward, for many (templates/kernels/batch).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_source.h"
#include "jit/spec.h"
#include "params/batch_params.h"

namespace annulus::batch {

// What planning has to know of such a kernel. It is the record of its template, whose constants are
// those of every other one here.
struct BatchKernel {
  const char* name;    // for people: "decode"
  const char* entry;   // "decode_forward"
  const char* source;  // its template
  // Its warps have the same rows and take keys of their own, so that each leaves m and l of them in
  // shared memory; otherwise each warp has rows of its own.
  bool shares_rows;
  // Keys may be computed in parts. Where there are many rows these keep a device busy without, and
  // the states of parts would be large.
  bool takes_parts;
};
extern const BatchKernel kDecodeKernel;
extern const BatchKernel kChunkKernel;

struct BatchConfig {
  const BatchKernel* kernel = &kDecodeKernel;
  int tile_rows = kernels::kPackedRows;  // M; decode_forward has kPackedRows
  int tile_columns = 64;                 // N
  int warps = 4;                         // decode_forward has 4
  int stages = 2;                        // buffers of K and V
  bool query_in_registers = true;        // else Q is read again from shared memory in every step
  int resident = 2;                      // CTAs that one multiprocessor holds

  int threads() const { return 32 * warps; }
  friend bool operator==(const BatchConfig&, const BatchConfig&) = default;
};

// "decode m16 n64 w4 s2 q x2".
std::string to_string(const BatchConfig& config);

// Dynamic shared memory of a CTA.
std::int64_t shared_bytes(const BatchConfig& config, const attention::Dims& dims);

// Bytes of K and V that a multiprocessor has under way while its warps compute with others.
std::int64_t bytes_under_way(const BatchConfig& config, const attention::Dims& dims);

// All configurations, those of each kernel and head dim the best first.
struct ShippedBatchConfig {
  attention::Dims dims;
  BatchConfig config;
};
std::vector<ShippedBatchConfig> shipped_batch_configs();

// Why a device cannot run a configuration, or nothing.
std::optional<std::string> why_not(const BatchConfig& config, const attention::Dims& dims,
                                   const attention::DeviceLimits& limits);

// The first of a kernel that the device can run. Throws Error{kUnsupported}.
BatchConfig choose_config(const BatchKernel& kernel, const attention::Dims& dims,
                          const attention::DeviceLimits& limits);

// What these kernels are specialised by, besides the features of attention.
struct BatchFeatures {
  attention::KernelFeatures attention;
  kernels::Pages pages = kernels::Pages::kNone;
  int runs = 1;             // most_runs() of the pattern's forms
  bool listed = false;      // whether heads of keys have lists of blocks
  bool row_limits = false;  // whether rows of Q have limits of their own
};
jit::KernelSpec rows_spec(const BatchConfig& config, const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec combine_spec(const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec prepare_spec(jit::Arch arch);
jit::KernelSpec list_blocks_spec(jit::Arch arch);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_CONFIG_H_
