#ifndef ANNULUS_PROGRAM_TUNE_REPORT_PAGE_PARTS_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_PAGE_PARTS_H_

// What of the plots and tables of its searches a page has room for: of all searches the parts that
// matter most, those of rank 0, then those of rank 1, and so on.

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
  // For a page of so many bytes. No more than these are ever held.
  explicit PageParts(std::size_t bytes) : most_(bytes) {}

  // Adds a part of a search. `write` is not called where there is no room, whatever it returns:
  // where one part had none, those that matter less and come later have none either. Requires:
  // searches come in the order of their numbers.
  void add(std::size_t search, std::size_t rank, const std::function<std::string()>& write);
  // Leaves room for so many bytes alone: those that matter least go.
  void shrink(std::size_t bytes);
  // Returns null where there was no room. It stays until the next call of shrink() or add().
  const std::string* find(std::size_t search, std::size_t rank) const;

 private:
  std::size_t most_;
  std::map<std::pair<std::size_t, std::size_t>, std::string> parts_;  // by rank and search
  std::vector<std::size_t> bytes_;                                    // of each rank
  std::size_t full_from_ = std::numeric_limits<std::size_t>::max();   // ranks that take no more
};

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_PAGE_PARTS_H_
