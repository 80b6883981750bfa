#ifndef ANNULUS_BATCH_BATCH_CONFIG_H_
#define ANNULUS_BATCH_BATCH_CONFIG_H_

// The kernels that compute requests, decode_forward for few queries, and chunk_wgmma_forward and
// chunk_forward for many (templates/kernels/batch), with their configurations. A configuration is a
// KernelConfig like the ones of other kernels, so the functions of
// attention/kernels/kernel_config.h return its text, legality and search space. batch_space.h
// defines which are legal.

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/config_family.h"
#include "attention/kernels/kernel_source.h"
#include "jit/spec.h"
#include "params/batch_params.h"

namespace annulus::batch {

using attention::KernelConfig;

inline constexpr std::int64_t kElementBytes = 2;  // bytes of an element of Q, K, V and O

// The classes of requests, as batch_plan.h defines them. Each class has a kernel of its own.
enum class RequestClass { kFewQueries, kManyQueries };

struct ShippedBatchConfig {
  attention::Dims dims;
  KernelConfig config;
};

struct BatchFeatures;

// The facts about a kernel that planning a batch needs in addition to the configurations.
struct RequestKernel {
  RequestClass requests;  // the class that it computes
  const char* entry;      // "decode_forward"
  const char* source;     // the kernel's template
  // Whether keys may be computed in parts. A class with many rows keeps a device busy without
  // parts, and their states would be large.
  bool takes_parts;
  // Whether the keys of a step may be apart in memory, as the keys of lists of blocks are.
  bool takes_lists;
  // Whether Q, K and V are copied by tensor maps, a second argument of the kernel (batch_maps.h),
  // and multiplied by warpgroups. Such a kernel needs sm_90a, and four warps in addition to the
  // warps that compute.
  bool by_maps;
  std::int64_t static_bytes;                    // bytes of static shared memory of a CTA
  std::span<const ShippedBatchConfig> shipped;  // the best for each pair of head dims comes first
  // The constants of the kernel's Shape that not all kernels here have.
  std::vector<jit::Constant> (*constants)(const KernelConfig& config,
                                          const BatchFeatures& features);
};
struct BatchKernel : attention::ConfigFamily, RequestKernel {};

extern const BatchKernel kDecodeKernel;
extern const BatchKernel kChunkWgmmaKernel;
extern const BatchKernel kChunkKernel;

// All kernels. The kernels of a class are in the order in which they are preferred.
std::span<const BatchKernel* const> batch_kernels();

// The whole record of a configuration's kernel. Requires: it is one of batch_kernels(); all
// functions below require this too.
const BatchKernel& kernel_of(const KernelConfig& config);

// A configuration with its kernel's own numbers by name.
struct BatchConfig {
  const BatchKernel* kernel = &kDecodeKernel;
  int tile_rows = kernels::kPackedRows;  // M; decode_forward has kPackedRows
  int tile_columns = 64;                 // N
  int warps = 4;                         // warps that compute; decode_forward has 4
  int stages = 2;                        // buffers of K and V
  bool query_in_registers = false;       // otherwise every step reads Q from shared memory again
  int resident = 1;                      // CTAs that one multiprocessor holds

  constexpr operator KernelConfig() const {
    return {kernel, tile_rows, tile_columns, {warps, stages, query_in_registers, resident}};
  }
};
BatchConfig batch_config(const KernelConfig& config);

// Bytes of K and V that a multiprocessor is loading while its warps compute with other bytes.
std::int64_t bytes_under_way(const KernelConfig& config, const attention::Dims& dims);

// The shipped configurations of all kernels.
std::vector<ShippedBatchConfig> shipped_batch_configs();

// The features that are compiled into these kernels, in addition to the features of attention.
struct BatchFeatures {
  attention::KernelFeatures attention;
  kernels::Pages pages = kernels::Pages::kNone;
  int runs = 1;              // max_runs() of the pattern's forms
  bool listed = false;       // whether heads of keys have lists of blocks
  bool row_limits = false;   // whether rows of Q have limits of their own
  bool interleaved = false;  // whether the keys of other ranks are in between
};
// The number of keys that follow one another in memory, so that chunk_wgmma_forward copies them as
// one box. Without pages it is a step; with pages it is the largest of 64, 32 and 16 keys that
// divides a page and a step, or 1 if none does.
int unit_keys(const KernelConfig& config, kernels::Pages pages);
jit::KernelSpec rows_spec(const KernelConfig& config, const BatchFeatures& features,
                          jit::Arch arch);
jit::KernelSpec combine_spec(const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec prepare_spec(const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec list_blocks_spec(jit::Arch arch);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_CONFIG_H_
