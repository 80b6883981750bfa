#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_QUEUE_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_QUEUE_H_

// Work that was queued on streams and has not run yet, as a graph: each item names the items that
// must have ended before it. Nothing runs by itself. A thread that waits for something runs items
// in the meantime, drawing among those that may run. So every order that streams and events allow
// can happen, and each seed gives one of them; a program that forgot a wait gives a wrong answer
// with some.
//
// Where the host has no memory for a piece of work, that work and all that waits for it are
// refused: the next wait for one of their streams returns kCudaOutOfMemory, once, and the device is
// as usable as before. What they would have written is undefined then.

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

// Work in which others take part, such as messages between ranks: it is done in steps, each of
// which may run only once something has come. News of that come with Queue::changed().
class Meeting {
 public:
  virtual ~Meeting() = default;
  // Whether a step would do anything now. Called under the lock of the queue, and often.
  virtual bool able() = 0;
  // Does what can be done now. True: all of it is done.
  virtual bool step(const OperationPointer& operation) = 0;
};

// One piece of work of a stream. Everything it needs is copied into it, so that it may run later
// or, as part of a graph, many times. A Fault in it breaks the context.
struct Work {
  Operation operation;  // what it is; Stream::submit adds where
  std::function<void(const OperationPointer&)> run;
  // In place of `run`: called for each time that the work is queued, in the order of the calls.
  std::function<std::shared_ptr<Meeting>()> meet;
  // True for code of the program, which may wait for other threads. In the checked mode all other
  // work runs alone in the process, so that nothing else touches memory or the records of accesses
  // meanwhile.
  bool on_host = false;
  // True for what gives something back, and so runs also behind work that was refused.
  bool always = false;
  // What a node of a graph that does this is, if the program may ask. Null: it is told to be empty.
  std::shared_ptr<const NodeParameters> node;
};

struct Item {
  std::function<void(const OperationPointer&)> run;
  std::shared_ptr<Meeting> meeting;  // in place of `run`, if any
  OperationPointer operation;
  bool on_host = false;
  bool always = false;
  std::shared_ptr<Context> context;
  std::shared_ptr<std::atomic<std::uint64_t>> stream_refusal;  // of its stream, if any
  std::vector<std::shared_ptr<Item>> after;
  enum class State { kWaiting, kRunning, kDone } state = State::kWaiting;
  // Kept by the queue.
  std::uint64_t refusal = 0;  // the number of the refusal that it met; 0: none
  std::uint64_t needed = 0;   // the last mark that it got (Queue::mark_needed)
};
using ItemPointer = std::shared_ptr<Item>;  // null stands for work that ended long ago

class Queue {
 public:
  static constexpr std::size_t kDepth = 1024;  // with more items than that, shorten() runs some

  // Queues items, in the order of their edges, all of them or none. Throws only bad_alloc.
  void add(std::span<const ItemPointer> items);
  // Runs some items of a context that has very many.
  void shorten(const Context& context);
  bool done(const ItemPointer& item) const;
  // Whether these items, which have ended, or their stream met a refusal that no wait has returned
  // yet. It counts as returned from now on.
  bool take_refusal(std::span<const ItemPointer> items, std::atomic<std::uint64_t>* stream_refusal);

  // Runs items until this one has ended, and perhaps others that may run too.
  void finish(const ItemPointer& target);
  // The same, but it returns where nothing that the item waits for may run before others have come
  // to a meeting.
  void finish_or_meet(const ItemPointer& target);
  // Something has come to a meeting, of this process or from another one.
  void changed();
  // Runs what may run of a context and of those linked with it, until `ended` and a call of
  // changed(). It is for a thread of its own, where others wait for what this process does.
  void serve(const Context& context, const std::atomic<bool>& ended);
  // Runs all items of a context, and what they wait for.
  void finish_all(const Context& context);
  // Runs all items of the context and of those that are linked with it.
  void finish_linked(const Context& context);
  // The lock under which memory or its records are touched outside of an item.
  std::unique_lock<std::mutex> alone() { return std::unique_lock(alone_); }
  // Runs one item, where one may run. It is for programs that poll.
  void step(const Context& context);

  // The items of a context that have not ended.
  std::vector<ItemPointer> pending(const Context& context) const;

  // The work of the two contexts depends on each other. From now on a thread that waits for one
  // also runs work of the other, so that a poll of one makes progress and every order can happen.
  void link(const Context& context, const Context& other);
  void forget(const Context& context);  // the context is destroyed

  // Starts the draws for this device anew.
  void seed(const Device& device, std::uint64_t seed);

 private:
  // Marks the target and everything that must end before it. Nothing is allocated by this and by
  // choose(): a wait must not fail for memory, as objects are destroyed behind it.
  std::uint64_t mark_needed(Item& target);
  // An item that may run, or null. A mark that is not 0 limits the choice to the items that have
  // it.
  ItemPointer choose(const Context& context, std::uint64_t mark);
  // Whether an item with this mark waits for others to come to its meeting.
  bool meets(std::uint64_t mark) const;
  void finish(const ItemPointer& target, bool wait_for_others);
  // True: the work is done. Else it is a meeting, which goes on later.
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
  std::map<const Context*, int> islands_;  // linked contexts share a number; others have none
  int last_island_ = 0;
  std::uint64_t last_mark_ = 0;
  std::uint64_t last_refusal_ = 0;
  std::uint64_t heard_refusal_ = 0;  // those up to this number were returned by a wait
};

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_QUEUE_H_
