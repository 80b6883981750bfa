#ifndef ANNULUS_PROGRAM_TUNE_REPORT_PAGE_PARTS_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_PAGE_PARTS_H_

// The plots and tables of searches for which a page has room. The parts of rank 0 of all searches
// matter most, then the parts of rank 1, and so on.

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace annulus::program::report {

class PageParts {
 public:
  // For a page of `bytes` bytes. The object never holds more.
  explicit PageParts(std::size_t bytes) : most_(bytes) {}

  // Adds a part of a search. Once a part had no room, further parts of that rank and of higher
  // ranks are refused without a call of `write`. Requires: searches are added in the order of their
  // numbers.
  void add(std::size_t search, std::size_t rank, const std::function<std::string()>& write);
  // Reduces the room to `bytes` bytes, and removes the least important parts that no longer fit.
  void shrink(std::size_t bytes);
  // Returns null if there was no room for the part. The pointer is valid until the next call of
  // shrink() or add().
  const std::string* find(std::size_t search, std::size_t rank) const;

 private:
  std::size_t most_;
  std::map<std::pair<std::size_t, std::size_t>, std::string> parts_;  // by rank, then by search
  // The bytes of the parts of each rank.
  std::vector<std::size_t> bytes_;
  // Parts from this rank on are refused.
  std::size_t full_from_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_PAGE_PARTS_H_
