#ifndef ANNULUS_KERNELS_H_
#define ANNULUS_KERNELS_H_

// Kernels compiled ahead of the programs that run them, folders of compiled kernels, the
// installation, and published models. Ship compiled kernels with an engine or a package, so that
// the first result of a process waits for no compiler and a machine needs no NVRTC:
//
//   WarmOptions options;
//   options.folder = "/tmp/kernels";
//   options.devices = {"h100", "sim:sm_80"};        // they need not be on this machine
//   const WarmResult made = warm({.shapes = {{problem}}}, options);
//
// On the other machine DeviceOptions::kernels_path or ANNULUS_KERNELS names the folder, or the
// folder is copied to lib/annulus/kernels next to libannulus.so (docs/ahead.md). A folder may hold
// kernels of any number of devices, compilers and versions of this library; a device ignores
// kernels that it cannot use. `annulus warm`, `cache` and `doctor` use this.
//
// Any thread may call these functions.

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

// ---- The installation
//
// The parts that are installed on this machine, and the default device of Device::open(), for lists
// of devices, and for reports of problems before a device is opened.
//
//   for (const ListedDevice& gpu : list_devices().devices) offer(gpu.name, gpu.description);
//   const LibraryReports libraries = find_libraries();
//   if (!libraries.nvrtc.usable()) report(libraries.nvrtc.problem);
//
// These functions compile and launch nothing and make no context. Missing or unfit parts are
// results, not errors. Each call examines the environment, the file system and the driver again.

// A place where a library was searched.

// A place where a library was looked for.
struct LibraryAttempt {
  std::string where;  // a folder, or "the loader's own search"
  // "opened /usr/lib/...", "has none of libnvrtc.so.13, ...", or the loader's text
  std::string outcome;
};

struct LibraryReport {
  std::string name;                 // "the CUDA driver", "NVRTC", "NCCL", "the simulator"
  std::string path;                 // the file that was opened; empty: none
  int version = 0;                  // number from the library; 0: not queried
  std::string version_text;         // "13.0", "2.28.9"
  bool simulated = false;           // it belongs to the simulator
  std::string problem;              // the defect and the remedy; empty: usable
  std::vector<std::string> absent;  // optional symbols that it lacks
  std::vector<LibraryAttempt> tried;

  bool usable() const { return problem.empty(); }
};

struct LibraryReports {
  LibraryReport cuda;       // devices named cuda:N need it
  LibraryReport simulator;  // devices named sim:... need it
  LibraryReport nvrtc;      // both need it
  LibraryReport nccl;       // rings of several GPUs need it
};

// The libraries that would be used, or why they would not. Opens them and queries the driver's
// version, which does not initialise the driver.
ANNULUS_EXPORT LibraryReports find_libraries();

// A device as its driver describes it.
struct ListedDevice {
  std::string name;            // the name for DeviceOptions::name: "cuda:0"
  std::string description;     // the driver's name of the device
  int compute_capability = 0;  // 80, 90, ...
  bool simulated = false;      // it is from a simulator that replaces libcuda.so.1
  int multiprocessors = 0;
  std::int64_t shared_bytes_per_block = 0;  // the most shared memory that a CTA can have
  std::int64_t memory_bytes = 0;
};

struct DeviceListing {
  std::vector<ListedDevice> devices;  // in the driver's order
  std::string problem;                // why there are no devices
};

// The devices of the CUDA driver, which the call initialises. Devices of the simulator, whose names
// are architectures (DeviceOptions::name), are not listed.
ANNULUS_EXPORT DeviceListing list_devices();

struct DeviceChoice {
  std::string name;    // the full name: "cuda:0" for "cuda:00"
  std::string reason;  // why this device
};

// The device that Device::open() would try to open for the name `name`. Throws
// Error{kInvalidArgument} if it (or ANNULUS_DEVICE, if empty) is not the name of a device.
ANNULUS_EXPORT DeviceChoice choose_device(std::string_view name = {});

// ---- Folders of compiled kernels

// The kernels in a folder with one origin: architecture, image, NVRTC and sources.
struct KernelSet {
  std::string origin;  // compare with DeviceInfo::kernel_origin, by why_unused()
  std::int64_t kernels = 0;
  std::int64_t bytes = 0;
  std::int64_t oldest = 0;  // storage times of the oldest and newest kernel, seconds since 1970
  std::int64_t newest = 0;
};

// The kernels in a folder.
struct KernelListing {
  std::string folder;   // empty: no kernel is kept on disk
  std::string problem;  // why the folder is not used; empty if it is used
  bool usable = false;
  std::int64_t kernels = 0;
  std::int64_t bytes = 0;
  std::vector<KernelSet> sets;  // by origin
};

// Lists a folder of compiled kernels (not set: as DeviceOptions::cache_dir), and creates it if it
// is missing, as Device::open() does.
ANNULUS_EXPORT KernelListing list_kernels(const std::optional<std::string>& cache_dir = {});

