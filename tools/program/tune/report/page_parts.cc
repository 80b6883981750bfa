#include "program/tune/report/page_parts.h"

#include <algorithm>
#include <numeric>

namespace annulus::program::report {

void PageParts::add(std::size_t search, std::size_t rank,
                    const std::function<std::string()>& write) {
  if (rank >= full_from_) return;
  std::string part = write();
  bytes_.resize(std::max(bytes_.size(), rank + 1));
  const auto behind = bytes_.begin() + static_cast<std::ptrdiff_t>(rank) + 1;
  if (std::accumulate(bytes_.begin(), behind, part.size()) > most_) {
    full_from_ = rank;
    return;
  }
  bytes_[rank] += part.size();
  parts_.emplace(std::pair(rank, search), std::move(part));
  shrink(most_);
}

void PageParts::shrink(std::size_t bytes) {
  most_ = bytes;
  std::size_t all = std::accumulate(bytes_.begin(), bytes_.end(), std::size_t{0});
  while (all > most_) {
    const auto last = std::prev(parts_.end());
    const std::size_t rank = last->first.first;
    full_from_ = std::min(full_from_, rank);
    all -= last->second.size();
    bytes_[rank] -= last->second.size();
    parts_.erase(last);
  }
}

const std::string* PageParts::find(std::size_t search, std::size_t rank) const {
  const auto found = parts_.find({rank, search});
  return found == parts_.end() ? nullptr : &found->second;
}

}  // namespace annulus::program::report
