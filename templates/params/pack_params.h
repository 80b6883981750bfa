#ifndef ANNULUS_PARAMS_PACK_PARAMS_H_
#define ANNULUS_PARAMS_PACK_PARAMS_H_

// The argument of pack_rows: the contract between the host (src/ring) and the template. Strides
// count bytes.

namespace annulus::kernels {

// A [B, S, Hkv, D] tensor of 16-bit elements, in any order of the first three, and where it goes.
struct PackTensor {
  const void* from;
  void* to;  // [B, S, Hkv, D] contiguous, 16-byte aligned
  long long batch, head, row;
  int pieces;  // of 16 bytes in D elements
  int padding;
};

struct PackParams {
  PackTensor tensors[2];  // K and V
  int batch;              // B
  int rows;               // S
  int heads;              // Hkv
  int padding;
};

enum : int { kPackRows = 8, kPackThreads = 256 };

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_PACK_PARAMS_H_
