#ifndef ANNULUS_C_H_
#define ANNULUS_C_H_

// The C interface, for C99 and for every language that can call C. This header has devices,
// problems, plans, patterns, selections and metrics; c_batch.h, c_layout.h, c_ring.h, c_tune.h and
// c_tools.h have the rest. Each struct, enum and function has a C++ counterpart of a similar name
// in the header named in its section. The C++ declaration has the full meaning, and the comments
// here state only what differs in C. "0 or 1" stands for false or true.
//
//   annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
//   annulus_device* device = NULL;
//   if (annulus_device_open(&options, &device) != ANNULUS_OK) report(annulus_last_error());
//
// Conventions. They hold for every function of the C headers unless its comment has an exception.
//
// 1. Functions return ANNULUS_OK or an error code; annulus_last_error() returns the text of the
//    error. After an error nothing has been made, launched or written. No function throws a C++
//    exception or prints anything.
// 2. Handles (annulus_device*, annulus_plan*, annulus_bound*) are numbers in the type of a pointer,
//    which the library looks up before it uses them. A null handle, a handle of another kind and a
//    destroyed handle are ANNULUS_INVALID_ARGUMENT. Each handle is destroyed once. If another
//    thread is inside a call with it, the object lives until that call ends.
// 3. Structs begin with struct_size and are initialised by their INIT macro, whose values are the
//    defaults. A smaller size means a caller of an older version: the fields that it lacks have
//    their defaults. A larger size means a newer caller: the part that this library does not know
//    must be zero, else the call returns ANNULUS_UNSUPPORTED. In a struct that the library fills,
//    that part becomes zero. Null options, limits and filters stand for the defaults.
// 4. Text is UTF-8 and ends with a zero byte. The library copies texts, arrays and structs of the
//    caller before the function returns. Texts and arrays that the library returns belong to their
//    handle and live as long as the handle.
// 5. int32_t fields hold an enum of these headers or, if the comment has "0 or 1", a truth value.
//    Sizes are in elements, or in bytes if the name ends in bytes.
// 6. A void* to device memory is an address of the device's primary context. `stream` is a CUstream
//    of that context; null is the default stream.
// 7. Any thread may call any function at any time, even with a handle that other threads are using.
// 8. Callbacks must return: they must not leave by longjmp or by an exception. They must not call
//    the library with the same device. What they use must stay until the device and all its plans
//    are destroyed.

#include <stddef.h>
#include <stdint.h>

#include "annulus/version.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Versions and errors (annulus/types.h)

// The numbers of annulus::ErrorCode. Later versions may add numbers.
typedef enum annulus_status {
  ANNULUS_OK = 0,
  ANNULUS_INVALID_ARGUMENT = 1,  // a wrong handle, size, shape, pointer or option
  ANNULUS_UNSUPPORTED = 2,       // a valid request that the library does not implement
  ANNULUS_PARSE = 3,             // a pattern that does not parse; the text has the column
  ANNULUS_INVALID_FILE = 4,      // a file with damaged or foreign contents
  ANNULUS_FILE = 5,              // a file that cannot be opened, read or written
  ANNULUS_LIBRARY = 6,           // libcuda or libnvrtc is missing, too old, or lacks a symbol
  ANNULUS_OUT_OF_MEMORY = 7,     // host or device memory, or the caller's allocator, ran out
  ANNULUS_DEVICE = 8,            // the CUDA driver refused a call
  ANNULUS_COMPILE = 9,           // NVRTC refused a kernel
  ANNULUS_FAULT = 10,            // a kernel did something undefined; the context is lost
  ANNULUS_INTERNAL = 11,         // a defect of this library
  ANNULUS_LIMIT = 12,            // the call needs more work than max_work of its options allows
  ANNULUS_CANCELLED = 13,        // the caller cancelled the call
  ANNULUS_COMMUNICATION = 14     // a rank or a connection failed or is late
} annulus_status;

// The version of the loaded library; ANNULUS_VERSION is the version of this header. 100 is 0.1.0.
// Versions with the same major number are compatible.
ANNULUS_EXPORT int annulus_version(void);
ANNULUS_EXPORT const char* annulus_version_text(void);  // "0.1.0"

// "ok", "invalid argument", ...; "unknown error" for any other number.
ANNULUS_EXPORT const char* annulus_status_text(int status);

// The complete text of the last error on this thread; "" if there was none. If the host has no
// memory for the text, the returned text reports that. It is valid until the next error on this
// thread or the thread's end; a successful call does not change it.
ANNULUS_EXPORT const char* annulus_last_error(void);

// ---- Devices (annulus/device.h)

typedef struct annulus_device annulus_device;

enum {
  ANNULUS_LOG_ERROR = 0,
  ANNULUS_LOG_WARNING = 1,
  ANNULUS_LOG_INFO = 2,
  ANNULUS_LOG_DEBUG = 3
};

// Receives one line of the log without its line end. `text` is valid only during the call. Several
// threads may call it at a time, including the library's own threads.
typedef void (*annulus_log_callback)(void* user, int32_t level, const char* text);

// Stores the address of `bytes` > 0 bytes of device memory, a multiple of `alignment` (256), in
// *address and returns 0. After another return value or a null address, the call that needed the
// memory returns ANNULUS_OUT_OF_MEMORY. See annulus::AllocatorCallbacks for the rules.
typedef int (*annulus_allocate_callback)(void* user, size_t bytes, size_t alignment,
                                         void** address);