// Lists the existing folders of kernels compiled ahead (not set: as DeviceOptions::kernels_path).
ANNULUS_EXPORT std::vector<KernelListing> list_shipped_kernels(
    const std::optional<std::string>& kernels_path = {});

// ---- Compiling ahead

// A problem as a line of a file of shapes, which `annulus warm --shapes` and `annulus tune
// --shapes` read: "--heads 8 --seq 4096 --dim 128 --pattern \"causal\"". Options of the plan that
// differ from the defaults follow, for `annulus warm`; strides, and limits of memory and work, are
// omitted. A layout that was not read from a file has no readable text (Pattern::to_string).
// DeviceOptions::shape_log counts plans in such lines.
ANNULUS_EXPORT std::string shape_line(const Problem& problem, const PlanOptions& options = {});

// A plan whose kernels are to be compiled: the arguments of Device::plan.
struct WarmShape {
  Problem problem;
  PlanOptions options = {};
  std::optional<Selection> selection = {};
};
// A batch whose kernels are to be compiled: the arguments of plan_batch.
struct WarmBatch {
  BatchProblem problem;
  BatchOptions options = {};
};
struct WarmWork {
  std::vector<WarmShape> shapes;
  std::vector<WarmBatch> batches;
  // Compile all general kernels too, with which plans that do not wait begin (PlanOptions::wait).
  bool general = false;
  // Absolute paths of folders of compiled kernels. Each kernel that a folder has for the
  // architecture of a device is compiled for that device too. So the folder of a simulated device
  // (DeviceOptions::cache_dir) yields the kernels for a GPU, including kernels that no shape
  // describes, such as kernels of rings, appends, merges, joins and layouts. Kernels of other
  // versions of this library and damaged files are skipped. Error{kFile} if a folder does not
  // exist, or if users other than its owner, who must be the caller or root, may write to it.
  std::vector<std::string> folders = {};
};

// A GPU for which kernels can be compiled without having one; its limits are from its data sheet.
struct KnownGpu {
  std::string name;          // "a100"
  std::string description;   // "A100 SXM, 108 multiprocessors"
  std::string architecture;  // "sm_80", "sm_90a"
};
ANNULUS_EXPORT std::vector<KnownGpu> known_gpus();

// A plan that Device::plan would make on a GPU that this machine may lack.
struct PlanPreview {
  // The GPU by its data sheet: name ("h100"), description, architecture, multiprocessors,
  // shared_bytes_per_block and memory_bytes. Other fields are empty.
  DeviceInfo device;
  // Fields that need a compiled kernel are unset: source is empty; compile_ms, registers,
  // local_bytes and blocks_per_multiprocessor are 0.
  PlanInfo info;
  PlanPrediction predicted;
};
// Plans a problem for each GPU that `device.name` names: one of known_gpus(), or all of an
// architecture. Compiles nothing and needs neither a driver nor NVRTC, so it does not notice if a
// kernel does not compile. It also uses tuned_path (results of the same chip), template_dir, log
// and log_level of `device`. Throws the errors of Device::memory_needed, and
// Error{kInvalidArgument} for another name.
ANNULUS_EXPORT std::vector<PlanPreview> preview_plan(const DeviceOptions& device,
                                                     const Problem& problem,
                                                     const PlanOptions& options = {});

struct WarmProgress {
  std::int64_t done = 0;  // kernels that are in the folder, or failed
  std::int64_t kernels = 0;
  std::string last;  // the last kernel: "mma_forward (m64 n64 ...) for sm_80"
  double seconds = 0;
};

struct WarmOptions {
  // An absolute path. It is created if it is missing, with mode 0755, and files with 0644, minus
  // the umask, because devices only use folders to which no other user may write.
  std::string folder;
  // The targets, each one of: a device of this machine or a simulated one (DeviceOptions::name),
  // with its driver's limits and its tuned results; a name of known_gpus(); or an architecture,
  // which stands for all of these with it. Empty: the default device of Device::open().
  std::vector<std::string> devices;
  std::string template_dir;  // see DeviceOptions
  // See DeviceOptions. Tuned results of the same chip are used even for a GPU that is not here.
  std::optional<std::string> tuned_path;
  int threads = 0;  // compiling threads, up to 1024; 0: one per processor
  // Ends the work soon after it becomes true; compiled kernels stay. A signal handler may set it.
  // It must outlive the call.
  const std::atomic<bool>* cancel = nullptr;
  // Called on one thread at a time, while others compile.
  std::function<void(const WarmProgress&)> progress;
  LogCallback log;  // see DeviceOptions
  LogLevel log_level = LogLevel::kWarning;
};

// A shape without a kernel for a device, or a kernel that does not compile.
struct WarmFailure {
  std::string device;
  std::string wanted;  // the line of the shape, or a description of the kernel
  ErrorCode code = ErrorCode::kInternal;
  std::string error;
};

