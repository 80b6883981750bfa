#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_STATE_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_STATE_H_

// The objects of the simulated driver, and State, which holds them all. Only files of the driver
// include this header.
//
// Locks: each object has a lock that guards it. A thread that holds two locks took them in the
// order device, context, handles. No lock is held while work runs.

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
  int index() const { return index_; }  // counted among the devices of its model

  GlobalMemory& memory();             // made at the first call
  GlobalMemory* made_memory() const;  // null before the first call of memory()

  abi::SimulatorOptions options() const;
  void set_options(const abi::SimulatorOptions& options);

  abi::SimulatorCounters counters(bool clear);
  void add(const abi::SimulatorCounters& launch);

  // The text that annulusSimulatorLastFault returns, as JSON. It is empty if nothing went wrong.
  std::string message() const;
  void clear_message();
  // Reports that a kernel was ended or that a module was refused. `json` becomes the message, and
  // `text` is written to the log.
  void report(base::LogLevel level, const std::string& text, std::string json);
  // Makes a report whose JSON has only a kind and a text.
  void report(base::LogLevel level, const char* kind, const std::string& text);
  LogListeners& log() { return log_; }

  // The first retain makes the primary context, and the last release destroys it.
  std::shared_ptr<Context> retain_primary();
  bool release_primary();  // returns false if the context is not retained
  void reset_primary();    // destroys the context, however often it is retained
  bool primary_active() const;

  // The pool of cuMemAllocAsync: the pool that was set, or else the default pool.
  std::shared_ptr<MemoryPool> default_pool();
  std::shared_ptr<MemoryPool> pool();
  void set_pool(std::shared_ptr<MemoryPool> pool);

 private:
  const DeviceModel& model_;
  const int ordinal_;
  const int index_;
  LogListeners log_;
  mutable std::mutex mutex_;  // guards the members below
  std::unique_ptr<GlobalMemory> memory_;
  abi::SimulatorOptions options_;
  abi::SimulatorCounters counters_;
  std::string message_;
  std::shared_ptr<Context> primary_;
  int primary_users_ = 0;
  std::shared_ptr<MemoryPool> default_pool_;
  std::shared_ptr<MemoryPool> pool_;
};

// Streams under capture do not run work. They record it in a graph.
struct Capture {
  std::mutex mutex;
  std::uint64_t id = 0;
  std::shared_ptr<Graph> graph;
  bool to_given_graph = false;  // the program made the graph (cuStreamBeginCaptureToGraph)
  // The nodes that the next node of a stream waits for.
  std::map<abi::CUstream, std::vector<std::shared_ptr<GraphNode>>> tails;
  // the pointers that cuStreamGetCaptureInfo returned
  std::map<abi::CUstream, std::vector<CUgraphNode>> shown;
  abi::CUstream origin = nullptr;  // the stream of cuStreamBeginCapture
  int mode = 0;
  bool invalid = false;
  // The other streams that took part. True if another stream waits for the last of the stream's
  // work.
  std::map<abi::CUstream, bool> joined;
};

class Stream {
 public:
  enum class Kind {
    kDefault,  // waits for all blocking streams of its context, and they wait for it
    kBlocking,
    kNonBlocking,  // not ordered with the default stream
  };
  Stream(std::shared_ptr<Context> context, Kind kind, int number);

  const std::shared_ptr<Context>& context() const { return context_; }
  Kind kind() const { return kind_; }
  abi::CUstream handle() { return reinterpret_cast<abi::CUstream>(this); }

  // Queues `work` after everything that was submitted before. With the option `streams` 0, the work
  // has ended when the function returns. Under capture the work is recorded, and the result is
  // null.
  ItemPointer submit(Work work);
  // Queues all nodes of a graph, and after them an item that does nothing. Returns that item.
  ItemPointer submit(GraphExec& graph);

  // Makes work that is submitted from now on wait for `item`.
  void wait_for(ItemPointer item);
  // The items that have to end before the stream is empty.
  std::vector<ItemPointer> tails() const;
  ItemPointer last() const;  // the work that was submitted last, or null
  // Called when the program destroys the stream. If the stream is blocking, the default stream
  // still waits for its last work.
  void retire();
  // Whether work of the stream was refused for lack of memory since the last call.
  bool take_refusal(std::span<const ItemPointer> tails) const;

  std::string text() const;  // "stream 2 of device 0 (sim:sm_80:0)"

  // The values of stream attributes (CUlaunchAttributeValue), by CUlaunchAttributeID. An attribute
  // that was never set is zero.
  void set_attribute(int attribute, const void* value);
  void get_attribute(int attribute, void* value) const;
  void copy_attributes(const Stream& from);

