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

// Reads an array of bool or uint8, row-major. Throws Error{kInvalidFile}; `what` names the bytes in
// its message.
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& what);

// '|b1' where `is_bool`, else '|u1'; version 1.0, data at a multiple of 64.
std::vector<std::byte> format_npy(std::span<const std::int64_t> shape,
                                  std::span<const std::uint8_t> values, bool is_bool);

}  // namespace annulus::layout

#endif  // ANNULUS_LAYOUT_NPY_H_
