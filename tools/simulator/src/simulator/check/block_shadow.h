#ifndef ANNULUS_SIMULATOR_CHECK_BLOCK_SHADOW_H_
#define ANNULUS_SIMULATOR_CHECK_BLOCK_SHADOW_H_

// Finds races in global memory within a block: between its warps, and between the lanes of a warp.
// It records which lane accessed which bytes at which clock. The clocks that order shared memory
// (simulator/check/cluster_clocks.h) decide whether one access comes before another. So the same
// barriers count: barriers of the block, named barriers, mbarriers, bar.warp.sync.
//
// Two rules are weaker than the memory model of PTX, because programs rely on them. A strong write
// (atomic, volatile, relaxed) of any scope passes on what its warp did, even without a fence. A
// write that does not change the value is not a race. After a strong read that is not an acquire,
// the warp knows what the read took only from its next fence or barrier on; with the option
// `reading=proven` it knows it at once.
//
// For the asynchronous proxy it also records what bulk copies have written, after they were waited
// for. And it checks that a bulk copy reads nothing that the block wrote with no fence.proxy.async
// since.
//
// The memory that the block accesses is recorded in chunks. The cells of a chunk have 16 bytes, or
// the size of its narrowest access. A cell has a stamp for the last plain write. For each warp it
// also has a stamp for the last read and one for the last strong write:
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
    std::uint32_t bytes = 0;  // for each lane: a power of two up to 64 that divides the addresses
    std::uint32_t site = 0;
    bool bulk = false;  // true for an access of a bulk copy
  };

  // Removes all records, for a new block whose warps are the agents from `first` on.
  void reset(const Program& program, ClusterClocks& clocks, Agent first);

  // Lanes read. Throws Fault.
  void read(const Access& access, Lanes lanes, const std::uint64_t* addresses);
  // Checks that a lane may write. It is called before the write. Throws Fault.
  void check_write(const Access& access, int lane, std::uint64_t address);
  // Records that the lane writes. Later accesses have to come after this write.
  void note_write(const Access& access, int lane, std::uint64_t address);

  // Lanes make a strong access. They take what earlier strong accesses at the address gave, or give
  // themselves. What the warp takes from other warps it knows at once, or with `later` from
  // settle() on. What a lane takes from other lanes of its warp, only that lane knows, at once.
  // After a gift the clock of the warp has to advance.
  void take(int warp, Lanes lanes, const std::uint64_t* addresses, bool later);
  // The warp executes a fence, or arrives at a barrier.
  void settle(int warp) {
    if (!pending_[static_cast<std::size_t>(warp)].empty()) settle_all(warp);
  }
  void give(int warp, Lanes lanes, const std::uint64_t* addresses);
  // The lanes execute a proxy fence for global memory only. `whole` means that no other lane of the
  // warp is left. Fences for all memory are recorded in the clocks.
  void fence(int warp, Lanes lanes, bool whole);
  // Records that the warp, by a strong read at the address, now knows accesses of these warps of
  // its block. Warps that gave nothing at the address reached it by way of other blocks.
  void learn(int warp, std::uint32_t others, std::uint64_t address);

  // Checks a bulk copy that the lane issues, before it reads or writes [begin, end).
  void check_bulk_read(const Access& access, int lane, std::uint64_t begin, std::uint64_t end);
  void check_bulk_write(const Access& access, int lane, std::uint64_t begin, std::uint64_t end);
  // Records that the lane has waited for a bulk copy that wrote [begin, end).
  void note_bulk_write(const Access& access, int lane, std::uint64_t begin, std::uint64_t end);

 private:
  using Stamp = std::uint64_t;
  static constexpr int kChunkBits = 10;
  static constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << kChunkBits;
  static constexpr int kWidest = 4;  // log2 of the bytes of the largest cell
  static constexpr int kWarps = 32;
  static constexpr std::size_t kPageStamps = std::size_t{1} << 16;
  static constexpr std::size_t kKeptPages = 32;  // 16 MiB
  // The largest number of addresses whose gifts are kept apart. Gifts at further addresses count
  // for all further addresses. This may order too much, which hides a race, but it never reports a
  // false one.
  static constexpr std::size_t kMaxGiven = std::size_t{1} << 14;
  static constexpr std::uint64_t kAnywhere = 0;

  // An array of stamps is made when it is first needed.
  struct Chunk {
    std::uint64_t number = 0;    // address >> kChunkBits
    int shift = kWidest;         // log2 of the bytes of a cell
    std::uint32_t readers = 0;   // the warps that have an array in `read`
    std::uint32_t updaters = 0;  // the warps that have an array in `updated`
    Stamp* written = nullptr;
    std::array<Stamp*, kWarps> read;     // [warp]: the stamps of reads, for `readers`
    std::array<Stamp*, kWarps> updated;  // [warp]: the stamps of strong writes, for `updaters`
    std::size_t cells() const { return kChunkBytes >> shift; }
  };
  struct Cells {
    Chunk* chunk;
    std::size_t first;
    std::size_t end;
  };

  // The accesses of a warp up to and including a clock. For lanes of the same warp they are only
  // those of `lanes`.
  struct Gift {
    int warp;
    std::uint32_t clock;
    Lanes lanes;
  };
  // The accesses that came before the last fence() of a warp.
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
  std::unordered_map<std::uint64_t, Chunk*> chunks_;  // by the chunk's number
  std::vector<std::unique_ptr<Chunk>> pool_;          // the first ones are in use in chunks_
  std::array<Chunk*, 16> recent_{};  // a cache of chunks, by the low bits of their numbers
  std::vector<std::unique_ptr<Stamp[]>> pages_;  // memory for the arrays of chunks
  std::size_t used_ = 0;                         // the number of stamps in use, over all pages
  std::unordered_map<std::uint64_t, std::vector<Gift>> given_;  // by address
  std::array<std::vector<Gift>, kWarps> pending_;  // [warp]: gifts taken but not known yet
  std::array<Fence, kWarps> fences_;               // [warp]
  std::uint32_t fenced_by_ = 0;                    // the warps that have an entry in fences_
  // All bytes that the block has written lie within these bounds.
  std::uint64_t lowest_ = ~std::uint64_t{0};
  std::uint64_t highest_ = 0;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_BLOCK_SHADOW_H_