  std::shared_ptr<Capture> capture() const;
  void set_capture(std::shared_ptr<Capture> capture);

 private:
  // Adds the items that this stream waits for by the rule of the default stream.
  void add_implicit(std::vector<ItemPointer>* tails) const;

  // Makes an item with the edges that the caller passes.
  ItemPointer make_item(Work work, std::string where, const ChainPointer& chain,
                        std::vector<ItemPointer> after) const;
  // Requires: mutex_ is held.
  void queue_items(std::span<const ItemPointer> items);
  static void end(std::span<const ItemPointer> items);
  void record(Capture& capture, Work work);  // stores the work in the graph of a capture

  const std::shared_ptr<Context> context_;
  const Kind kind_;
  const int number_;  // counted in its context, from 1; the default stream has 0
  const ChainPointer chain_ = std::make_shared<Chain>();
  const std::shared_ptr<std::atomic<std::uint64_t>> refusal_ =
      // the last refusal that no wait has returned
      std::make_shared<std::atomic<std::uint64_t>>(0);
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<Capture> capture_;
  std::map<int, std::array<char, 64>> attributes_;
  ItemPointer last_;
  std::vector<ItemPointer> gates_;  // items of wait_for(), which the next item waits for
};

struct Event {
  std::shared_ptr<Context> context;
  unsigned flags = 0;
  mutable std::mutex mutex;  // guards the members below
  bool recorded = false;
  ItemPointer marker;  // the item of the last record
  std::chrono::steady_clock::time_point time;
  std::weak_ptr<Capture> capture;         // the capture of the last record, if it was captured
  abi::CUstream captured_from = nullptr;  // the stream of that record
  std::vector<std::shared_ptr<GraphNode>> captured;  // the nodes before that record
};

// The item that a wait for the event waits for.
ItemPointer marker_of(const Event& event);

// The launch parameters that functions older than CUDA 4 set on a kernel (entries/set_launch.cc).
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
  std::atomic<std::uint32_t> dynamic_limit{0};  // the most bytes of dynamic shared memory that it
                                                // may have
  std::mutex mutex;                             // guards the members below
  SetLaunch set;
};

struct Module {
  std::shared_ptr<Context> context;
  std::shared_ptr<LoadedModule> image;
  int ptx_version = 0;  // 80 for 8.0
  std::mutex mutex;     // guards the members below
  std::map<std::string, abi::CUfunction, std::less<>> functions;

  abi::CUmodule handle() { return reinterpret_cast<abi::CUmodule>(this); }
};

struct Context {
  Device* device = nullptr;
  bool primary = false;
  std::uint64_t id = 0;            // counted over all contexts, never used twice
  std::atomic<unsigned> flags{0};  // the flags that the program set
  std::atomic<int> uses{1};        // the count of cuCtxAttach
  std::atomic<std::size_t> heap_bytes{DeviceHeap::kDefaultBytes};  // set by cuCtxSetLimit
  // Differs from kCudaSuccess after a kernel faulted, or after the context was destroyed.
  std::atomic<abi::CUresult> lost{abi::kCudaSuccess};

  std::mutex mutex;  // guards the members below
  std::shared_ptr<Stream> default_stream;
  std::map<std::uint64_t, std::uint64_t> allocations;  // address -> bytes
  std::unique_ptr<DeviceHeap> heap;                    // made by the first kernel that runs
  std::vector<std::weak_ptr<Context>> peers;  // contexts whose memory kernels of this one may
                                              // access
  // The events that come after all work of the context (cuCtxRecordEvent) form a separate chain.
  const ChainPointer all_work = std::make_shared<Chain>();
  std::vector<ItemPointer> retired;  // the last items of blocking streams that were destroyed
  int streams = 0;                   // the number of streams made so far
  // The last operation of each chain, until the host has observed its end.
  std::map<Chain*, OperationPointer> latest;

  abi::CUcontext handle() { return reinterpret_cast<abi::CUcontext>(this); }
};

// Memory of the host that kernels access at the same address: page-locked or managed.
struct HostBlock {
  enum class Kind {
    kAllocated,   // cuMemHostAlloc
    kRegistered,  // cuMemHostRegister: the program owns the bytes
    kManaged,     // cuMemAllocManaged
  };
  std::size_t bytes = 0;
  Kind kind = Kind::kAllocated;
  unsigned flags = 0;
  GlobalMemory* memory = nullptr;
  std::weak_ptr<Context> context;  // the context that made the block
  // The hints of cuMemAdvise and cuMemPrefetchAsync for managed memory, which have no effect here.
  bool read_mostly = false;
  MemoryLocation preferred{kLocationInvalid, kInvalidDevice};
  MemoryLocation prefetched{kLocationInvalid, kInvalidDevice};
  std::vector<int> accessed_by;  // ordinals of devices
};