// Takes back memory that no work uses any more.
typedef void (*annulus_release_callback)(void* user, void* address, size_t bytes);

// The limits of a cache (see annulus::LayoutCacheLimits).
typedef struct annulus_cache_limits {
  size_t struct_size;
  int64_t bytes;
  int64_t entries;  // 0: the cache keeps nothing
} annulus_cache_limits;
#define ANNULUS_CACHE_LIMITS_INIT \
  { sizeof(annulus_cache_limits), INT64_C(256) << 20, 512 }

// A task of the library for a thread of the host. The host runs or drops it once, which ends it.
typedef struct annulus_task annulus_task;
// Runs the task, which takes up to seconds.
ANNULUS_EXPORT annulus_status annulus_task_run(annulus_task* task);
// Drops the task. Its plan keeps a general kernel.
ANNULUS_EXPORT annulus_status annulus_task_drop(annulus_task* task);

// Takes a task, which any thread runs now or later, and returns 0. If it returns another number,
// the task is refused and the library destroys it.
typedef int (*annulus_execute_callback)(void* user, annulus_task* task);

// Which kernels a device compiles.
enum {
  ANNULUS_COMPILE_DEFAULT = 0,  // the environment's ANNULUS_COMPILE, else ANNULUS_COMPILE_MISSING
  ANNULUS_COMPILE_MISSING = 1,  // kernels that are not found compiled
  // No kernels: a call whose kernel is not found compiled returns ANNULUS_LIBRARY.
  ANNULUS_COMPILE_NEVER = 2
};

// The C form of annulus::DeviceOptions. A null text stands for a C++ option that is not set.
typedef struct annulus_device_options {
  size_t struct_size;
  const char* name;          // "cuda:0", "sim:sm_90a", ...; null or empty: the default device
  const char* cache_dir;     // folder of compiled kernels
  const char* tuned_path;    // folders and packs of tuned results, separated by ':'
  const char* template_dir;  // kernel templates to use; null: the built-in ones
  annulus_log_callback log;  // null: no log
  void* log_user;
  int32_t log_level;           // ANNULUS_LOG_*: the most detailed level that is logged
  int32_t simulation_checked;  // 0 or 1: a simulated device finds races and similar errors
  uint64_t simulation_seed;    // seed of its order of warps
  int64_t simulation_threads;  // host threads, up to 1024; 0: one per processor
  // Both allocator callbacks, or two nulls for cuMemAlloc.
  annulus_allocate_callback allocate;
  annulus_release_callback release;
  void* allocator_user;
  // Limits of the caches of tile lists on the host and on the device. Null: the defaults.
  const annulus_cache_limits* host_lists;
  const annulus_cache_limits* device_lists;
  int64_t check_operands;      // 0 or 1, for debugging: check each run's addresses in the driver
  int64_t max_device_bytes;    // limit of the library's device memory; 0: no limit
  int64_t time_every_nth_run;  // each n-th run of a plan is timed on the device; 0: none
  const char* kernels_path;    // folders of kernels compiled ahead, separated by ':'
  int64_t compile;             // ANNULUS_COMPILE_*: which kernels are compiled
  // Runs the compilations of plans that do not wait; null: threads of the library run them.
  annulus_execute_callback execute;
  void* execute_user;
  int64_t load_general_kernels;  // 0 or 1: load all general kernels in the background
  const char* shape_log;         // a file that counts what the device plans; null or empty: no file
} annulus_device_options;
#define ANNULUS_DEVICE_OPTIONS_INIT                                                                \
  {                                                                                                \
    sizeof(annulus_device_options), NULL, NULL, NULL, NULL, NULL, NULL, ANNULUS_LOG_WARNING, 1, 0, \
        0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, ANNULUS_COMPILE_DEFAULT, NULL, NULL, 0,    \
        NULL                                                                                       \
  }

// Opens a device.
ANNULUS_EXPORT annulus_status annulus_device_open(const annulus_device_options* options,
                                                  annulus_device** device);

// Closes the device. Its plans stay usable. Memory of annulus_device_allocate that was not released
// is released now. When the device and its last plan are gone, all memory returns to the allocator,
// after waiting for the device. In a callback of a background tuning of the device it returns
// ANNULUS_INVALID_ARGUMENT, and the tuning continues.
ANNULUS_EXPORT annulus_status annulus_device_close(annulus_device* device);

// The C form of annulus::DeviceInfo.
typedef struct annulus_device_info {
  size_t struct_size;
  const char* name;           // the name for annulus_device_options
  const char* description;    // the driver's name of the device
  const char* architecture;   // "sm_80", "sm_90a", ...
  const char* nvrtc_version;  // empty if NVRTC was not opened
  const char* cache_dir;      // empty: no kernel is kept on disk
  const char* cache_problem;  // why cache_dir is empty, if a folder was requested
  const char* tuned_path;     // the search path of tuned results
  int32_t simulated;          // 0 or 1
  int32_t driver_version;     // 13000 is 13.0
  int64_t multiprocessors;
  int64_t shared_bytes_per_block;
  int64_t memory_bytes;
  int64_t ordinal;            // the device's number in the driver (cuDeviceGet)
  const char* tuned_key;      // annulus_tuned_entry.device of results found on this device
  const char* kernel_origin;  // the origin that compiled kernels need to run on this device, as in
                              // annulus_installation_info.cached_origins
  const char* compile_problem;  // why no kernel can be compiled; empty if kernels can be compiled
  const char* kernels_path;     // the search path of kernels compiled ahead
} annulus_device_info;
#define ANNULUS_DEVICE_INFO_INIT                                                                   \
  {                                                                                                \
    sizeof(annulus_device_info), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, \
        NULL, NULL, NULL                                                                           \
  }

