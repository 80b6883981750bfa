#ifndef ANNULUS_TUNED_ENTRY_H_
#define ANNULUS_TUNED_ENTRY_H_

// One tuned result, and the file that stores it. An entry holds only numbers and enums in declared
// ranges. No text of an entry reaches a kernel, a path or a shell. The file (docs/tuning.md):
//
//   annulus-tuned 4 <32 hex digits: XXH3-128 of everything after this line>\n
//   { JSON }\n

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/kernels/kernel_config.h"
#include "base/json.h"
#include "tuned/shape_key.h"

namespace annulus::tuned {

// Must be raised if a field changes its meaning. A file with another schema is not used and never
// converted, and neither is a file that lacks a required field.
inline constexpr int kEntrySchema = 4;
inline constexpr std::int64_t kMaxEntryBytes = 64 << 10;
inline constexpr std::size_t kDigestDigits = 32;  // the digits of a digest in a file

// A Selection as numbers, for an entry's origin.
struct StatedSelection {
  std::int64_t block_rows = 0, block_columns = 0, rule = 0, max_blocks = 0;
  std::int64_t mass = 0;  // the share of the mass in units of 2^-20
  std::int64_t pool = 0, stride = 0, coarse_factor = 0, coarse_blocks = 0;
  std::int64_t sink_blocks = 0, diagonal_blocks = 0;
  friend bool operator==(const StatedSelection&, const StatedSelection&) = default;
};

// The properties that a batch has in addition to a problem, and the requests of the step that was
// measured.
struct StatedBatch {
  std::int64_t requests = 0, rows = 0, rows_of_one = 0, keys_of_one = 0, keys = 0;
  std::int64_t page_rows = 0, block_keys = 0, max_blocks = 0;
  std::int64_t row_limits = 0, want_lse = 0;  // 0 or 1
  std::int64_t rank_block = 1, ranks = 1, rank = 0;
  // Groups of three numbers: the number of equal requests, and their queries and keys.
  std::vector<std::int64_t> step = {};
  friend bool operator==(const StatedBatch&, const StatedBatch&) = default;
};
// The longest step that an entry stores, in numbers.
inline constexpr std::size_t kMaxStepNumbers = 96;

// One tuned result: the comparison of two kernels. Times are nanoseconds if they were measured, and
// cycles if they were predicted.
struct Entry {
  ShapeKey shape;
  attention::KernelConfig config;
  // the heuristic's choice, with which `config` was compared
  attention::KernelConfig default_config;
  // The ConfigFamily::revision of both kernels when they were compared.
  int revision = 0;
  int default_revision = 0;
  bool predicted = false;  // by the pipe model; used only on simulated devices
  bool complete = false;   // true: the search completed; false: a time limit or the user ended it
  std::int64_t time = 0;   // the median
  std::int64_t default_time = 0;   // the median of default_config, in the same rounds
  std::int64_t ratio_low_ppm = 0;  // time / default time, 95 % interval, in millionths
  std::int64_t ratio_high_ppm = 0;
  bool cold_cache = false;  // L2 held none of the operands before each launch
  // Median of time / default time with the other state of L2, in millionths; 0 if not measured.
  std::int64_t other_ratio_ppm = 0;
  int rounds = 0;  // the number of rounds for the times and the ratio
  // rounds of the search that were repeated because the device was slower than it can be
  int repeated_rounds = 0;
  int candidates = 0;  // the number of candidates that were measured or predicted
  std::optional<attention::KernelConfig> runner_up;

  // Where and when the result was found. No value here makes an entry invalid.
  struct Origin {
    int library_version = 0;  // ANNULUS_VERSION
    int driver_version = 0;   // 13000 is 13.0
    int nvrtc_version = 0;    // the version in the same form
    int clock_mhz = 0;
    int memory_clock_mhz = 0;
    std::int64_t when = 0;  // seconds since 1970
    // The problem that was measured: the values that its key does not have, so that it can be
    // measured again (entry_problem.h).
    std::int64_t batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0;
    std::int64_t q0 = 0, k0 = 0, layer = 0, scale_block = 0;
    std::string pattern;  // the pattern's text; empty if the text would name a file or be too long
    std::string score;
    // If one of these is set, more than the problem was measured: chosen blocks, which stand for
    // the blocks that runs choose, or the requests of a batch.
    std::optional<StatedSelection> selection = {};
    std::optional<StatedBatch> requests = {};
    friend bool operator==(const Origin&, const Origin&) = default;
  } origin;

  friend bool operator==(const Entry&, const Entry&) = default;
};

// The longest text in an entry, in bytes: its device, its pattern and its score.
inline constexpr std::size_t kMaxEntryText = 1000;

// The JSON of an entry: its device and all of its fields, in a fixed order, so that equal entries
// have equal texts. `device` is the identity of the device that it is valid for (device_key.h).
base::Json json_of(const Entry& entry, const std::string& device);

// Reads an entry and its device from JSON. Throws Error{kInvalidFile} that names the first member
// which is missing, has the wrong type or is out of range. The caller, who has the device, checks
// whether the configuration is legal.
Entry entry_of(const base::Json& json, std::string* device);

// The limits for parsing such JSON.
base::JsonLimits entry_limits();

// The contents of the entry's file.
std::vector<std::byte> encode_entry(const Entry& entry, const std::string& device);

// The reason why a file is not read, if the schema in its first line is not this build's. `stated`
// is the text after the magic word. Empty if the schema is this build's. A schema that is not a
// number counts as another schema.
std::string why_other_schema(std::string_view stated);

// Returns nothing if the bytes are damaged, have another schema, or have a number out of range;
// *why has the reason. *device is the identity in the file.
std::optional<Entry> decode_entry(std::span<const std::byte> file, std::string* device,
                                  std::string* why);

// The kernels that an entry compared, with their revisions: "wgmma3", or "wgmma3-mma2" if the
// heuristic's choice belongs to another family.
std::string kernels_text(const Entry& entry);

// Whether a newer build may be able to use a file that decode_entry() does not read: its schema is
// a later one, or it is undamaged and contains something that this build does not support, such as
// a family of kernels.
bool may_be_of_newer_build(std::span<const std::byte> file);

// Whether a newer build may be able to use an outdated entry: it states no revision that is lower
// than this build's.
bool is_of_newer_kernels(const Entry& entry);

// The reason why this build does not use an entry on any device: the kernels of one of its families
// now have another revision. Empty if it does use the entry.
std::string why_outdated(const Entry& entry);

// Whether `a` replaces `b` for the same shape on the same device. It is a total order, so the same
// entry stays regardless of the order in which processes write or packs are merged. A complete
// search is better than one that was cut short. Next, a lower upper bound of the ratio to the
// default is better, because that gain is certain. Next come more rounds, the later result, the
// configuration and finally the text.
bool better(const Entry& a, const Entry& b);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_ENTRY_H_
