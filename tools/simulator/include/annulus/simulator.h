#ifndef ANNULUS_SIMULATOR_H_
#define ANNULUS_SIMULATOR_H_

// The simulated GPU for programs that use it without the rest of Annulus, in C99 and in C++. The
// library is libannulus_simulator.so (CMake target annulus::simulator, pkg-config
// annulus-simulator). It is a CUDA driver. A program finds its functions by their names in cuda.h:
//
//   CUresult (*init)(unsigned) = NULL;
//   annulusSimulatorEntry("cuInit", (void**)&init);
//   init(0);
//   int device = 0;
//   annulusSimulatorFindDevice("sm_80", 0, &device);   // a CUdevice
//
// The library exports only what this file declares, so linking it does not replace functions of a
// real driver. Programs that open or link libcuda.so.1 and cannot be changed use the simulator's
// own libcuda.so.1, which has these functions too (docs/simulator.md).
//
// All functions return a CUresult: 0 for success, 1 (CUDA_ERROR_INVALID_VALUE) for a null pointer
// or an option out of its range, 3 (CUDA_ERROR_NOT_INITIALIZED) before cuInit, 101
// (CUDA_ERROR_INVALID_DEVICE), or 500 (CUDA_ERROR_NOT_FOUND). Any thread may call them.
//
// Structs begin with struct_size, the size with which the caller was compiled. A smaller size means
// a program older than the library; members that the program lacks keep their values. A larger size
// means a newer program. Members that the library does not have must then be 0 in its input
// (otherwise it returns 1), and become 0 in its output.

#include <stddef.h>
#include <stdint.h>

#include "annulus/version.h"

