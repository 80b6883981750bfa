#ifndef ANNULUS_PARAMS_PACK_PARAMS_H_
#define ANNULUS_PARAMS_PACK_PARAMS_H_

// The argument of pack_rows: the contract between the host (src/ring) and the template. Strides
// count bytes, and pieces have 16 bytes.

namespace annulus::kernels {

// Packed rows from `place` on, up to the next entry's place, are the rows of the tensors from `row`
// on.
struct PackedPiece {
  int place;
  int row;
};

// A [B, S, Hkv, D] tensor of 16-bit elements, in any order of the first three.
struct PackTensor {
  const void* from;
  long long batch, head, row;
  int pieces;  // pieces of 16 bytes in D elements
  int offset;  // pieces of a packed row of a batch that come before it
};

struct PackParams {
  PackTensor tensors[2];  // K and V
  void* to;               // [rows, B, width], 16-byte aligned
  const PackedPiece* list;
  int list_length;
  int rows;   // rows that are packed
  int batch;  // B of the whole tensors
  int heads;  // Hkv
  int width;  // pieces of a packed row of a batch
  int padding;
};

enum : int { kPackRows = 8, kPackThreads = 256 };

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_PACK_PARAMS_H_
