#ifndef ANNULUS_C_H_
#define ANNULUS_C_H_

// The C interface, for C99 and for every language that can call C: devices, problems and plans, as
// in annulus/device.h. Beside it are c_batch.h, c_append.h, c_merge.h, c_selection.h,
// c_rendezvous.h, c_communicator.h, c_join.h, c_ring.h, c_pattern.h, c_layout.h,
// c_layout_formats.h, c_tune.h, c_tuned_pack.h, c_oracle.h, c_inspect.h, c_metrics.h, c_kernels.h
// and c_installation.h. The C++ headers and docs/ explain what a problem, a pattern or a plan
// means.
//
//   annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
//   annulus_device* device = NULL;
//   if (annulus_device_open(&options, &device) != ANNULUS_OK) give_up(annulus_last_error());
//
// Conventions. They hold for every function unless its comment says otherwise.
//
// 1. Functions return ANNULUS_OK or the code of the error, whose text is annulus_last_error().
//    After an error nothing has been made, launched or written. No function throws a C++ exception
//    or prints anything.
// 2. Handles (annulus_device*, annulus_plan*, annulus_bound*) are numbers in the type of a pointer;
//    the library looks them up before it uses them. Null, a handle of another kind and one that was
//    given back are ANNULUS_INVALID_ARGUMENT. Each handle is given back once; if another thread is
//    inside a call with it, the object behind it stays until that call ends.
// 3. Structs begin with struct_size and are made with their INIT macro, whose values are the
//    defaults. A smaller size means a caller of an older version: fields that it lacks have their
//    defaults. A larger size means a newer one: the part that this library does not know must be
//    zero, else the call returns ANNULUS_UNSUPPORTED. In a struct that the library fills, that part
//    becomes zero.
// 4. Text is UTF-8 and ends with a zero byte. Text, arrays and structs that are passed in are
//    copied before the function returns. Those that come out belong to their handle and stay as
//    long as the handle.
// 5. int32_t fields hold an enum of this file or, where a comment says "0 or 1", a truth value.
//    Sizes are in elements, or in bytes where the name says so.
// 6. void* to device memory is an address of the device's primary context. `stream` is a CUstream
//    of it; null is the default stream.
// 7. Any thread may call anything at any time, also with one handle on several threads.
// 8. Callbacks must return: they may leave neither by longjmp nor by an exception. They must not
//    call the library with the same device. What they use must stay until the device and all its
//    plans are given back.

#include <stddef.h>
#include <stdint.h>

#include "annulus/version.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Versions and errors

// The numbers of annulus::ErrorCode; later versions may add some.
typedef enum annulus_status {
  ANNULUS_OK = 0,
  ANNULUS_INVALID_ARGUMENT = 1,  // a handle, size, shape, pointer or option that cannot be accepted
  ANNULUS_UNSUPPORTED = 2,       // valid, but nothing here implements it
  ANNULUS_PARSE = 3,             // a pattern that does not parse; the text has the column
  ANNULUS_INVALID_FILE = 4,      // a file with damaged or foreign contents
  ANNULUS_FILE = 5,              // a file that cannot be opened, read or written
  ANNULUS_LIBRARY = 6,           // libcuda or libnvrtc missing, too old, or lacking a symbol
  ANNULUS_OUT_OF_MEMORY = 7,     // host or device memory, the caller's allocator included
  ANNULUS_DEVICE = 8,            // the CUDA driver refused a call
  ANNULUS_COMPILE = 9,           // NVRTC refused a kernel
  ANNULUS_FAULT = 10,            // a kernel did something undefined; the context is lost
  ANNULUS_INTERNAL = 11,         // a defect of this library
  ANNULUS_LIMIT = 12,            // the call needs more work than max_work of its options allows
  ANNULUS_CANCELLED = 13,        // the caller ended the call early
  ANNULUS_COMMUNICATION = 14     // a rank, or what connects the ranks, failed or is late
} annulus_status;

// The version of the library that is loaded, as ANNULUS_VERSION is that of this header: 100 is
// 0.1.0. The same major version is compatible.
ANNULUS_EXPORT int annulus_version(void);
ANNULUS_EXPORT const char* annulus_version_text(void);  // "0.1.0"

// "ok", "invalid argument", ...; "unknown error" for any other number.
ANNULUS_EXPORT const char* annulus_status_text(int status);

// The text of the last error on this thread, complete; "" before the first. If the host has no
// memory for the text, another text is returned, which reports that. It stays until the next error
// on this thread, or the thread's end; a call that succeeds does not change it.
ANNULUS_EXPORT const char* annulus_last_error(void);

// ---- Devices

typedef struct annulus_device annulus_device;

enum {
  ANNULUS_LOG_ERROR = 0,
  ANNULUS_LOG_WARNING = 1,
  ANNULUS_LOG_INFO = 2,
  ANNULUS_LOG_DEBUG = 3
};

// Takes one note, without a line end; `text` is valid only during the call. It may be called on
// several threads at a time, some of them the library's own.
typedef void (*annulus_log_callback)(void* user, int32_t level, const char* text);

// Stores at *address `bytes` > 0 bytes of device memory, a multiple of `alignment` (256), which
// every stream of the device's primary context may use at once, and returns 0. Any other return
// value, and a null address, make the call that needed the memory return ANNULUS_OUT_OF_MEMORY. It
// is called on the thread that called the library, with the device's context current.
typedef int (*annulus_allocate_callback)(void* user, size_t bytes, size_t alignment,
                                         void** address);
// Takes the memory back. The library has waited for the device, so nothing uses it any more.
typedef void (*annulus_release_callback)(void* user, void* address, size_t bytes);

// How much a cache may keep.
typedef struct annulus_cache_limits {
  size_t struct_size;
  int64_t bytes;
  int64_t entries;  // 0: nothing is kept
} annulus_cache_limits;