ANNULUS_EXPORT annulus_status annulus_device_get_info(annulus_device* device,
                                                      annulus_device_info* info);

// Stores a function of the driver that the device uses (see annulus::Device::driver_entry). *entry
// is null if the driver has no such function, which is not an error.
ANNULUS_EXPORT annulus_status annulus_device_driver_entry(annulus_device* device, const char* name,
                                                          void** entry);

// Memory and copies for programs without an allocator and streams (see annulus::Device::allocate).
// A copy waits until it is done and is ordered after the work of the default stream; synchronise
// other streams first. Allocating 0 bytes gives null, and copying 0 bytes does nothing.
ANNULUS_EXPORT annulus_status annulus_device_allocate(annulus_device* device, size_t bytes,
                                                      void** memory);
// Releases memory of annulus_device_allocate without waiting: work of this device that was queued
// before may still use it. Null does nothing.
ANNULUS_EXPORT annulus_status annulus_device_release(annulus_device* device, void* memory);
ANNULUS_EXPORT annulus_status annulus_device_copy_to_device(annulus_device* device, void* to,
                                                            const void* from, size_t bytes);
ANNULUS_EXPORT annulus_status annulus_device_copy_to_host(annulus_device* device, void* to,
                                                          const void* from, size_t bytes);
// Waits for all streams. A kernel's fault is returned here at the latest, as ANNULUS_FAULT.
ANNULUS_EXPORT annulus_status annulus_device_synchronize(annulus_device* device);

