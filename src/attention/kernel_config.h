#ifndef ANNULUS_ATTENTION_KERNEL_CONFIG_H_
#define ANNULUS_ATTENTION_KERNEL_CONFIG_H_

// The configurations of the families of kernels: how large a tile is and how its work is laid out.
// Everything here is pure; the table is the only list of what ships.
//
//   mma     templates/kernels/mma_forward.cu, sm_80 and newer
//   wgmma   templates/kernels/wgmma_forward.cu, sm_90a alone
//   wgmma8  the same for elements of 8 bits, which no other family takes

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attention/dims.h"
#include "jit/arch.h"

namespace annulus::attention {

enum class Family { kMma, kWgmma, kWgmma8 };
const char* to_string(Family family);  // "mma", "wgmma", "wgmma8"
// Of wgmma_forward.cu.
constexpr bool is_wgmma(Family family) { return family != Family::kMma; }
// Of an element of Q, K and V.
constexpr std::int64_t element_bytes(Family family) { return family == Family::kWgmma8 ? 1 : 2; }

struct KernelConfig {
  int tile_rows = 64;  // M: rows of the tiles of a list, which one CTA computes for `heads` heads
  int tile_columns = 64;  // N: columns of these tiles
  int warps = 4;          // that compute. mma: each owns M / warps rows, 16 or 32; wgmma: four of
                          // them own 64 rows, and four more copy
  int stages = 2;         // K and V buffers; mma with 1: V arrives while the scores are computed
  bool query_in_registers = false;  // else Q is read again from shared memory in every step
  int resident = 1;                 // CTAs of one multiprocessor that the registers must allow
  Family family = Family::kMma;
  int blocks = 1;   // wgmma, wgmma8: tiles of the list that are one step, which has `blocks` N keys
  int heads = 1;    // wgmma, wgmma8: heads of a CTA, M = 64 rows of each
  int cluster = 1;  // wgmma, wgmma8: CTAs that share the copies of K and V: of further heads, or
                    // where every query sees every key, of the next tile row

  friend bool operator==(const KernelConfig&, const KernelConfig&) = default;
};

// "mma m128 n64 w4 s2", with " q" where Q stays in registers and " x3" for three resident CTAs;
// "wgmma m128 n128 w8 s2", with " q" as well, " b2" for two tiles to a step, " h2" for two heads to
// a CTA and " c2" for two CTAs to a cluster.
std::string to_string(const KernelConfig& config);

// The opposite; nothing where the text is no configuration (legal or not).
std::optional<KernelConfig> parse_config(std::string_view text);

// Where a shipped configuration runs.
enum class Reach {
  kEvery,   // at most 99 KB of shared memory: every architecture from sm_80 on
  kLarge,   // architectures with 163 KB or more: sm_80, sm_87, sm_90, sm_100, not sm_86 or sm_89
  kHopper,  // sm_90a
};

struct ShippedConfig {
  Dims dims;
  KernelConfig config;
  Reach reach;
};

// The table, for all dtypes: for each pair of head dims at least two tiles, those for long
// sequences first.
std::span<const ShippedConfig> shipped_configs();

// Threads of a CTA, and bytes of its dynamic shared memory: Q, then stages x (K and V); wgmma
// besides has O, where there is room for it, and barriers, and wgmma8 V a second time.
int threads(const KernelConfig& config);
std::int64_t shared_bytes(const KernelConfig& config, const Dims& dims);

// Registers of a thread that hold scores, output and, where it stays, Q.
std::int64_t fragment_registers(const KernelConfig& config, const Dims& dims);

// The most dynamic shared memory that a CTA may have, in bytes.
std::int64_t shared_limit(jit::Arch arch);

// A sentence that says why the family has no such kernel, or nothing where it has one. A legal
// configuration compiles without spilling; tests hold that for the shipped ones.
std::optional<std::string> why_illegal(const KernelConfig& config, const Dims& dims,
                                       jit::Arch arch);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNEL_CONFIG_H_
