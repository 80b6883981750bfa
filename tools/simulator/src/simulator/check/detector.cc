#include "simulator/check/detector.h"

#include <algorithm>

#include "simulator/check/access_record.h"

namespace annulus::simulator {

std::uint32_t Detector::number(const OperationPointer& kernel) {
  if (numbered_.empty()) numbered_.emplace_back();
  if (free_.empty() && numbered_.size() >= kMaxOperations) sweep();
  if (!free_.empty()) {
    const std::uint32_t number = free_.back();
    free_.pop_back();
    numbered_[number] = kernel;
    return number;
  }
  numbered_.push_back(kernel);
  return static_cast<std::uint32_t>(numbered_.size() - 1);
}

void Detector::add(AccessRecord* record) {
  std::lock_guard lock(mutex_);
  records_.insert(record);
}

void Detector::remove(AccessRecord* record) {
  std::lock_guard lock(mutex_);
  records_.erase(record);
}

void Detector::sweep() {
  forget([&](const Operation& operation) { return order.settled(operation); });
  // If fewer numbers than this are free, the next sweep of all records would come too soon.
  if (free_.size() >= kMaxOperations / 8) return;
  std::vector<std::uint64_t> serials;
  for (const OperationPointer& operation : numbered_) {
    if (operation != nullptr) serials.push_back(operation->serial);
  }
  const auto middle = serials.begin() + static_cast<std::ptrdiff_t>(serials.size() / 2);
  std::nth_element(serials.begin(), middle, serials.end());
  forget([&](const Operation& operation) { return operation.serial < *middle; });
}

void Detector::forget(const std::function<bool(const Operation&)>& gone) {
  std::vector<bool> dropped(numbered_.size());
  std::vector<bool> used(numbered_.size());
  for (std::size_t i = 1; i < numbered_.size(); ++i) {
    dropped[i] = numbered_[i] == nullptr || gone(*numbered_[i]);
  }
  std::lock_guard lock(mutex_);
  for (AccessRecord* record : records_) {
    record->sweep([&](Stamp stamp) {
      const std::uint32_t number = stamp_operation(stamp);
      if (!dropped[number]) used[number] = true;
      return !dropped[number];
    });
  }
  for (std::uint32_t i = 1; i < numbered_.size(); ++i) {
    if (numbered_[i] == nullptr || used[i]) continue;
    numbered_[i] = nullptr;
    free_.push_back(i);
  }
}

}  // namespace annulus::simulator
