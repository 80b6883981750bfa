#ifndef ANNULUS_TESTS_FAULTS_FAILING_MALLOC_H_
#define ANNULUS_TESTS_FAULTS_FAILING_MALLOC_H_

// Replaces malloc in a program that links this file. It makes one allocation of this library fail,
// or all allocations from one on, on any thread. An allocation is the library's if the first code
// on the stack that is not the C or C++ runtime's is in libannulus.so or libannulus_simulator.so.
// Allocations of NVRTC and of the program itself are left alone. An allocation is named by its call
// stack and by the number of its visit to that stack. The call stack has up to 8 return addresses
// in the library, as offsets in their file. So a name is valid for one build, independent of the
// addresses of a process and the order of its threads. This file cannot be used with a sanitizer,
// because a sanitizer replaces malloc too.

#include <cstdint>
#include <string>
#include <vector>

namespace annulus::test {

struct AllocationPoint {
  std::uint64_t stack = 0;
  std::uint32_t visit = 0;  // counted from 1
  bool for_good = false;    // all later allocations fail too
};

// Counts the library's allocations until end_counting(), which returns the counts.
void begin_counting();
struct CountedStack {
  std::uint64_t stack = 0;
  std::uint32_t visits = 0;
};
std::vector<CountedStack> end_counting();

// After begin_failing(), the allocation that `point` names returns null.
void begin_failing(const AllocationPoint& point);
// Ends the failing, and returns whether the point was reached.
bool end_failing();

// The stack at the point that was reached: "libannulus.so+0x1234 ...", for addr2line.
std::string last_failed_stack();

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_FAULTS_FAILING_MALLOC_H_
