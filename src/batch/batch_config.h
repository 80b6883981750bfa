#ifndef ANNULUS_BATCH_BATCH_CONFIG_H_
#define ANNULUS_BATCH_BATCH_CONFIG_H_

// The kernels that compute requests, decode_forward for few queries, and chunk_wgmma_forward and
// chunk_forward for many (templates/kernels/batch), with their configurations. A configuration is a
// KernelConfig as that of any other kernel: text, legality and search space are asked for by the
// functions of attention/kernels/kernel_config.h. batch_space.h says which are legal.

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/config_family.h"
#include "attention/kernels/kernel_source.h"
#include "jit/spec.h"
#include "params/batch_params.h"

namespace annulus::batch {

using attention::KernelConfig;

inline constexpr std::int64_t kElementBytes = 2;  // of Q, K, V and O

// The classes of requests, each of which has a kernel of its own (batch_plan.h says where one
// ends).
enum class RequestClass { kFewQueries, kManyQueries };

struct ShippedBatchConfig {
  attention::Dims dims;
  KernelConfig config;
};

struct BatchFeatures;

// What planning a batch has to know of a kernel besides its configurations.
struct RequestKernel {
  RequestClass requests;  // that it computes
  const char* entry;      // "decode_forward"
  const char* source;     // its template
  // Keys may be computed in parts. Where there are many rows these keep a device busy without, and
  // the states of parts would be large.
  bool takes_parts;
  // The keys of a step need not follow one another, as those of lists of blocks do not.
  bool takes_lists;
  // Q, K and V are copied by tensor maps, which it gets as a second argument (batch_maps.h), and
  // multiplied by warpgroups. It needs sm_90a, and four warps beside those that compute.
  bool by_maps;
  std::int64_t static_bytes;                    // of shared memory of a CTA, besides dynamic memory
  std::span<const ShippedBatchConfig> shipped;  // those of each pair of head dims the best first
  // The constants of its Shape that not all kernels here have.
  std::vector<jit::Constant> (*constants)(const KernelConfig& config,
                                          const BatchFeatures& features);
};
struct BatchKernel : attention::ConfigFamily, RequestKernel {};

extern const BatchKernel kDecodeKernel;
extern const BatchKernel kChunkWgmmaKernel;
extern const BatchKernel kChunkKernel;

// All of them, those of a class in the order in which they are preferred.
std::span<const BatchKernel* const> batch_kernels();

// The whole record of a configuration's kernel. Requires: it is one of batch_kernels(), as
// everywhere below.
const BatchKernel& kernel_of(const KernelConfig& config);

// A configuration with its kernel's own numbers by name.
struct BatchConfig {
  const BatchKernel* kernel = &kDecodeKernel;
  int tile_rows = kernels::kPackedRows;  // M; decode_forward has kPackedRows
  int tile_columns = 64;                 // N
  int warps = 4;                         // that compute; decode_forward has 4
  int stages = 2;                        // buffers of K and V
  bool query_in_registers = false;       // else Q is read again from shared memory in every step
  int resident = 1;                      // CTAs that one multiprocessor holds

  constexpr operator KernelConfig() const {
    return {kernel, tile_rows, tile_columns, {warps, stages, query_in_registers, resident}};
  }
};
BatchConfig batch_config(const KernelConfig& config);

// Bytes of K and V that a multiprocessor has under way while its warps compute with others.
std::int64_t bytes_under_way(const KernelConfig& config, const attention::Dims& dims);

// The shipped configurations of all kernels.
std::vector<ShippedBatchConfig> shipped_batch_configs();

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
int unit_keys(const KernelConfig& config, kernels::Pages pages);
jit::KernelSpec rows_spec(const KernelConfig& config, const BatchFeatures& features,
                          jit::Arch arch);
jit::KernelSpec combine_spec(const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec prepare_spec(const BatchFeatures& features, jit::Arch arch);
jit::KernelSpec list_blocks_spec(jit::Arch arch);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_CONFIG_H_
