#include "simulator/driver/queue.h"

#include <algorithm>
#include <utility>

#include "simulator/driver/state.h"

namespace annulus::simulator::driver {
namespace {

bool ended(const ItemPointer& item) { return item == nullptr || item->state == Item::State::kDone; }

bool may_run(const Item& item) {
  return item.state == Item::State::kWaiting &&
         std::all_of(item.after.begin(), item.after.end(), ended);
}

// Adds the target and everything that must end before it.
void add_needed(const Item& target, std::unordered_set<const Item*>* needed) {
  std::vector<const Item*> open = {&target};
  while (!open.empty()) {
    const Item* item = open.back();
    open.pop_back();
    if (!needed->insert(item).second) continue;
    for (const ItemPointer& before : item->after) {
      if (!ended(before)) open.push_back(before.get());
    }
  }
}

}  // namespace

void Queue::push(const ItemPointer& item) {
  std::unique_lock lock(mutex_);
  pending_.push_back(item);
  // Another thread may be waiting for this item, which it knew only as an edge of another one.
  changed_.notify_all();
  while (pending_.size() > kDepth) {
    const ItemPointer next = choose(*item->context, nullptr);
    if (next == nullptr) break;  // all that may run is being run by other threads
    run(next, lock);
  }
}

bool Queue::done(const ItemPointer& item) const {
  std::lock_guard lock(mutex_);
  return ended(item);
}

void Queue::finish(const ItemPointer& target) {
  std::unique_lock lock(mutex_);
  while (!ended(target)) {
    Needed needed;
    add_needed(*target, &needed);
    // One draw in two is among all items that may run, so that unrelated work runs early sometimes.
    const bool any = random(*target->context->device).below(2) == 0;
    ItemPointer next = choose(*target->context, any ? nullptr : &needed);
    if (next == nullptr) next = choose(*target->context, &needed);
    if (next != nullptr) {
      run(next, lock);
    } else {
      changed_.wait(lock);
    }
  }
}

// Finishes one item after another, since items that were queued earlier may still be pending and
// other threads may queue more meanwhile.
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
  if (const ItemPointer next = choose(context, nullptr)) run(next, lock);
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

ItemPointer Queue::choose(const Context& context, const Needed* needed) {
  std::vector<ItemPointer> candidates;
  for (const ItemPointer& item : pending_) {
    // Needed items may be of any device. Otherwise only contexts that are linked take part, so that
    // devices which do not depend on each other each repeat themselves with their seed.
    const bool wanted =
        needed != nullptr ? needed->count(item.get()) != 0 : near(context, *item->context);
    if (wanted && may_run(*item)) candidates.push_back(item);
  }
  if (candidates.empty()) return nullptr;
  const auto count = static_cast<std::uint32_t>(candidates.size());
  return candidates[count == 1 ? 0 : random(*context.device).below(count)];
}

void Queue::run(const ItemPointer& item, std::unique_lock<std::mutex>& lock) {
  item->state = Item::State::kRunning;
  const auto work = std::move(item->run);
  lock.unlock();
  try {
    std::unique_lock alone(alone_, std::defer_lock);
    if (item->operation->checked && !item->on_host) alone.lock();
    // After a fault no work of the context runs any more.
    if (item->context->lost == abi::kCudaSuccess) work(item->operation);
  } catch (const Fault& fault) {
    abi::SimulatorCounters counters;
    counters.faults = 1;
    item->context->device->add(counters);
    break_context(*item->context, fault);
  } catch (...) {
    // Other items wait for this one, so it counts as ended whatever happened in it.
    item->context->lost = abi::kCudaUnknown;
  }
  state().detector.order.ended(*item->operation);
  lock.lock();
  item->state = Item::State::kDone;
  item->after.clear();
  pending_.erase(std::find(pending_.begin(), pending_.end(), item));
  changed_.notify_all();
}

}  // namespace annulus::simulator::driver
