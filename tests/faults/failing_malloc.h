#ifndef ANNULUS_TESTS_FAULTS_FAILING_MALLOC_H_
#define ANNULUS_TESTS_FAULTS_FAILING_MALLOC_H_

// Stands before malloc in a program that links it, and refuses one allocation of this library, or
// all of them from one on, on whichever thread they happen. An allocation is ours where the first
// code above the runtime's that asked for it is in libannulus.so or libannulus_simulator.so; those
// of NVRTC and of the program itself are left alone. It is named by its call stack, up to 8 return
// addresses of ours as offsets in their file, and by which visit of that stack it is. So a name
// holds for one build, whatever the addresses of a process and the order of its threads. It cannot
// be used together with a sanitizer, which stands before malloc too.

#include <cstdint>
#include <string>
#include <vector>

namespace annulus::test {

struct AllocationPoint {
  std::uint64_t stack = 0;
  std::uint32_t visit = 0;  // from 1
  bool for_good = false;    // those that follow fail as well
};

// Between these two calls the allocations of ours are counted.
void begin_counting();
struct CountedStack {
  std::uint64_t stack = 0;
  std::uint32_t visits = 0;
};
std::vector<CountedStack> end_counting();

// From begin_failing() on, the allocation that `point` names returns null.
void begin_failing(const AllocationPoint& point);
// Ends that, and says whether the point was reached.
bool end_failing();

// What `stack` was when the point was reached: "libannulus.so+0x1234 ...", for addr2line.
std::string last_failed_stack();

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_FAULTS_FAILING_MALLOC_H_
