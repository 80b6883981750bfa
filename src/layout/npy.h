#ifndef ANNULUS_LAYOUT_NPY_H_
#define ANNULUS_LAYOUT_NPY_H_

// NumPy's file of one array, of bytes alone:
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
  std::span<const std::uint8_t> values;  // of the bytes that were parsed
};

// The shape, and where the data begins.
struct NpyHead {
  std::vector<std::int64_t> shape;
  std::size_t data_at = 0;
};

// The number of first bytes that hold the header, of which `head` may be a part: 12 while it is
// shorter. Throws as parse_npy() does, also where a file of this size cannot hold them.
std::size_t npy_head_bytes(std::span<const std::byte> head, std::uint64_t file_bytes,
                           const std::string& what);

// Reads a header, which `head` holds whole, and compares its shape with the size of the file.
NpyHead parse_npy_head(std::span<const std::byte> head, std::uint64_t file_bytes,
                       const std::string& what);

// Reads an array of bool or uint8, row-major. Throws Error{kInvalidFile}; `what` names the bytes in
// its message.
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& what);

// '|b1' where `is_bool`, else '|u1'; version 1.0, data at a multiple of 64.
std::vector<std::byte> format_npy(std::span<const std::int64_t> shape,
                                  std::span<const std::uint8_t> values, bool is_bool);

}  // namespace annulus::layout

#endif  // ANNULUS_LAYOUT_NPY_H_
