#ifndef ANNULUS_KERNELS_H_
#define ANNULUS_KERNELS_H_

// Kernels compiled ahead of the programs that run them, to be shipped with an engine or a package,
// so that the first answer of a process waits for no compiler and a machine needs no NVRTC:
//
//   WarmOptions options;
//   options.folder = "/tmp/kernels";
//   options.devices = {"h100", "sim:sm_80"};        // none of them need be here
//   const WarmResult made = warm({.shapes = {{problem}}}, options);
//
// Where they run, DeviceOptions::kernels_path or ANNULUS_KERNELS names the folder, or it is copied
// to lib/annulus/kernels beside libannulus.so (docs/ahead.md). A folder holds kernels of
// any number of devices, compilers and versions of this library; what serves nobody is passed over.
// `annulus warm` and `annulus cache` are these functions.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/batch.h"
#include "annulus/device.h"
#include "annulus/problem.h"
#include "annulus/selection.h"
#include "annulus/types.h"
#include "annulus/version.h"

namespace annulus::inline v0 {

// What is installed on this machine, and which device Device::open() would take: for a list that
// people choose from, for a report of what is wrong, before a device is opened or where none opens.
//
//   for (const ListedDevice& gpu : list_devices().devices) offer(gpu.name, gpu.description);
//   const LibraryReports libraries = find_libraries();
//   if (!libraries.nvrtc.usable()) explain(libraries.nvrtc.problem);
//
// `annulus doctor` prints all of it. Nothing here compiles, launches or makes a context. What is
// missing or unfit is an answer, not an error. All functions may be called from any thread; each
// looks anew at the environment, the file system and the driver.

// A place where a library was looked for.
struct LibraryAttempt {
  std::string where;  // a folder, or "the loader's own search"
  // "opened /usr/lib/...", "has none of libnvrtc.so.13, ...", or the loader's text
  std::string outcome;
};

struct LibraryReport {
  std::string name;                 // "the CUDA driver", "NVRTC", "NCCL", "the simulator"
  std::string path;                 // of the file that was opened; empty: none
  int version = 0;                  // as the library says; 0: not asked
  std::string version_text;         // "13.0", "2.28.9"
  bool simulated = false;           // it is the simulator's
  std::string problem;              // empty: usable. Else what is wrong and what to do about it
  std::vector<std::string> absent;  // optional symbols that it lacks
  std::vector<LibraryAttempt> tried;

