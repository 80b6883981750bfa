#ifndef ANNULUS_TUNED_ENTRY_INDEX_H_
#define ANNULUS_TUNED_ENTRY_INDEX_H_

// Entries in memory, for look-ups by shape that take less than a microsecond however many there
// are.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuned/entry.h"

namespace annulus::tuned {

// An entry and where it is from.
struct Kept {
  Entry entry;
  std::string path;  // of its file or pack; empty: of no file
  // Where on the search path: of two entries for one shape that with the lower number is kept.
  int place = 0;
  std::string relative = {};  // the name of the device that it is of, where it is a relative
};

// Not safe for several threads.
class EntryIndex {
 public:
  // Where entries at one place are alike complete, those of the same major version of the driver go
  // first.
  explicit EntryIndex(int driver_version = 0) : driver_(driver_version / 1000) {}

  // Takes an entry, unless a better one for its shape is there: one of an earlier place; at the
  // same place a complete one, one of the same driver, the one that is better(), in this order.
  void put(Kept kept);
  // Takes an entry in any case.
  void replace(Kept kept);
  void erase(const ShapeKey& shape);
  bool empty() const { return kinds_.empty(); }

  // The entry with that key, or null. Pointers hold until the index is changed.
  const Kept* exact(const ShapeKey& shape) const;

  struct Near {
    const Kept* kept = nullptr;  // null: there is none
    int distance = 0;            // its length_distance()
  };
  // The nearest entry in length within kMaxDistance: the smaller distance first, then the nearer
  // number of queries, then the longer problem.
  Near nearest(const ShapeKey& shape) const;

  // What was best for other problems with these head dims and this dtype: winners and runners-up,
  // those of the most similar problems first, each once, up to `most`.
  std::vector<attention::KernelConfig> winners(const ShapeKey& shape, std::size_t most) const;

 private:
  // Entries of one kind, which differ in lengths alone, ordered by queries, then keys.
  struct Slot {
    int queries = 0;
    int keys = 0;
    std::unique_ptr<Kept> kept;
  };
  using Kind = std::vector<Slot>;
  static ShapeKey kind_of(ShapeKey shape);
  static Kind::const_iterator first_from(const Kind& kind, int queries, int keys);
  bool goes_first(const Kept& a, const Kept& b) const;

  int driver_;
  std::map<ShapeKey, Kind> kinds_;  // by their key without lengths; none is empty
};

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_ENTRY_INDEX_H_
