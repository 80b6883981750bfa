#ifndef ANNULUS_SIMULATOR_H_
#define ANNULUS_SIMULATOR_H_

// The simulated GPU for programs that use it without the rest of Annulus, in C99 and in C++. The
// library is libannulus_simulator.so (CMake target annulus::simulator, pkg-config
// annulus-simulator). It is a CUDA driver whose functions are looked up by their names in cuda.h:
//
//   CUresult (*init)(unsigned) = NULL;
//   annulusSimulatorEntry("cuInit", (void**)&init);
//   init(0);
//   int device = 0;
//   annulusSimulatorFindDevice("sm_80", 0, &device);   // a CUdevice
//
// It exports only what this file declares, so that linking it takes no function of a real driver
// from a program. Programs that open or link libcuda.so.1 and cannot be changed take the
// simulator's own libcuda.so.1, which has these functions too (docs/simulator.md).
//
// All functions return a CUresult: 0, or 1 (CUDA_ERROR_INVALID_VALUE) for a null pointer or an
// option out of its range, 3 (CUDA_ERROR_NOT_INITIALIZED) before cuInit, 101
// (CUDA_ERROR_INVALID_DEVICE), 500 (CUDA_ERROR_NOT_FOUND). Any thread may call them.
//
// Structs begin with struct_size, the size that the caller was compiled with. A smaller size is
// that of a program older than the library; members that it lacks keep their values. A larger size
// is that of a newer program; members that the library does not know have to be 0 in what it is
// given (else it returns 1) and become 0 in what it fills in.

#include <stddef.h>
#include <stdint.h>

#include "annulus/version.h"

