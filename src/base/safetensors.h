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
// A file may come from an untrusted source, so nothing in it is trusted. Each length, offset and
// shape is checked against the existing bytes. Tensors may neither overlap nor leave holes. An
// inconsistency throws Error{kInvalidFile} with the file and the tensor.

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

// One tensor, row-major. It refers to bytes that it does not own and that may be unaligned.
struct TensorView {
  TensorType type = TensorType::kF32;
  std::vector<std::int64_t> shape;  // empty for a single element
  std::span<const std::byte> bytes;

  std::int64_t elements() const;
};

struct NamedTensor {
  std::string name;
  TensorView tensor;
};

using Metadata = std::map<std::string, std::string>;

// A file in memory. The views point into `storage`, whose bytes do not move if the object is moved.
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

// Throws Error{kFile} if the file cannot be read, Error{kInvalidFile} if it is larger than
// max_bytes or than half of the machine's memory, and Error{kOutOfMemory}. The header is read and
// compared with the size of the file before the data is read. Then `check`, if it is given,
// receives the metadata and the tensors without their bytes, and may throw.
using CheckTensors = std::function<void(const Safetensors& without_bytes)>;
Safetensors read_safetensors(FileSystem& files, const std::string& path,
                             std::int64_t max_bytes = std::int64_t{1} << 36,
                             const CheckTensors& check = {});

// The bytes of a file. They are the same for the same tensors and metadata in any order: tensors
// are sorted by element size, the largest first, then by name. So each tensor is aligned to its
// element size. Throws Error{kInvalidArgument} if a name is duplicate or reserved, if a dimension
// is negative, or if the number of bytes does not match the shape.
std::vector<std::byte> format_safetensors(std::span<const NamedTensor> tensors,
                                          const Metadata& metadata);

// Replaces the whole file or leaves it unchanged. Throws as format_safetensors() does, and
// Error{kFile}.
void write_safetensors(FileSystem& files, const std::string& path,
                       std::span<const NamedTensor> tensors, const Metadata& metadata);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_SAFETENSORS_H_
