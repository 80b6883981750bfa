#ifndef ANNULUS_PATTERN_LAYOUT_FILE_H_
#define ANNULUS_PATTERN_LAYOUT_FILE_H_

// The file of a block layout: a header with lengths and digests, then the arrays as they are in
// memory. Little-endian.
//
//      0  magic      8 bytes   "ANNULAYT"
//      8  version    u32       1
//     12  header     u32       128: where the arrays begin
//     16  R, C, Sq, Sk         i64 each
//     48  heads      i64       distinct heads
//     56  map        i64       entries of head_map: H, or 0
//     64  kept       i64       kept blocks
//     72  flags      i64       entries of partial: kept, or 0
//     80  bytes      u64       of the whole file
//     88  arrays     16 bytes  XXH3-128 of everything from 128 on
//    104  zero       8 bytes
//    112  digest     16 bytes  XXH3-128 of bytes 0 to 111
//    128  indptr     i64 x (heads ceil(Sq / R) + 1)
//         head_map   i32 x map
//         indices    i32 x kept
//         partial    u8  x flags
//
// Each array begins at a multiple of 64, with zeros before it. The file ends at a multiple of 64
// too.

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "annulus/layout.h"
#include "base/files.h"
#include "base/hash.h"

namespace annulus::pattern {

constexpr std::uint32_t kLayoutVersion = 1;
// The largest file that is read. A layout with up to 2^31 kept blocks is always smaller.
constexpr std::int64_t kMaxLayoutBytes = std::int64_t{1} << 36;

// The digest of the sizes and all entries, including partial flags. It is the same on every
// machine.
base::Digest layout_digest(const LayoutView& layout);

// Appends the digests of the layouts in a tree, separated by blanks. The text of a pattern names
// only the files of layouts, and files may change.
void add_layout_digests(const detail::PatternNode& node, std::string* text);

// The bytes of the file of a layout.
std::vector<std::byte> format_layout(const LayoutView& layout);

// Returns views into `bytes`, which must outlive them and begin at a multiple of 8. Checks
// everything, and throws Error{kInvalidFile}, which names the first fault. `what` names the bytes
// in messages.
LayoutView parse_layout(std::span<const std::byte> bytes, const std::string& what);

// Throws Error{kFile}, Error{kInvalidFile} and Error{kOutOfMemory}. The header is read and compared
// with the size of the file before the arrays are read; then `check`, if it is given, gets the
// sizes and may throw.
using CheckSizes = std::function<void(const LayoutSizes& sizes)>;
BlockLayout read_layout(base::FileSystem& files, const std::string& path,
                        const CheckSizes& check = {});

// Throws Error{kInvalidArgument} for an invalid layout, and Error{kFile}. After an error, the file
// at `path` is unchanged.
void write_layout(base::FileSystem& files, const std::string& path, const LayoutView& layout);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_LAYOUT_FILE_H_
