#ifndef ANNULUS_BENCH_SASS_LOOP_H_
#define ANNULUS_BENCH_SASS_LOOP_H_

// The main loop of a kernel of the wgmma family, read from its machine code.

#include <cstddef>
#include <span>
#include <string>

namespace annulus::bench {

// Instructions of the loop that holds the wait for the scores. What a forward branch inside the
// loop can skip (masks, the end of K) is not counted: a full tile goes past it.
struct SassLoop {
  int instructions = 0;
  int products = 0;             // HGMMA
  int powers = 0;               // MUFU.EX2
  int powers_under_values = 0;  // of these, between the wait for the scores and that for the output
};

// From the text that nvdisasm prints. Throws std::runtime_error where there is no such loop.
SassLoop read_sass_loop(const std::string& text);

// Runs nvdisasm, which must be in PATH, on a cubin.
std::string disassemble(std::span<const std::byte> cubin);

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_SASS_LOOP_H_