// The C form of annulus::MemoryStatistics.
typedef struct annulus_memory_statistics {
  size_t struct_size;
  int64_t held_bytes;     // all slabs of the allocator
  int64_t used_bytes;     // blocks in use
  int64_t waiting_bytes;  // released blocks that wait for work that may use them
  int64_t peak_held_bytes;
  int64_t peak_used_bytes;
  int64_t largest_free_bytes;  // the largest free block
  int64_t slabs;
  int64_t blocks;            // blocks in use
  int64_t slabs_taken;       // since the device was opened
  int64_t slabs_given_back;  // slabs returned to the allocator since the device was opened
  // The uses of the blocks in use; their sum is used_bytes.
  int64_t lists_bytes;      // lists of tiles, in plans and in the cache
  int64_t tables_bytes;     // other tables that plans read
  int64_t selection_bytes;  // bits of selections
  int64_t caller_bytes;     // annulus_device_allocate
  int64_t scratch_bytes;    // scratch memory of running calls
} annulus_memory_statistics;
#define ANNULUS_MEMORY_STATISTICS_INIT \
  { sizeof(annulus_memory_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// Returns without waiting for the device.
ANNULUS_EXPORT annulus_status annulus_device_memory_statistics(annulus_device* device,
                                                               annulus_memory_statistics* to);

// Calls annulus::Device::trim. Stores the number of bytes that were returned to the allocator in
// *given_back, which may be null. Must not be called while a stream is being captured.
ANNULUS_EXPORT annulus_status annulus_device_trim(annulus_device* device, size_t bytes,
                                                  size_t* given_back);

// ---- Problems (annulus/problem.h and annulus/pattern.h)

typedef enum annulus_dtype {
  ANNULUS_FLOAT16 = 1,
  ANNULUS_BFLOAT16 = 2,
  ANNULUS_FLOAT32 = 3,  // only of tables of batches (annulus/c_batch.h)
  // Needs sm_90a and head dims of 64 and more; rings do not support it.
  ANNULUS_FLOAT8_E4M3 = 4
} annulus_dtype;

typedef enum annulus_lse_base { ANNULUS_LSE_NATURAL = 1, ANNULUS_LSE_TWO = 2 } annulus_lse_base;

// The blocks that are kept (see annulus::BlockLayout).
typedef struct annulus_block_layout {
  size_t struct_size;
  int64_t block_rows;     // R
  int64_t block_columns;  // C
  int64_t seq_q;          // Sq
  int64_t seq_k;          // Sk
  int64_t heads;          // distinct heads: 1 (shared by all), H, or the number that head_map uses
  // Row r of distinct head h has the ascending block columns indices[indptr[i]] up to, but not
  // including, indices[indptr[i + 1]], with i = h * rows + r and rows = ceil(Sq / R).
  const int64_t* indptr;
  size_t indptr_count;  // heads * rows + 1
  const int32_t* indices;
  size_t indices_count;  // indptr[indptr_count - 1]
  // The distinct head of each query head, in [0, heads). Null: one each, or one for all.
  const int32_t* head_map;
  size_t head_map_count;  // H, or 0
  // For each kept block: 1 if some of its pairs are hidden, else 0; null: all 0. These flags serve
  // statistics and other libraries. A kept block is kept whole.
  const uint8_t* partial;
  size_t partial_count;  // indices_count, or 0
} annulus_block_layout;
#define ANNULUS_BLOCK_LAYOUT_INIT \
  { sizeof(annulus_block_layout), 0, 0, 0, 0, 1, NULL, 0, NULL, 0, NULL, 0, NULL, 0 }

// The C form of annulus::Problem.
typedef struct annulus_problem {
  size_t struct_size;
  int64_t batch;     // B >= 0
  int64_t heads;     // H >= 1
  int64_t kv_heads;  // Hkv >= 1, divides H
  int64_t seq_q;     // Sq >= 0
  int64_t seq_k;     // Sk >= 0
  int64_t dim_qk;    // Dqk and Dv: 32, 64, 96, 128, 192, 256, or 192 and 128
  int64_t dim_v;
  // Which keys a query sees, as text (docs/patterns.md): "causal & window(511,0)". Null: all, or
  // "blocks()" if there is a layout. With "blocks(hide_outside)" the layout hides queries and keys
  // at positions outside it; without hide_outside a problem with such positions is
  // ANNULUS_INVALID_ARGUMENT.
  const char* pattern;
  const annulus_block_layout* layout;  // the layout of blocks() in the text; null: none
  double scale;                        // scale of the scores if has_scale, else 1 / sqrt(Dqk)
  double softcap;                      // c > 0: score = c tanh(scale q.k / c); 0: none
  int64_t q0;                          // position of query row 0 if has_q0, else Sk - Sq
  int64_t k0;                          // position of key row 0 if has_k0, else 0
  int32_t has_scale;                   // 0 or 1
  int32_t has_q0;                      // 0 or 1
  int32_t has_k0;                      // 0 or 1
  int32_t dtype;                       // annulus_dtype of Q, K and V
  int32_t want_lse;                    // 0 or 1: write LSE
  int32_t lse_base;                    // annulus_lse_base of the LSE that is written
  int32_t carry_in;                    // 0 or 1: start from a state of earlier keys
  int32_t carry_out;                   // 0 or 1: write the state instead of O and LSE
  // The score as text (docs/patterns.md): "softcap(30), alibi([0.5, 0.25])". It must not repeat a
  // scale or a soft-cap that has_scale or softcap sets. Null: no other terms.
  const char* score;
  int64_t total_k;      // keys of the whole sequence, >= k0 + Sk, if has_total_k, else k0 + Sk
  int64_t layer;        // layer of the model
  int32_t has_total_k;  // 0 or 1
  int32_t dtype_o;      // annulus_dtype of O with e4m3; 0: the default of annulus::Problem
  // With e4m3: the number of rows that share a scale (annulus::ScaleBlocks).
  int64_t scale_block_q;
  int64_t scale_block_k;
  int64_t scale_block_v;
} annulus_problem;
#define ANNULUS_PROBLEM_INIT                                                           \
  {                                                                                    \
    sizeof(annulus_problem), 1, 1, 1, 0, 0, 0, 0, NULL, NULL, 0.0, 0.0, 0, 0, 0, 0, 0, \
        ANNULUS_BFLOAT16, 0, ANNULUS_LSE_NATURAL, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0      \
  }

// ---- Limits of work (annulus/types.h)

// About a second of work on one core.
#define ANNULUS_DEFAULT_WORK INT64_C(200000000)

// The limit of a call's work on the host (see annulus::WorkLimit).
typedef struct annulus_work_limit {
  size_t struct_size;
  // Steps of about five nanoseconds of one core, whose count is the same on every machine. 0:
  // ANNULUS_DEFAULT_WORK; -1: no limit. A call that needs more returns ANNULUS_LIMIT.
  int64_t max_work;
  // The call returns ANNULUS_CANCELLED soon after this value is no longer 0, but NVRTC is not
  // interrupted. Another thread sets it with an atomic store; a signal handler may assign it. It
  // must outlive the call. Null: no flag.
  const volatile int32_t* cancel;
} annulus_work_limit;
#define ANNULUS_WORK_LIMIT_INIT \
  { sizeof(annulus_work_limit), 0, NULL }

// Begins a scope on this thread. Until the scope ends, the steps of all the thread's calls count
// together against `limit`, and max_work and cancel in the options of the calls are ignored.
// Without a scope, functions that make, convert or count a layout have the default limit, and
// annulus_reference_create has no limit. ANNULUS_INVALID_ARGUMENT inside another scope.
ANNULUS_EXPORT annulus_status annulus_work_scope_begin(const annulus_work_limit* limit);
// Ends the scope of this thread, and stores the steps of its calls in *steps if it is not null.
// ANNULUS_INVALID_ARGUMENT if there is no scope. A thread's end also ends its scope.
ANNULUS_EXPORT annulus_status annulus_work_scope_end(int64_t* steps);

// ---- Plans (annulus/plan.h)

typedef struct annulus_plan annulus_plan;

// Distances in elements between neighbours of a [B, S, H, D] tensor; the stride of D is 1. If
// another dimension is larger than 1, its stride is a multiple of 8 (of 16 with e4m3).
typedef struct annulus_strides {
  int64_t batch;
  int64_t head;
  int64_t row;
} annulus_strides;

// Which kernel a plan runs (see annulus::PlanState).
enum {
  ANNULUS_PLAN_READY = 0,      // the plan's own kernel
  ANNULUS_PLAN_COMPILING = 1,  // a general kernel, while the plan's own is compiled
  ANNULUS_PLAN_COMPILED = 2,   // a general kernel until annulus_plan_swap
  ANNULUS_PLAN_GENERAL = 3     // a general kernel permanently
};

// When a plan that did not wait begins to run its own kernel (see annulus::Swap).
enum {
  ANNULUS_SWAP_WHEN_READY = 0,  // in the first run that begins after the kernel was compiled
  ANNULUS_SWAP_WHEN_ASKED = 1,  // in the first run after annulus_plan_swap
  ANNULUS_SWAP_NEVER = 2        // never: nothing is compiled
};

// The C form of annulus::PlanOptions::on_ready. `state` is ANNULUS_PLAN_*; `problem` is why the
// plan's own kernel could not be obtained, or an empty text.
typedef void (*annulus_plan_ready_callback)(void* user, int32_t state, const char* problem);

// The C form of annulus::PlanOptions.
typedef struct annulus_plan_options {
  size_t struct_size;
  const char* config;     // name of a kernel configuration; null: tuned, else chosen
  int64_t block_rows;     // block size for block_density;
  int64_t block_columns;  // 0 and 0: the size of the kernel's tile
  // If has_strides is 1: the strides of later operands, for which a kernel is chosen.
  annulus_strides q_strides;
  annulus_strides k_strides;
  annulus_strides v_strides;
  annulus_strides o_strides;
  int32_t has_strides;
  // The number of parts of the longest tile rows; 0: the model's choice; 1: no split. Negative:
  // ANNULUS_INVALID_ARGUMENT; more than 2^24 parts in all: ANNULUS_UNSUPPORTED.
  int32_t kv_splits;
  int32_t max_multiprocessors;  // 0: all; negative: ANNULUS_INVALID_ARGUMENT
  int64_t broadcast_rows;       // 0 or 1, with has_strides: as annulus_operands.broadcast_rows
  int64_t max_work;             // limit of planning; annulus_work_limit
  const volatile int32_t* cancel;
  int64_t max_workspace_bytes;  // limit of a run's workspace; 0: no limit
  // 0 or 1: do not wait for the plan's own kernel, and begin with a general kernel
  // (annulus::PlanOptions::wait). `cancel` ends only the call, not the compilation.
  int32_t no_wait;
  int32_t swap;                          // ANNULUS_SWAP_*, with no_wait
  annulus_plan_ready_callback on_ready;  // null: no callback
  void* on_ready_user;
  int64_t follow_tuning;  // 0 or 1: adopt results of annulus_background_tuning_create
  // Each run chooses its blocks by this selection; null: no selection. Only annulus_plan_create
  // accepts one; other functions return ANNULUS_UNSUPPORTED.
  const struct annulus_selection* selection;
} annulus_plan_options;
#define ANNULUS_PLAN_OPTIONS_INIT                                                                  \
  {                                                                                                \
    sizeof(annulus_plan_options), NULL, 0, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0, 0, 0, \
        0, 0, NULL, 0, 0, ANNULUS_SWAP_WHEN_READY, NULL, NULL, 0, NULL                             \
  }

// Calls annulus::Device::plan. It takes up to a second. The plan is immutable and keeps what it
// needs of the device alive.
ANNULUS_EXPORT annulus_status annulus_plan_create(annulus_device* device,
                                                  const annulus_problem* problem,
                                                  const annulus_plan_options* options,
                                                  annulus_plan** plan);

// Calls annulus::Device::prefetch.
ANNULUS_EXPORT annulus_status annulus_plan_prefetch(annulus_device* device,
                                                    const annulus_problem* problem,
                                                    const annulus_plan_options* options);

// The C form of annulus::MemoryNeeded.
typedef struct annulus_memory_needed {
  size_t struct_size;
  int64_t device_bytes;  // bytes that the plan would hold; annulus_plan_info.device_bytes
  int64_t shared_bytes;  // the part of them in lists that are already on the device
  int64_t workspace_bytes;
} annulus_memory_needed;
#define ANNULUS_MEMORY_NEEDED_INIT \
  { sizeof(annulus_memory_needed), 0, 0, 0 }

// The memory that annulus_plan_create would need now, without compiling.
ANNULUS_EXPORT annulus_status annulus_plan_memory_needed(annulus_device* device,
                                                         const annulus_problem* problem,
                                                         const annulus_plan_options* options,
                                                         annulus_memory_needed* to);

// Does not wait and calls no driver: runs that were queued before may still be executing.
ANNULUS_EXPORT annulus_status annulus_plan_destroy(annulus_plan* plan);

// Stores which kernel a run that begins now uses, ANNULUS_PLAN_*.
ANNULUS_EXPORT annulus_status annulus_plan_state(annulus_plan* plan, int32_t* state);

// Waits until the state is not ANNULUS_PLAN_COMPILING, for at most `seconds`, or without limit if
// negative. If the time runs out, *state is still ANNULUS_PLAN_COMPILING.
ANNULUS_EXPORT annulus_status annulus_plan_wait(annulus_plan* plan, double seconds, int32_t* state);

// Calls annulus::Plan::swap. ANNULUS_INVALID_ARGUMENT while its kernel is compiled.
ANNULUS_EXPORT annulus_status annulus_plan_swap(annulus_plan* plan);
// Stores 1 if annulus_plan_swap would change the kernel, else 0.
ANNULUS_EXPORT annulus_status annulus_plan_can_swap(annulus_plan* plan, int32_t* can);

// The C form of annulus::PlanInfo, of the kernel that runs use now. The texts live as long as the
// plan, even if another kernel is used later.
typedef struct annulus_plan_info {
  size_t struct_size;
  const char* kernel;              // the family
  const char* config;              // the name for annulus_plan_options
  const char* source;              // origin of the kernel: "memory", "disk", "compiled", "none"
  const char* tuned;               // the tuned result that has the configuration; empty: none
  const char* decisions;           // lines
  const char* rejected;            // lines: the other configurations, each with a reason
  const char* specialised_source;  // the compiled source
  double plan_ms;                  // time to decide
  double compile_ms;               // time to find or compile the kernel and to upload the lists
  int64_t launches;
  int64_t ctas;
  int64_t tile_rows;
  int64_t tile_columns;
  int64_t threads;                    // threads of a CTA
  int64_t shared_bytes;               // shared memory of a CTA
  int64_t registers;                  // registers of a thread
  int64_t local_bytes;                // local memory of a thread
  int64_t blocks_per_multiprocessor;  // CTAs that fit at a time
  int64_t full_tiles;
  int64_t partial_tiles;
  double block_density;  // share of the blocks that are kept
  int64_t device_bytes;  // memory that the plan holds
  int64_t work_steps;    // steps of planning, in the unit of max_work
  int64_t general;       // 0 or 1: `kernel` is a general kernel
  const char* waited;    // why planning waited in spite of no_wait, or empty
} annulus_plan_info;
#define ANNULUS_PLAN_INFO_INIT                                                                    \
  {                                                                                               \
    sizeof(annulus_plan_info), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0.0, 0.0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, NULL                                                      \
  }

ANNULUS_EXPORT annulus_status annulus_plan_get_info(annulus_plan* plan, annulus_plan_info* info);

// Stores the bytes of scratch device memory that a run needs, 16-byte aligned; may be 0. Two runs
// that may execute at the same time need separate workspaces (see annulus::Plan::workspace_bytes).
ANNULUS_EXPORT annulus_status annulus_plan_workspace_bytes(annulus_plan* plan, size_t* bytes);

// A state in device memory, fp32, contiguous (see annulus::StatePointers).
typedef struct annulus_state {
  float* acc;  // [B, H, Sq, Dv]
  float* m;    // [B, H, Sq]
  float* l;    // [B, H, Sq]
} annulus_state;

// The device addresses of one call's tensors, which must stay until the work on the stream has
// ended; annulus::Operands has the rules of alignment and overlaps.
typedef struct annulus_operands {
  size_t struct_size;
  const void* q;  // [B, Sq, H, Dqk] in the order of q_strides
  const void* k;  // [B, Sk, Hkv, Dqk]
  const void* v;  // [B, Sk, Hkv, Dv]
  void* o;        // [B, Sq, H, Dv]; null with carry_out
  float* lse;     // [B, H, Sq] contiguous; null unless want_lse
  annulus_strides q_strides;
  annulus_strides k_strides;
  annulus_strides v_strides;
  annulus_strides o_strides;
  annulus_state state_in;   // the state to start from; with carry_in
  annulus_state state_out;  // the state to write; with carry_out
  // With e4m3: the factors of the elements of each block of rows, contiguous fp32. Null means 1.
  const float* scale_q;    // [B, H, blocks of Sq]
  const float* scale_k;    // [B, Hkv, blocks of Sk]
  const float* scale_v;    // [B, Hkv, blocks of Sk]
  int64_t broadcast_rows;  // 0 or 1: row strides of 0 are intended
  // Further memory of a run of a plan with a selection; null: none. Plans without a selection and
  // rings accept only null.
  const struct annulus_selection_buffers* selection;
} annulus_operands;
#define ANNULUS_OPERANDS_INIT                                                                \
  {                                                                                          \
    sizeof(annulus_operands), NULL, NULL, NULL, NULL, NULL, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, \
        {0, 0, 0}, {NULL, NULL, NULL}, {NULL, NULL, NULL}, NULL, NULL, NULL, 0, NULL         \
  }

// Puts the work on `stream` and returns (see annulus::Plan::run). It allocates nothing, takes no
// lock and does not wait, and it may be captured in a graph. `workspace` may be null if
// annulus_plan_workspace_bytes stores 0.
ANNULUS_EXPORT annulus_status annulus_plan_run(annulus_plan* plan, void* stream,
                                               const annulus_operands* operands, void* workspace);

// ---- Bound calls

// A plan with its operands, for a model that runs the same layers again and again on the same
// memory (see annulus::BoundCall).
typedef struct annulus_bound annulus_bound;

// Checks the operands and prepares the launches; launches nothing. The bound call keeps the plan
// alive. The device memory of operands and workspace must stay at the same addresses until the last
// run has ended on its stream. Returns the errors of annulus_plan_run.
ANNULUS_EXPORT annulus_status annulus_plan_bind(annulus_plan* plan,
                                                const annulus_operands* operands, void* workspace,
                                                annulus_bound** bound);

// Puts the work on `stream` and returns. It only launches: it checks no operands, allocates
// nothing, takes no lock and does not wait, and it may be captured in a graph. Two runs write the
// same memory, so a stream or an event must order them.
ANNULUS_EXPORT annulus_status annulus_bound_run(annulus_bound* bound, void* stream);

// If the plan's handle is destroyed already, the last bound call destroys the plan.
ANNULUS_EXPORT annulus_status annulus_bound_destroy(annulus_bound* bound);

// ---- Texts that the library wrote, for people and for logs

typedef struct annulus_text annulus_text;

// *characters lives as long as the handle. *length excludes the zero byte; `length` may be null.
ANNULUS_EXPORT annulus_status annulus_text_get(annulus_text* text, const char** characters,
                                               size_t* length);
ANNULUS_EXPORT annulus_status annulus_text_destroy(annulus_text* text);

// ---- Patterns and scores as texts (annulus/pattern.h and annulus/score.h)
//
// In C a pattern is its text (docs/patterns.md), with or without a layout for blocks() in it. A
// null text is as in annulus_problem. These functions need no device.

// Writes the normal spelling of a pattern: equal trees have equal texts. A text that does not parse
// is ANNULUS_PARSE, with the column.
ANNULUS_EXPORT annulus_status annulus_pattern_normalise(const char* pattern,
                                                        const annulus_block_layout* layout,
                                                        annulus_text** text);
// Checks a text from an untrusted source: if `allow_files` is 0, a text that names a file, as in
// blocks("file"), is ANNULUS_PARSE. The other functions read files that a text names, with the
// rights of this process.
ANNULUS_EXPORT annulus_status annulus_pattern_check(const char* pattern,
                                                    const annulus_block_layout* layout,
                                                    int32_t allow_files,
                                                    const annulus_work_limit* limit);
// Writes the normal spelling of a score; the text is empty if the score has no terms.
ANNULUS_EXPORT annulus_status annulus_score_normalise(const char* score, annulus_text** text);

typedef struct annulus_pattern_info {
  size_t struct_size;
  int64_t heads;           // H of its per-head layouts; 1: any number of heads
  int64_t distinct_heads;  // head h of the `heads` passed in sees what head h mod this number sees
  int64_t branches;        // branches of a sum; else 1
  int64_t batches;         // batch b sees what batch b mod this number sees; 1: all see the same
} annulus_pattern_info;
#define ANNULUS_PATTERN_INFO_INIT \
  { sizeof(annulus_pattern_info), 0, 0, 0, 0 }

// ANNULUS_INVALID_ARGUMENT if the pattern is made for another number of heads.
ANNULUS_EXPORT annulus_status annulus_pattern_get_info(const char* pattern,
                                                       const annulus_block_layout* layout,
                                                       int64_t heads, annulus_pattern_info* info);

// A rectangle of pairs of one head: query positions [q, q + q_count) and key positions [k, k +
// k_count). Positions may be negative.
typedef struct annulus_pairs {
  size_t struct_size;
  int64_t head;
  int64_t q;
  int64_t q_count;
  int64_t k;
  int64_t k_count;
  int64_t total_k;  // keys of the whole sequence, on which random() depends; -1: unknown
  int64_t layer;    // layer of the model
  int64_t batch;    // batch on which batches(...) depends; -1: unknown
} annulus_pairs;
#define ANNULUS_PAIRS_INIT \
  { sizeof(annulus_pairs), 0, 0, 0, 0, 0, -1, 0, -1 }

// Writes visible [q_count, k_count]: 1 if the query sees the key (for a sum, through some branch),
// else 0. It evaluates the pattern pair by pair, so it is meant for checks and pictures.
ANNULUS_EXPORT annulus_status annulus_pattern_visible(const char* pattern,
                                                      const annulus_block_layout* layout,
                                                      const annulus_pairs* pairs, uint8_t* visible);

// Writes what one batch sees, as a pattern without batches(...). The digest of `layout` stands for
// the layout in the text, as in annulus_pattern_normalise.
ANNULUS_EXPORT annulus_status annulus_pattern_of_batch(const char* pattern,
                                                       const annulus_block_layout* layout,
                                                       int64_t batch, annulus_text** text);

// Writes the pattern of MInference's lists: [heads, vertical_count / heads] columns that every
// query sees and [heads, slash_count / heads] offsets q - k. -1 pads the lists.
ANNULUS_EXPORT annulus_status annulus_pattern_from_vertical_slash(
    int64_t heads, const int32_t* verticals, size_t vertical_count, const int32_t* slashes,
    size_t slash_count, annulus_text** pattern);

// ---- Blocks that each run chooses on the device (annulus/selection.h)
//
//   selection.max_blocks = 32;
//   options.selection = &selection;
//   annulus_plan_create(device, &problem, &options, &plan);
//   annulus_plan_run(plan, stream, &operands, workspace);  // chooses blocks, then attends to them

typedef enum annulus_selection_rule {
  ANNULUS_TOP_K = 1,  // the best max_blocks of a row
  ANNULUS_TOP_P = 2,  // the best blocks until their sum is `mass` of the row's softmax
  ANNULUS_GIVEN = 3   // the caller's list in annulus_selection_buffers
} annulus_selection_rule;

// How a block is scored.
typedef enum annulus_pool {
  ANNULUS_POOL_MEAN = 1,         // mean of Q's rows . mean of K's rows
  ANNULUS_POOL_MAX = 2,          // maximum of Q's rows . maximum of K's rows
  ANNULUS_POOL_ANTIDIAGONAL = 3  // 1 / stride of all products, on antidiagonals
} annulus_pool;

// The C form of annulus::Selection.
typedef struct annulus_selection {
  size_t struct_size;
  int64_t block_rows;     // R >= 1
  int64_t block_columns;  // C >= 1
  int32_t rule;           // annulus_selection_rule
  int32_t pool;           // annulus_pool
  // The blocks of a row, including those that are always kept. Top p: at most this number; 0: no
  // bound. Given: entries of a row of `given`.
  int64_t max_blocks;
  double mass;     // p of top p, in (0, 1]
  int64_t stride;  // S of the antidiagonals: divides R and C, C / S is a power of two up to 64
  int64_t coarse_factor;    // f >= 2: blocks of f R x f C are scored first; 0: no such pass
  int64_t coarse_blocks;    // the number of coarse blocks that each row keeps
  int64_t sink_blocks;      // the number of first block columns that are kept if visible
  int64_t diagonal_blocks;  // the number of blocks kept at the row's positions and before; 0: none
} annulus_selection;
#define ANNULUS_SELECTION_INIT \
  { sizeof(annulus_selection), 128, 128, ANNULUS_TOP_K, ANNULUS_POOL_MEAN, 0, 0.95, 16, 0, 0, 1, 1 }

// Device memory of one run in addition to the operands, 4-byte aligned. It must stay until the work
// on the stream has ended.
typedef struct annulus_selection_buffers {
  size_t struct_size;
  // With ANNULUS_GIVEN, else null: block columns [B, H, rows, max_blocks], in any order. -1, and
  // every number that is not a visible block of the row, is skipped.
  const int32_t* given;
  // Null, or memory for the chosen blocks: [B, H, rows, max_chosen], ascending, padded with -1.
  int32_t* chosen;
  int64_t max_chosen;  // entries of a row of `chosen`; further blocks of a row are not written
} annulus_selection_buffers;
#define ANNULUS_SELECTION_BUFFERS_INIT \
  { sizeof(annulus_selection_buffers), NULL, NULL, 0 }

// ---- Importance trackers: they change the kept blocks little by little (annulus/selection.h)

typedef struct annulus_importance_tracker annulus_importance_tracker;

typedef struct annulus_tracker_options {
  size_t struct_size;
  int64_t max_added;    // blocks of a row that one update may add
  int64_t max_dropped;  // blocks of a row that one update may drop
} annulus_tracker_options;
#define ANNULUS_TRACKER_OPTIONS_INIT \
  { sizeof(annulus_tracker_options), 1, 1 }

// `problem` (with want_lse) and `selection` (with ANNULUS_GIVEN) must be the ones of the measured
// plan. Any number of threads may use a tracker at a time, each with its own state and workspace.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_create(
    annulus_device* device, const annulus_problem* problem, const annulus_selection* selection,
    const annulus_tracker_options* options, annulus_importance_tracker** tracker);
ANNULUS_EXPORT annulus_status
annulus_importance_tracker_destroy(annulus_importance_tracker* tracker);
// Stores the sizes of two buffers in device memory, 16-byte aligned. The state has the masses of
// all blocks; the caller keeps it between calls and fills it with zeros before the first. The
// workspace is scratch memory of every call. Either pointer may be null.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_sizes(annulus_importance_tracker* tracker,
                                                               size_t* state_bytes,
                                                               size_t* workspace_bytes);