#define ANNULUS_CACHE_LIMITS_INIT \
  { sizeof(annulus_cache_limits), INT64_C(256) << 20, 512 }

// A task of the library for a thread of the host: it is run or dropped, once, and is gone then.
typedef struct annulus_task annulus_task;
// Takes up to seconds.
ANNULUS_EXPORT annulus_status annulus_task_run(annulus_task* task);
// The plan that the task was for keeps its general kernel.
ANNULUS_EXPORT annulus_status annulus_task_drop(annulus_task* task);

// Takes a task, which any thread runs now or later. Returns 0, or another number where the host
// takes no tasks; then the task is gone.
typedef int (*annulus_execute_callback)(void* user, annulus_task* task);

// Which kernels a device compiles.
enum {
  ANNULUS_COMPILE_DEFAULT = 0,  // as ANNULUS_COMPILE says, "missing" or "never"; else the next
  ANNULUS_COMPILE_MISSING = 1,  // those that are not there compiled
  // None: what needs a kernel that is not there returns ANNULUS_LIBRARY, and NVRTC is not opened.
  ANNULUS_COMPILE_NEVER = 2
};

typedef struct annulus_device_options {
  size_t struct_size;
  // "cuda:N", "sim:sm_80", "sim:sm_90a", "sim:sm_90a:N", or "cuda": the first GPU, and an error
  // where there is none. Null or empty: ANNULUS_DEVICE; where that is not set either, the first
  // GPU, else the newest simulated architecture, with a warning in the log. With
  // ANNULUS_REQUIRE_GPU=1 in the environment that is an error instead, as is a simulated device by
  // name.
  const char* name;
  // Folder of compiled kernels. Null: ANNULUS_CACHE_DIR, else the user's cache folder. Empty:
  // nothing is kept on disk.
  const char* cache_dir;
  // Where tuned results are looked for, ':' between folders and packs (names that end in ".pack");
  // behind them those that were installed with the library. The first folder that can be written to
  // takes new ones. Null: ANNULUS_TUNED, else a folder of the user's cache. Empty: none are read,
  // and new ones are kept in memory only.
  const char* tuned_path;
  const char* template_dir;  // kernel templates to use instead of the built-in ones; null: those
  annulus_log_callback log;  // null: none
  void* log_user;
  int32_t log_level;           // ANNULUS_LOG_*: the most detailed level that is passed on
  int32_t simulation_checked;  // 0 or 1: a simulated device looks for races and the like
  uint64_t simulation_seed;    // seed of its order of warps
  int64_t simulation_threads;  // host threads, up to 1024; 0: one per processor
  // The functions that all device memory comes from: both, or two nulls for cuMemAlloc.
  annulus_allocate_callback allocate;
  annulus_release_callback release;
  void* allocator_user;
  // Limits of the caches of tile lists that plans share, on the host and on the device. Null: the
  // defaults.
  const annulus_cache_limits* host_lists;
  const annulus_cache_limits* device_lists;
  // 0 or 1, for debugging: each run asks the driver whether operands and workspace are memory that
  // the device can read, and returns ANNULUS_INVALID_ARGUMENT where one is not. Without it, a
  // pointer to the host's memory is a fault of the kernel, which loses the context.
  int64_t check_operands;
  // The most device memory that the library may hold at a time, annulus_device_allocate included;
  // 0: no limit.
  int64_t max_device_bytes;
  // Each n-th run of a plan is timed on the device; 0: none (annulus/c.h).
  int64_t time_every_nth_run;
  // Where kernels are looked for that were compiled ahead (annulus/c_tools.h), ':' between
  // folders; then in annulus/kernels beside libannulus.so. Null: ANNULUS_KERNELS, where "none"
  // means an empty text. Empty: nowhere, not even beside the library.
  const char* kernels_path;
  int64_t compile;  // ANNULUS_COMPILE_*: which kernels are compiled
  // Where kernels of plans that do not wait are compiled; null: on threads of the library.
  annulus_execute_callback execute;
  void* execute_user;
  int64_t load_general_kernels;  // 0 or 1: as of annulus::DeviceOptions
  // A file in which the device counts the problems and batches that it plans, by the lines that
  // `annulus tune --shapes` and `annulus warm --shapes` read; an absolute path. Null or empty:
  // none.
  const char* shape_log;
} annulus_device_options;

#define ANNULUS_DEVICE_OPTIONS_INIT                                                                \
  {                                                                                                \
    sizeof(annulus_device_options), NULL, NULL, NULL, NULL, NULL, NULL, ANNULUS_LOG_WARNING, 1, 0, \
        0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, ANNULUS_COMPILE_DEFAULT, NULL, NULL, 0,    \
        NULL                                                                                       \
  }

// Null options are the defaults.
ANNULUS_EXPORT annulus_status annulus_device_open(const annulus_device_options* options,
                                                  annulus_device** device);

// Plans of the device stay usable. Memory of annulus_device_allocate that was not released is
// released now. The last of the device and its plans gives all memory back to the allocator, after
// waiting for the device. ANNULUS_INVALID_ARGUMENT in a callback of a background tuning of the
// device, which goes on with it.
ANNULUS_EXPORT annulus_status annulus_device_close(annulus_device* device);

