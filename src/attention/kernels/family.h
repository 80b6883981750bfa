#ifndef ANNULUS_ATTENTION_KERNELS_FAMILY_H_
#define ANNULUS_ATTENTION_KERNELS_FAMILY_H_

// The record of a family of kernels. A family is a folder below this one, which fills a record in,
// and a line in families.def; no other code names a family or asks which one a configuration has.
// docs/architecture.md shows how families that are yet to come fill it.
//
// Every function gets only configurations of its own family, and, unless it says otherwise, legal
// ones. All functions but bind are pure.

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

// Who gives a CTA its next work.
enum class Deal {
  kFree,    // the hardware: CTAs of a grid go to whoever is free first
  kStride,  // nobody: CTA i of n takes works i, i + n, i + 2 n, ...
  kCounter  // a counter in memory, so that whoever is free first gets the next one; kernels that
            // can draw from it can count off as well, and the plan decides (deal_works)
};

// How a kernel that can draw its works from a counter (Deal::kCounter) gets them.
enum class Dealt { kAsPays, kCountedOff, kDrawn };

// How a family's CTA spends its time, for the pipe model.
struct Pace {
  enum class Products { kWarp, kWarpgroup };  // mma.sync or wgmma
  Products products = Products::kWarp;
  double product_rate = 1;         // products in the time of one product of 16-bit elements
  std::optional<double> barriers;  // barriers of a tile that stall a warp; nothing: all of its
                                   // barriers
  int overlap = 2;                 // steps, or independent parts of one, that a warp has under way
  double frame_latencies = 4;  // how long a CTA waits for a row's list, first copies and output,
                               // in latencies of a copy
  Deal deal = Deal::kFree;
  bool longest_first = true;  // otherwise rows are taken in their order
};

// What the heuristic knows when it asks whether a configuration suits a problem.
struct SuitQuestion {
  const Problem& problem;
  const Blocks& blocks;  // finest_blocks() of its pattern
  jit::Arch arch;
  kernels::Positions positions = kernels::Positions::kOneSegment;  // KernelFeatures::positions
};

// What computing a problem has to know of a family besides its configurations.
struct ProblemKernels {
  const char* source;  // its template: "kernels/mma/mma_forward.cu"
  // A second segment of Q may begin at rows whose numbers are multiples of this; 0: its kernels
  // have tiles of one segment alone, or read positions row by row (Positions::kTwoSegments).
  std::int64_t second_segment_rows = 0;

  // Persistent CTAs: each takes work until none is left. Otherwise there is one CTA for each tile
  // row, or part of one, of each head and batch.
  bool persistent = false;

  // --- Which configurations.
  std::span<const ShippedConfig> shipped;
  // The family's general kernels (KernelFeatures::general) have these configurations, at most one
  // for each pair of head dims: each is of one head and one tile row, so that every problem allows
  // it.
  std::span<const ShippedConfig> general = {};
  // Passes configurations to `add` that suit patterns whose blocks have fewer than 128 columns,
  // beside the shipped ones, and perhaps illegal ones. Null: there are none.
  void (*for_blocks)(const AddCandidates& add) = nullptr;
  bool (*supports_kv_splits)(const KernelConfig& config);

  // --- Problems.
  // Why a configuration that would work is not a good one for a problem, or nothing.
  std::optional<std::string> (*why_unsuited)(const KernelConfig& config,
                                             const SuitQuestion& question);
  // Why its kernels cannot read or write tensors with these strides, or nothing.
  std::optional<std::string> (*why_no_strides)(const Problem& problem,
                                               const OperandStrides& strides);

  // --- The kernel, and what it costs.
  jit::KernelSpec (*spec)(const KernelConfig& config, const KernelFeatures& features,
                          jit::Arch arch);
  // The work of one tile of the list, by all warps of a CTA; if a step has several tiles, the
  // tile's share of the step.
  KernelWork (*tile_work)(const KernelConfig& config, const KernelFeatures& features,
                          const TileContext& context);
  // The work of a CTA for a tile row besides its tiles.
  KernelWork (*row_work)(const KernelConfig& config, const KernelFeatures& features);
  Pace (*pace)(const KernelConfig& config);

  // --- Launches.
  LaunchShape (*shape)(const KernelConfig& config, const Problem& problem, const WorkGroup& group,
                       std::int64_t rows, int multiprocessors);
  // Fills in all arguments of the launch for a range of batches, and its grid. It is the only
  // function of a family that is called between a call of run() and the launch, so that it neither
  // locks nor allocates. Throws Error{kDevice}. Requires: !why_no_strides for the operands.
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