  bool usable() const { return problem.empty(); }
};

struct LibraryReports {
  LibraryReport cuda;       // for devices named cuda:N
  LibraryReport simulator;  // for devices named sim:...
  LibraryReport nvrtc;      // for both
  LibraryReport nccl;       // for rings of several GPUs
};

// What the library would use of them, and why not where it would not. Opens them; of the driver
// asks the version, which does not initialise it.
ANNULUS_EXPORT LibraryReports find_libraries();

// A device as its driver describes it.
struct ListedDevice {
  std::string name;            // as DeviceOptions::name takes it: "cuda:0"
  std::string description;     // what the driver calls it
  int compute_capability = 0;  // 80, 90, ...
  bool simulated = false;      // of a simulator that stands in for libcuda.so.1
  int multiprocessors = 0;
  std::int64_t shared_bytes_per_block = 0;  // the most a kernel can have
  std::int64_t memory_bytes = 0;
};

struct DeviceListing {
  std::vector<ListedDevice> devices;  // in the driver's order
  std::string problem;                // why there are none
};

// The devices of the CUDA driver, which it initialises. Those of the simulator, which are named by
// architecture (DeviceOptions::name), are not listed.
ANNULUS_EXPORT DeviceListing list_devices();

struct DeviceChoice {
  std::string name;    // in full: "cuda:0" where "cuda:00" was asked for
  std::string reason;  // why this one
};

// The device that Device::open() takes where DeviceOptions::name is `name`; it may still not open.
// Throws Error{kInvalidArgument} where the name, or with an empty one ANNULUS_DEVICE, is none.
ANNULUS_EXPORT DeviceChoice choose_device(std::string_view name = {});

// Kernels on disk with one origin: architecture, image, NVRTC and sources.
struct KernelSet {
  std::string origin;  // as DeviceInfo::kernel_origin; annulus/kernels.h has whom it serves
  std::int64_t kernels = 0;
  std::int64_t bytes = 0;
  std::int64_t oldest = 0;  // when the first and the last of them were stored, seconds since 1970
  std::int64_t newest = 0;
};

// Compiled kernels in a folder.
struct KernelListing {
  std::string folder;   // empty: nothing is kept
  std::string problem;  // why kernels are not kept there; empty where they are
  bool usable = false;
  std::int64_t kernels = 0;
  std::int64_t bytes = 0;
  std::vector<KernelSet> sets;  // by origin
};

// What is in a folder of compiled kernels; not given: as DeviceOptions::cache_dir. Makes the folder
// where it is missing, as Device::open() does.
ANNULUS_EXPORT KernelListing list_kernels(const std::optional<std::string>& cache_dir = {});

// What is in the folders of kernels compiled ahead, as far as they exist; not given: as
// DeviceOptions::kernels_path.
ANNULUS_EXPORT std::vector<KernelListing> list_shipped_kernels(
    const std::optional<std::string>& kernels_path = {});

// A problem as a line of a file of shapes, which `annulus warm --shapes` and `annulus tune
// --shapes` read: "--heads 8 --seq 4096 --dim 128 --pattern \"causal\"". Options of the plan follow
// where they are not the defaults; they are for `annulus warm`. Strides that were given, and limits
// of memory and work, are left out. A layout that came from no file has no text that could be read
// again (Pattern::to_string). DeviceOptions::shape_log counts what a device plans in such lines.
ANNULUS_EXPORT std::string shape_line(const Problem& problem, const PlanOptions& options = {});

// A plan whose kernels are wanted: the arguments of Device::plan.
struct WarmShape {
  Problem problem;
  PlanOptions options = {};
  std::optional<Selection> selection = {};
};
// A batch whose kernels are wanted: the arguments of plan_batch.
struct WarmBatch {
  BatchProblem problem;
  BatchOptions options = {};
};
struct WarmWork {
  std::vector<WarmShape> shapes;
  std::vector<WarmBatch> batches;
  // Also all general kernels, which plans that do not wait begin with (PlanOptions::wait).
  bool general = false;
  // Absolute paths of folders of compiled kernels. Each kernel that a folder has for the
  // architecture of a device is compiled for that device, too. So a folder in which a simulated
  // device has kept its kernels (DeviceOptions::cache_dir) yields the kernels for a GPU, and those
  // of rings, appends, merges, joins and layouts are among them, which no shape states. Kernels of
  // other versions of this library and damaged files are left out. Throws Error{kFile} if a folder
  // is not there, or if others than its owner, who is the caller or root, may write to it.
  std::vector<std::string> folders = {};
};

// A GPU that kernels can be compiled for without one: its limits are those of its data sheet.
struct KnownGpu {
  std::string name;          // "a100"
  std::string description;   // "A100 SXM, 108 multiprocessors"
  std::string architecture;  // "sm_80", "sm_90a"
};
ANNULUS_EXPORT std::vector<KnownGpu> known_gpus();

// A plan that Device::plan would make on a GPU that is not here.
struct PlanPreview {
  // The GPU by its data sheet: name ("h100"), description, architecture, multiprocessors,
  // shared_bytes_per_block and memory_bytes. Other fields are empty.
  DeviceInfo device;
  // Without what needs a compiled kernel: source is empty; compile_ms, registers, local_bytes and
  // blocks_per_multiprocessor are 0.
  PlanInfo info;
  PlanPrediction predicted;
};
// Decides the plan of a problem for each GPU that `device.name` names: one of known_gpus() by its
// name, or all of them that have an architecture. Compiles nothing, and needs neither a driver nor
// NVRTC; a kernel that does not compile there is not noticed. Reads tuned_path, template_dir, log
// and log_level of `device` too: tuned results of the same chip are used. Throws as
// Device::memory_needed, and Error{kInvalidArgument} for a name that is neither. Any thread may
// call it.
ANNULUS_EXPORT std::vector<PlanPreview> preview_plan(const DeviceOptions& device,
                                                     const Problem& problem,
                                                     const PlanOptions& options = {});

struct WarmProgress {
  std::int64_t done = 0;  // kernels that are there by now, or failed
  std::int64_t kernels = 0;
  std::string last;  // of what was done last: "mma_forward (m64 n64 ...) for sm_80"
  double seconds = 0;
};

struct WarmOptions {
  // An absolute path. Made where it is missing, with the mode 0755, and files with 0644, less the
  // umask: others may read them, and none write, which is what a device asks of such a folder.
  std::string folder;
  // What to compile for, each one of: a device of this machine or a simulated one, as
  // DeviceOptions::name, with the limits that its driver states and its tuned results; a GPU of
  // known_gpus() by name; or an architecture, which is all of these that have it. Empty: the device
  // that Device::open() would take.
  std::vector<std::string> devices;
  std::string template_dir;  // as of DeviceOptions, as is the next one
  // Where tuned results are looked for; those of the same chip are used, also for a GPU that is not
  // here.
  std::optional<std::string> tuned_path;
  int threads = 0;  // that compile at a time, up to 1024; 0: one per processor
  // Ends the work soon after it turns true; what was compiled stays. May be set by a signal
  // handler. Must outlive the call.
  const std::atomic<bool>* cancel = nullptr;
  // Called on one thread at a time, while others compile.
  std::function<void(const WarmProgress&)> progress;
  LogCallback log;
  LogLevel log_level = LogLevel::kWarning;  // as of DeviceOptions
};

// A shape that has no kernel for a device, or a kernel that does not compile.
struct WarmFailure {
  std::string device;
  std::string wanted;  // the line of the shape, or what it is a kernel of
  ErrorCode code = ErrorCode::kInternal;
  std::string error;
};

struct WarmResult {
  std::int64_t kernels = 0;   // different ones that the work needs
  std::int64_t compiled = 0;  // by this call
  std::int64_t there = 0;     // in the folder already, of this very compiler
  std::int64_t left = 0;      // not compiled, because the call was cancelled
  bool cancelled = false;     // so that some of the work may not even have been looked at
  std::int64_t bytes = 0;     // of files, of those that are there now
  std::vector<WarmFailure> failures;
  std::vector<std::string> devices;  // what was compiled for: "h100 (sm_90a, cubin)"
  std::string nvrtc_version;
  double seconds = 0;

