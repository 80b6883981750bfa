#ifndef ANNULUS_SIMULATOR_TESTS_GOLDEN_FRAGMENTS_H_
#define ANNULUS_SIMULATOR_TESTS_GOLDEN_FRAGMENTS_H_

// Golden programs of a single mma.sync. Each lane loads its fragments of A, B and C from its record
// in `in`, and stores its fragment of D, four words for each lane, in `out`.

#include <string>
#include <vector>

#include "golden/golden.h"

namespace annulus::golden {

constexpr int kRecord = 16;  // 32-bit words of a lane in `in`: A at 0, B at 4, C at 8

// Word i of lane l in the records of one warp.
u32 record_word(Words in, int lane, int index);
void set_record_word(std::vector<u64>& in, int lane, int index, u32 value);

struct FragmentRegisters {
  int a, b, c;  // D has the number of C
};

// `form`: the text after mma.sync.aligned, starting with the shape.
std::string mma_program(const std::string& version, const std::string& target,
                        const std::string& form, const FragmentRegisters& registers);

}  // namespace annulus::golden

#endif  // ANNULUS_SIMULATOR_TESTS_GOLDEN_FRAGMENTS_H_
