#ifndef ANNULUS_PROGRAM_INPUT_HOST_TENSOR_H_
#define ANNULUS_PROGRAM_INPUT_HOST_TENSOR_H_

// Tensors of the program in host memory, filled with random numbers or read from a file.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/problem.h"

namespace annulus::program {

// The memory order of a four-dimensional tensor.
enum class Order { kBshd, kBhsd };

// A tensor [B, S, H, D] in either order, without gaps. It holds the bits of a 16-bit dtype, or e4m3
// bytes with scales.
struct HostTensor {
  std::vector<std::uint16_t> bits;
  std::vector<std::uint8_t> float8;  // used instead of `bits` for e4m3
  std::vector<float> scales;         // [B, H, blocks of rows], used with float8
  std::int64_t batch = 0;
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  Order order = Order::kBshd;
  bool is_shared = false;  // there is one batch, which every batch of the problem reads

  const void* data() const {
    return bits.empty() ? static_cast<const void*>(float8.data()) : bits.data();
  }
  std::size_t bytes() const { return bits.size() * sizeof(bits[0]) + float8.size(); }
  Strides strides() const {
    Strides strides =
        order == Order::kBshd ? Strides::bshd(rows, heads, dim) : Strides::bhsd(rows, heads, dim);
    if (is_shared) strides.batch = 0;
    return strides;
  }
};

HostTensor make_tensor(std::int64_t batch, std::int64_t rows, std::int64_t heads, std::int64_t dim,
                       Order order);

// Fills the tensor with standard normal numbers. A seed gives the same numbers on every machine.
void fill_normal(HostTensor& tensor, Dtype dtype, std::uint64_t seed);

// Converts `tensor` to e4m3. Each block of `rows` rows of a head (0: all rows) has a scale that
// makes its largest element 448. The scale of a block of zeros is 0.
HostTensor quantise(const HostTensor& tensor, Dtype dtype, std::int64_t rows);

// The tensors q, k and v of a file. k and v may have one batch for all batches of q.
struct LoadedTensors {
  HostTensor q, k, v;
  Dtype dtype = Dtype::kBfloat16;
  // The types in the file: "F32", or "F16, BF16 and F32" for q, k and v.
  std::string stored_as;
  std::int64_t overflowed = 0;  // finite values that became infinite
};

// Reads the tensors `q`, `k` and `v` (F16, BF16 or F32) of a safetensors file. F32 is converted to
// `convert_to`. A 16-bit type is converted only if `force` is true. Throws Error{kFile} or
// Error{kInvalidFile} that names the tensor and the fault.
LoadedTensors load_tensors(const std::string& path, Order order, Dtype convert_to, bool force);

// Writes O as the tensor `o`, and `lse` ([B, H, S] fp32) unless it is empty.
void save_output(const std::string& path, const HostTensor& o, Dtype dtype,
                 const std::vector<float>& lse);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_HOST_TENSOR_H_