#ifdef __cplusplus
extern "C" {
#endif

// The version of this interface. It changes when one side can no longer use the other. A new member
// at the end of a struct, a new counter or a new function do not change it.
#define ANNULUS_SIMULATOR_VERSION 2
// How many devices each architecture has. Those of "sm_80" have the CUdevice numbers 0 to 7, those
// of "sm_90a" 8 to 15, those of "sm_90" 16 to 23.
#define ANNULUS_SIMULATOR_DEVICES 8

// The version of the library, to compare with ANNULUS_SIMULATOR_VERSION. Needs no cuInit.
ANNULUS_EXPORT int annulusSimulatorVersion(int* version);

// The function of the driver with this name ("cuMemAlloc_v2", "annulusSimulatorVersion"), which is
// one of those that docs/simulator.md lists. For any other it returns 500, and *entry is null.
// Needs no cuInit.
ANNULUS_EXPORT int annulusSimulatorEntry(const char* name, void** entry);

// The CUdevice of the device that Annulus calls sim:ARCHITECTURE:INDEX.
ANNULUS_EXPORT int annulusSimulatorFindDevice(const char* architecture, int index, int* device);

// How a device runs what is launched from now on. Work that was queued before keeps the options of
// that time.
typedef struct annulus_simulator_options {
  uint32_t struct_size;
  uint32_t checked;   // 1: look for races, uninitialised reads and lost copies; 0: trust the kernel
  uint64_t seed;      // of the order of warps and of the moment at which asynchronous effects land
  uint32_t threads;   // host threads for CTAs, up to 1024; 0: one for each processor
  uint32_t quantum;   // instructions that a warp runs before another may; 0: drawn
  uint32_t landing;   // when asynchronous effects land: 0 drawn, 1 early, 2 late
  uint32_t limit;     // millions of warp instructions that a CTA may run; 0: any number
  uint32_t streams;   // 0: work runs when it is queued; 1: later, in a drawn order
  uint32_t products;  // a wait for wgmma covers the warpgroup (1) or the warp (2); 0: as the
                      // reading says, which is 1 in `proven` and drawn for each CTA in `strict`
  uint32_t reading;   // of what the manual leaves open: 0 strict, what it promises; 1 proven, also
                      // what kernels in production rely on (docs/simulator.md, "Two readings")
  uint32_t resident;  // CTAs live one at a time (1) or together (2); 0: as the kernel needs
  uint64_t ignored;   // kinds of faults that a run goes on behind, a bit each, numbered as below
} annulus_simulator_options;

#define ANNULUS_SIMULATOR_OPTIONS_INIT \
  { sizeof(annulus_simulator_options), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// The kinds of faults that `ignored` may hold, which are those that a GPU goes on behind as well,
// with an answer that may be wrong.
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

// Totals of all launches on a device since its counters were last cleared: exact numbers, one
// uint64_t for each line of annulus/counters.def, which says what they count.
typedef struct annulus_simulator_counters {
  uint32_t struct_size;
  uint32_t reserved;
#define COUNTER(name, meaning) uint64_t name;
#include "annulus/counters.def"
} annulus_simulator_counters;

// Waits for nothing: synchronise first. `clear` other than 0 starts again from zero.
ANNULUS_EXPORT int annulusSimulatorCounters(int device, annulus_simulator_counters* counters,
                                            int clear);

// What went wrong last on a device, in a kernel or in the text of a module, as JSON with at least
// "kind" and "message"; "" where nothing did. The text is cut where `bytes` is too small, and
// always ends in a NUL.
ANNULUS_EXPORT int annulusSimulatorLastFault(int device, char* json, size_t bytes);
// Forgets that fault, and makes contexts of the device usable again that a fault has broken.
ANNULUS_EXPORT int annulusSimulatorClearFault(int device);

// For allocators that hand out parts of what cuMemAlloc gave them, as the library's own does. While
// an allocation is a pool, only its blocks may be used, each as if it were an allocation: accesses
// beyond a block, reads of what nobody wrote since it was added, and work that still uses a block
// when it is removed are found as they are without a pool. `pointer` and `bytes` are those of the
// whole allocation, else CUDA_ERROR_INVALID_VALUE. With on = 0 it is an allocation again; its
// blocks must have been removed.
ANNULUS_EXPORT int annulusSimulatorSetPool(unsigned long long pointer, size_t bytes, int on);
// A block of a pool, which overlaps no other one. Its contents are undefined. A free block should
// stay between two blocks, so that accesses a little past the end are found.
ANNULUS_EXPORT int annulusSimulatorAddBlock(unsigned long long pointer, size_t bytes);
// Checked mode: CUDA_SUCCESS also where work may still use the block, which is a fault of the
// context, as with cuMemFree.
ANNULUS_EXPORT int annulusSimulatorRemoveBlock(unsigned long long pointer);

// One line about a device, without a line end; `text` is gone after the return. Levels: 0 error
// (a kernel was ended by a fault), 1 warning (a module was refused), 2 information, 3 debugging
// (options were changed). The callback is called on any thread, inside a call of the driver, for
// one line of a device at a time. It must not call the simulator.
typedef void (*annulus_simulator_log)(void* user, int level, const char* text);

// Lines of a device go to this callback as well (on = 1), or no longer (on = 0). Callbacks are told
// apart by function and `user`, and one that was switched on twice has to be switched off twice.
// When the call that switches it off returns, it is not running and will not be called again.
ANNULUS_EXPORT int annulusSimulatorSetLog(int device, annulus_simulator_log log, void* user,
                                          int on);

// ---- NCCL
//
// The simulator has an NCCL for its devices too, which is found by the names of nccl.h. Ranks are
// threads, calls of one thread in groups, or processes on one machine, each with devices of its
// own. docs/simulator.md says what it does where NCCL promises nothing.

// The version of this part of the interface, by which a simulated NCCL is known. Needs no cuInit.
ANNULUS_EXPORT int annulusSimulatorNcclVersion(int* version);
#define ANNULUS_SIMULATOR_NCCL_VERSION 1

// The function of NCCL with this name ("ncclSend"), else 500 and null: also where NCCL of the
// version that the options say does not have it yet.
ANNULUS_EXPORT int annulusSimulatorNcclEntry(const char* name, void** entry);

// How NCCL behaves in this process from now on.
typedef struct annulus_simulator_nccl_options {
  uint32_t struct_size;
  uint32_t version;  // what ncclGetVersion says: 10000 major + 100 minor + patch, from 21400 on
  uint64_t seed;     // of the order in which messages go
  uint32_t polls;  // a non-blocking operation is in progress for 0 to so many further polls, drawn
  uint32_t fail_after;     // of the calls of fail_function, the one behind so many others fails
  int32_t fail_code;       // with this code, and does nothing; 0: none fails
  char fail_function[36];  // "ncclGroupEnd"
  // Each direction between two ranks is a link with this latency and this rate. They change
  // predicted times alone, and nothing waits for them. 0: no latency, and any number of bytes at
  // once.
  uint64_t link_latency_ns;
  uint64_t link_bytes_per_second;
} annulus_simulator_nccl_options;

#define ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT \
  { sizeof(annulus_simulator_nccl_options), 22809, 0, 3, 0, 0, "", 0, 0 }

ANNULUS_EXPORT int annulusSimulatorNcclSetOptions(const annulus_simulator_nccl_options* options);

// Ends the connections of `rank`, which has to be a rank of this process, to rank `peer`, or to all
// ranks of other processes if `peer` is -1, in every communicator of that rank, as a network that
// fails. Ranks on another host (NCCL_HOSTID) then find ncclRemoteError in ncclCommGetAsyncError, at
// both ends; on one host nobody is told, and messages do not come. 500: there is no such
// connection.
ANNULUS_EXPORT int annulusSimulatorNcclCut(int rank, int peer);

// What the ranks of this process have put on streams.
typedef struct annulus_simulator_nccl_counters {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  uint64_t groups;    // also of one call outside of a group
  uint64_t messages;  // sent by these ranks, those of collective calls too
  uint64_t bytes;     // of these messages
  // The sum over groups of the time that the busiest direction of a link needs by the options: a
  // latency for each of its messages, and its bytes at the rate. A prediction, of groups that have
  // all links to themselves.
  uint64_t predicted_ns;
} annulus_simulator_nccl_counters;

#define ANNULUS_SIMULATOR_NCCL_COUNTERS_INIT \
  { sizeof(annulus_simulator_nccl_counters), 0, 0, 0, 0, 0 }

// Since the process began, or they were cleared (clear = 1).
ANNULUS_EXPORT int annulusSimulatorNcclCounters(annulus_simulator_nccl_counters* counters,
                                                int clear);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_SIMULATOR_H_
