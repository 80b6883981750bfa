#ifndef ANNULUS_TUNED_TUNED_PACK_H_
#define ANNULUS_TUNED_TUNED_PACK_H_

// Many entries, of any devices, in one text file that can be compared, merged and shipped
// (docs/tuning.md):
//
//   annulus-tuned-pack 4 <32 hex digits: XXH3-128 of everything after this line>\n
//   {"device":"NVIDIA H200, ...","shape":{...},...}\n
//   ...
//
// One line for each entry, sorted, with members in one order, so that equal packs are equal files.

#include <compare>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "tuned/entry.h"

namespace annulus::tuned {

inline constexpr std::string_view kEntrySuffix = ".tuned";  // of the file of one entry
inline constexpr std::string_view kPackSuffix = ".pack";
inline constexpr std::int64_t kMaxPackBytes = std::int64_t{64} << 20;

struct PackedEntry {
  std::string device;  // identity (device_key.h)
  Entry entry;

  friend bool operator==(const PackedEntry&, const PackedEntry&) = default;
};

// Entries in their order, by device, shape and kernels_text, with one for each of these keys.
using Pack = std::vector<PackedEntry>;

// Orders entries by device, shape and kernels_text: two that are equal in these compare as equal,
// and one of them may replace the other.
std::strong_ordering compare_keys(const PackedEntry& a, const PackedEntry& b);

// The name of an entry among others of its device: the digest of its shape, and the kernels that
// it compared. Digits, letters and '-' alone.
std::string entry_name(const Entry& entry);

// Sorts entries and keeps, of those with one key, the one that is better(), so that it does not
// matter in which order packs are merged, how often, or which are merged first.
Pack merged(std::vector<PackedEntry> entries);

// The text of a pack's file. Requires: what merged() returns.
std::string encode_pack(const Pack& pack);

// Writes the file of a pack. Requires: what merged() returns. Throws Error{kInvalidArgument},
// before anything is written, where the file would be larger than kMaxPackBytes, which nobody
// reads; and as base::write_file_atomically.
void write_pack(base::FileSystem& files, const std::string& path, const Pack& pack);

// Whether a device's entries are wanted, by its identity.
using WantDevice = std::function<bool(std::string_view device)>;

// The entries of a pack's file. Lines that hold no entry of this build, such as one of a family of
// kernels that it lacks, are left out: *left_out gets a line for each. With `want`, lines of
// devices that nobody wants are not looked at. Throws Error{kInvalidFile} where the file is none,
// was cut or changed; Error{kUnsupported} where it is of another schema, and says whether it is
// that of a newer library.
Pack decode_pack(std::span<const std::byte> file, std::vector<std::string>* left_out,
                 const WantDevice& want = {});

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_TUNED_PACK_H_
