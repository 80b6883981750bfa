#include "simulator/driver/objects/queue.h"

#include <algorithm>
#include <new>
#include <utility>

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {
namespace {

bool ended(const ItemPointer& item) { return item == nullptr || item->state == Item::State::kDone; }

// Whether the item could run if all others arrived at its meeting.
bool is_next(const Item& item) {
  return item.state == Item::State::kWaiting &&
         std::all_of(item.after.begin(), item.after.end(), ended);
}

bool may_run(const Item& item) {
  return is_next(item) && (item.meeting == nullptr || item.meeting->able());
}

}  // namespace

void Queue::add(std::span<const ItemPointer> items) {
  const std::lock_guard lock(mutex_);
  pending_.insert(pending_.end(), items.begin(), items.end());
  // Another thread may wait for one of these items only indirectly, through the edge of another
  // item.
  changed_.notify_all();
}

void Queue::shorten(const Context& context) {
  std::unique_lock lock(mutex_);
  while (pending_.size() > kDepth) {
    const ItemPointer next = choose(context, 0);
    if (next == nullptr) break;  // other threads are running all items that may run
    run(next, lock);
  }
}

bool Queue::take_refusal(std::span<const ItemPointer> items,
                         std::atomic<std::uint64_t>* stream_refusal) {
  const std::lock_guard lock(mutex_);
  std::uint64_t met = stream_refusal == nullptr ? 0 : stream_refusal->exchange(0);
  for (const ItemPointer& item : items) {
    if (item != nullptr && item->refusal > heard_refusal_) met = std::max(met, item->refusal);
  }
  heard_refusal_ = std::max(heard_refusal_, met);
  return met != 0;
}

// Edges lead to items that were queued earlier, so one pass from the end reaches all of them.
std::uint64_t Queue::mark_needed(Item& target) {
  const std::uint64_t mark = ++last_mark_;
  target.needed = mark;
  for (std::size_t i = pending_.size(); i-- > 0;) {
    if (pending_[i]->needed != mark) continue;
    for (const ItemPointer& before : pending_[i]->after) {
      if (!ended(before)) before->needed = mark;
    }
  }
  return mark;
}

bool Queue::done(const ItemPointer& item) const {
  std::lock_guard lock(mutex_);
  return ended(item);
}

void Queue::finish(const ItemPointer& target) { finish(target, true); }

void Queue::finish_or_meet(const ItemPointer& target) { finish(target, false); }

bool Queue::meets(std::uint64_t mark) const {
  return std::any_of(pending_.begin(), pending_.end(), [&](const ItemPointer& item) {
    return item->needed == mark && item->meeting != nullptr && is_next(*item);
  });
}

void Queue::finish(const ItemPointer& target, bool wait_for_others) {
  std::unique_lock lock(mutex_);
  while (!ended(target)) {
    const std::uint64_t needed = mark_needed(*target);
    // Every second draw, on average, is among all items that may run, so that unrelated work runs
    // early sometimes.
    const bool any = random(*target->context->device).below(2) == 0;
    ItemPointer next = choose(*target->context, any ? 0 : needed);
    if (next == nullptr) next = choose(*target->context, needed);
    // The missing participant of a meeting may be a stream that only this thread would run.
    const bool meeting = next == nullptr && meets(needed);
    if (meeting) next = choose(*target->context, 0);
    if (next != nullptr) {
      run(next, lock);
    } else if (meeting && !wait_for_others) {
      return;
    } else {
      changed_.wait(lock);
    }
  }
}

void Queue::changed() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Queue::serve(const Context& context, const std::atomic<bool>& ended) {
  std::unique_lock lock(mutex_);
  while (!ended) {
    if (const ItemPointer next = choose(context, 0)) {
      run(next, lock);
    } else {
      changed_.wait(lock);
    }
  }
}

// Finishes one item at a time, because items that were queued earlier may still be pending, and
// other threads may queue more items at the same time.
template <typename Wanted>
void Queue::finish_where(Wanted wanted) {
  while (true) {
    ItemPointer last;
    {
      std::lock_guard lock(mutex_);
      for (const ItemPointer& item : pending_) {
        if (wanted(*item->context)) last = item;
      }
    }
    if (last == nullptr) return;
    finish(last);
  }
}

void Queue::finish_all(const Context& context) {
  finish_where([&](const Context& other) { return &other == &context; });
}

void Queue::finish_linked(const Context& context) {
  finish_where([&](const Context& other) { return near(context, other); });
}

void Queue::step(const Context& context) {
  std::unique_lock lock(mutex_);
  if (const ItemPointer next = choose(context, 0)) run(next, lock);
}

std::vector<ItemPointer> Queue::pending(const Context& context) const {
  std::lock_guard lock(mutex_);
  std::vector<ItemPointer> items;
  for (const ItemPointer& item : pending_) {
    if (item->context.get() == &context) items.push_back(item);
  }
  return items;
}

void Queue::link(const Context& context, const Context& other) {
  std::lock_guard lock(mutex_);
  if (near(context, other)) return;
  const int island = ++last_island_;
  for (const Context* one : {&context, &other}) {
    const int before = std::exchange(islands_[one], island);
    if (before == 0) continue;
    for (auto& [member, number] : islands_) {
      if (number == before) number = island;
    }
  }
}

void Queue::forget(const Context& context) {
  std::lock_guard lock(mutex_);
  islands_.erase(&context);
}

bool Queue::near(const Context& context, const Context& other) const {
  if (&context == &other) return true;
  const auto one = islands_.find(&context);
  const auto two = islands_.find(&other);
  return one != islands_.end() && two != islands_.end() && one->second == two->second;
}

void Queue::seed(const Device& device, std::uint64_t seed) {
  std::lock_guard lock(mutex_);
  random_.insert_or_assign(&device, base::Random(seed));
}

base::Random& Queue::random(const Device& device) {
  return random_.try_emplace(&device, std::uint64_t{0}).first->second;
}

ItemPointer Queue::choose(const Context& context, std::uint64_t mark) {
  // Needed items may be on any device. Otherwise only linked contexts take part, so that devices
  // which do not depend on each other each repeat the same order with the same seed.
  const auto candidate = [&](const Item& item) {
    return (mark != 0 ? item.needed == mark : near(context, *item.context)) && may_run(item);
  };
  std::uint32_t count = 0;
  for (const ItemPointer& item : pending_) count += candidate(*item) ? 1 : 0;
  if (count == 0) return nullptr;
  std::uint32_t index = count == 1 ? 0 : random(*context.device).below(count);
  for (const ItemPointer& item : pending_) {
    if (candidate(*item) && index-- == 0) return item;
  }
  return nullptr;
}

// Never throws, because other items wait for this one. After a fault, no more work of the context
// runs.
bool Queue::run_work(Item& item, std::uint64_t* refusal) {
  const auto work = std::move(item.run);
  if (*refusal != 0 && !item.always) return true;
  bool done = true;
  try {
    std::unique_lock alone(alone_, std::defer_lock);
    if (item.operation->checked && !item.on_host) alone.lock();
    const IgnoredFaults ignored(item.context->device->options().ignored);
    if (item.context->lost != abi::kCudaSuccess) return true;
    if (item.meeting != nullptr) {
      done = item.meeting->step(item.operation);
    } else {
      work(item.operation);
    }
  } catch (const Fault& fault) {
    abi::SimulatorCounters counters;
    counters.faults = 1;
    item.context->device->add(counters);
    break_context(*item.context, fault);
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    *refusal = ++last_refusal_;
  } catch (...) {
    item.context->lost = abi::kCudaUnknown;
  }
  return done;
}

void Queue::run(const ItemPointer& item, std::unique_lock<std::mutex>& lock) {
  item->state = Item::State::kRunning;
  // An item without a stream, the mark of cuCtxRecordEvent, comes after the work of all streams. It
  // ignores their refusals, which are returned to the callers that wait for a stream.
  const bool of_stream = item->stream_refusal != nullptr;
  std::uint64_t refusal = 0;
  for (const ItemPointer& before : item->after) {
    if (!of_stream) break;
    if (before != nullptr && before->refusal > heard_refusal_) refusal = before->refusal;
  }
  lock.unlock();
  const bool done = run_work(*item, &refusal);
  if (done) state().detector.order.ended(*item->operation);
  lock.lock();
  if (!done) {
    item->state = Item::State::kWaiting;
    changed_.notify_all();
    return;
  }
  item->refusal = refusal;
  if (refusal != 0 && of_stream) *item->stream_refusal = refusal;
  item->state = Item::State::kDone;
  item->after.clear();
  std::shared_ptr<Meeting> meeting = std::move(item->meeting);
  pending_.erase(std::find(pending_.begin(), pending_.end(), item));
  changed_.notify_all();
  if (meeting == nullptr) return;
  // The destructors of what the item held may call the queue.
  lock.unlock();
  meeting = nullptr;
  lock.lock();
}

}  // namespace annulus::simulator::driver
