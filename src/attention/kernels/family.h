#ifndef ANNULUS_ATTENTION_KERNELS_FAMILY_H_
#define ANNULUS_ATTENTION_KERNELS_FAMILY_H_

// The record of a family of kernels. A family is a folder below this one, which fills a record in,
// and a line in families.def; no other code names a family or tests which family a configuration
// has. docs/architecture.md shows how a new family fills its record in.
//
// Every function takes only configurations of its own family, and only legal ones unless its
// comment states otherwise. All functions but bind are pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "annulus/problem.h"
#include "attention/kernels/config_family.h"
#include "attention/kernels/kernel_config.h"
#include "attention/kernels/kernel_source.h"
#include "attention/kernels/kernel_work.h"
#include "attention/kernels/launch.h"
#include "attention/tiles/pattern_facts.h"
#include "jit/spec.h"

namespace annulus::attention {

// How a CTA gets its next work.
enum class Deal {
  kFree,    // from the hardware: the next CTA of the grid starts on the multiprocessor that is free
            // first
  kStride,  // by counting off: CTA i of n takes works i, i + n, i + 2 n, ...
  kCounter  // from a counter in memory: the CTA that is free first gets the next work. Kernels
            // that can draw from the counter can count off as well, and the plan decides
            // (deal_works)
};

// How a kernel gets its works if it can draw them from a counter (Deal::kCounter).
enum class Dealt { kAsPays, kCountedOff, kDrawn };

// How a family's CTA spends its time, for the pipe model.
struct Pace {
  enum class Products { kWarp, kWarpgroup };  // mma.sync or wgmma
  Products products = Products::kWarp;
  double product_rate = 1;         // products in the time of one product of 16-bit elements
  std::optional<double> barriers;  // barriers of a tile that stall a warp; nullopt: all barriers
                                   // of the tile
  int overlap = 2;             // steps of a warp, or independent parts of one step, that overlap
  double frame_latencies = 4;  // how long a CTA waits for a row's list, first copies and output,
                               // in latencies of a copy
  Deal deal = Deal::kFree;
  bool longest_first = true;  // otherwise rows are taken in the order of their numbers
};

// The arguments that the heuristic passes to a family to find out whether a configuration suits a
// problem.
struct SuitQuestion {
  const Problem& problem;
  const Blocks& blocks;  // finest_blocks() of the problem's pattern
  jit::Arch arch;
  kernels::Positions positions = kernels::Positions::kOneSegment;  // KernelFeatures::positions
};

// The part of a family's record that computing a problem needs in addition to the configurations.
struct ProblemKernels {
  const char* source;  // the kernel's template: "kernels/mma/mma_forward.cu"
  // A second segment of Q may begin at rows whose numbers are multiples of this. 0: the kernels
  // have tiles of one segment alone, or read positions row by row (Positions::kTwoSegments).
  std::int64_t second_segment_rows = 0;

  // Persistent CTAs: each CTA takes works until none is left. Otherwise there is one CTA for each
  // tile row, or part of a tile row, of each head and batch.
  bool persistent = false;

  // --- Configurations.
  std::span<const ShippedConfig> shipped;
  // The family's general kernels (KernelFeatures::general) have these configurations, at most one
  // for each pair of head dims. Each computes one head and one tile row, which every problem
  // allows.
  std::span<const ShippedConfig> general = {};
  // Passes further configurations to `add`, for patterns whose blocks have fewer than 128 columns.
  // Some of them may be illegal. Null: the family has no further configurations.
  void (*for_blocks)(const AddCandidates& add) = nullptr;
  bool (*supports_kv_splits)(const KernelConfig& config);

  // --- Problems. Why a possible configuration is not a good choice for a problem, or nullopt.
  std::optional<std::string> (*why_unsuited)(const KernelConfig& config,
                                             const SuitQuestion& question);
  // Why its kernels cannot read or write tensors with these strides, or nullopt if they can.
  std::optional<std::string> (*why_no_strides)(const Problem& problem,
                                               const OperandStrides& strides);

  // --- The kernel, and the work that it does.
  jit::KernelSpec (*spec)(const KernelConfig& config, const KernelFeatures& features,
                          jit::Arch arch);
  // The work of one tile of the list, by all warps of a CTA. If a step has several tiles, it is the
  // tile's share of the step.
  KernelWork (*tile_work)(const KernelConfig& config, const KernelFeatures& features,
                          const TileContext& context);
  // The work of a CTA for a tile row without its tiles.
  KernelWork (*row_work)(const KernelConfig& config, const KernelFeatures& features);
  Pace (*pace)(const KernelConfig& config);

  // --- Launches.
  LaunchShape (*shape)(const KernelConfig& config, const Problem& problem, const WorkGroup& group,
                       std::int64_t rows, int multiprocessors);
  // Fills in all arguments of the launch for a range of batches, and its grid. It is the only
  // function of a family that run() calls before the launch, so it neither locks nor allocates.
  // Throws Error{kDevice}. Requires: !why_no_strides for the operands.
  void (*bind)(const BindRequest& request, BoundLaunch* launch);
};

struct Family : ConfigFamily, ProblemKernels {};

// The whole record of a configuration's family. Requires: the configuration computes problems.
const Family& family_of(const KernelConfig& config);

#define FAMILY(name) extern const Family name##_family;
#include "attention/kernels/families.def"
#undef FAMILY

// All families, in the order of families.def.
std::span<const Family* const> families();

// The family of that name, or null.
const Family* find_family(std::string_view name);

// "wgmma, wgmma8 and mma": the names of all families, for errors that name an unknown one.
std::string family_names();

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_FAMILY_H_
