#ifndef ANNULUS_SIMULATOR_DRIVER_STATE_H_
#define ANNULUS_SIMULATOR_DRIVER_STATE_H_

// The objects of the simulated driver, and State, which holds them all. Only the files of this
// folder include it.
//
// Locks: each object guards itself. Where two locks are held, they are taken in the order device,
// context, handles. None is held while work runs.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "abi/cuda_types.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "simulator/check/access_record.h"
#include "simulator/check/detector.h"
#include "simulator/driver/driver.h"
#include "simulator/driver/handles.h"
#include "simulator/driver/log_listeners.h"
#include "simulator/driver/model.h"
#include "simulator/driver/queue.h"
#include "simulator/machine/memory.h"
#include "simulator/run/launch.h"
#include "simulator/run/load.h"

namespace annulus::simulator::driver {

struct Context;
struct GraphExec;

// Thrown inside an entry to end it with a code. It never leaves this folder.
struct Refusal {
  abi::CUresult code;
};

class Device {
 public:
  Device(const DeviceModel& model, int ordinal, int index)
      : model_(model), ordinal_(ordinal), index_(index) {}

  const DeviceModel& model() const { return model_; }
  int ordinal() const { return ordinal_; }
  int index() const { return index_; }  // among those of its model

  GlobalMemory& memory();             // made at the first call
  GlobalMemory* made_memory() const;  // null before the first call of memory()

  abi::SimulatorOptions options() const;
  void set_options(const abi::SimulatorOptions& options);

  abi::SimulatorCounters counters(bool clear);
  void add(const abi::SimulatorCounters& launch);

  // What annulusSimulatorLastFault returns, as JSON; empty where nothing went wrong.
  std::string message() const;
  void clear_message();
  // A kernel was ended, or a module refused. `json` becomes the message, `text` goes to the log.
  void report(base::LogLevel level, const std::string& text, std::string json);
  // A report whose JSON has only a kind and a text.
  void report(base::LogLevel level, const char* kind, const std::string& text);
  LogListeners& log() { return log_; }

  // The primary context is made by the first retain and destroyed by the last release.
  std::shared_ptr<Context> retain_primary();
  bool release_primary();  // false: it is not retained
  void reset_primary();    // destroys it, however often it is retained
  bool primary_active() const;

 private:
  const DeviceModel& model_;
  const int ordinal_;
  const int index_;
  LogListeners log_;
  mutable std::mutex mutex_;  // guards all members below
  std::unique_ptr<GlobalMemory> memory_;
  abi::SimulatorOptions options_;
  abi::SimulatorCounters counters_;
  std::string message_;
  std::shared_ptr<Context> primary_;
  int primary_users_ = 0;
};

// Streams under capture do not run work but record it in nodes: the work, and the nodes that it
// waits for.
struct GraphNode {
  Work work;
  std::vector<std::size_t> after;  // indices of earlier nodes
  std::size_t branch = 0;          // the stream of the capture; nodes of one branch are in order
};

struct Capture {
  std::mutex mutex;
  std::vector<GraphNode> nodes;  // in the order of the calls
  std::map<abi::CUstream, std::vector<std::size_t>>
      tails;  // what the next node of a stream waits for
  std::map<abi::CUstream, std::size_t> branches;
  std::size_t branch_count = 0;
  abi::CUstream origin = nullptr;  // the stream of cuStreamBeginCapture
  int mode = 0;
  bool invalid = false;
  // The other streams that took part. True: another stream waits for the last of its work.
  std::map<abi::CUstream, bool> joined;
};

class Stream {
 public:
  enum class Kind {
    kDefault,  // waits for all blocking streams of its context, and they wait for it
    kBlocking,
    kNonBlocking,  // is not ordered with the default stream
  };
  Stream(std::shared_ptr<Context> context, Kind kind, int number);

  const std::shared_ptr<Context>& context() const { return context_; }
  Kind kind() const { return kind_; }
  abi::CUstream handle() { return reinterpret_cast<abi::CUstream>(this); }

  // Queues `work` behind everything submitted before. With the option `streams` 0 it has ended on
  // return. Under capture it is recorded, and the result is null.
  ItemPointer submit(Work work);
  // Queues all nodes of a graph, and behind them an item that does nothing, which is the result.
  ItemPointer submit(GraphExec& graph);