typedef struct annulus_device_info {
  size_t struct_size;
  const char* name;           // as annulus_device_options takes it
  const char* description;    // what the driver calls it
  const char* architecture;   // "sm_80", "sm_90a", ...
  const char* nvrtc_version;  // empty where NVRTC was not opened
  const char* cache_dir;      // empty: nothing is kept on disk
  const char* cache_problem;  // why not, where it was asked for
  const char* tuned_path;     // where tuned results are looked for
  int32_t simulated;          // 0 or 1
  int32_t driver_version;     // 13000 is 13.0
  int64_t multiprocessors;
  int64_t shared_bytes_per_block;
  int64_t memory_bytes;
  int64_t ordinal;  // the driver's number for the device, as cuDeviceGet takes it
  // What annulus_tuned_entry.device says of a tuned result that was found on this device.
  const char* tuned_key;
  // What compiled kernels on disk are of that serve this device; as lines of
  // annulus_installation_info.cached_origins say it.
  const char* kernel_origin;
  const char* compile_problem;  // why no kernel can be compiled here; empty where it can
  const char* kernels_path;     // where kernels compiled ahead are looked for
} annulus_device_info;

#define ANNULUS_DEVICE_INFO_INIT                                                                   \
  {                                                                                                \
    sizeof(annulus_device_info), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, \
        NULL, NULL, NULL                                                                           \
  }

ANNULUS_EXPORT annulus_status annulus_device_get_info(annulus_device* device,
                                                      annulus_device_info* info);

// The function of the driver with this name, to make streams and events for annulus_plan_run with:
// the driver that this device uses, real or simulated, without linking or opening another. The
// device's context is the primary one of annulus_device_info.ordinal (cuDevicePrimaryCtxRetain,
// cuCtxSetCurrent). Names are those of the library's symbols, to which cuda.h maps its own:
// "cuMemAlloc_v2". *entry is null where the driver has no such function, which is no error; it
// stays valid until the process ends.
ANNULUS_EXPORT annulus_status annulus_device_driver_entry(annulus_device* device, const char* name,
                                                          void** entry);

// For programs that have no allocator and no streams of their own. Copies wait until they are done
// and are ordered after the work of the default stream; wait for other streams first. Allocating 0
// bytes gives null, and copying 0 bytes does nothing. Releasing does not wait: work of this device
// that was queued before may still use the memory.
ANNULUS_EXPORT annulus_status annulus_device_allocate(annulus_device* device, size_t bytes,
                                                      void** memory);
// Releases memory that annulus_device_allocate gave on this device, once. Null does nothing.
ANNULUS_EXPORT annulus_status annulus_device_release(annulus_device* device, void* memory);
ANNULUS_EXPORT annulus_status annulus_device_copy_to_device(annulus_device* device, void* to,
                                                            const void* from, size_t bytes);
ANNULUS_EXPORT annulus_status annulus_device_copy_to_host(annulus_device* device, void* to,
                                                          const void* from, size_t bytes);
// Waits for all streams. A kernel's fault shows here at the latest, as ANNULUS_FAULT.
ANNULUS_EXPORT annulus_status annulus_device_synchronize(annulus_device* device);

// ---- Memory

// The device memory that the library holds; annulus::MemoryStatistics of annulus/device.h.
typedef struct annulus_memory_statistics {
  size_t struct_size;
  int64_t held_bytes;     // all slabs that the allocator gave
  int64_t used_bytes;     // blocks in use
  int64_t waiting_bytes;  // blocks that were given back and wait for work that may use them
  int64_t peak_held_bytes;
  int64_t peak_used_bytes;
  int64_t largest_free_bytes;  // the largest free block
  int64_t slabs;
  int64_t blocks;            // in use
  int64_t slabs_taken;       // since the device was opened
  int64_t slabs_given_back;  // likewise
  // What the blocks in use are for; together used_bytes.
  int64_t lists_bytes;      // lists of tiles, in plans and in the cache
  int64_t tables_bytes;     // what else plans read
  int64_t selection_bytes;  // bits of selections
  int64_t caller_bytes;     // annulus_device_allocate
  int64_t scratch_bytes;    // of calls that run now
} annulus_memory_statistics;

