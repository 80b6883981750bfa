#ifndef ANNULUS_AUTOTUNE_ENTRY_H_
#define ANNULUS_AUTOTUNE_ENTRY_H_

// One tuned result and the file that keeps it. An entry holds numbers and enums inside declared
// ranges; none of its text reaches a kernel, a path or a shell. The file (docs/tuning.md):
//
//   annulus-tuned 3 <32 hex digits: XXH3-128 of everything after this line>\n
//   { JSON }\n

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/kernels/kernel_config.h"
#include "autotune/shape_key.h"

namespace annulus::autotune {

// Raise the schema when a field changes its meaning. A file of another schema is not used and never
// converted, and neither is one that lacks a required field.
inline constexpr int kEntrySchema = 3;
inline constexpr std::int64_t kMaxEntryBytes = 64 << 10;

// One tuned result. Times are nanoseconds where they were measured and cycles where they were
// predicted.
struct Entry {
  ShapeKey shape;
  attention::KernelConfig config;
  bool predicted = false;  // by the pipe model; used on simulated devices alone
  bool complete = false;   // the search ended by itself; false: a time limit or the user ended it
  std::int64_t time = 0;   // median
  std::int64_t default_time = 0;   // median of the heuristic's configuration, in the same rounds
  std::int64_t ratio_low_ppm = 0;  // time over default time, 95 % interval, millionths
  std::int64_t ratio_high_ppm = 0;
  int rounds = 0;      // rounds behind time and ratio
  int candidates = 0;  // candidates that were measured or predicted
  std::optional<attention::KernelConfig> runner_up;

  // Where and when the result was found; for people only.
  struct Origin {
    int library_version = 0;  // ANNULUS_VERSION
    int driver_version = 0;   // 13000 is 13.0
    std::int64_t when = 0;    // seconds since 1970
    std::int64_t batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0;
    friend bool operator==(const Origin&, const Origin&) = default;
  } origin;

  friend bool operator==(const Entry&, const Entry&) = default;
};

// The bytes of the entry's file. `device` is the identity of the device that it holds for
// (device_key.h).
std::vector<std::byte> encode_entry(const Entry& entry, const std::string& device);

// Empty where the bytes are damaged, of another schema, or hold a number outside its range; *why
// says which. *device is the identity that the file states. The caller, who knows the device,
// checks whether the configuration is legal.
std::optional<Entry> decode_entry(std::span<const std::byte> file, std::string* device,
                                  std::string* why);

// Whether `a` replaces `b` for the same shape on the same device: a total order, so that the same
// entry stays whichever process writes last. A complete search goes before one that was cut short;
// then the lower upper bound of the ratio to the default, which is the gain that is certain; then
// more rounds; then the later result.
bool better(const Entry& a, const Entry& b);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_ENTRY_H_