// Adds the mass that each kept block received in the run of these operands, from the LSEs in
// operands->lse. All pointers are device memory. Asynchronous, like annulus_plan_run.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_measure(
    annulus_importance_tracker* tracker, void* stream, const annulus_operands* operands,
    const int32_t* given, void* state, void* workspace);
// Changes `given`, [B, H, rows, max_blocks], and sets the masses back to 0.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_update(annulus_importance_tracker* tracker,
                                                                void* stream,
                                                                const annulus_operands* operands,
                                                                int32_t* given, void* state,
                                                                void* workspace);

// ---- Checks and metrics (annulus/observe.h)

// Checks whether annulus_plan_create would accept the problem on some device and, if `operands` is
// not null, whether annulus_plan_run would accept them. Needs no device.
ANNULUS_EXPORT annulus_status annulus_problem_validate(const annulus_problem* problem,
                                                       const annulus_operands* operands);

// The outcomes of requests to a cache (see annulus::LayoutCacheCounters).
typedef struct annulus_cache_counters {
  size_t struct_size;
  int64_t hits;       // the entry was in the cache
  int64_t waits;      // another thread was making the entry
  int64_t misses;     // the call made the entry
  int64_t failures;   // misses whose making failed
  int64_t evictions;  // entries dropped for newer ones
  int64_t too_large;  // misses larger than the limit, which were returned but not kept
  int64_t bytes;      // bytes in the cache now
  int64_t entries;
} annulus_cache_counters;
#define ANNULUS_CACHE_COUNTERS_INIT \
  { sizeof(annulus_cache_counters), 0, 0, 0, 0, 0, 0, 0, 0 }

