#ifndef ANNULUS_LAYOUT_NPY_H_
#define ANNULUS_LAYOUT_NPY_H_

// NumPy's file of one array, for arrays of bytes only:
//
//   +------------+---------+-----------+--------------------------------------+------+
//   | 93 "NUMPY" | version | n: u16 or | "{'descr': '|u1', 'fortran_order':   | data |
//   | 6 bytes    | 2 bytes | u32       |  False, 'shape': (2, 3), }", n bytes |      |
//   +------------+---------+-----------+--------------------------------------+------+

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace annulus::layout {

struct NpyArray {
  std::vector<std::int64_t> shape;
  std::span<const std::uint8_t> values;  // a part of the parsed bytes
};

// The shape of the array, and the offset of its data.
struct NpyHead {
  std::vector<std::int64_t> shape;
  std::size_t data_at = 0;
};

// The number of bytes from the start of the file that hold the header. `head` may be a part of
// them; while it is shorter than 12 bytes, the result is 12. Throws as parse_npy() does, and also
// if a file of this size cannot hold the header.
std::size_t npy_head_bytes(std::span<const std::byte> head, std::uint64_t file_bytes,
                           const std::string& what);

// Reads a header, all of which is in `head`, and compares its shape with the size of the file.
NpyHead parse_npy_head(std::span<const std::byte> head, std::uint64_t file_bytes,
                       const std::string& what);

// Reads a row-major array of bool or uint8. Throws Error{kInvalidFile}; `what` names the bytes in
// its message.
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& what);

// Writes '|b1' if `is_bool`, else '|u1'; version 1.0, with the data at a multiple of 64.
std::vector<std::byte> format_npy(std::span<const std::int64_t> shape,
                                  std::span<const std::uint8_t> values, bool is_bool);

}  // namespace annulus::layout

#endif  // ANNULUS_LAYOUT_NPY_H_
