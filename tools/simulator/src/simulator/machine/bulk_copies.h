#ifndef ANNULUS_SIMULATOR_MACHINE_BULK_COPIES_H_
#define ANNULUS_SIMULATOR_MACHINE_BULK_COPIES_H_

// cp.async.bulk and its tensor forms (PTX ISA 9.0, sections 9.7.9.25.4 and 9.7.9.25.5), and
// st.async (9.7.9.12), which lands in the same way. The class holds the copies of a cluster that
// were issued and have not taken effect. A copy into shared memory lands at some moment and then
// reports its bytes to an mbarrier in each CTA that it wrote to. A copy out of shared memory reads
// its source at one moment and writes global memory at a later one. The thread that issued it waits
// for either moment by bulk group.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/machine/tensor_map.h"

namespace annulus::simulator {

struct Cluster;
struct Cta;
struct Warp;

enum class Reduction : std::uint8_t { kNone, kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };

struct BulkCopy {
  enum class Kind : std::uint8_t {
    kLoad,   // global to shared memory
    kStore,  // shared to global memory; may have a reduction
    kShare,  // shared memory to shared memory of a CTA of the cluster
    kValue   // registers to shared memory of a CTA of the cluster (st.async)
  };
  Kind kind = Kind::kLoad;
  Warp* issuer = nullptr;
  int lane = 0;
  std::uint32_t pc = 0;
  bool tensor = false;
  TensorMap map;               // the map of a tensor copy
  Coordinates start{};         // the box that a tensor copy moves
  std::uint64_t address = 0;   // the global address of any other copy
  std::uint32_t bytes = 0;     // size in shared memory
  std::uint32_t source = 0;    // offset in the issuer's shared memory: kStore, kShare
  std::uint32_t target = 0;    // offset in shared memory: all but kStore
  std::uint32_t mbarrier = 0;  // offset: all but kStore
  std::uint32_t ctas = 0;      // the ranks of the CTAs that it writes to, as bits: all but kStore
  Reduction reduction = Reduction::kNone;
  TensorType type = TensorType::kUint8;  // the type of a reduction's elements
  std::uint32_t group = 0;               // the bulk group of the lane: kStore

  // State.
  std::vector<std::uint32_t> records;  // indices in the shadows of `ctas`, ascending
  std::uint32_t source_record = 0;     // index in the issuer's shadow: kStore, kShare
  bool read = false;                   // the source has been read into `data`
  bool done = false;
  bool waited = false;          // kStore: the issuer has waited for the reading
  std::vector<std::byte> data;  // the bytes to write; kValue has them from its issue on
};

class BulkCopies {
 public:
  void reset() { pending_.clear(); }

  // Adds the copy to the copies under way. If effects land early, it takes effect at once.
  void issue(Cluster& cluster, BulkCopy copy);
  // Waits until at most `left` groups of the lane are under way. With `read_only` it waits until at
  // most `left` groups have not read their source yet. The warp counts the groups
  // (Warp::bulk_groups).
  void wait(Cluster& cluster, Warp& warp, int lane, std::uint32_t left, bool read_only);

  // Lets some copies take effect. It is called between turns if effects land at drawn moments.
  void land_some(Cluster& cluster);
  // Lets one copy take effect, when no warp can continue without it. Returns false if there is
  // none.
  bool land_one(Cluster& cluster);
  // Whether any copy has not landed yet.
  bool under_way() const;

  // Checks lanes of a warp that exit: they must have waited until the sources of their stores were
  // read.
  void check_exit(Warp& warp, std::uint32_t lanes);
  // Checks the end of a CTA, after its last warp has exited: no copy may still write to its memory.
  // The stores of the CTA take effect now.
  void check_end(Cluster& cluster, const Cta& cta);

 private:
  void step(Cluster& cluster, BulkCopy& copy);
  void erase_done();

  std::vector<BulkCopy> pending_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_BULK_COPIES_H_