  bool complete() const { return !cancelled && failures.empty(); }
};

// Compiles the kernels of all shapes and batches for all devices into a folder; what is there
// already is left. A shape that does not fit a device costs only itself. Needs NVRTC and no GPU;
// opens no context. Throws Error{kInvalidArgument} for a folder or a device that is none,
// Error{kLibrary} without NVRTC, or without the driver of a device that needs one, Error{kDevice}
// where there is no such device, and Error{kFile} where the folder cannot be written to. A kernel
// that does not compile, also one of an architecture that NVRTC does not know, is a WarmFailure.
ANNULUS_EXPORT WarmResult warm(const WarmWork& work, const WarmOptions& options);

// ---- Folders of compiled kernels

// Why the kernels of a set do not serve a device, with what differs; empty where they do.
// `compiled_ahead`: the folder is one of DeviceOptions::kernels_path, where kernels of any NVRTC
// serve.
ANNULUS_EXPORT std::string why_unused(const KernelSet& set, const DeviceInfo& device,
                                      bool compiled_ahead);

struct PruneOptions {
  // Not given: as DeviceOptions::cache_dir.
  std::optional<std::string> folder;
  // Removed are kernels older than this, where it is not negative, by the clock or by the newest of
  // them, whichever is later;
  double older_than_seconds = -1;
  // those that serve no device of this machine, real or simulated, with the NVRTC that is found,
  // where this is set: of other templates, architectures or compilers, or of another format;
  bool useless = false;
  // and of what is left the oldest, until there are no more bytes than this, where it is not
  // negative.
  std::int64_t max_bytes = -1;
  bool dry_run = false;  // only count
};
struct PruneResult {
  std::string folder;
  std::int64_t removed = 0;
  std::int64_t removed_bytes = 0;
  std::int64_t left = 0;
  std::int64_t left_bytes = 0;
  std::vector<std::string> problems;  // files that could not be removed, each with the reason
};
// Removes kernels from a folder. A process that was about to read one compiles it anew. Throws
// Error{kFile} where the folder is missing or not to be trusted, as DeviceOptions::kernels_path has
// it; Error{kInvalidArgument} for an age that is NaN.
ANNULUS_EXPORT PruneResult prune_kernels(const PruneOptions& options);

// A file that no device would take.
struct DamagedKernel {
  std::string name;
  std::string why;
  bool removed = false;
};
struct VerifyResult {
  std::string folder;
  std::int64_t kernels = 0;  // whole ones
  std::int64_t bytes = 0;
  std::vector<DamagedKernel> damaged;
};
// Reads every kernel of a folder (not given: as DeviceOptions::cache_dir), and says which are
// damaged, of another version of the format, or under a name that is not their key's. `remove`
// removes these. Throws as prune_kernels().
ANNULUS_EXPORT VerifyResult verify_kernels(const std::optional<std::string>& folder = {},
                                           bool remove = false);

// Published language models, so that kernels can be tuned or compiled ahead for one by its name:
//
//   for (const Problem& problem : problems_of(*find_model("llama-3-8b"))) tune(device, problem);

// A model, as far as it decides the kernels of its attention.
struct Model {
  enum class Layers { kNone, kSome, kAll };

