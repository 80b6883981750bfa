#ifndef ANNULUS_TUNED_TUNED_PACK_H_
#define ANNULUS_TUNED_TUNED_PACK_H_

// Many entries, for any devices, in one text file that can be compared, merged and shipped
// (docs/tuning.md):
//
//   annulus-tuned-pack 4 <32 hex digits: XXH3-128 of everything after this line>\n
//   {"device":"NVIDIA H200, ...","shape":{...},...}\n
//   ...
//
// One line for each entry. The lines are sorted and their members have a fixed order, so that equal
// packs are equal files.

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

// the suffix of the file of a single entry
inline constexpr std::string_view kEntrySuffix = ".tuned";
inline constexpr std::string_view kPackSuffix = ".pack";
inline constexpr std::int64_t kMaxPackBytes = std::int64_t{64} << 20;

struct PackedEntry {
  std::string device;  // the identity of the device (device_key.h)
  Entry entry;

  friend bool operator==(const PackedEntry&, const PackedEntry&) = default;
};

// Sorted by device, shape and kernels_text, with one entry for each such key.
using Pack = std::vector<PackedEntry>;

// Orders entries by device, shape and kernels_text. If two entries compare as equal, one may
// replace the other.
std::strong_ordering compare_keys(const PackedEntry& a, const PackedEntry& b);

// The name that distinguishes an entry from the other entries of its device: the digest of its
// shape, and the kernels that it compared. It has only digits, letters and '-'.
std::string entry_name(const Entry& entry);

// Sorts entries. Of entries with the same key, keeps the one that is better(). So the result does
// not depend on the order or the number of merges.
Pack merged(std::vector<PackedEntry> entries);

// The text of a pack's file. Requires: the pack was returned by merged().
std::string encode_pack(const Pack& pack);

// Writes the file of a pack. Requires: the pack was returned by merged(). Throws
// Error{kInvalidArgument} before anything is written if the file would be larger than
// kMaxPackBytes, the limit for reading. Also throws as base::write_file_atomically does.
void write_pack(base::FileSystem& files, const std::string& path, const Pack& pack);

// Whether the caller wants the entries of the device with this identity.
using WantDevice = std::function<bool(std::string_view device)>;

// The entries of a pack's file. Lines that this build cannot read, for example for an unsupported
// family of kernels, are left out, and *left_out receives a line for each. With `want`, lines of
// unwanted devices are skipped unread. Throws Error{kInvalidFile} if the file is not a pack, or was
// cut or changed. Throws Error{kUnsupported} if it has another schema; the message states whether a
// newer library wrote it.
Pack decode_pack(std::span<const std::byte> file, std::vector<std::string>* left_out,
                 const WantDevice& want = {});

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_TUNED_PACK_H_
