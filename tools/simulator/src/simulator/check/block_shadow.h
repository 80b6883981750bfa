#ifndef ANNULUS_SIMULATOR_CHECK_BLOCK_SHADOW_H_
#define ANNULUS_SIMULATOR_CHECK_BLOCK_SHADOW_H_

// Finds races in global memory within a block: between its warps, and between the lanes of a warp.
// It keeps which lane touched which bytes when, and asks the clocks that order shared memory too
// (simulator/check/cluster_clocks.h) whether one access comes before another. So the same barriers
// count: those of the block, named ones, mbarriers, bar.warp.sync.
//
// Two rules are weaker than the memory model of PTX, because programs rely on them: a strong write
// (atomic, volatile, relaxed) of any scope gives on what its warp did without a fence, and a write
// that changes nothing is no race. What a strong read takes up its warp knows from its next fence
// or barrier on if the read is no acquire, and in the proven reading at once.
//
// For the asynchronous proxy it also keeps what bulk copies have written, once they were waited
// for, and what a bulk copy reads that the block wrote with no fence.proxy.async since.
//
// Memory that the block touches is kept in chunks with cells of 16 bytes, or of as few as the
// narrowest access had. A cell has a stamp for the last plain write, and for each warp one for its
// last read and one for its last strong write:
//   | clock : 20 | warp : 6 | lane : 6 | strong : 1 | bulk : 1 | free : 16 | site : 14 |

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "simulator/check/access_kind.h"
#include "simulator/check/cluster_clocks.h"
#include "simulator/program/program.h"

namespace annulus::simulator {

class BlockShadow {
 public:
  using Agent = ClusterClocks::Agent;
  using Lanes = ClusterClocks::Lanes;

  // An access of the instruction with this site (Program::sites).
  struct Access {
    int warp = 0;
    AccessKind kind{};
    std::uint32_t bytes = 0;  // of each lane: a power of two up to 64 that divides the addresses
    std::uint32_t site = 0;
    bool bulk = false;  // by a bulk copy
  };

  // Forgets everything, for a new block whose warps are the agents from `first` on.
  void reset(const Program& program, ClusterClocks& clocks, Agent first);

  // Lanes read. Throws Fault.
  void read(const Access& access, Lanes lanes, const std::uint64_t* addresses);
  // A lane is about to write. Throws Fault.
  void check_write(const Access& access, int lane, std::uint64_t address);
  // It does, and later accesses have to come after it.
  void note_write(const Access& access, int lane, std::uint64_t address);

  // Lanes make a strong access: they take up what earlier ones at the address gave, or give. What
  // the warp takes from others it knows at once, or with `later` from settle() on. What a lane
  // takes from other lanes of its warp it alone knows, at once. After a gift the clock of the warp
  // has to advance.
  void take(int warp, Lanes lanes, const std::uint64_t* addresses, bool later);
  // The warp makes a fence, or arrives at a barrier.
  void settle(int warp) {
    if (!pending_[static_cast<std::size_t>(warp)].empty()) settle_all(warp);
  }
  void give(int warp, Lanes lanes, const std::uint64_t* addresses);
  // The lanes fence the asynchronous proxy for global memory alone; `whole` says that no other lane
  // of the warp is left. Fences for all memory are known to the clocks.
  void fence(int warp, Lanes lanes, bool whole);
  // The warp has learnt at the address what these warps of its block have done; of those that gave
  // nothing there it has learnt by way of other blocks.
  void learn(int warp, std::uint32_t others, std::uint64_t address);

  // A bulk copy that the lane issues is about to read or write [begin, end).
  void check_bulk_read(const Access& access, int lane, std::uint64_t begin, std::uint64_t end);
  void check_bulk_write(const Access& access, int lane, std::uint64_t begin, std::uint64_t end);
  // The lane has waited for a bulk copy that wrote [begin, end).
  void note_bulk_write(const Access& access, int lane, std::uint64_t begin, std::uint64_t end);