  std::string name;        // "llama-3-8b"
  std::string repository;  // at huggingface.co, whose config.json the numbers are of
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t dim_qk = 0;
  std::int64_t dim_v = 0;
  std::int64_t context = 0;  // tokens of the longest sequence: max_position_embeddings
  std::int64_t window = 0;   // keys that a query sees, with its own, in layers that have a window
  Layers windowed = Layers::kNone;  // which layers have
  double softcap = 0;               // of the scores; 0: none
  bool sinks = false;               // each head has a learnt logit of an attention sink
};

// In the order of the table, which has families together. Both may be called from any thread and
// throw only std::bad_alloc.
ANNULUS_EXPORT std::vector<Model> known_models();
ANNULUS_EXPORT std::optional<Model> find_model(std::string_view name);

// The problems of a model on one device in bfloat16: prefill of some lengths, and one new token
// after as many keys. A result serves problems of its kind of half to twice its length, and the
// share of the keys that a query sees is part of the kind (docs/tuning.md), so lengths are close
// together where a window makes the share fall. The results of these problems serve every length
// from 256 to 32768 or the context, also where some layers have a window and some have none. A
// window that holds the whole sequence is none. Where K and V have other dims than Q, as in latent
// attention, a new token is computed otherwise, and there is prefill alone. Of a model with sinks
// the logits are 0, since no kernel depends on them. Throws as validate() where numbers make no
// problem, and what Pattern::parse throws for a window below 1.
ANNULUS_EXPORT std::vector<Problem> problems_of(const Model& model);

}  // namespace annulus::inline v0

#endif  // ANNULUS_KERNELS_H_
