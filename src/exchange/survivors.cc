#include "exchange/survivors.h"

#include <algorithm>
#include <utility>

namespace annulus::exchange {

Survivors::Survivors(int rank, int ranks, std::span<const int> without)
    : rank_(rank), said_(static_cast<std::size_t>(ranks)) {
  for (int one = 0; one < ranks; ++one) {
    if (one == rank || std::ranges::find(without, one) == without.end()) members_.push_back(one);
  }
}

bool Survivors::has(int rank) const { return std::ranges::binary_search(members_, rank); }

template <typename Stays>
void Survivors::keep(const Stays& stays) {
  if (decided_) return;
  const auto erased = std::erase_if(members_, [&](int one) { return one != rank_ && !stays(one); });
  changed_ = changed_ || erased > 0;
}

void Survivors::gone(int rank) {
  keep([&](int one) { return one != rank; });
}

void Survivors::heard(int from, std::span<const int> members) {
  said_[static_cast<std::size_t>(from)].emplace(members.begin(), members.end());
  if (decided_ || !has(from)) return;
  if (!std::ranges::binary_search(members, rank_)) {
    left_out_by_ = from;
    return;
  }
  keep([&](int one) { return std::ranges::binary_search(members, one); });
}

void Survivors::decided(int from, std::span<const int> members) {
  if (decided_) return;
  if (!std::ranges::binary_search(members, rank_)) {
    heard(from, members);
    return;
  }
  members_.assign(members.begin(), members.end());
  decided_ = true;
}

void Survivors::leave_out_silent() {
  keep([&](int one) { return said_[static_cast<std::size_t>(one)].has_value(); });
}

std::optional<int> Survivors::left_out_by() const {
  if (left_out_by_ || decided_) return left_out_by_;
  const auto leaves_out = [&](const std::optional<std::vector<int>>& list) {
    return list && !std::ranges::binary_search(*list, rank_);
  };
  const auto first = std::ranges::find_if(said_, leaves_out);
  const auto count = static_cast<std::size_t>(std::ranges::count_if(said_, leaves_out));
  if (count < members_.size()) return std::nullopt;
  return static_cast<int>(first - said_.begin());
}

bool Survivors::take_change() { return std::exchange(changed_, false); }

bool Survivors::agreed() const { return decided_ || awaited().empty(); }

std::vector<int> Survivors::awaited() const {
  std::vector<int> awaited;
  for (const int one : members_) {
    if (one != rank_ && said_[static_cast<std::size_t>(one)] != members_) awaited.push_back(one);
  }
  return awaited;
}

}  // namespace annulus::exchange
