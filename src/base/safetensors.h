#ifndef ANNULUS_BASE_SAFETENSORS_H_
#define ANNULUS_BASE_SAFETENSORS_H_

// The safetensors file format: named tensors, and metadata about them.
//
//   +----------+-------------------------------+-----------------------------+
//   | n: u64   | header: n bytes of JSON       | data, tensor after tensor   |
//   | (little) | {"name": {"dtype": "F16",     |                             |
//   |          |  "shape": [2, 3],             |  offsets count from here    |
//   |          |  "data_offsets": [b, e]},     |                             |
//   |          |  "__metadata__": {"k": "v"}}  |                             |
//   +----------+-------------------------------+-----------------------------+
//
// A file comes from anywhere, so reading believes nothing: each length, offset and shape is checked
// against the bytes that are there, tensors may neither overlap nor leave holes, and what does not
// fit is Error{kInvalidFile} naming the file and the tensor.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace annulus::base {

enum class TensorType : int { kF16, kBF16, kF32, kF64, kI32, kI64, kU8 };

std::size_t size_in_bytes(TensorType type);
const char* to_string(TensorType type);  // "F16", ... as in the file

// One tensor, row-major. Borrows its bytes, which have no alignment.
struct TensorView {
  TensorType type = TensorType::kF32;
  std::vector<std::int64_t> shape;  // without dimensions there is one element
  std::span<const std::byte> bytes;

  std::int64_t elements() const;
};

struct NamedTensor {
  std::string name;
  TensorView tensor;
};

using Metadata = std::map<std::string, std::string>;

// A file in memory. The views point into `storage`, which a move keeps in place.
struct Safetensors {
  std::vector<std::byte> storage;
  std::map<std::string, TensorView> tensors;
  Metadata metadata;

  Safetensors() = default;
  Safetensors(Safetensors&&) = default;
  Safetensors& operator=(Safetensors&&) = default;
  Safetensors(const Safetensors&) = delete;
  Safetensors& operator=(const Safetensors&) = delete;
};

// `what` names the bytes in messages.
Safetensors parse_safetensors(std::vector<std::byte> bytes, std::string_view what);

// Throws Error{kFile} where the file cannot be read, Error{kInvalidFile} where it is larger than
// max_bytes or half of the machine's memory, and Error{kOutOfMemory}. The header is read and
// compared with the size of the file before the data is read; then `check`, where it is given, sees
// the metadata and the tensors without their bytes, and may throw.
using CheckTensors = std::function<void(const Safetensors& without_bytes)>;
Safetensors read_safetensors(FileSystem& files, const std::string& path,
                             std::int64_t max_bytes = std::int64_t{1} << 36,
                             const CheckTensors& check = {});

// The bytes of a file. They are the same for the same tensors and metadata in any order: larger
// elements come first, then names decide, so that each tensor is aligned to its element. Throws
// Error{kInvalidArgument} for a name that is there twice or reserved, a negative dimension, or
// bytes that are not the shape's.
std::vector<std::byte> format_safetensors(std::span<const NamedTensor> tensors,
                                          const Metadata& metadata);

// Replaces the file whole or leaves it untouched. Throws as above, and Error{kFile}.
void write_safetensors(FileSystem& files, const std::string& path,
                       std::span<const NamedTensor> tensors, const Metadata& metadata);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_SAFETENSORS_H_