struct WarmResult {
  std::int64_t kernels = 0;   // distinct kernels of the work
  std::int64_t compiled = 0;  // kernels that this call compiled
  std::int64_t there = 0;     // kernels of this compiler that were in the folder
  std::int64_t left = 0;      // kernels that were not compiled because the call was cancelled
  bool cancelled = false;     // some shapes may not have been examined
  std::int64_t bytes = 0;     // bytes of the kernels' files that exist now
  std::vector<WarmFailure> failures;
  std::vector<std::string> devices;  // the targets: "h100 (sm_90a, cubin)"
  std::string nvrtc_version;
  double seconds = 0;

  bool complete() const { return !cancelled && failures.empty(); }
};

// Compiles the kernels of all shapes and batches for all devices into a folder, except those that
// it has. A shape that does not fit a device is skipped for it. Needs NVRTC and no GPU; opens no
// context. Throws Error{kInvalidArgument} for an invalid folder or device name, Error{kLibrary}
// without NVRTC, or without the driver of a device that needs one, Error{kDevice} if there is no
// such device, and Error{kFile} if the folder is not writable. A kernel that does not compile, for
// example for an architecture that NVRTC does not know, is a WarmFailure.
ANNULUS_EXPORT WarmResult warm(const WarmWork& work, const WarmOptions& options);

// ---- Care of folders

// Why a device cannot use the kernels of a set, with the differences; empty if it can.
// `compiled_ahead`: the folder is in DeviceOptions::kernels_path and may have any NVRTC.
ANNULUS_EXPORT std::string why_unused(const KernelSet& set, const DeviceInfo& device,
                                      bool compiled_ahead);

struct PruneOptions {
  std::optional<std::string> folder;  // not set: as DeviceOptions::cache_dir
  // If not negative, kernels older than this are removed. The age counts back from now, or from the
  // newest kernel if that is later.
  double older_than_seconds = -1;
  // Kernels that no device of this machine, real or simulated, can use with its NVRTC are removed:
  // other templates, architectures, compilers or formats.
  bool useless = false;
  // If not negative, the oldest of the remaining kernels are removed down to this number of bytes.
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
// Removes kernels from a folder. A process that was about to read one compiles it again. Throws
// Error{kFile} if the folder is missing, or is not trusted (docs/ahead.md), and
// Error{kInvalidArgument} for an age of NaN.
ANNULUS_EXPORT PruneResult prune_kernels(const PruneOptions& options);

// A file that no device can use.
struct DamagedKernel {
  std::string name;
  std::string why;
  bool removed = false;
};
struct VerifyResult {
  std::string folder;
  std::int64_t kernels = 0;  // intact kernels
  std::int64_t bytes = 0;
  std::vector<DamagedKernel> damaged;
};
// Reads every kernel of a folder (not set: as DeviceOptions::cache_dir) and reports files that are
// damaged, of another version of the format, or whose name is not the name of their key. `remove`
// removes these. Throws the errors of prune_kernels().
ANNULUS_EXPORT VerifyResult verify_kernels(const std::optional<std::string>& folder = {},
                                           bool remove = false);

// ---- Published language models
//
// Tunes or compiles kernels for a model by its name:
//
//   for (const Problem& problem : problems_of(*find_model("llama-3-8b"))) tune(device, problem);

// The properties of a model that decide the kernels of its attention.
struct Model {
  enum class Layers { kNone, kSome, kAll };

  std::string name;        // "llama-3-8b"
  std::string repository;  // repository at huggingface.co, whose config.json has the numbers
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t dim_qk = 0;
  std::int64_t dim_v = 0;
  std::int64_t context = 0;         // tokens of the longest sequence: max_position_embeddings
  std::int64_t window = 0;          // keys that a query sees, including its own, in windowed layers
  Layers windowed = Layers::kNone;  // the layers that are windowed
  double softcap = 0;               // soft-cap of the scores; 0: none
  bool sinks = false;               // each head has a learnt logit of an attention sink
};

// All models, and the model of a name. They throw only std::bad_alloc.
ANNULUS_EXPORT std::vector<Model> known_models();
ANNULUS_EXPORT std::optional<Model> find_model(std::string_view name);

// The problems of a model on one device in bfloat16: prefill of some lengths, and one new token
// after the same numbers of keys. A tuned result serves problems of its kind from half to twice its
// length, and the share of visible keys is part of the kind (docs/tuning.md); so lengths are close
// together if a window reduces the share. The results of these problems serve every length from 256
// to 32768 or the context, including models in which only some layers have a window. A window that
// holds the whole sequence is ignored. If K and V have another head dim than Q, as in latent
// attention, a new token is computed in another way, and there is only prefill. The logits of sinks
// are 0, because no kernel depends on them. Throws the errors of validate(), and the errors of
// Pattern::parse for a window below 1.
ANNULUS_EXPORT std::vector<Problem> problems_of(const Model& model);

}  // namespace annulus::inline v0

#endif  // ANNULUS_KERNELS_H_
