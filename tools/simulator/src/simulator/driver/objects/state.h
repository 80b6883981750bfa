#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_STATE_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_STATE_H_

// The objects of the simulated driver, and State, which holds them all. Only the driver includes
// it.
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
#include "simulator/driver/entries/foreign_types.h"
#include "simulator/driver/for_libraries.h"
#include "simulator/driver/objects/handles.h"
#include "simulator/driver/objects/log_listeners.h"
#include "simulator/driver/objects/model.h"
#include "simulator/driver/objects/queue.h"
#include "simulator/machine/device_heap.h"
#include "simulator/machine/memory.h"
#include "simulator/run/launch.h"
#include "simulator/run/load.h"

namespace annulus::simulator::driver {

struct Context;
struct Graph;  // simulator/driver/objects/graph.h
struct GraphExec;
struct GraphNode;
struct Kernel;  // simulator/driver/objects/libraries.h
struct Library;
struct LinkState;  // entries/link.cc
struct MemoryPool;

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

  // The pool of cuMemAllocAsync, which is the default one unless another was set.
  std::shared_ptr<MemoryPool> default_pool();
  std::shared_ptr<MemoryPool> pool();
  void set_pool(std::shared_ptr<MemoryPool> pool);

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
  std::shared_ptr<MemoryPool> default_pool_;
  std::shared_ptr<MemoryPool> pool_;
};

// Streams under capture do not run work but record it in a graph.
struct Capture {
  std::mutex mutex;
  std::uint64_t id = 0;
  std::shared_ptr<Graph> graph;
  bool to_given_graph = false;  // the program made the graph (cuStreamBeginCaptureToGraph)
  // What the next node of a stream waits for.
  std::map<abi::CUstream, std::vector<std::shared_ptr<GraphNode>>> tails;
  std::map<abi::CUstream, std::vector<CUgraphNode>> shown;  // as cuStreamGetCaptureInfo gave them
  abi::CUstream origin = nullptr;                           // the stream of cuStreamBeginCapture
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
  ItemPointer last() const;  // the work that was submitted last; null: none
  // The stream is destroyed. Its last work still comes before the default stream's, if it blocks.
  void retire();
  // Whether work of the stream was refused for want of memory since the last call.
  bool take_refusal(std::span<const ItemPointer> tails) const;

  std::string text() const;  // "stream 2 of device 0 (sim:sm_80:0)"

  // CUlaunchAttributeValue by CUlaunchAttributeID: what was set, else zeros.
  void set_attribute(int attribute, const void* value);
  void get_attribute(int attribute, void* value) const;
  void copy_attributes(const Stream& from);

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
  void record(Capture& capture, Work work);  // under capture

  const std::shared_ptr<Context> context_;
  const Kind kind_;
  const int number_;  // in its context, from 1; the default stream has 0
  const ChainPointer chain_ = std::make_shared<Chain>();
  const std::shared_ptr<std::atomic<std::uint64_t>> refusal_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);  // the last that no wait has returned
  mutable std::mutex mutex_;                            // guards all members below
  std::shared_ptr<Capture> capture_;
  std::map<int, std::array<char, 64>> attributes_;
  ItemPointer last_;
  std::vector<ItemPointer> gates_;  // items that the next one has to wait for (wait_for)
};

struct Event {
  std::shared_ptr<Context> context;
  unsigned flags = 0;
  mutable std::mutex mutex;  // guards all below
  bool recorded = false;
  ItemPointer marker;  // the last record
  std::chrono::steady_clock::time_point time;
  std::weak_ptr<Capture> capture;                    // the last record was captured there ...
  abi::CUstream captured_from = nullptr;             // ... on this stream
  std::vector<std::shared_ptr<GraphNode>> captured;  // ... behind these nodes
};

// What a wait for the event waits for.
ItemPointer marker_of(const Event& event);

// What the launches before CUDA 4 set on a function (entries/set_launch.cc).
struct SetLaunch {
  unsigned block[3] = {1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
};

// A kernel of a module.
struct Function {
  std::shared_ptr<Context> context;
  std::shared_ptr<LoadedModule> image;
  const KernelInfo* info = nullptr;
  const Program* program = nullptr;
  abi::CUmodule module = nullptr;
  int ptx_version = 0;                          // 80 for 8.0
  std::atomic<std::uint32_t> dynamic_limit{0};  // bytes of dynamic shared memory it may have
  std::mutex mutex;                             // guards below
  SetLaunch set;
};

struct Module {
  std::shared_ptr<Context> context;
  std::shared_ptr<LoadedModule> image;
  int ptx_version = 0;  // 80 for 8.0
  std::mutex mutex;     // guards below
  std::map<std::string, abi::CUfunction, std::less<>> functions;