  // Work submitted from now on waits for `item`.
  void wait_for(ItemPointer item);
  // The items that have to end before the stream is empty.
  std::vector<ItemPointer> tails() const;
  // The stream is destroyed. Its last work still comes before the default stream's, if it blocks.
  void retire();
  // Whether work of the stream was refused for want of memory since the last call.
  bool take_refusal(std::span<const ItemPointer> tails) const;

  std::string text() const;  // "stream 2 of device 0 (sim:sm_80:0)"

  std::shared_ptr<Capture> capture() const;
  void set_capture(std::shared_ptr<Capture> capture);

 private:
  // Adds the items that this stream waits for by the rule of the default stream.
  void add_implicit(std::vector<ItemPointer>* tails) const;

  // Makes the item with the edges that the caller gives.
  ItemPointer make_item(Work work, std::string where, const ChainPointer& chain,
                        std::vector<ItemPointer> after) const;
  // Requires: mutex_ is held.
  void queue_items(std::span<const ItemPointer> items);
  static void end(std::span<const ItemPointer> items);
  // Record under capture.
  void record(Capture& capture, Work work);
  void record(Capture& capture, const std::vector<GraphNode>& nodes);

  const std::shared_ptr<Context> context_;
  const Kind kind_;
  const int number_;  // in its context, from 1; the default stream has 0
  const ChainPointer chain_ = std::make_shared<Chain>();
  const std::shared_ptr<std::atomic<std::uint64_t>> refusal_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);  // the last that no wait has returned
  mutable std::mutex mutex_;                            // guards all members below
  std::shared_ptr<Capture> capture_;
  ItemPointer last_;
  std::vector<ItemPointer> gates_;  // items that the next one has to wait for (wait_for)
};

struct Event {
  std::shared_ptr<Context> context;
  unsigned flags = 0;
  std::mutex mutex;  // guards all below
  bool recorded = false;
  ItemPointer marker;  // the last record
  std::chrono::steady_clock::time_point time;
  std::weak_ptr<Capture> capture;         // the last record was captured there ...
  abi::CUstream captured_from = nullptr;  // ... on this stream
  std::vector<std::size_t> captured;      // ... behind these nodes
};

// A kernel of a module.
struct Function {
  std::shared_ptr<Context> context;
  std::shared_ptr<LoadedModule> image;
  const KernelInfo* info = nullptr;
  const Program* program = nullptr;
  abi::CUmodule module = nullptr;
  std::atomic<std::uint32_t> dynamic_limit{0};  // bytes of dynamic shared memory it may have
};

struct Module {
  std::shared_ptr<Context> context;
  std::shared_ptr<LoadedModule> image;
  int ptx_version = 0;  // 80 for 8.0
  std::mutex mutex;     // guards below
  std::map<std::string, abi::CUfunction, std::less<>> functions;
};

struct Graph {
  std::vector<GraphNode> nodes;
};
struct GraphExec {
  std::shared_ptr<Context> context;
  std::vector<GraphNode> nodes;
  std::mutex mutex;                            // guards below
  std::map<std::size_t, ChainPointer> chains;  // by branch
  ItemPointer last;  // that of the last launch, behind which the next runs
};

struct Context {
  Device* device = nullptr;
  bool primary = false;
  // Not kCudaSuccess once a kernel faulted, or once the context was destroyed.
  std::atomic<abi::CUresult> lost{abi::kCudaSuccess};

  std::mutex mutex;  // guards below
  std::shared_ptr<Stream> default_stream;
  std::map<std::uint64_t, std::uint64_t> allocations;  // address -> bytes
  std::vector<std::weak_ptr<Context>> peers;           // whose memory kernels may access
  // Events behind all work of the context (cuCtxRecordEvent) are a chain of their own.
  const ChainPointer all_work = std::make_shared<Chain>();
  std::vector<ItemPointer> retired;  // tails of blocking streams that were destroyed
  int streams = 0;                   // how many were made so far
  // The last operation of each chain, until the host has seen it end.
  std::map<Chain*, OperationPointer> latest;

  abi::CUcontext handle() { return reinterpret_cast<abi::CUcontext>(this); }
};

