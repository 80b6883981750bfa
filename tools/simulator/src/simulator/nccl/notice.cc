#include "simulator/nccl/notice.h"

#include <utility>

namespace annulus::simulator::nccl {

void Inbox::deliver(Notice notice) {
  {
    const std::lock_guard lock(mutex_);
    Key key = key_of(notice);
    notices_.insert_or_assign(std::move(key), std::move(notice));
  }
  wake();
}

void Inbox::lose(int rank) {
  {
    const std::lock_guard lock(mutex_);
    lost_.insert(rank);
  }
  wake();
}

void Inbox::wake() {
  {
    const std::lock_guard lock(news_mutex_);
    ++news_;
  }
  came_.notify_all();
  changed_();
}

bool Inbox::has(Kind kind, int from, Channel channel, std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return notices_.contains({kind, from, channel, number});
}

std::optional<Notice> Inbox::take(Kind kind, int from, Channel channel, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = notices_.find({kind, from, channel, number});
  if (found == notices_.end()) return std::nullopt;
  Notice notice = std::move(found->second);
  notices_.erase(found);
  return notice;
}

std::set<int> Inbox::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

}  // namespace annulus::simulator::nccl