#ifdef __cplusplus
extern "C" {
#endif

// The version of this interface. It changes if one side can no longer use the other. It does not
// change for a new member at the end of a struct, a new counter or a new function.
#define ANNULUS_SIMULATOR_VERSION 2
// The number of devices of each architecture. The devices of "sm_80" have the CUdevice numbers 0 to
// 7, those of "sm_90a" 8 to 15, and those of "sm_90" 16 to 23.
#define ANNULUS_SIMULATOR_DEVICES 8

// The version of the library, to compare with ANNULUS_SIMULATOR_VERSION. It does not need cuInit.
ANNULUS_EXPORT int annulusSimulatorVersion(int* version);

// The function of the driver with this name ("cuMemAlloc_v2", "annulusSimulatorVersion").
// docs/simulator.md lists the names. For any other name it returns 500, and *entry is null. It does
// not need cuInit.
ANNULUS_EXPORT int annulusSimulatorEntry(const char* name, void** entry);

// The CUdevice of the device that Annulus names sim:ARCHITECTURE:INDEX.
ANNULUS_EXPORT int annulusSimulatorFindDevice(const char* architecture, int index, int* device);

// How a device runs work that is launched from now on. Work that was queued earlier keeps its
// options.
typedef struct annulus_simulator_options {
  uint32_t struct_size;
  uint32_t checked;  // 1: search for races, uninitialised reads and copies without a wait; 0: trust
                     // the kernel
  uint64_t
      seed;  // determines the order of warps and the moments at which asynchronous effects land
  uint32_t threads;   // host threads for CTAs, up to 1024; 0: one for each processor
  uint32_t quantum;   // instructions of a warp before another one may run; 0: drawn
  uint32_t landing;   // when asynchronous effects land: 0 drawn, 1 early, 2 late
  uint32_t limit;     // millions of warp instructions that a CTA may run; 0: no limit
  uint32_t streams;   // 0: work runs when it is queued; 1: later, in a drawn order
  uint32_t products;  // a wait for wgmma covers the warpgroup (1) or the warp (2); 0: given by
                      // `reading`: 1 if it is proven, drawn for each CTA if it is strict
  uint32_t reading;   // rules that the manual leaves open: 0 strict, only what the manual promises;
                      // 1 proven, and in addition what kernels in production rely on
                      // (docs/simulator.md, "Two readings")
  uint32_t resident;  // CTAs run one at a time (1) or are co-resident (2); 0: as the kernel needs
  uint64_t ignored;   // kinds of faults after which a run continues, one bit for each, numbered as
                      // below
} annulus_simulator_options;

#define ANNULUS_SIMULATOR_OPTIONS_INIT \
  { sizeof(annulus_simulator_options), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// The kinds of faults that `ignored` may contain. After these a GPU continues as well, with an
// answer that may be wrong.
#define ANNULUS_SIMULATOR_IGNORE_UNINITIALISED_READ (UINT64_C(1) << 3)
#define ANNULUS_SIMULATOR_IGNORE_SHARED_MEMORY_RACE (UINT64_C(1) << 4)
#define ANNULUS_SIMULATOR_IGNORE_GLOBAL_MEMORY_RACE (UINT64_C(1) << 5)
#define ANNULUS_SIMULATOR_IGNORE_MISSING_WAIT (UINT64_C(1) << 6)
#define ANNULUS_SIMULATOR_IGNORE_EARLY_REUSE (UINT64_C(1) << 7)
#define ANNULUS_SIMULATOR_IGNORE_UNORDERED_WRITES (UINT64_C(1) << 8)
#define ANNULUS_SIMULATOR_IGNORE_FREED_IN_USE (UINT64_C(1) << 9)
#define ANNULUS_SIMULATOR_IGNORE_BYTES_IN_FLIGHT (UINT64_C(1) << 10)
#define ANNULUS_SIMULATOR_IGNORE_REGISTER_IN_FLIGHT (UINT64_C(1) << 11)
#define ANNULUS_SIMULATOR_IGNORE_MISSING_FENCE (UINT64_C(1) << 12)
#define ANNULUS_SIMULATOR_IGNORE_UNWAITED (UINT64_C(1) << 16)

ANNULUS_EXPORT int annulusSimulatorSetOptions(int device, const annulus_simulator_options* options);
ANNULUS_EXPORT int annulusSimulatorGetOptions(int device, annulus_simulator_options* options);

// Totals of all launches on a device since its counters were last cleared. They are exact numbers,
// one uint64_t for each line of annulus/counters.def, which describes them.
typedef struct annulus_simulator_counters {
  uint32_t struct_size;
  uint32_t reserved;
#define COUNTER(name, meaning) uint64_t name;
#include "annulus/counters.def"
} annulus_simulator_counters;

// Reads the counters. It does not wait for work, so synchronise first. If `clear` is not 0, the
// counters restart from zero.
ANNULUS_EXPORT int annulusSimulatorCounters(int device, annulus_simulator_counters* counters,
                                            int clear);

// The last fault or error of a device, in a kernel or in the text of a module. It is JSON with at
// least "kind" and "message", or "" if there was none. If `bytes` is too small, the text is cut; it
// always ends in a NUL.
ANNULUS_EXPORT int annulusSimulatorLastFault(int device, char* json, size_t bytes);
// Clears that fault, and makes contexts of the device usable again that a fault has broken.
ANNULUS_EXPORT int annulusSimulatorClearFault(int device);

// For allocators that hand out parts of an allocation of cuMemAlloc, like the allocator of Annulus.
// While an allocation is a pool, only its blocks may be used, each as if it were an allocation. The
// simulator then finds accesses beyond a block, reads of bytes that were not written since the
// block was added, and work that still uses a block when it is removed. `pointer` and `bytes` have
// to be those of the whole allocation, otherwise it returns CUDA_ERROR_INVALID_VALUE. With on = 0
// it becomes an ordinary allocation again; its blocks must have been removed.
ANNULUS_EXPORT int annulusSimulatorSetPool(unsigned long long pointer, size_t bytes, int on);
// Adds a block to a pool. It may not overlap another block. Its contents are undefined. A free
// block should stay between two blocks, so that accesses a little past the end are found.
ANNULUS_EXPORT int annulusSimulatorAddBlock(unsigned long long pointer, size_t bytes);
// Removes a block. In checked mode it returns CUDA_SUCCESS even if work may still use the block.
// That is then a fault of the context, as with cuMemFree.
ANNULUS_EXPORT int annulusSimulatorRemoveBlock(unsigned long long pointer);

// Receives a line about a device, without a line end. `text` is only valid during the call. Levels:
// 0 error (a fault ended a kernel), 1 warning (a module was refused), 2 information, 3 debugging
// (options were changed). The callback is called on any thread, inside a call of the driver, for
// one line of a device at a time. It must not call the simulator.
typedef void (*annulus_simulator_log)(void* user, int level, const char* text);

// Starts (on = 1) or stops (on = 0) passing the lines of a device to this callback. Callbacks are
// identified by function and `user`. A callback that was started twice has to be stopped twice.
// When the call that stops it returns, the callback is not running and will not be called again.
ANNULUS_EXPORT int annulusSimulatorSetLog(int device, annulus_simulator_log log, void* user,
                                          int on);

// ---- NCCL
//
// The simulator also has an NCCL for its devices. Its functions are found by their names in nccl.h.
// Ranks are threads, calls of one thread in groups, or processes on one machine, each with its own
// devices. docs/simulator.md describes its behaviour in cases that NCCL leaves open.

// The version of this part of the interface. A program can detect a simulated NCCL by this
// function. It does not need cuInit.
ANNULUS_EXPORT int annulusSimulatorNcclVersion(int* version);
#define ANNULUS_SIMULATOR_NCCL_VERSION 1

// The function of NCCL with this name ("ncclSend"). It returns 500 and null if there is none, or if
// the NCCL version of the options does not have it yet.
ANNULUS_EXPORT int annulusSimulatorNcclEntry(const char* name, void** entry);

// The behaviour of NCCL in this process from now on.
typedef struct annulus_simulator_nccl_options {
  uint32_t struct_size;
  uint32_t version;  // the result of ncclGetVersion: 10000 major + 100 minor + patch, from 21400 on
  uint64_t seed;     // determines the order in which messages are sent
  uint32_t polls;    // a non-blocking operation stays in progress for a drawn number of further
                     // polls, up to this one
  uint32_t fail_after;  // number of calls of fail_function before the call that fails
  int32_t fail_code;    // the code of the failing call, which does nothing else; 0: no call fails
  char fail_function[36];  // "ncclGroupEnd"
  // Each direction between two ranks is a link with this latency and this rate. They only change
  // predicted times; nothing waits for them. 0: no latency, and an unlimited rate.
  uint64_t link_latency_ns;
  uint64_t link_bytes_per_second;
} annulus_simulator_nccl_options;

#define ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT \
  { sizeof(annulus_simulator_nccl_options), 22809, 0, 3, 0, 0, "", 0, 0 }

ANNULUS_EXPORT int annulusSimulatorNcclSetOptions(const annulus_simulator_nccl_options* options);

// Ends connections of `rank`, which has to be a rank of this process, in every communicator of that
// rank, like a network that fails. They are the connections to rank `peer`, or to all ranks of
// other processes if `peer` is -1. Between hosts (NCCL_HOSTID), ncclCommGetAsyncError then returns
// ncclRemoteError at both ends. On one host no rank gets an error, and messages do not arrive. It
// returns 500 if there is no such connection.
ANNULUS_EXPORT int annulusSimulatorNcclCut(int rank, int peer);

// Counters of what the ranks of this process have put on streams.
typedef struct annulus_simulator_nccl_counters {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  uint64_t groups;    // a call outside of a group counts as a group
  uint64_t messages;  // sent by these ranks, including messages of collective calls
  uint64_t bytes;     // sum of the bytes of these messages
  // A prediction: the sum over groups of the time that the busiest direction of a link takes by the
  // options. This is a latency for each of its messages, plus its bytes at the rate. It assumes
  // that each group uses all links alone.
  uint64_t predicted_ns;
} annulus_simulator_nccl_counters;

#define ANNULUS_SIMULATOR_NCCL_COUNTERS_INIT \
  { sizeof(annulus_simulator_nccl_counters), 0, 0, 0, 0, 0 }

// Reads the counters since the process began, or since they were cleared (clear = 1).
ANNULUS_EXPORT int annulusSimulatorNcclCounters(annulus_simulator_nccl_counters* counters,
                                                int clear);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_SIMULATOR_H_
