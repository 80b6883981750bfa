#ifndef ANNULUS_TUNED_ENTRY_H_
#define ANNULUS_TUNED_ENTRY_H_

// One tuned result and the file that keeps it. An entry holds numbers and enums inside declared
// ranges; none of its text reaches a kernel, a path or a shell. The file (docs/tuning.md):
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

// Raise the schema when a field changes its meaning. A file of another schema is not used and never
// converted, and neither is one that lacks a required field.
inline constexpr int kEntrySchema = 4;
inline constexpr std::int64_t kMaxEntryBytes = 64 << 10;
inline constexpr std::size_t kDigestDigits = 32;  // of a digest as files state it

// A Selection in numbers, as an entry's origin keeps it.
struct StatedSelection {
  std::int64_t block_rows = 0, block_columns = 0, rule = 0, max_blocks = 0;
  std::int64_t mass = 0;  // in units of 2^-20
  std::int64_t pool = 0, stride = 0, coarse_factor = 0, coarse_blocks = 0;
  std::int64_t sink_blocks = 0, diagonal_blocks = 0;
  friend bool operator==(const StatedSelection&, const StatedSelection&) = default;
};

// A batch by what it has besides a problem, and the requests of its step that were measured.
struct StatedBatch {
  std::int64_t requests = 0, rows = 0, rows_of_one = 0, keys_of_one = 0, keys = 0;
  std::int64_t page_rows = 0, block_keys = 0, most_blocks = 0;
  std::int64_t row_limits = 0, want_lse = 0;  // 0 or 1
  std::int64_t rank_block = 1, ranks = 1, rank = 0;
  // So many requests, with so many queries, and keys; and so on.
  std::vector<std::int64_t> step = {};
  friend bool operator==(const StatedBatch&, const StatedBatch&) = default;
};
// Numbers of the longest step that an entry keeps.
inline constexpr std::size_t kMaxStepNumbers = 96;

// One tuned result: how two kernels compared. Times are nanoseconds where they were measured and
// cycles where they were predicted.
struct Entry {
  ShapeKey shape;
  attention::KernelConfig config;
  attention::KernelConfig default_config;  // the heuristic's, which it was compared with
  // ConfigFamily::revision of the two when they were compared.
  int revision = 0;
  int default_revision = 0;
  bool predicted = false;  // by the pipe model; used on simulated devices alone
  bool complete = false;   // the search ended by itself; false: a time limit or the user ended it
  std::int64_t time = 0;   // median
  std::int64_t default_time = 0;   // median of default_config, in the same rounds
  std::int64_t ratio_low_ppm = 0;  // time over default time, 95 % interval, millionths
  std::int64_t ratio_high_ppm = 0;
  bool cold_cache = false;  // L2 was empty before each launch of these times
  // Median of time over default time with L2 in its other state, millionths; 0: not measured.
  std::int64_t other_ratio_ppm = 0;
  int rounds = 0;           // rounds behind time and ratio
  int repeated_rounds = 0;  // of the search, because the device was slower than it can be
  int candidates = 0;       // candidates that were measured or predicted
  std::optional<attention::KernelConfig> runner_up;

  // Where and when the result was found. None of it voids an entry.
  struct Origin {
    int library_version = 0;  // ANNULUS_VERSION
    int driver_version = 0;   // 13000 is 13.0
    int nvrtc_version = 0;    // likewise
    int clock_mhz = 0;
    int memory_clock_mhz = 0;
    std::int64_t when = 0;  // seconds since 1970
    // The problem that was measured: what its key does not say, for measuring it again
    // (entry_problem.h).
    std::int64_t batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0;
    std::int64_t q0 = 0, k0 = 0, layer = 0, scale_block = 0;
    std::string pattern;  // its text; empty where that would name a file or be long
    std::string score;
    // With one of these the problem is not all that was measured: blocks stood in for those that
    // runs choose, or the requests of a batch.
    std::optional<StatedSelection> selection = {};
    std::optional<StatedBatch> requests = {};
    friend bool operator==(const Origin&, const Origin&) = default;
  } origin;

  friend bool operator==(const Entry&, const Entry&) = default;
};

// The longest text of an entry: of its device, its pattern and its score.
inline constexpr std::size_t kMaxEntryText = 1000;

// An entry as it is written: its device and all of its fields, in one fixed order, so that equal
// entries have equal texts. `device` is the identity of the device that it holds for
// (device_key.h).
base::Json json_of(const Entry& entry, const std::string& device);

// The entry that such a text says, and its device. Throws Error{kInvalidFile} that names the first
// member which is missing, of another type or out of its range. The caller, who knows the device,
// checks whether the configuration is legal.
Entry entry_of(const base::Json& json, std::string* device);

// How deep and wide such a text may be.
base::JsonLimits entry_limits();

// The bytes of the entry's file.
std::vector<std::byte> encode_entry(const Entry& entry, const std::string& device);

// Why a file is not read whose first line states a schema behind its magic word, by the text from
// there on; empty where it is this schema. A number that is none is another schema.
std::string why_other_schema(std::string_view stated);

// Empty where the bytes are damaged, of another schema, or hold a number outside its range; *why
// says which. *device is the identity that the file states.
std::optional<Entry> decode_entry(std::span<const std::byte> file, std::string* device,
                                  std::string* why);

// The kernels that an entry compared, with their revisions: "wgmma3", or "wgmma3-mma2" where the
// heuristic's choice is of another family.
std::string kernels_text(const Entry& entry);

// Whether a file that decode_entry does not read may be of use to a newer build: its schema is a
// later one, or it is whole and holds what this build does not know, such as a family of kernels.
bool may_be_of_newer_build(std::span<const std::byte> file);

// Whether an entry that is outdated may be of use to a newer build: no revision that it states is
// below that of this build.
bool is_of_newer_kernels(const Entry& entry);

// Why this build does not use an entry, whatever the device: the kernels of one of its families
// have another revision now. Empty where it does.
std::string why_outdated(const Entry& entry);

// Whether `a` replaces `b` for the same shape on the same device: a total order, so that the same
// entry stays whichever process writes last and in whichever order packs are merged. A complete
// search goes before one that was cut short; then the lower upper bound of the ratio to the
// default, which is the gain that is certain; then more rounds; then the later result; then the
// configuration and at last the text.
bool better(const Entry& a, const Entry& b);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_ENTRY_H_