  abi::CUmodule handle() { return reinterpret_cast<abi::CUmodule>(this); }
};

struct Context {
  Device* device = nullptr;
  bool primary = false;
  std::uint64_t id = 0;                                            // counted over all
  std::atomic<unsigned> flags{0};                                  // as the program set them
  std::atomic<int> uses{1};                                        // cuCtxAttach
  std::atomic<std::size_t> heap_bytes{DeviceHeap::kDefaultBytes};  // cuCtxSetLimit
  // Not kCudaSuccess once a kernel faulted, or once the context was destroyed.
  std::atomic<abi::CUresult> lost{abi::kCudaSuccess};

  std::mutex mutex;  // guards below
  std::shared_ptr<Stream> default_stream;
  std::map<std::uint64_t, std::uint64_t> allocations;  // address -> bytes
  std::unique_ptr<DeviceHeap> heap;                    // made by the first kernel that runs
  std::vector<std::weak_ptr<Context>> peers;           // whose memory kernels may access
  // Events behind all work of the context (cuCtxRecordEvent) are a chain of their own.
  const ChainPointer all_work = std::make_shared<Chain>();
  std::vector<ItemPointer> retired;  // tails of blocking streams that were destroyed
  int streams = 0;                   // how many were made so far
  // The last operation of each chain, until the host has seen it end.
  std::map<Chain*, OperationPointer> latest;

  abi::CUcontext handle() { return reinterpret_cast<abi::CUcontext>(this); }
};

// Memory of the host that kernels reach at its own address: page-locked or managed.
struct HostBlock {
  enum class Kind {
    kAllocated,   // cuMemHostAlloc
    kRegistered,  // cuMemHostRegister: the bytes are the program's
    kManaged,     // cuMemAllocManaged
  };
  std::size_t bytes = 0;
  Kind kind = Kind::kAllocated;
  unsigned flags = 0;
  GlobalMemory* memory = nullptr;
  std::weak_ptr<Context> context;  // that made it
  // What cuMemAdvise and cuMemPrefetchAsync said of managed memory. Nothing here depends on it.
  bool read_mostly = false;
  MemoryLocation preferred{kLocationInvalid, kInvalidDevice};
  MemoryLocation prefetched{kLocationInvalid, kInvalidDevice};
  std::vector<int> accessed_by;  // ordinals
};

// A pool of memory (cuMemPoolCreate). It holds nothing back: what is freed goes to its device.
struct MemoryPool {
  Device* device = nullptr;  // null: memory of the host
  bool managed = false;
  bool given = false;            // a device's default, which cannot be destroyed
  std::uint64_t most_bytes = 0;  // 0: any number
  std::mutex mutex;              // guards below
  int reuse[3] = {1, 1, 1};
  std::uint64_t release_threshold = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::map<int, int> access;  // of other devices, by ordinal

  CUmemoryPool handle() { return reinterpret_cast<CUmemoryPool>(this); }
};

struct Pooled {
  std::shared_ptr<MemoryPool> pool;
  std::uint64_t bytes = 0;
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
  Handles<Library, CUlibrary> libraries;
  Handles<Kernel, CUkernel> kernels;
  Handles<LinkState, CUlinkState> links;
  Handles<MemoryPool, CUmemoryPool> memory_pools;
  Handles<Graph, abi::CUgraph> graphs;
  Handles<GraphNode, CUgraphNode> graph_nodes;
  Handles<GraphExec, abi::CUgraphExec> graph_execs;
  Queue queue;
  Detector detector;
  std::atomic<std::uint64_t> last_context{0};
  std::atomic<std::uint64_t> last_capture{0};
  std::atomic<int> global_captures{0};  // captures that forbid unsafe calls to every thread

  std::mutex mutex;                                // guards below
  std::map<std::uint64_t, HostBlock> host_blocks;  // by begin
  std::unique_ptr<GlobalMemory> host_memory;       // of all but those that are registered
  // One for each range that was ever registered, as copies in graphs may still name them.
  std::vector<std::unique_ptr<GlobalMemory>> registered;
  std::atomic<bool> pools_are_shared{false};  // a program has called cuMemPoolSetAccess
  std::map<std::uint64_t, Pooled> pooled;     // allocations of pools, by begin
  std::shared_ptr<MemoryPool> host_pools[2];  // page-locked and managed, made by their first use
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
std::shared_ptr<Stream> find_stream(abi::CUstream stream);  // in the current, live context
std::shared_ptr<Event> find_event(abi::CUevent event);
// A kernel of a library is a function as well: that of the current context, into which it is
// loaded.
std::shared_ptr<Function> find_function(abi::CUfunction function);

// The memory that holds all of the bytes; throws kCudaInvalidValue where none does.
GlobalMemory& memory_with(const Context& context, std::uint64_t address, std::size_t bytes);

// The memories of other devices and of the host, as kernels of `context` see them.
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
// Whether a copy between the two memories is one on the default stream between two devices, which
// comes after all earlier work of both and before all later work. Then what came earlier has ended.
bool alone_between_devices(const Stream& stream, const GlobalMemory& to, const GlobalMemory& from);
// The host has seen that the item ended. Null does nothing.
void observe(const ItemPointer& item);

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

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_STATE_H_