#define ANNULUS_MEMORY_STATISTICS_INIT \
  { sizeof(annulus_memory_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// Does not wait.
ANNULUS_EXPORT annulus_status annulus_device_memory_statistics(annulus_device* device,
                                                               annulus_memory_statistics* to);

// Drops lists that no plan holds, waits for blocks that were given back, and gives memory back to
// the allocator until at most `bytes` are held or the rest is in use. *given_back (may be null) is
// what was given back. Not while a stream is being captured.
ANNULUS_EXPORT annulus_status annulus_device_trim(annulus_device* device, size_t bytes,
                                                  size_t* given_back);

// ---- Problems

typedef enum annulus_dtype {
  ANNULUS_FLOAT16 = 1,
  ANNULUS_BFLOAT16 = 2,
  ANNULUS_FLOAT32 = 3,  // of tables (annulus/c_batch.h); of no problem
  // Needs a device of sm_90a and head dims of 64 and more; not around a ring.
  ANNULUS_FLOAT8_E4M3 = 4
} annulus_dtype;

typedef enum annulus_lse_base { ANNULUS_LSE_NATURAL = 1, ANNULUS_LSE_TWO = 2 } annulus_lse_base;

// Which blocks are kept; annulus::BlockLayout of annulus/pattern.h.
typedef struct annulus_block_layout {
  size_t struct_size;
  int64_t block_rows;     // R
  int64_t block_columns;  // C
  int64_t seq_q;          // Sq
  int64_t seq_k;          // Sk
  int64_t heads;          // distinct heads: 1 (shared by all), H, or as many as head_map names
  // Row r of head h has the block columns indices[indptr[h * rows + r]] up to the next, ascending,
  // where rows = ceil(Sq / R).
  const int64_t* indptr;
  size_t indptr_count;  // heads * rows + 1
  const int32_t* indices;
  size_t indices_count;  // indptr[indptr_count - 1]
  // The distinct head of each query head, in [0, heads). Null: each has its own, or all share the
  // only one.
  const int32_t* head_map;
  size_t head_map_count;  // H, or 0
  // For each kept block 1 where not all of its pairs are visible, else 0; null: all 0. The flags
  // serve statistics and other libraries: a kept block is kept whole.
  const uint8_t* partial;
  size_t partial_count;  // indices_count, or 0
} annulus_block_layout;

#define ANNULUS_BLOCK_LAYOUT_INIT \
  { sizeof(annulus_block_layout), 0, 0, 0, 0, 1, NULL, 0, NULL, 0, NULL, 0, NULL, 0 }

// O = softmax(mask(scale Q K^T)) V; annulus::Problem of annulus/problem.h.
typedef struct annulus_problem {
  size_t struct_size;
  int64_t batch;     // B >= 0
  int64_t heads;     // H >= 1
  int64_t kv_heads;  // Hkv >= 1, divides H
  int64_t seq_q;     // Sq >= 0
  int64_t seq_k;     // Sk >= 0
  int64_t dim_qk;    // Dqk and Dv: 32, 64, 96, 128, 192, 256, or 192 and 128
  int64_t dim_v;
  // Which keys a query sees, as text (docs/patterns.md): "causal & window(511,0)". Null: dense, or
  // "blocks()" where a layout is given. "blocks(hide_outside)" says that the problem may have
  // queries and keys at positions that the layout was not made for; the layout hides them, and
  // without this word such a problem is ANNULUS_INVALID_ARGUMENT.
  const char* pattern;
  const annulus_block_layout* layout;  // what blocks() in the text stands for; null: none
  double scale;                        // of the scores, where has_scale; else 1 / sqrt(Dqk)
  double softcap;                      // c > 0: score = c tanh(scale q.k / c); 0: none
  int64_t q0;                          // position of query row 0, where has_q0; else Sk - Sq
  int64_t k0;                          // position of key row 0, where has_k0; else 0
  int32_t has_scale;                   // 0 or 1
  int32_t has_q0;                      // 0 or 1
  int32_t has_k0;                      // 0 or 1
  int32_t dtype;                       // annulus_dtype of Q, K and V
  int32_t want_lse;                    // 0 or 1: write LSE
  int32_t lse_base;                    // annulus_lse_base of the LSE that is written
  int32_t carry_in;                    // 0 or 1: start from a state of earlier keys
  int32_t carry_out;                   // 0 or 1: write the state instead of O and LSE
  // The score as text (docs/patterns.md): "softcap(30), alibi([0.5, 0.25])". It must not state a
  // scale or a soft-cap that has_scale or softcap states as well. Null: nothing more.
  const char* score;
  int64_t total_k;      // keys of the whole sequence, >= k0 + Sk, where has_total_k; else k0 + Sk
  int64_t layer;        // layer of the model
  int32_t has_total_k;  // 0 or 1
  // annulus_dtype of O; 0: that of Q, K and V, or bf16 with e4m3. Only with e4m3 it may be another.
  int32_t dtype_o;
  // With e4m3: rows of Q, K and V that share a scale, a power of two from 32 to 2^30; 0: all of a
  // head. The first block begins at row 0 of a tensor, whatever its position.
  int64_t scale_block_q;
  int64_t scale_block_k;
  int64_t scale_block_v;
} annulus_problem;

#define ANNULUS_PROBLEM_INIT                                                           \
  {                                                                                    \
    sizeof(annulus_problem), 1, 1, 1, 0, 0, 0, 0, NULL, NULL, 0.0, 0.0, 0, 0, 0, 0, 0, \
        ANNULUS_BFLOAT16, 0, ANNULUS_LSE_NATURAL, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0      \
  }

// ---- Limits of work

// About a second of work on one core; annulus/types.h.
#define ANNULUS_DEFAULT_WORK INT64_C(200000000)

// What a call may do on the host, for functions without options of their own.
typedef struct annulus_work_limit {
  size_t struct_size;
  // Steps of about five nanoseconds of one core, which are counted alike on every machine; 0: the
  // default, ANNULUS_DEFAULT_WORK; -1: no limit. A call that needs more is ANNULUS_LIMIT.
  int64_t max_work;
  // Ends the call with ANNULUS_CANCELLED soon after it is no longer 0; what runs inside NVRTC is
  // not interrupted. Another thread sets it with an atomic store; a signal handler may just assign.
  // Null: none. Must outlive the call.
  const volatile int32_t* cancel;
} annulus_work_limit;

#define ANNULUS_WORK_LIMIT_INIT \
  { sizeof(annulus_work_limit), 0, NULL }

// Bounds all calls that this thread makes until the end of the scope, as one: their steps count
// together, and the max_work of their options, and the cancel beside it, are not asked. Without a
// scope, what makes, converts or counts a layout has the default limit, and
// annulus_reference_create has none. A null limit is the default one. ANNULUS_INVALID_ARGUMENT
// where the thread is in a scope already.
ANNULUS_EXPORT annulus_status annulus_work_scope_begin(const annulus_work_limit* limit);
// Ends the scope of this thread, and writes the steps of its calls where `steps` is not null.
// ANNULUS_INVALID_ARGUMENT where there is none. A thread that ends leaves its scope.
ANNULUS_EXPORT annulus_status annulus_work_scope_end(int64_t* steps);

// ---- Plans

typedef struct annulus_plan annulus_plan;

// Distances in elements between neighbours of a [B, S, H, D] tensor; that of D is 1. Others are
// multiples of 8 (of 16 with e4m3) where the dimension is larger than 1.
typedef struct annulus_strides {
  int64_t batch;
  int64_t head;
  int64_t row;
} annulus_strides;

// Which kernel a plan runs; annulus::PlanState.
enum {
  ANNULUS_PLAN_READY = 0,      // its own
  ANNULUS_PLAN_COMPILING = 1,  // a general one; its own is being compiled
  ANNULUS_PLAN_COMPILED = 2,   // a general one until annulus_plan_swap
  ANNULUS_PLAN_GENERAL = 3     // a general one for good
};

// When a plan that did not wait begins to run its own kernel; annulus::Swap.
enum {
  ANNULUS_SWAP_WHEN_READY = 0,  // with the first run that begins after it was compiled
  ANNULUS_SWAP_WHEN_ASKED = 1,  // with the first run after annulus_plan_swap
  ANNULUS_SWAP_NEVER = 2        // never: nothing is compiled
};

// Called once, when the own kernel of a plan that did not wait is compiled or could not be, with
// the new state, ANNULUS_PLAN_*, and why it could not, or an empty text. On the thread that
// compiled it; not for a plan that is destroyed by then.
typedef void (*annulus_plan_ready_callback)(void* user, int32_t state, const char* problem);

typedef struct annulus_plan_options {
  size_t struct_size;
  const char* config;     // a kernel configuration, as `annulus explain` lists them; null: the
                          // tuned one where there is one, else chosen
  int64_t block_rows;     // granularity at which block_density is counted; 0 and 0: the compute
  int64_t block_columns;  // tile's
  // The strides that the operands of runs will have, where has_strides is 1: a kernel that cannot
  // take them (the wgmma family takes no stride of 0) is passed over. Where it is 0, such a kernel
  // refuses them when it runs.
  annulus_strides q_strides;
  annulus_strides k_strides;
  annulus_strides v_strides;
  annulus_strides o_strides;
  int32_t has_strides;
  // Into how many parts the longest tile rows are split, whose states go through the workspace; 0:
  // the split that the pipe model predicts to be fastest, 1: no split. A plan gives the same bits
  // in every run; plans with different splits may differ in rounding. Negative:
  // ANNULUS_INVALID_ARGUMENT; over 2^24 parts in all: ANNULUS_UNSUPPORTED.
  int32_t kv_splits;
  // How many multiprocessors the plan's kernels may occupy; 0: all. Only kernels of the wgmma
  // family keep to it; annulus/device.h. Negative: ANNULUS_INVALID_ARGUMENT.
  int32_t max_multiprocessors;
  int64_t broadcast_rows;  // 0 or 1, with has_strides: as annulus_operands.broadcast_rows
  // The bound on the work of planning and the flag that ends it; annulus_work_limit says what the
  // values mean.
  int64_t max_work;
  const volatile int32_t* cancel;
  // The most workspace that a run may need; 0: no limit. A plan that needs more splits fewer rows,
  // then runs batches in parts, and says so in its decisions; annulus/device.h. Where that is not
  // enough: ANNULUS_OUT_OF_MEMORY.
  int64_t max_workspace_bytes;
  // 0 or 1: do not wait until the plan's own kernel is compiled. Where it is not in memory the plan
  // runs a general kernel at first, and its own is compiled beside the caller; annulus::PlanOptions
  // says which problems have one, and what may differ. The flag `cancel` ends the call alone.
  int32_t no_wait;
  int32_t swap;                          // ANNULUS_SWAP_*, with no_wait
  annulus_plan_ready_callback on_ready;  // null: none
  void* on_ready_user;
  // 0 or 1: the plan learns of better configurations that annulus_background_tuning_create
  // (annulus/c_tune.h) finds; `swap` says when runs use them, annulus::PlanOptions what may differ.
  int64_t follow_tuning;
  // The blocks that each run chooses; null: none. Only annulus_plan_create takes one; other
  // functions return ANNULUS_UNSUPPORTED.
  const struct annulus_selection* selection;
} annulus_plan_options;

#define ANNULUS_PLAN_OPTIONS_INIT                                                                  \
  {                                                                                                \
    sizeof(annulus_plan_options), NULL, 0, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0, 0, 0, \
        0, 0, NULL, 0, 0, ANNULUS_SWAP_WHEN_READY, NULL, NULL, 0, NULL                             \
  }

// Chooses a kernel, compiles or finds it, and uploads what the problem needs: up to a second. Null
// options are the defaults. The plan is immutable and keeps what it needs of the device.
ANNULUS_EXPORT annulus_status annulus_plan_create(annulus_device* device,
                                                  const annulus_problem* problem,
                                                  const annulus_plan_options* options,
                                                  annulus_plan** plan);

// Makes what annulus_plan_create() will need for such a problem, and uploads its list of tiles on a
// stream of the library's own. It is meant for a thread beside the one that computes.
ANNULUS_EXPORT annulus_status annulus_plan_prefetch(annulus_device* device,
                                                    const annulus_problem* problem,
                                                    const annulus_plan_options* options);

// The memory that annulus_plan_create() would need now, without compiling.
typedef struct annulus_memory_needed {
  size_t struct_size;
  int64_t device_bytes;  // that the plan would hold; annulus_plan_info.device_bytes
  int64_t shared_bytes;  // of these, lists that are on the device by now
  int64_t workspace_bytes;
} annulus_memory_needed;

#define ANNULUS_MEMORY_NEEDED_INIT \
  { sizeof(annulus_memory_needed), 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_plan_memory_needed(annulus_device* device,
                                                         const annulus_problem* problem,
                                                         const annulus_plan_options* options,
                                                         annulus_memory_needed* to);

// Does not wait and calls no driver: runs that were queued before may still be under way.
ANNULUS_EXPORT annulus_status annulus_plan_destroy(annulus_plan* plan);

// Which kernel runs that begin now use, ANNULUS_PLAN_*.
ANNULUS_EXPORT annulus_status annulus_plan_state(annulus_plan* plan, int32_t* state);

// Waits until the state is no longer ANNULUS_PLAN_COMPILING, at most so many seconds; negative: for
// as long as it takes. *state may still be that where the time was over.
ANNULUS_EXPORT annulus_status annulus_plan_wait(annulus_plan* plan, double seconds, int32_t* state);

// Lets runs that begin from now on use the own kernel, with ANNULUS_SWAP_WHEN_ASKED. Does nothing
// where they do already, or where there is none. ANNULUS_INVALID_ARGUMENT while it is compiled.
ANNULUS_EXPORT annulus_status annulus_plan_swap(annulus_plan* plan);
// Whether annulus_plan_swap would change the kernel: 0 or 1.
ANNULUS_EXPORT annulus_status annulus_plan_can_swap(annulus_plan* plan, int32_t* can);

// Everything that was decided about the kernel that runs use now; what a call gives stays as long
// as the plan, also where another kernel is used later.
typedef struct annulus_plan_info {
  size_t struct_size;
  const char* kernel;     // the family
  const char* config;     // as annulus_plan_options takes it
  const char* source;     // where the kernel came from: "memory", "disk", "compiled", "none"
  const char* tuned;      // the tuned result that config comes from; empty: none
  const char* decisions;  // lines
  const char* rejected;   // lines: the other configurations, each with a reason
  const char* specialised_source;  // what the compiler was given
  double plan_ms;                  // time to decide
  double compile_ms;               // time to get the kernel and upload the lists
  int64_t launches;
  int64_t ctas;
  int64_t tile_rows;
  int64_t tile_columns;
  int64_t threads;                    // of a CTA
  int64_t shared_bytes;               // of a CTA
  int64_t registers;                  // of a thread
  int64_t local_bytes;                // of a thread
  int64_t blocks_per_multiprocessor;  // CTAs that fit at a time
  int64_t full_tiles;
  int64_t partial_tiles;
  double block_density;  // kept blocks over all
  int64_t device_bytes;  // memory that the plan holds
  int64_t work_steps;    // what planning took, as max_work of its options counts it
  int64_t general;       // 0 or 1: `kernel` is a general one
  const char* waited;    // why planning waited although it was told not to; else empty
} annulus_plan_info;

#define ANNULUS_PLAN_INFO_INIT                                                                    \
  {                                                                                               \
    sizeof(annulus_plan_info), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0.0, 0.0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, NULL                                                      \
  }

ANNULUS_EXPORT annulus_status annulus_plan_get_info(annulus_plan* plan, annulus_plan_info* info);

// Scratch device memory that a run needs, 16-byte aligned. May be 0. It may hold anything before a
// run, also what an aborted one has left. Two runs that may be under way at a time need a workspace
// each, be they of one plan or of two, on two streams or as replays of captured graphs; nothing
// checks that, and both answers are undefined where they share one. Runs that a stream or an event
// puts one behind the other, and replays of one executable graph, may share a workspace.
ANNULUS_EXPORT annulus_status annulus_plan_workspace_bytes(annulus_plan* plan, size_t* bytes);

// fp32, contiguous: acc [B, H, Sq, Dv], m and l [B, H, Sq]; annulus/problem.h.
typedef struct annulus_state {
  float* acc;
  float* m;
  float* l;
} annulus_state;

// Device memory of one call. It must stay until the work on the stream has ended. Base addresses
// are multiples of 16 bytes (of 4 for LSE, m, l and scales). O may be Q, with the same strides, but
// not with e4m3, and state_out may be state_in; otherwise memory that is written overlaps nothing.
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
  annulus_state state_in;   // with carry_in
  annulus_state state_out;  // with carry_out
  // With e4m3: the factors of the elements of each block of rows, contiguous, from 0 to 2^125; null
  // means 1. Any other value makes the rows NaN whose tiles read it. There are ceil(rows /
  // scale_block_*) blocks, or one where that is 0.
  const float* scale_q;  // [B, H, blocks of Sq]
  const float* scale_k;  // [B, Hkv, blocks of Sk]
  const float* scale_v;  // [B, Hkv, blocks of Sk]
  // 0 or 1: a row stride of 0 where there are several rows, and strides that are all 0, are meant;
  // every row of that tensor is the same memory. With 0 they are taken for strides that were
  // forgotten, and refused. Strides of 0 of heads or batches alone need no word.
  int64_t broadcast_rows;
  // Memory besides the operands that a run of a plan with a selection reads or writes; null: none.
  // A plan without a selection takes none, and a ring takes none. Functions that measure a run take
  // its operands as they are.
  const struct annulus_selection_buffers* selection;
} annulus_operands;

#define ANNULUS_OPERANDS_INIT                                                                \
  {                                                                                          \
    sizeof(annulus_operands), NULL, NULL, NULL, NULL, NULL, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, \
        {0, 0, 0}, {NULL, NULL, NULL}, {NULL, NULL, NULL}, NULL, NULL, NULL, 0, NULL         \
  }

// Puts the work on `stream` and returns. It allocates nothing, takes no lock and does not wait, and
// it may be captured in a graph. `workspace` may be null where annulus_plan_workspace_bytes says 0.
ANNULUS_EXPORT annulus_status annulus_plan_run(annulus_plan* plan, void* stream,
                                               const annulus_operands* operands, void* workspace);

// ---- Bound calls

// A plan with its operands: checks and tensor maps are made once, when it is bound, for a model
// that runs the same layers again and again on the same memory. In C++ it is annulus::BoundCall of
// annulus/device.h.
typedef struct annulus_bound annulus_bound;

// Launches nothing. The handle keeps the plan, which may be destroyed before it; the device memory
// of operands and workspace must stay, at the same addresses, until the last run has ended on its
// stream. Errors are those of annulus_plan_run.
ANNULUS_EXPORT annulus_status annulus_plan_bind(annulus_plan* plan,
                                                const annulus_operands* operands, void* workspace,
                                                annulus_bound** bound);

// Puts the work on `stream` and returns. It only launches: it checks no operands, allocates
// nothing, takes no lock and does not wait, and it may be captured in a graph. Two runs write the
// same memory, so they must be ordered.
ANNULUS_EXPORT annulus_status annulus_bound_run(annulus_bound* bound, void* stream);

// Where the bound call is the last to hold the plan, the plan is destroyed with it.
ANNULUS_EXPORT annulus_status annulus_bound_destroy(annulus_bound* bound);

// The C interface of patterns beyond their use in a problem, annulus/pattern.h. In C a pattern is
// its text (docs/patterns.md), with or without a layout that blocks() in it stands for; where a
// function takes both, a null text is dense, or blocks() where a layout is given, as in
// annulus_problem. The conventions are those at the top of annulus/c.h. Nothing here needs a
// device.

// ---- Texts: what a function wrote for people or for a log

typedef struct annulus_text annulus_text;

// *characters stays as long as the handle. *length is without the zero byte; `length` may be null.
ANNULUS_EXPORT annulus_status annulus_text_get(annulus_text* text, const char** characters,
                                               size_t* length);
ANNULUS_EXPORT annulus_status annulus_text_destroy(annulus_text* text);

// ---- Patterns and scores as texts

// Gives the normal spelling of a pattern: texts of equal trees become equal. A text that is no
// pattern is ANNULUS_PARSE, with the column.
ANNULUS_EXPORT annulus_status annulus_pattern_normalise(const char* pattern,
                                                        const annulus_block_layout* layout,
                                                        annulus_text** text);
// Checks a text that somebody else wrote: ANNULUS_PARSE also where it names a file, as in
// blocks("file"), unless `allow_files` is 1. The other functions read files that a text names, with
// the rights of this process. A null limit is the default one.
ANNULUS_EXPORT annulus_status annulus_pattern_check(const char* pattern,
                                                    const annulus_block_layout* layout,
                                                    int32_t allow_files,
                                                    const annulus_work_limit* limit);
// Gives the normal spelling of a score; the text is empty where nothing is set.
ANNULUS_EXPORT annulus_status annulus_score_normalise(const char* score, annulus_text** text);

typedef struct annulus_pattern_info {
  size_t struct_size;
  int64_t heads;           // H of its per-head layouts; 1 stands for any number
  int64_t distinct_heads;  // of the heads that were asked about: head h sees what head h mod this
                           // number sees
  int64_t branches;        // branches of a sum; else 1
  int64_t batches;         // batch b sees what batch b mod this number sees; 1: all see the same
} annulus_pattern_info;

#define ANNULUS_PATTERN_INFO_INIT \
  { sizeof(annulus_pattern_info), 0, 0, 0, 0 }

// ANNULUS_INVALID_ARGUMENT where the pattern is made for another number of heads.
ANNULUS_EXPORT annulus_status annulus_pattern_get_info(const char* pattern,
                                                       const annulus_block_layout* layout,
                                                       int64_t heads, annulus_pattern_info* info);

// A rectangle of pairs of one head: query positions [q, q + q_count), key positions likewise. They
// may be negative.
typedef struct annulus_pairs {
  size_t struct_size;
  int64_t head;
  int64_t q;
  int64_t q_count;
  int64_t k;
  int64_t k_count;
  int64_t total_k;  // keys of the whole sequence, on which random() depends; -1: not known
  int64_t layer;    // layer of the model
  int64_t batch;    // batch on which batches(...) depends; -1: not known
} annulus_pairs;

#define ANNULUS_PAIRS_INIT \
  { sizeof(annulus_pairs), 0, 0, 0, 0, 0, -1, 0, -1 }

// Writes visible [q_count, k_count]: 1 where the query sees the key (for a sum, through some
// branch). The pattern is asked pair by pair, so this is for checks and pictures.
ANNULUS_EXPORT annulus_status annulus_pattern_visible(const char* pattern,
                                                      const annulus_block_layout* layout,
                                                      const annulus_pairs* pairs, uint8_t* visible);

// What one batch sees, as a pattern without batches(...). A layout given beside the text is named
// by its digest, as in annulus_pattern_normalise.
ANNULUS_EXPORT annulus_status annulus_pattern_of_batch(const char* pattern,
                                                       const annulus_block_layout* layout,
                                                       int64_t batch, annulus_text** text);

// Makes a pattern from MInference's lists: [heads, vertical_count / heads] columns that every query
// sees and [heads, slash_count / heads] offsets q - k, each padded with -1.
ANNULUS_EXPORT annulus_status annulus_pattern_from_vertical_slash(
    int64_t heads, const int32_t* verticals, size_t vertical_count, const int32_t* slashes,
    size_t slash_count, annulus_text** pattern);

// ---- Blocks that each run chooses on the device. annulus/selection.h explains what is chosen and
// how it changes.
//
//   selection.max_blocks = 32;
//   options.selection = &selection;
//   annulus_plan_create(device, &problem, &options, &plan);
//   annulus_plan_run(plan, stream, &operands, workspace);      chooses, lists, attends

typedef enum annulus_selection_rule {
  ANNULUS_TOP_K = 1,  // the best max_blocks of a row
  ANNULUS_TOP_P = 2,  // the best ones, until together they have `mass` of the row's softmax
  ANNULUS_GIVEN = 3   // what the caller lists in annulus_selection_buffers
} annulus_selection_rule;

// How a block is scored.
typedef enum annulus_pool {
  ANNULUS_POOL_MEAN = 1,         // mean of Q's rows . mean of K's rows
  ANNULUS_POOL_MAX = 2,          // maximum of Q's rows . maximum of K's rows
  ANNULUS_POOL_ANTIDIAGONAL = 3  // products on antidiagonals, 1 / stride of all
} annulus_pool;

typedef struct annulus_selection {
  size_t struct_size;
  int64_t block_rows;     // R >= 1
  int64_t block_columns;  // C >= 1
  int32_t rule;           // annulus_selection_rule
  int32_t pool;           // annulus_pool
  // Blocks of a row, including those that are always kept. Top p: at most this many; 0: no bound.
  // Given: entries of a row of `given`.
  int64_t max_blocks;
  double mass;     // p of top p, in (0, 1]
  int64_t stride;  // S of the antidiagonals: divides R and C, C / S is a power of two up to 64
  int64_t coarse_factor;    // f of 2 or more: blocks of f R x f C are scored first; 0: no such pass
  int64_t coarse_blocks;    // how many of these are kept in each row
  int64_t sink_blocks;      // the first blocks of columns, always kept where visible
  int64_t diagonal_blocks;  // at the row's own positions and before; 0: none
} annulus_selection;

#define ANNULUS_SELECTION_INIT \
  { sizeof(annulus_selection), 128, 128, ANNULUS_TOP_K, ANNULUS_POOL_MEAN, 0, 0.95, 16, 0, 0, 1, 1 }

// Device memory of one run besides the operands, 4-byte aligned; it must stay until the work on the
// stream has ended.
typedef struct annulus_selection_buffers {
  size_t struct_size;
  // With ANNULUS_GIVEN, else null: block columns [B, H, rows, max_blocks], in any order; -1, and
  // any number that is no visible block of the row, is skipped.
  const int32_t* given;
  // Null, or memory for the chosen blocks: [B, H, rows, max_chosen], ascending, then -1.
  int32_t* chosen;
  int64_t max_chosen;  // entries of a row of `chosen`; a row with more blocks writes only the first
                       // ones
} annulus_selection_buffers;

#define ANNULUS_SELECTION_BUFFERS_INIT \
  { sizeof(annulus_selection_buffers), NULL, NULL, 0 }

// ---- Importance: kept blocks that change little by little

typedef struct annulus_importance_tracker annulus_importance_tracker;

typedef struct annulus_tracker_options {
  size_t struct_size;
  int64_t max_added;    // blocks of a row that one update may add
  int64_t max_dropped;  // blocks of a row that one update may drop
} annulus_tracker_options;

#define ANNULUS_TRACKER_OPTIONS_INIT \
  { sizeof(annulus_tracker_options), 1, 1 }

// `problem`, which has want_lse, and `selection`, of rule ANNULUS_GIVEN, are those of the plan
// whose runs are measured. Null options are the defaults. Any number of threads may use one at a
// time, each with a state and a workspace of its own.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_create(
    annulus_device* device, const annulus_problem* problem, const annulus_selection* selection,
    const annulus_tracker_options* options, annulus_importance_tracker** tracker);
ANNULUS_EXPORT annulus_status
annulus_importance_tracker_destroy(annulus_importance_tracker* tracker);
// state: masses of all blocks, kept by the caller between calls, 16-byte aligned, zeros before the
// first. workspace: scratch memory of every call, likewise aligned. Either may be null.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_sizes(annulus_importance_tracker* tracker,
                                                               size_t* state_bytes,
                                                               size_t* workspace_bytes);