 private:
  using Stamp = std::uint64_t;
  static constexpr int kChunkBits = 10;
  static constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << kChunkBits;
  static constexpr int kWidest = 4;  // log2 of the bytes of the largest cell
  static constexpr int kWarps = 32;
  static constexpr std::size_t kPageStamps = std::size_t{1} << 16;
  static constexpr std::size_t kKeptPages = 32;  // 16 MiB
  // Addresses at which gifts are kept apart. Those at further addresses count for all of them,
  // which may order too much and so hides a race but invents none.
  static constexpr std::size_t kMostGiven = std::size_t{1} << 14;
  static constexpr std::uint64_t kAnywhere = 0;

  // Arrays of stamps are made when the first is needed.
  struct Chunk {
    std::uint64_t number = 0;    // address >> kChunkBits
    int shift = kWidest;         // log2 of the bytes of a cell
    std::uint32_t readers = 0;   // warps that have an array in `read`
    std::uint32_t updaters = 0;  // and in `updated`
    Stamp* written = nullptr;
    std::array<Stamp*, kWarps> read;     // [warp], of readers
    std::array<Stamp*, kWarps> updated;  // [warp], of updaters: strong writes
    std::size_t cells() const { return kChunkBytes >> shift; }
  };
  struct Cells {
    Chunk* chunk;
    std::size_t first;
    std::size_t end;
  };

  // What a warp did up to and including a clock; for lanes of this warp itself, what `lanes` did.
  struct Gift {
    int warp;
    std::uint32_t clock;
    Lanes lanes;
  };
  // What came before the last fence() of a warp.
  struct Fence {
    ClusterClocks::Vector order;
    std::uint32_t clock = 0;
  };

  static void keep(std::vector<Gift>& gifts, const Gift& gift);
  void settle_all(int warp);
  Agent agent(int warp) const { return first_ + static_cast<Agent>(warp); }
  Stamp stamp(const Access& access, int lane) const;
  bool before(Stamp stamp, int warp, int lane) const;
  Chunk* find(std::uint64_t address);
  Chunk& make(std::uint64_t address, int shift);
  Cells cells(std::uint64_t address, std::uint32_t bytes);
  Stamp* array(const Chunk& chunk);
  void split(Chunk& chunk, int shift);
  static void note(Stamp& place, Stamp fresh);
  void check_cell(const Chunk& chunk, std::size_t cell, const Access& access, int lane) const;
  void conflict_with(Stamp earlier, AccessKind kind, const Chunk& chunk, std::size_t cell,
                     const Access& access, int lane) const;
  bool fenced(Stamp stamp, int warp, int lane) const;
  void check_fenced(const Chunk& chunk, std::size_t cell, const Access& access, int lane) const;
  // Visits the cells of [begin, end) that have stamps: visit(chunk, cell).
  template <typename Visit>
  void each(std::uint64_t begin, std::uint64_t end, Visit visit);

  const Program* program_ = nullptr;
  ClusterClocks* clocks_ = nullptr;
  Agent first_ = 0;
  std::unordered_map<std::uint64_t, Chunk*> chunks_;  // by number
  std::vector<std::unique_ptr<Chunk>> pool_;          // chunks_ are the first of it
  std::array<Chunk*, 16> recent_{};                   // by the number's low bits
  std::vector<std::unique_ptr<Stamp[]>> pages_;       // the arrays of chunks
  std::size_t used_ = 0;                              // stamps of all pages that are taken
  std::unordered_map<std::uint64_t, std::vector<Gift>> given_;  // by address
  std::array<std::vector<Gift>, kWarps> pending_;               // [warp]: taken, not known
  std::array<Fence, kWarps> fences_;                            // [warp]
  std::uint32_t fenced_by_ = 0;                                 // warps that have one
  // The bytes that the block has written lie in these bounds.
  std::uint64_t lowest_ = ~std::uint64_t{0};
  std::uint64_t highest_ = 0;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_BLOCK_SHADOW_H_
