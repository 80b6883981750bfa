#ifndef ANNULUS_SIMULATOR_OPS_WMMA_H_
#define ANNULUS_SIMULATOR_OPS_WMMA_H_

// Declarations that wmma.load, wmma.store and wmma.mma share (PTX ISA 9.0, sections 9.7.14.4.3 to
// 9.7.14.4.5).
//
// The manual does not define which lane holds which elements. Here a fragment is its matrix row by
// row, whatever its layout in memory: register r of the 32 lanes, lane 0 first, is the r-th run of
// 128 bytes (256 for f64) of
//
//   A: m rows of k elements    B: k rows of n elements    C, D: m rows of n elements
//
// Fragments of f16 have eight registers for A and B in every shape, which is more than some shapes
// need. The registers after the last one that is needed hold the matrix once or three times more.
// So a program that does the same to all elements of a fragment keeps the copies equal. Only the
// first copy is multiplied.

#include <string_view>
#include <vector>

#include "simulator/ops/handlers.h"

namespace annulus::simulator {

struct WmmaShape {
  const char* name;
  int m, n, k;
};
// The shape that the instruction names.
const WmmaShape& wmma_shape(const Decoder& decoder);

// Whether a multiplicand of this type, or an accumulator, has the shape.
bool wmma_multiplicand_has(std::string_view type, const WmmaShape& shape);
bool wmma_accumulator_has(std::string_view type, const WmmaShape& shape);

int wmma_bytes(std::string_view type);  // bytes of an element
// The registers of a fragment.
int wmma_registers(std::string_view type, int elements, bool multiplicand);

// Appends the slots of a fragment's registers.
void take_wmma_fragment(Decoder& decoder, const ptx::Operand& operand, std::string_view type,
                        int registers, bool output, std::vector<std::uint32_t>& slots);

// Throws Fault unless all lanes take part.
void require_wmma_warp(Mask mask);

void decode_wmma_access(Decoder& decoder, bool stores);
void decode_wmma_product(Decoder& decoder);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_WMMA_H_
