#ifndef ANNULUS_ATTENTION_KERNELS_KERNEL_CONFIG_H_
#define ANNULUS_ATTENTION_KERNELS_KERNEL_CONFIG_H_

// A configuration is a family of kernels, the size of its tiles, and the family's own numbers. This
// file declares what all configurations have in common, and the functions that take a configuration
// of any family. A family's own numbers are named in its folder (mma/config.h, wgmma/config.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attention/problem/dims.h"
#include "jit/arch.h"

namespace annulus::attention {

struct ConfigFamily;  // config_family.h

struct KernelConfig {
  static constexpr std::size_t kMaxOwn = 8;

  const ConfigFamily* family = nullptr;  // null: there is no configuration yet
  int tile_rows = 0;                     // M: rows of the tiles of a list
  int tile_columns = 0;                  // N: columns of these tiles
  std::array<int, kMaxOwn> own{};        // in the order of ConfigFamily::fields; 0 in unused places

  friend bool operator==(const KernelConfig&, const KernelConfig&) = default;
};

// How a text and a tuned entry name one of a family's own numbers.
struct ConfigField {
  enum class Form {
    kNumber,  // " w4"
    kOption,  // " x3"; left out if it is 1
    kFlag,    // " q" if it is 1; left out if it is 0; true or false in an entry
  };
  const char* name;  // "warps"
  char letter;       // 'w'
  Form form = Form::kNumber;
  int largest =
      1;         // the largest value in a tuned entry; ConfigFamily::why_illegal says what is legal
  int step = 0;  // configurations whose values differ by this much are neighbours in a search; 0:
                 // the field makes no neighbours
};

// "mma m128 n64 w4 s2 q x3": the family, the tile, then the family's own fields in their order.
std::string to_string(const KernelConfig& config);

// The configuration of a text, legal or not. Nullopt if the text is not a configuration of one of
// families().
std::optional<KernelConfig> parse_config(std::string_view text);
// The configuration of a text, if the family is known. Nullopt if the text begins with another
// name.
std::optional<KernelConfig> parse_config(std::string_view text, const ConfigFamily& family);

// The name of the family, with which a configuration's text begins.
std::string_view family_name(std::string_view text);

// The first word of a configuration's text if no family has that name, else nullopt. The text may
// come from another build with more families, which an error should state.
std::optional<std::string> unknown_family(std::string_view text);

// The architectures on which a shipped configuration runs.
enum class Reach {
  kEvery,   // every architecture from sm_80 on, as it takes at most 99 KB of shared memory
  kLarge,   // architectures with 163 KB or more: sm_80, sm_87, sm_90, sm_100, not sm_86 or sm_89
  kHopper,  // sm_90a
};

struct ShippedConfig {
  Dims dims;
  KernelConfig config;
  Reach reach;
};

// The shipped configurations of all families, in the order of families(). Each pair of head dims
// has at least two tiles, those for long sequences first.
std::span<const ShippedConfig> shipped_configs();

// The shape of one CTA. It does not depend on the head dims.
struct CtaShape {
  int threads = 0;
  int warps = 0;       // warps that compute; other warps may copy
  int stages = 0;      // buffers of K and V
  int step_tiles = 1;  // tiles of the list in one step
  int heads = 1;       // heads that the CTA computes together, of one tile row
  int cluster = 1;     // CTAs that share the copies of K and V; they compute further heads, or the
                       // next tile row if its queries see the same keys
  int resident = 1;    // CTAs whose registers one multiprocessor must hold

  int packed_heads() const { return heads * cluster; }
};
CtaShape cta_shape(const KernelConfig& config);

// The resources of a multiprocessor that one CTA takes. Register counts are for one thread.
struct Footprint {
  std::int64_t shared_bytes = 0;        // dynamic
  std::int64_t fragment_registers = 0;  // registers for scores, output, and Q if it is kept there
  int least_registers = 0;              // roughly; with fewer registers the kernel spills
  int max_registers = 0;                // the most that ptxas may use so that all resident CTAs fit
  int predicted_registers = 0;          // roughly what ptxas uses, up to max_registers
};
// Requires: a configuration that is legal for these dims.
Footprint footprint(const KernelConfig& config, const Dims& dims);

int threads(const KernelConfig& config);
std::int64_t shared_bytes(const KernelConfig& config, const Dims& dims);

// The most dynamic shared memory of a CTA on an architecture, in bytes.
std::int64_t shared_limit(jit::Arch arch);

// Whether kernels of a configuration can compute parts of rows (attention/tiles/kv_split.h).
bool supports_kv_splits(const KernelConfig& config);

// A sentence that states why the family has no such kernel, or nullopt if it has one.
std::optional<std::string> why_illegal(const KernelConfig& config, const Dims& dims,
                                       jit::Arch arch);

// A sentence that states why a legal configuration may spill registers, or nullopt if it does not
// spill. A test checks that shipped configurations do not spill. Only tuners try configurations
// that may spill.
std::optional<std::string> why_spills(const KernelConfig& config, const Dims& dims, jit::Arch arch);

// The most bytes of registers that a kernel may spill for a tuner to consider it. Stores and loads
// of a thread are added up.
constexpr int kMaxSpilledBytes = 200;

// A sentence that states why no family has kernels for these head dims, or nullopt if one has.
std::optional<std::string> why_unsupported(const Dims& dims);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_KERNEL_CONFIG_H_
