#ifndef ANNULUS_SIMULATOR_MACHINE_WARPGROUP_H_
#define ANNULUS_SIMULATOR_MACHINE_WARPGROUP_H_

// wgmma (PTX ISA 9.0, section 9.7.15): the matrix products of a warpgroup that were issued and have
// not been computed, and who may touch which registers meanwhile.
//
// A product is issued by each of the four warps, computed at some moment, and over for a warp when
// it has waited for the group that the product was committed to. From its issue to that wait its
// accumulators belong to it and its fragments of A must not be touched. Where an ordinary
// instruction has touched one of these registers before the issue, wgmma.fence has to come in
// between.
//
// The ISA can be read in two ways about waiting: a product is one operation of the whole warpgroup,
// or it is four, and each warp waits for its own. A kernel has to be right under both.

#include <cstdint>
#include <deque>
#include <vector>

#include "simulator/program/matrix_form.h"

namespace annulus::simulator {

struct Cta;
struct Warp;
struct Inst;

// One wgmma.mma_async of a warpgroup.
struct MatrixProduct {
  const Inst* inst = nullptr;
  const MatrixForm* form = nullptr;
  std::uint32_t pc = 0;
  std::uint64_t a_descriptor = 0;
  std::uint64_t b_descriptor = 0;
  bool accumulate = false;
  std::uint32_t issued = 0;            // warps that have issued it, as bits
  std::uint32_t computed = 0;          // warps whose rows have been computed, as bits
  std::uint32_t group[4] = {};         // its group in each warp
  std::vector<std::uint32_t> offsets;  // of the 16-byte chunks of A, if it is in memory, then of B
  alignas(64) std::uint32_t a[4][4][32];  // [warp][register][lane], if A is in registers
};

struct Warpgroup {
  static constexpr std::uint32_t kAll = 15;

  std::deque<MatrixProduct> queue;
  std::uint64_t first = 0;       // number of queue.front()
  std::uint64_t issued[4] = {};  // products issued by each warp

  void reset();
};

// The matrix state of one warp.
struct MatrixWarp {
  struct Register {
    std::uint32_t result = 0;    // last group that writes it
    std::uint32_t fragment = 0;  // last group that reads it as a fragment of A
    std::uint32_t touched = 0;   // number of fences at the last ordinary access
    std::uint32_t shape = 0;     // of the last product that wrote it
    std::uint32_t shaped = 0;    // number of fences at that product
    bool written = false;
  };
  std::vector<Register> registers;
  std::uint32_t fences = 0;
  std::uint32_t group = 1;   // the open one
  std::uint32_t last = 0;    // the last one that holds a product
  std::uint32_t waited = 0;  // groups up to this are over

  void reset(std::size_t count);
};

// For setmaxnreg: the registers of the CTA that no warp holds, counted per thread and warp.
struct RegisterPool {
  std::uint32_t free = 0;
  bool active = false;  // the kernel says how many registers its threads start with
  // The setmaxnreg that the warps of each warpgroup executed, in order. All four have to execute
  // the same ones.
  struct Step {
    std::uint32_t pc = 0;
    std::uint32_t count = 0;
  };
  std::vector<std::vector<Step>> steps;   // [warpgroup]
  std::vector<std::uint32_t> steps_done;  // [warp]
};

// Lanes of the running warp exit. Throws Fault unless its products have been waited for.
void check_matrix_exit(const Warp& warp);

// The CTA ends. Throws Fault where a warp has not issued a product that others of its warpgroup
// issued.
void check_products_issued(Warp& warp);

// An ordinary instruction touches matrix registers (checked mode). Throws Fault.
void touch_matrix_registers(Warp& warp, std::uint32_t pc);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_WARPGROUP_H_
