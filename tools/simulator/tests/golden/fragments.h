#ifndef ANNULUS_SIMULATOR_TESTS_GOLDEN_FRAGMENTS_H_
#define ANNULUS_SIMULATOR_TESTS_GOLDEN_FRAGMENTS_H_

// Golden programs of one mma.sync: each lane loads its fragments of A, B and C from its record in
// `in` and stores its fragment of D, four words a lane, in `out`.

#include <string>
#include <vector>

#include "golden/golden.h"

namespace annulus::golden {

constexpr int kRecord = 16;  // 32-bit words per lane in `in`: A at 0, B at 4, C at 8

// Word i of lane l in the records of one warp.
u32 record_word(Words in, int lane, int index);
void set_record_word(std::vector<u64>& in, int lane, int index, u32 value);

struct FragmentRegisters {
  int a, b, c;  // D has as many as C
};

// `form`: what follows mma.sync.aligned, from the shape on.
std::string mma_program(const std::string& version, const std::string& target,
                        const std::string& form, const FragmentRegisters& registers);

}  // namespace annulus::golden

#endif  // ANNULUS_SIMULATOR_TESTS_GOLDEN_FRAGMENTS_H_