// Adds the mass that each kept block received in the run of these operands, whose LSEs
// operands->lse holds. All pointers are device memory. Asynchronous, as annulus_plan_run.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_measure(
    annulus_importance_tracker* tracker, void* stream, const annulus_operands* operands,
    const int32_t* given, void* state, void* workspace);
// Changes `given`, [B, H, rows, max_blocks], and sets the masses back to 0.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_update(annulus_importance_tracker* tracker,
                                                                void* stream,
                                                                const annulus_operands* operands,
                                                                int32_t* given, void* state,
                                                                void* workspace);

// The C interface of questions: which problems have kernels, how long a plan is predicted to take,
// what a device counted, and how a simulated one runs. The conventions are those at the top of
// annulus/c.h.

// ---- Problems

// Whether annulus_plan_create would take the problem on some device and, where `operands` is not
// null, whether annulus_plan_run would take them; the reason is in annulus_last_error(). Needs no
// device.
ANNULUS_EXPORT annulus_status annulus_problem_validate(const annulus_problem* problem,
                                                       const annulus_operands* operands);

// ---- Devices

// What became of the requests to a cache.
typedef struct annulus_cache_counters {
  size_t struct_size;
  int64_t hits;       // kept already
  int64_t waits;      // another thread was making it
  int64_t misses;     // made for this call
  int64_t failures;   // misses where making it failed
  int64_t evictions;  // dropped for newer ones
  int64_t too_large;  // misses larger than the limit: given out, not kept
  int64_t bytes;      // kept now
  int64_t entries;
} annulus_cache_counters;

#define ANNULUS_CACHE_COUNTERS_INIT \
  { sizeof(annulus_cache_counters), 0, 0, 0, 0, 0, 0, 0, 0 }

// What a device has done, and what the process did when: annulus/observe.h and annulus/observe.h in
// C, by the conventions of annulus/c.h.

// One number for each line of annulus/metrics.def, which says what they count.
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

// Does not wait.
ANNULUS_EXPORT annulus_status annulus_device_metrics(annulus_device* device, annulus_metrics* to);

// The numbers in the OpenMetrics text format 1.0.0, without "# EOF". `labels` goes between the
// braces as it is; null: no braces.
ANNULUS_EXPORT annulus_status annulus_metrics_text(const annulus_metrics* metrics,
                                                   const char* labels, annulus_text** text);

// How long the timed runs of a plan took on the device; annulus::RunTimes.
typedef struct annulus_run_times {
  size_t struct_size;
  int64_t runs;
  double total_micros;
  double least_micros;
  double most_micros;
  double last_micros;
} annulus_run_times;

#define ANNULUS_RUN_TIMES_INIT \
  { sizeof(annulus_run_times), 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_plan_times(annulus_plan* plan, annulus_run_times* to);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_H_