// One number for each line of annulus/metrics.def, which has the meanings (see annulus::Metrics).
typedef struct annulus_metrics {
  size_t struct_size;
#define METRIC(name, kind, meaning) int64_t name;
#include "annulus/metrics.def"
} annulus_metrics;
#define ANNULUS_METRICS_INIT                                                                      \
  {                                                                                               \
    sizeof(annulus_metrics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0                                                                 \
  }

// Returns without waiting for the device.
ANNULUS_EXPORT annulus_status annulus_device_metrics(annulus_device* device, annulus_metrics* to);

// Writes the metrics in the OpenMetrics text format 1.0.0, without "# EOF". `labels` is copied
// between the braces unchanged; null: no braces.
ANNULUS_EXPORT annulus_status annulus_metrics_text(const annulus_metrics* metrics,
                                                   const char* labels, annulus_text** text);

// Times of the timed runs of a plan on the device (see annulus::RunTimes).
typedef struct annulus_run_times {
  size_t struct_size;
  int64_t runs;
  double total_micros;
  double min_micros;
  double max_micros;
  double last_micros;
} annulus_run_times;
#define ANNULUS_RUN_TIMES_INIT \
  { sizeof(annulus_run_times), 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_plan_times(annulus_plan* plan, annulus_run_times* to);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_H_
