#ifndef ANNULUS_BATCH_BATCH_CONFIG_H_
#define ANNULUS_BATCH_BATCH_CONFIG_H_

// The configurations of the kernels that compute requests: decode_forward, for few queries, and
// chunk_wgmma_forward and chunk_forward, for many (templates/kernels/batch).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_source.h"
#include "jit/spec.h"
#include "params/batch_params.h"

namespace annulus::batch {

inline constexpr std::int64_t kElementBytes = 2;  // of Q, K, V and O

struct BatchConfig;
struct BatchFeatures;

// What planning has to know of such a kernel: the record of its template.
struct BatchKernel {
  const char* name;    // for people: "decode"
  const char* entry;   // "decode_forward"
  const char* source;  // its template
  // Keys may be computed in parts. Where there are many rows these keep a device busy without, and
  // the states of parts would be large.
  bool takes_parts;
  // The keys of a step need not follow one another, as those of lists of blocks do not.
  bool takes_lists;
  // Q, K and V are copied by tensor maps, which it gets as a second argument (batch_maps.h), and
  // multiplied by warpgroups. It needs sm_90a, and four warps beside those that compute.
  bool by_maps;
  // Dynamic shared memory of a CTA.
  std::int64_t (*shared_bytes)(const BatchConfig& config, const attention::Dims& dims);
  // The constants of its Shape that not all kernels here have.
  std::vector<jit::Constant> (*constants)(const BatchConfig& config, const BatchFeatures& features);
};
extern const BatchKernel kDecodeKernel;
extern const BatchKernel kChunkKernel;
extern const BatchKernel kChunkWgmmaKernel;

struct BatchConfig {
  const BatchKernel* kernel = &kDecodeKernel;
  int tile_rows = kernels::kPackedRows;  // M; decode_forward has kPackedRows
  int tile_columns = 64;                 // N
  int warps = 4;                         // that compute; decode_forward has 4
  int stages = 2;                        // buffers of K and V
  bool query_in_registers = true;        // else Q is read again from shared memory in every step
  int resident = 2;                      // CTAs that one multiprocessor holds

  int threads() const { return 32 * (warps + (kernel->by_maps ? 4 : 0)); }
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

// The first of the kernels' configurations that the device can run, those of the first kernel
// before those of the next. Throws Error{kUnsupported}.
BatchConfig choose_config(std::span<const BatchKernel* const> kernels, const attention::Dims& dims,
                          const attention::DeviceLimits& limits);

// What these kernels are specialised by, besides the features of attention.
struct BatchFeatures {
  attention::KernelFeatures attention;
  kernels::Pages pages = kernels::Pages::kNone;
  int runs = 1;              // most_runs() of the pattern's forms
  bool listed = false;       // whether heads of keys have lists of blocks
  bool row_limits = false;   // whether rows of Q have limits of their own
  bool interleaved = false;  // whether other ranks have keys in between
};
// Keys that lie behind one another in memory, so that chunk_wgmma_forward copies them as one box: a
// step without pages, else the largest of 64, 32 and 16 keys that divides a page and a step; 1
// where none does.
int unit_keys(const BatchConfig& config, kernels::Pages pages);
jit::KernelSpec rows_spec(const BatchConfig& config, const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec combine_spec(const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec prepare_spec(const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec list_blocks_spec(jit::Arch arch);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_CONFIG_H_
