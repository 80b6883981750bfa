#ifndef ANNULUS_TESTS_FUZZ_C_CALLS_PROGRAM_H_
#define ANNULUS_TESTS_FUZZ_C_CALLS_PROGRAM_H_

// An input of the fuzz target c_calls, run as a sequence of calls. Each file of this folder has the
// calls of one subject.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "annulus/c.h"
#include "annulus/c_batch.h"
#include "annulus/c_layout.h"
#include "annulus/c_ring.h"
#include "annulus/c_tools.h"
#include "annulus/c_tune.h"
#include "fuzz/c_calls/setting.h"
#include "fuzz/fuzz.h"

namespace annulus::fuzz {

// A flag that cancels a call.
inline const volatile std::int32_t kCancel = 1;

enum class Kind {
  kDevice,
  kPlan,
  kBound,
  kText,
  kLayout,
  kArrays,
  kCache,
  kQuery,
  kReference,
  kTuning,
  kTuned,
  kRing,
  kMeter,
  kTracker,
  kInstallation,
  kBatch,
  kAppend,
  kRendezvous,
  kCommunicator,
  kRankPlan,
  kTunedReport,
  kMerge,
  kJoin,
  kGather,
  kWarmWork,
  kBackgroundTuning,
  kTuningReport,
  kTask
};
// Without an argument, give_back() draws a kind up to this one. So older inputs of the corpus keep
// their meaning. Handles of later kinds are destroyed by the calls of their subject.
constexpr Kind kLastDrawn = Kind::kTunedReport;

// A struct of the interface with additional bytes, for callers that are newer than the library.
template <typename T>
struct Sized {
  T value;
  std::byte more[64] = {};

  Sized(const T& initial, Bytes& bytes) : value(initial) {
    switch (bytes.below(24)) {
      case 0:
        value.struct_size = static_cast<std::size_t>(bytes.number());
        if (value.struct_size > sizeof(T)) value.struct_size = 0;
        break;
      case 1:
        value.struct_size = sizeof(T) - static_cast<std::size_t>(bytes.below(sizeof(T)));
        break;
      case 2:
        value.struct_size = sizeof(T) + static_cast<std::size_t>(bytes.below(64));
        break;
      case 3:
        value.struct_size = sizeof(T) + 64;
        more[bytes.below(64)] = std::byte{1};
        break;
      default:
        break;
    }
  }
  T* operator->() { return &value; }
  T* get() { return &value; }
};

// A scope of work around calls without a limit. It lasts a hundredth of a second.
struct Bounded {
  Bounded() {
    annulus_work_limit limit = ANNULUS_WORK_LIMIT_INIT;
    limit.max_work = 2'000'000;
    if (annulus_work_scope_begin(&limit) != ANNULUS_OK) wrong("a scope does not begin");
  }
  ~Bounded() {
    std::int64_t steps = -1;
    if (annulus_work_scope_end(&steps) != ANNULUS_OK) wrong("a scope does not end");
    if (steps < 0) wrong("a scope has no steps");
  }
  Bounded(const Bounded&) = delete;
  Bounded& operator=(const Bounded&) = delete;
};

class Program {
 public:
  explicit Program(Bytes* bytes) : bytes_(*bytes) {}
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run();

 private:
  struct Held {
    void* handle;
    Kind kind;
    bool live;
  };

  // ---- Handles and results

  // A handle that should be of the given kind. `good_` becomes false if it is not.
  template <typename T>
  T* pick(Kind kind) {
    return static_cast<T*>(pick_any(kind));
  }
  void* pick_any(Kind kind);
  bool is_live(Kind kind, const void* handle) const;
  // Makes a handle of a kind that has no live handle, so that calls get more than null. Returns
  // null if the second device is out of memory, and for kinds that inputs have to make themselves.
  void* provide(Kind kind);
  // Checks the result of a call. Returns true if the call succeeded.
  bool returned(annulus_status status, const char* function);
  // Checks the result of a call that makes a handle, and keeps the handle. The handle is read after
  // the call has stored it.
  template <typename T>
  void made(annulus_status status, T* const& handle, Kind kind, const char* function) {
    if (!returned(status, function)) {
      if (handle != nullptr) wrong("{} failed and made a handle", function);
      return;
    }
    if (handle == nullptr || is_live(kind, handle)) wrong("{} made no new handle", function);
    held_.push_back({handle, kind, true});
  }
  static annulus_status destroy(Kind kind, void* handle);
  // Destroys a handle of any kind except devices, which only an input that opened one closes.
  void give_back();
  void give_back(Kind kind);

  // ---- Drawn arguments

