#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_QUEUE_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_QUEUE_H_

// Work that was queued on streams and has not run yet, as a graph: each item names the items that
// must end before it. No thread of the queue runs items. A thread that waits for something runs
// items until then, drawn among those that may run. So every order that streams and events allow
// can happen, and each seed gives one of them. A program that forgot a wait gives a wrong answer
// with some seeds.
//
// If the host has no memory for a piece of work, that work and all work that waits for it are
// refused. The next wait for one of their streams returns kCudaOutOfMemory, once, and the device
// stays usable. The memory that the refused work would have written is undefined.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/random.h"
#include "simulator/check/operation.h"

namespace annulus::simulator::driver {

struct Context;
class Device;
struct NodeParameters;  // simulator/driver/objects/graph.h

// Work in which other participants take part, such as messages between ranks. It is done in steps,
// and a step may only run after something has arrived. Queue::changed() reports an arrival.
class Meeting {
 public:
  virtual ~Meeting() = default;
  // Whether a step would do anything now. It is called often, under the lock of the queue.
  virtual bool able() = 0;
  // Does what can be done now. Returns true if all of it is done.
  virtual bool step(const OperationPointer& operation) = 0;
};

// One piece of work of a stream. Everything that it needs is copied into it, so that it may run
// later or, as part of a graph, many times. A Fault in it breaks the context.
struct Work {
  Operation operation;  // a description; Stream::submit adds the place
  std::function<void(const OperationPointer&)> run;
  // In place of `run`: called each time that the work is queued, in the order of the calls.
  std::function<std::shared_ptr<Meeting>()> meet;
  // True for code of the program, which may wait for other threads. In the checked mode all other
  // work runs alone in the process, so that nothing else touches memory or the records of accesses
  // at the same time.
  bool on_host = false;
  // True for work that releases something. It runs even after work that was refused.
  bool always = false;
  // The parameters of a graph node that does this work, if the program may read them. Null: the
  // program sees an empty node.
  std::shared_ptr<const NodeParameters> node;
};

struct Item {
  std::function<void(const OperationPointer&)> run;
  std::shared_ptr<Meeting> meeting;  // in place of `run`, if any
  OperationPointer operation;
  bool on_host = false;
  bool always = false;
  std::shared_ptr<Context> context;
  // of the item's stream, if it has one
  std::shared_ptr<std::atomic<std::uint64_t>> stream_refusal;
  std::vector<std::shared_ptr<Item>> after;
  enum class State { kWaiting, kRunning, kDone } state = State::kWaiting;
  // The members below belong to the queue.
  std::uint64_t refusal = 0;  // the number of the refusal that the item met, or 0
  std::uint64_t needed = 0;   // the last mark that the item got (Queue::mark_needed)
};
using ItemPointer = std::shared_ptr<Item>;  // null: work that ended long ago

class Queue {
 public:
  static constexpr std::size_t kDepth = 1024;  // shorten() runs items above this number

  // Queues the items in the order of their edges, either all of them or none. Throws only
  // bad_alloc.
  void add(std::span<const ItemPointer> items);
  // Runs items of the context while the queue has more than kDepth items.
  void shorten(const Context& context);
  bool done(const ItemPointer& item) const;
  // Whether these items, which have ended, or their stream met a refusal that no wait has returned
  // yet. From now on the refusal counts as returned.
  bool take_refusal(std::span<const ItemPointer> items, std::atomic<std::uint64_t>* stream_refusal);

  // Runs items until this one has ended. It may run other items too.
  void finish(const ItemPointer& target);
  // Like finish(), but returns if no item that the target needs may run before others arrive at a
  // meeting.
  void finish_or_meet(const ItemPointer& target);
  // Wakes the threads that wait for a meeting. It is called when a message arrives, from this
  // process or from another one.
  void changed();
  // Runs items of a context, and of contexts linked with it, until `ended` is true and changed() is
  // called. It is for a separate thread, when other processes wait for the work of this one.
  void serve(const Context& context, const std::atomic<bool>& ended);
  // Runs all items of a context, and the items that they wait for.
  void finish_all(const Context& context);
  // Runs all items of the context and of the contexts that are linked with it.
  void finish_linked(const Context& context);
  // The lock that a thread holds to touch memory, or its records of accesses, outside of an item.
  std::unique_lock<std::mutex> alone() { return std::unique_lock(alone_); }
  // Runs one item, if one may run. Programs that poll make progress by it.
  void step(const Context& context);

  // The items of a context that have not ended.
  std::vector<ItemPointer> pending(const Context& context) const;

  // Declares that the work of the two contexts depends on each other. From now on a thread that
  // waits for one context also runs work of the other, so that a poll of one makes progress and
  // every order can happen.
  void link(const Context& context, const Context& other);
  void forget(const Context& context);  // the context is destroyed

  // Restarts the random draws for this device.
  void seed(const Device& device, std::uint64_t seed);

 private:
  // Marks the target and everything that must end before it. This function and choose() allocate
  // nothing: a wait must not fail for lack of memory, because objects are destroyed after it.
  std::uint64_t mark_needed(Item& target);
  // An item that may run, or null. A mark that is not 0 limits the choice to the items that have
  // it.
  ItemPointer choose(const Context& context, std::uint64_t mark);
  // Whether an item with this mark waits for others to arrive at its meeting.
  bool meets(std::uint64_t mark) const;
  void finish(const ItemPointer& target, bool wait_for_others);
  // Returns true if the work is done, and false if it is a meeting that continues later.
  bool run_work(Item& item, std::uint64_t* refusal);
  template <typename Wanted>
  void finish_where(Wanted wanted);
  void run(const ItemPointer& item, std::unique_lock<std::mutex>& lock);
  base::Random& random(const Device& device);
  bool near(const Context& context, const Context& other) const;

  std::mutex alone_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ItemPointer> pending_;  // in the order of the calls
  std::map<const Device*, base::Random> random_;
  std::map<const Context*, int> islands_;  // the same number for linked contexts; a context without
                                           // links has none
  int last_island_ = 0;
  std::uint64_t last_mark_ = 0;
  std::uint64_t last_refusal_ = 0;
  std::uint64_t heard_refusal_ = 0;  // refusals up to this number were returned by a wait
};

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_QUEUE_H_
