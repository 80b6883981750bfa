#ifndef ANNULUS_SIMULATOR_MACHINE_WARPGROUP_H_
#define ANNULUS_SIMULATOR_MACHINE_WARPGROUP_H_

// wgmma (PTX ISA 9.0, section 9.7.15): the matrix products of a warpgroup that were issued and have
// not been computed, and which registers an ordinary instruction may access until then.
//
// Each of the four warps issues a product. The product is computed at some later moment. It is over
// for a warp when the warp has waited for the group that the product was committed to. From the
// issue to that wait, the accumulators belong to the product, and ordinary instructions must not
// access its fragments of A. If an ordinary instruction accessed one of these registers before the
// issue, wgmma.fence has to come in between.
//
// The ISA allows two readings of the wait. Either a product is one operation of the whole
// warpgroup, or it is four operations, and each warp waits for its own. A kernel has to be right
// under both.

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
  std::uint32_t issued = 0;               // the warps that have issued it, as bits
  std::uint32_t computed = 0;             // the warps whose rows have been computed, as bits
  std::uint32_t group[4] = {};            // the group of the product in each warp
  std::vector<std::uint32_t> offsets;     // the offsets of the 16-byte chunks of A, if it is in
                                          // memory, then of B
  alignas(64) std::uint32_t a[4][4][32];  // [warp][register][lane], if A is in registers
};

struct Warpgroup {
  static constexpr std::uint32_t kAll = 15;

  std::deque<MatrixProduct> queue;
  std::uint64_t first = 0;       // the number of the product at queue.front()
  std::uint64_t issued[4] = {};  // the number of products that each warp has issued

  void reset();
};

// The matrix state of one warp.
struct MatrixWarp {
  struct Register {
    std::uint32_t result = 0;    // the last group that writes the register
    std::uint32_t fragment = 0;  // the last group that reads it as a fragment of A
    std::uint32_t touched = 0;   // the number of fences at the last ordinary access
    std::uint32_t shape = 0;     // the shape of the last product that wrote the register
    std::uint32_t shaped = 0;    // the number of fences at that product
    bool written = false;
  };
  std::vector<Register> registers;
  std::uint32_t fences = 0;
  std::uint32_t group = 1;   // the open group
  std::uint32_t last = 0;    // the last group that holds a product
  std::uint32_t waited = 0;  // groups up to this one are over

  void reset(std::size_t count);
};

// For setmaxnreg: the registers of the CTA that no warp holds, counted for one thread of a warp.
struct RegisterPool {
  std::uint32_t free = 0;
  bool active = false;  // the kernel states how many registers its threads have at the start
  // One setmaxnreg of a warpgroup. Its four warps have to execute the same ones in the same order.
  struct Step {
    std::uint32_t pc = 0;
    std::uint32_t count = 0;
  };
  std::vector<std::vector<Step>> steps;   // [warpgroup]
  std::vector<std::uint32_t> steps_done;  // [warp]
};

// Checks the lanes of the running warp that exit. Throws Fault unless the warp has waited for its
// products.
void check_matrix_exit(const Warp& warp);

// Checks the end of the CTA. Throws Fault if a warp has not issued a product that other warps of
// its warpgroup issued.
void check_products_issued(Warp& warp);

// Checks an ordinary instruction that accesses matrix registers (checked mode). Throws Fault.
void touch_matrix_registers(Warp& warp, std::uint32_t pc);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_WARPGROUP_H_