// A pool of memory (cuMemPoolCreate). It keeps no freed memory: the memory returns to its device.
struct MemoryPool {
  Device* device = nullptr;  // null: memory of the host
  bool managed = false;
  bool given = false;           // the default pool of a device, which cannot be destroyed
  std::uint64_t max_bytes = 0;  // 0: no limit
  std::mutex mutex;             // guards the members below
  int reuse[3] = {1, 1, 1};
  std::uint64_t release_threshold = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::map<int, int> access;  // the access of other devices, by ordinal

  CUmemoryPool handle() { return reinterpret_cast<CUmemoryPool>(this); }
};

struct Pooled {
  std::shared_ptr<MemoryPool> pool;
  std::uint64_t bytes = 0;
};

// Everything that the driver holds. It is made at the first call and never destroyed, because
// programs call their driver from exit handlers, in any order.
struct State {
  State();

  std::atomic<bool> initialised{false};
  // True in the child process of a fork, if the parent had initialised the driver. A fork copies no
  // threads, so work would wait for ever. CUDA also refuses every call there.
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
  std::atomic<int> global_captures{0};  // the number of captures that forbid unsafe calls to every
                                        // thread

  std::mutex mutex;                                // guards the members below
  std::map<std::uint64_t, HostBlock> host_blocks;  // by the first address
  std::unique_ptr<GlobalMemory> host_memory;       // holds all blocks except the registered ones
  // One for each range that was ever registered, because copies in graphs may still name it.
  std::vector<std::unique_ptr<GlobalMemory>> registered;
  std::atomic<bool> pools_are_shared{false};  // true after a call of cuMemPoolSetAccess
  std::map<std::uint64_t, Pooled> pooled;     // allocations of pools, by their first address
  std::shared_ptr<MemoryPool> host_pools[2];  // the pools of page-locked and of managed memory,
                                              // each made by its first use
  std::map<std::uint32_t, std::shared_ptr<base::ThreadPool>> pools;  // by number of threads

  std::shared_ptr<base::ThreadPool> pool(std::uint32_t threads);
};
State& state();

// The contexts that this thread pushed. The last one is the current context.
std::vector<std::shared_ptr<Context>>& context_stack();

template <typename Run>
Work make_work(std::string what, Run run) {
  Work work;
  work.operation.what = std::move(what);
  work.run = std::move(run);
  return work;
}

// Find an object. They throw Refusal if there is none.
Device& device_at(abi::CUdevice device);
std::shared_ptr<Context> current_context();  // the context may be lost
// a stream of the current context, which must be live
std::shared_ptr<Stream> find_stream(abi::CUstream stream);
std::shared_ptr<Event> find_event(abi::CUevent event);
// A kernel of a library is accepted as a function too. It is loaded into the current context.
std::shared_ptr<Function> find_function(abi::CUfunction function);

// The memory that holds all of the bytes. Throws Refusal{kCudaInvalidValue} if there is none.
GlobalMemory& memory_with(const Context& context, std::uint64_t address, std::size_t bytes);

// The memories of other devices and of the host that kernels of `context` can access.
std::vector<PeerMemory> peer_memories(Context& context);
// Whether another device has a context, whose kernels and copies may write this device's memory
// while a kernel runs here. All other work waits for the kernel.
bool has_company(const Context& context);

std::shared_ptr<Context> make_context(Device& device, bool primary);
// Destroys everything that the context owns. Handles of its objects are refused from now on.
void destroy_context(const std::shared_ptr<Context>& context);

// Runs all work that the streams of a context still have, and returns the state of the context
// after that. synchronize() is the wait of a program, after which the host has observed that the
// work ended.
abi::CUresult finish(const Context& context);
abi::CUresult synchronize(const Stream& stream);
abi::CUresult synchronize(Context& context);
// Whether a copy between the two memories is a copy on the default stream between two devices. Such
// a copy comes after all earlier work of both devices and before all later work. The function then
// waits for the earlier work.
bool alone_between_devices(const Stream& stream, const GlobalMemory& to, const GlobalMemory& from);
// Records that the host has observed the end of the item. Null has no effect.
void observe(const ItemPointer& item);

// Calls that a capture in the global mode forbids to every thread (CUDA's "unsafe" calls) begin
// with this function. A thread in another mode may make them. The rule of the thread-local mode is
// not checked, because it is not known here whether the thread itself captures something.
void refuse_under_capture();
// The mode of this thread, which cuThreadExchangeStreamCaptureMode sets.
int& capture_mode();

// Runs the body of an entry. No exception leaves a function of a C interface.
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