// Page-locked memory.
struct HostBlock {
  std::size_t bytes = 0;
  std::shared_ptr<AccessRecord> record;  // null before the first access of the checked mode
};

// Everything that the driver holds. It is made at the first call and never destroyed, since
// programs call their driver from exit handlers, in any order.
struct State {
  State();

  std::atomic<bool> initialised{false};
  // True in the child of a process that had initialised the driver. A fork leaves the threads
  // behind, so work would wait for ever. CUDA also refuses every call there.
  std::atomic<bool> forked{false};
  std::vector<std::unique_ptr<Device>> devices;
  Handles<Context, abi::CUcontext> contexts;
  Handles<Stream, abi::CUstream> streams;
  Handles<Event, abi::CUevent> events;
  Handles<Module, abi::CUmodule> modules;
  Handles<Function, abi::CUfunction> functions;
  Handles<Graph, abi::CUgraph> graphs;
  Handles<GraphExec, abi::CUgraphExec> graph_execs;
  Queue queue;
  Detector detector;
  std::atomic<int> global_captures{0};  // captures that forbid unsafe calls to every thread

  std::mutex mutex;                                                  // guards below
  std::map<const char*, HostBlock> host_blocks;                      // by begin
  std::map<std::uint32_t, std::shared_ptr<base::ThreadPool>> pools;  // by number of threads

  std::shared_ptr<base::ThreadPool> pool(std::uint32_t threads);
};
State& state();

// The contexts that this thread pushed, the current one last.
std::vector<std::shared_ptr<Context>>& context_stack();

template <typename Run>
Work make_work(std::string what, Run run) {
  Work work;
  work.operation.what = std::move(what);
  work.run = std::move(run);
  return work;
}

// Lookups. They throw Refusal where there is no such object.
Device& device_at(abi::CUdevice device);
std::shared_ptr<Context> current_context();                 // lost or not
std::shared_ptr<Context> live_context();                    // a lost one throws its code
std::shared_ptr<Stream> find_stream(abi::CUstream stream);  // in the current, live context
std::shared_ptr<Event> find_event(abi::CUevent event);
std::shared_ptr<Function> find_function(abi::CUfunction function);

// The memory of whichever device holds all of the bytes; throws kCudaInvalidValue where none does.
// Addresses are unique among all devices.
GlobalMemory& memory_with(const Context& context, std::uint64_t address, std::size_t bytes);

// The memories of other devices, as kernels of `context` see them.
std::vector<PeerMemory> peer_memories(Context& context);
// Whether another device has a context, whose kernels and copies may write this one's memory while
// a kernel runs here. All other work waits for the kernel.
bool has_company(const Context& context);

std::shared_ptr<Context> make_context(Device& device, bool primary);
// Destroys everything that the context owns. Handles of its objects are refused from now on.
void destroy_context(const std::shared_ptr<Context>& context);

// Runs what every stream of a context still has to do, and returns the state of the context after
// that. The two functions below are the program's own waits, after which the host has seen that the
// work ended.
abi::CUresult finish(const Context& context);
abi::CUresult synchronize(const Stream& stream);
abi::CUresult synchronize(Context& context);
// The host has seen that the item ended. Null does nothing.
void observe(const ItemPointer& item);

// The fault becomes the state and the message of the context. In a race it becomes those of the
// other operation's context too.
void break_context(Context& context, const Fault& fault);

// Calls that a capture in the global mode forbids to every thread (CUDA's "unsafe" ones) begin with
// this. A thread in another mode may call them; whether it captures something itself, which the
// thread-local mode would look at, is not known here.
void refuse_under_capture();
// Of this thread, as cuThreadExchangeStreamCaptureMode has it.
int& capture_mode();

// The body of an entry: nothing is thrown across the boundary of a C interface.
template <typename Body>
abi::CUresult guarded(Body body) noexcept {
  try {
    if (!state().initialised) return abi::kCudaNotInitialized;
    return body();
  } catch (const Refusal& refusal) {
    return refusal.code;
  } catch (const std::bad_alloc&) {
    return abi::kCudaOutOfMemory;
  } catch (...) {
    return abi::kCudaUnknown;
  }
}

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_STATE_H_
