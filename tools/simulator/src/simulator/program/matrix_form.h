#ifndef ANNULUS_SIMULATOR_PROGRAM_MATRIX_FORM_H_
#define ANNULUS_SIMULATOR_PROGRAM_MATRIX_FORM_H_

#include <cstdint>
#include <vector>

namespace annulus::simulator {

enum class MatrixInput : std::uint8_t { kF16, kBf16, kTf32, kE4m3, kE5m2 };

// The operands and modifiers of one wgmma.mma_async. Its shape is 64 x n x (elements of 32 bytes).
struct MatrixForm {
  std::uint32_t n = 0;
  MatrixInput a = MatrixInput::kBf16;
  MatrixInput b = MatrixInput::kBf16;
  bool half_accumulators = false;  // else fp32
  bool a_in_registers = false;
  bool transpose_a = false;  // the operand is M-major, not K-major
  bool transpose_b = false;  // the operand is N-major, not K-major
  bool negate = false;
  std::uint32_t scale = 0;  // slot of the predicate: true adds to D, false replaces D
  std::uint8_t scale_negated = 0;
  std::uint32_t a_descriptor = 0;  // slots of 64 bits
  std::uint32_t b_descriptor = 0;
  std::vector<std::uint32_t> d_slots;
  std::vector<std::uint32_t> a_slots;
  std::vector<std::uint32_t> d_registers;  // numbers among the program's matrix registers
  std::vector<std::uint32_t> a_registers;

  std::uint32_t element_bytes() const {
    return a == MatrixInput::kTf32 ? 4 : a <= MatrixInput::kBf16 ? 2 : 1;
  }
  std::uint32_t k() const { return 32 / element_bytes(); }
  // A number for the shape of the accumulators. Products of the same shape may write the same
  // accumulators one after another without a wgmma.fence.
  std::uint32_t shape() const { return n * 4 + (half_accumulators ? 2 : 0) + 1; }
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_PROGRAM_MATRIX_FORM_H_