  std::int64_t small(std::int64_t most);
  int tiny(std::int64_t most) { return static_cast<int>(small(most)); }
  std::size_t count(std::int64_t below) { return static_cast<std::size_t>(bytes_.below(below)); }
  // A pointer to a cancellation flag.
  const volatile std::int32_t* flag();
  const char* pattern();
  // A path, or null. Two of the paths are writable.
  const char* path();
  Sized<annulus_layout_sizes> sizes();
  // If `planned`, returns a problem for which the kernels of plans are compiled. Otherwise returns
  // any problem.
  Sized<annulus_problem> problem(bool planned);
  Sized<annulus_problem> problem_with_lse();
  Sized<annulus_plan_options> plan_options();
  static annulus_operands whole_operands();
  // With `host_too`, Q, K, V and O may be host memory, which runs of plans detect and refuse.
  Sized<annulus_operands> operands(bool host_too = true);
  Sized<annulus_operands> operands_with_lse(bool host_too);
  // Memory for a workspace. It is mostly large enough for every plan here.
  void* scratch();
  // A memory of the setting, null, or an address that is not a multiple of 4.
  template <typename T>
  T* place(int index) {
    const std::int64_t choice = bytes_.below(24);
    auto* const bytes = static_cast<std::byte*>(setting().memory[index]);
    return reinterpret_cast<T*>(choice == 0 ? nullptr : choice == 1 ? bytes + 2 : bytes);
  }
  Sized<annulus_selection> selection(std::int32_t rule);
  // Lists of block columns with any values, in device memory.
  const std::int32_t* listed();
  static annulus_batch_problem batch_problem();
  static annulus_append_problem append_problem();
  // Returns a problem that can be planned. If `any`, it may be invalid.
  Sized<annulus_append_problem> drawn_append(bool any);
  // Mostly returns whether the last planned problem needs something, and sometimes the opposite.
  bool needed(bool is_needed) { return bytes_.below(16) == 0 ? !is_needed : is_needed; }
  static annulus_rendezvous_options alone_options();
  static annulus_merge_problem merge_problem();
  static annulus_join_problem join_problem();
  // Three memories of the setting, beginning with the given one.
  annulus_state state_at(int first);
  // Returns a problem that can be planned. If `any`, it may be invalid.
  Sized<annulus_join_problem> drawn_join(bool any);
  // A folder of kernels, of which one is damaged, or a path of path(). It is never null, because
  // null means the user's folder.
  std::string kernel_folder();

  // Launches are by far the slowest part of an input. Returns true if another launch is permitted.
  bool may_launch() { return launches_++ < 1; }
  // Waiting for absent ranks takes milliseconds, so an input does it once.
  bool may_wait() { return waits_++ < 1; }

  // ---- Calls

  void call();
  void call_pattern();
  void call_layout();
  void call_formats();
  void call_files();
  void call_device();
  void call_metrics();
  void call_rest();
  void call_plan();
  void call_states();
  void create_ring();
  void run_ring();
  void call_ring();
  void check_batch();
  void create_batch();
  void run_batch();
  void call_batch();
  void run_append();
  void call_append();
  void create_rendezvous();
  void regroup();
  void call_rendezvous();
  void create_communicator();
  void ask_communicator();
  void call_communicator();
  void create_rank_plan();
  void call_ranks();
  void call_selected();
  void call_meter();
  void call_tracker();
  void tune_batch(annulus_device* device, const annulus_tune_options& options);
  void call_tuning();
  void call_packs();
  void call_tuned_reports();
  void check_merge();
  void create_merge();
  void run_merge();
  void call_merge();
  void run_join();
  void call_join();
  void call_gather();
  void call_slices();
  void add_warm_work();
  void warm();
  void call_kernels();
  void create_late_plan();
  // Turns tasks that the library has passed to the caller into handles of the input.
  void keep_tasks();
  void run_task();
  void call_late_plan();
  // Options with which no measurement begins and the task is kept.
  static annulus_background_tuning_options background_options();
  void create_background_tuning();
  void call_background_tuning();

  annulus_append_problem appended_ = append_problem();  // the problem that was planned last
  annulus_merge_problem merged_ = merge_problem();
  annulus_join_problem joined_ = join_problem();
  Bytes& bytes_;
  std::vector<Held> held_;
  int launches_ = 0;
  int waits_ = 0;
  int planned_ = 0;  // handles that were provided and needed a plan
  bool traced_ = false;
  bool examined_ = false;  // examining an installation takes milliseconds
  bool good_ = true;       // whether all handles of the current call are right
};

}  // namespace annulus::fuzz

#endif  // ANNULUS_TESTS_FUZZ_C_CALLS_PROGRAM_H_
