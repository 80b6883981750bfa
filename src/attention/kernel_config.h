#ifndef ANNULUS_ATTENTION_KERNEL_CONFIG_H_
#define ANNULUS_ATTENTION_KERNEL_CONFIG_H_

// The configurations of the `mma` family (templates/kernels/mma_forward.cu): how large a tile is
// and how its work is laid out. Everything here is pure; the table is the only list of what ships.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attention/dims.h"
#include "jit/arch.h"

namespace annulus::attention {

struct KernelConfig {
  int tile_rows = 64;               // M: query rows of one CTA
  int tile_columns = 64;            // N: keys of one step
  int warps = 4;                    // each owns M / warps rows, 16 or 32
  int stages = 2;                   // K and V buffers; 1: V arrives while the scores are computed
  bool query_in_registers = false;  // else Q is read again from shared memory in every step
  int resident = 1;                 // CTAs of one multiprocessor that the registers must allow

  friend bool operator==(const KernelConfig&, const KernelConfig&) = default;
};

// "mma m128 n64 w4 s2", with " q" where Q stays in registers and " x3" for three resident CTAs.
std::string to_string(const KernelConfig& config);

// The opposite; nothing where the text is no configuration (legal or not).
std::optional<KernelConfig> parse_config(std::string_view text);

// The shared memory that a shipped configuration needs.
enum class Reach {
  kEvery,  // at most 99 KB: every architecture from sm_80 on
  kLarge,  // architectures with 163 KB or more: sm_80, sm_87, sm_90, sm_100, not sm_86 or sm_89
};

struct ShippedConfig {
  Dims dims;
  KernelConfig config;
  Reach reach;
};

// The table, for both dtypes: for each pair of head dims at least two tiles, those for long
// sequences first.
std::span<const ShippedConfig> shipped_configs();

// Threads of a CTA, and bytes of its dynamic shared memory: Q, then stages x (K and V).
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
