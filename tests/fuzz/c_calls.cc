// Sequences of calls of the C interface, of which every function occurs. Each byte of an input
// chooses a function, its handles (live ones, ones that were given back, ones of another kind,
// null, any number), sizes of structs, small numbers, flags that cancel, and when the caller's
// allocator begins to refuse. Whatever the order, each call returns a code that the header knows,
// with a text where it failed; a handle that is none is refused, and one that is given back is
// gone.

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "annulus/c.h"
#include "annulus/c_append.h"
#include "annulus/c_batch.h"
#include "annulus/c_communicator.h"
#include "annulus/c_inspect.h"
#include "annulus/c_installation.h"
#include "annulus/c_layout.h"
#include "annulus/c_layout_formats.h"
#include "annulus/c_metrics.h"
#include "annulus/c_oracle.h"
#include "annulus/c_pattern.h"
#include "annulus/c_rendezvous.h"
#include "annulus/c_ring.h"
#include "annulus/c_selection.h"
#include "annulus/c_tune.h"
#include "annulus/c_tuned_pack.h"
#include "fuzz/fuzz.h"

namespace annulus::fuzz {
namespace {

constexpr const char* kConfig = "mma m64 n64 w4 s2";
// Lengths and head dim of what is planned are at most this, so 16 KiB hold any operand.
constexpr std::int64_t kSide = 64;

// What flags of cancellation point to.
const volatile std::int32_t kGoOn = 0;
const volatile std::int32_t kCancel = 1;

// The caller's device memory, which can be made to run out.
struct Allocator {
  int (*allocate)(unsigned long long* address, std::size_t bytes) = nullptr;  // cuMemAlloc_v2
  int (*release)(unsigned long long address) = nullptr;                       // cuMemFree_v2
  std::int64_t left = INT64_MAX;  // allocations until it refuses
  bool by_null = false;           // refuses by a null address, else by what it returns

  static int take(void* user, std::size_t bytes, std::size_t, void** address) {
    auto* const self = static_cast<Allocator*>(user);
    if (self->left <= 0) {
      *address = nullptr;
      return self->by_null ? 0 : 7;
    }
    --self->left;
    unsigned long long made = 0;
    const int code = self->allocate(&made, bytes);
    *address = reinterpret_cast<void*>(made);
    return code;
  }
  static void give(void* user, void* address, std::size_t) {
    static_cast<Allocator*>(user)->release(reinterpret_cast<unsigned long long>(address));
  }
};

// What a program holds for as long as it runs: two devices, of which the second has the caller's
// allocator and log, memory for operands, and a folder.
struct Setting {
  annulus_device* device = nullptr;
  annulus_device* limited = nullptr;
  Allocator allocator;
  void* memory[13] = {};  // zeros
  std::string folder;
  static constexpr std::size_t kBytes = std::size_t{1} << 18;

  Setting() {
    annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
    options.name = "sim:sm_80";
    options.tuned_path = "";
    options.simulation_threads = 1;
    options.check_operands = 1;
    if (annulus_device_open(&options, &device) != ANNULUS_OK) {
      wrong("no simulated device: {}", annulus_last_error());
    }
    void* entries[2] = {};
    annulus_device_driver_entry(device, "cuMemAlloc_v2", &entries[0]);
    annulus_device_driver_entry(device, "cuMemFree_v2", &entries[1]);
    std::memcpy(&allocator.allocate, &entries[0], sizeof entries[0]);
    std::memcpy(&allocator.release, &entries[1], sizeof entries[1]);
    options.allocate = Allocator::take;
    options.release = Allocator::give;
    options.allocator_user = &allocator;
    options.log = [](void*, std::int32_t level, const char* text) {
      if (level < ANNULUS_LOG_ERROR || level > ANNULUS_LOG_DEBUG)
        wrong("a note of level {}", level);
      if (text == nullptr || text[0] == '\0') wrong("a note without a text");
    };
    options.log_level = ANNULUS_LOG_DEBUG;
    options.time_every_nth_run = 1;
    if (annulus_device_open(&options, &limited) != ANNULUS_OK) {
      wrong("no second device: {}", annulus_last_error());
    }
    const std::vector<std::byte> zeros(kBytes);
    for (void*& place : memory) {
      annulus_device_allocate(device, kBytes, &place);
      annulus_device_copy_to_device(device, place, zeros.data(), kBytes);
    }
    std::string made = (std::filesystem::temp_directory_path() / "annulus_c_calls_XXXXXX").string();
    if (mkdtemp(made.data()) == nullptr) wrong("no folder {}", made);
    folder = made;
    std::ofstream(folder + "/damaged.tuned") << "annulus-tuned 4 0\n{}";
    std::ofstream(folder + "/damaged.pack") << "annulus-tuned-pack 4 0\n{}";
  }
  ~Setting() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
};

Setting& setting() {
  static Setting setting;
  return setting;
}

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
  kTunedReport
};

// How each kind is given back, in the order of the kinds.
template <typename Handle, annulus_status (*kFunction)(Handle*)>
annulus_status destroy_as(void* handle) {
  return kFunction(static_cast<Handle*>(handle));
}
constexpr annulus_status (*kDestroy[])(void*) = {
    destroy_as<annulus_device, annulus_device_close>,
    destroy_as<annulus_plan, annulus_plan_destroy>,
    destroy_as<annulus_bound, annulus_bound_destroy>,
    destroy_as<annulus_text, annulus_text_destroy>,
    destroy_as<annulus_layout, annulus_layout_destroy>,
    destroy_as<annulus_arrays, annulus_arrays_destroy>,
    destroy_as<annulus_layout_cache, annulus_layout_cache_destroy>,
    destroy_as<annulus_layout_query, annulus_layout_query_destroy>,
    destroy_as<annulus_reference, annulus_reference_destroy>,
    destroy_as<annulus_tuning, annulus_tuning_destroy>,
    destroy_as<annulus_tuned_list, annulus_tuned_list_destroy>,
    destroy_as<annulus_ring, annulus_ring_destroy>,
    destroy_as<annulus_recall_meter, annulus_recall_meter_destroy>,
    destroy_as<annulus_importance_tracker, annulus_importance_tracker_destroy>,
    destroy_as<annulus_installation, annulus_installation_destroy>,
    destroy_as<annulus_batch_plan, annulus_batch_plan_destroy>,
    destroy_as<annulus_append_plan, annulus_append_plan_destroy>,
    destroy_as<annulus_rendezvous, annulus_rendezvous_destroy>,
    destroy_as<annulus_communicator, annulus_communicator_destroy>,
    destroy_as<annulus_ring_rank_plan, annulus_ring_rank_plan_destroy>,
    destroy_as<annulus_tuned_report, annulus_tuned_report_destroy>,
};
static_assert(std::size(kDestroy) == static_cast<std::size_t>(Kind::kTunedReport) + 1);

// A struct of the interface with room behind it, for callers that are newer than the library.
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

// A scope of work around calls that take no limit: a hundredth of a second.
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
  ~Program() {
    // Whatever is left; plans and layouts may go before what they were made of.
    for (const Held& held : held_) {
      if (held.live && held.kind != Kind::kDevice) destroy(held.kind, held.handle);
    }
    setting().allocator.left = INT64_MAX;
    if (traced_) annulus_trace_stop();
  }

  void run() {
    held_.push_back({setting().device, Kind::kDevice, true});
    held_.push_back({setting().limited, Kind::kDevice, true});
    for (int calls = 0; calls < 24 && !bytes_.empty(); ++calls) call();
  }

 private:
  struct Held {
    void* handle;
    Kind kind;
    bool live;
  };

  // A handle that is meant to be of a kind; `good_` becomes false where it is not.
  template <typename T>
  T* pick(Kind kind) {
    const std::uint8_t choice = bytes_.byte();
    void* handle = nullptr;
    if (choice < 200) {
      std::vector<void*> fit;
      for (const Held& held : held_) {
        if (held.live && held.kind == kind) fit.push_back(held.handle);
      }
      handle = fit.empty() ? provide(kind) : fit[choice % fit.size()];
    } else if (choice < 240) {
      handle = held_[choice % held_.size()].handle;
    } else if (choice < 248) {
      handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(bytes_.number()));
    }
    good_ = good_ && is_live(kind, handle);
    return static_cast<T*>(handle);
  }
  bool is_live(Kind kind, const void* handle) const {
    return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
      return held.live && held.kind == kind && held.handle == handle;
    });
  }

  // A new handle of a kind of which there is none, so that calls find more than null; null where
  // the second device is out of memory, and for kinds that inputs have to make themselves.
  void* provide(Kind kind) {
    const Setting& with = setting();
    annulus_problem problem = ANNULUS_PROBLEM_INIT;
    problem.seq_q = problem.seq_k = problem.dim_qk = problem.dim_v = kSide;
    problem.pattern = "causal";
    problem.want_lse = kind == Kind::kMeter || kind == Kind::kTracker;
    annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
    options.config = kConfig;
    options.kv_splits = 1;
    annulus_selection selection = ANNULUS_SELECTION_INIT;
    selection.block_rows = selection.block_columns = 16;
    selection.max_blocks = 2;
    annulus_device* const device = bytes_.below(4) == 0 ? with.limited : with.device;
    void* handle = nullptr;
    const bool planned = kind == Kind::kPlan || kind == Kind::kBound || kind == Kind::kRing ||
                         kind == Kind::kMeter || kind == Kind::kTracker || kind == Kind::kTuning ||
                         kind == Kind::kBatch || kind == Kind::kAppend ||
                         kind == Kind::kCommunicator || kind == Kind::kRankPlan;
    if (planned && planned_++ >= 2) return nullptr;
    switch (kind) {
      case Kind::kPlan: {
        annulus_plan* plan = nullptr;
        const std::int64_t chosen = bytes_.below(3);
        if (chosen == 0) {
          annulus_plan_create(device, &problem, &options, &plan);
        } else {
          selection.rule = chosen == 1 ? ANNULUS_TOP_K : ANNULUS_GIVEN;
          annulus_plan_create_selected(device, &problem, &selection, &options, &plan);
        }
        handle = plan;
        break;
      }
      case Kind::kBound: {
        auto* const plan = static_cast<annulus_plan*>(provide(Kind::kPlan));
        annulus_operands given = whole_operands();
        annulus_bound* bound = nullptr;
        annulus_plan_bind(plan, &given, with.memory[9], &bound);
        handle = bound;
        break;
      }
      case Kind::kRing: {
        annulus_device* const devices[] = {device, with.device};
        annulus_ring_options sharded = ANNULUS_RING_OPTIONS_INIT;
        sharded.config = kConfig;
        sharded.sharding = bytes_.below(2) == 0 ? ANNULUS_CONTIGUOUS : ANNULUS_ZIGZAG;
        annulus_ring* ring = nullptr;
        annulus_ring_create(devices, 2, &problem, &sharded, &ring);
        handle = ring;
        break;
      }
      case Kind::kMeter: {
        annulus_recall_meter* meter = nullptr;
        annulus_recall_meter_create(device, &problem, &options, &meter);
        handle = meter;
        break;
      }
      case Kind::kTracker: {
        selection.rule = ANNULUS_GIVEN;
        annulus_importance_tracker* tracker = nullptr;
        annulus_importance_tracker_create(device, &problem, &selection, nullptr, &tracker);
        handle = tracker;
        break;
      }
      case Kind::kLayout: {
        annulus_layout_sizes sizes = ANNULUS_LAYOUT_SIZES_INIT;
        sizes.block_rows = sizes.block_columns = 8;
        sizes.seq_q = sizes.seq_k = kSide;
        sizes.heads = 2;
        annulus_layout* layout = nullptr;
        annulus_layout_make(bytes_.below(2) == 0 ? "causal" : "heads(dense, window(3, 3))", nullptr,
                            &sizes, nullptr, &layout);
        handle = layout;
        break;
      }
      case Kind::kArrays: {
        auto* const layout = static_cast<annulus_layout*>(provide(Kind::kLayout));
        annulus_arrays* arrays = nullptr;
        annulus_layout_to_arrays(layout, static_cast<std::int32_t>(bytes_.between(2, 7)), &arrays);
        handle = arrays;
        break;
      }
      case Kind::kCache: {
        annulus_layout_cache* cache = nullptr;
        annulus_layout_cache_create(nullptr, &cache);
        handle = cache;
        break;
      }
      case Kind::kQuery: {
        annulus_layout_query* query = nullptr;
        annulus_layout_query_create("window(9, 0)", nullptr, 8, 8, 1, 0, &query);
        handle = query;
        break;
      }
      case Kind::kTuning: {
        annulus_tune_options dry = ANNULUS_TUNE_OPTIONS_INIT;
        dry.dry_run = 1;
        annulus_tuning* tuning = nullptr;
        annulus_tune(device, &problem, &dry, &tuning);
        handle = tuning;
        break;
      }
      case Kind::kTuned: {
        annulus_tuned_list* list = nullptr;
        annulus_tuned_list_read(with.folder.c_str(), &list);
        handle = list;
        break;
      }
      case Kind::kTunedReport: {
        annulus_tuned_report* report = nullptr;
        annulus_tuned_prune(with.folder.c_str(), nullptr, 1, &report);
        handle = report;
        break;
      }
      case Kind::kInstallation: {
        annulus_installation* installation = nullptr;
        if (!examined_) annulus_installation_examine("", &installation);
        examined_ = true;
        handle = installation;
        break;
      }
      case Kind::kBatch: {
        annulus_batch_problem batch = batch_problem();
        batch.page_rows = bytes_.below(2) == 0 ? 0 : 16;
        annulus_batch_plan* plan = nullptr;
        annulus_batch_plan_create(device, &batch, nullptr, &plan);
        handle = plan;
        break;
      }
      case Kind::kAppend: {
        annulus_append_problem append = append_problem();
        append.page_rows = bytes_.below(2) == 0 ? 0 : 16;
        append.rotary_order = bytes_.below(2) == 0 ? ANNULUS_ROTARY_HALVES : ANNULUS_ROTARY_NONE;
        annulus_append_plan* plan = nullptr;
        annulus_append_plan_create(device, &append, &plan);
        appended_ = append;
        handle = plan;
        break;
      }
      case Kind::kRendezvous: {
        const annulus_rendezvous_options alone = alone_options();
        annulus_rendezvous* rendezvous = nullptr;
        annulus_rendezvous_meet(&alone, &rendezvous);
        handle = rendezvous;
        break;
      }
      case Kind::kCommunicator: {
        annulus_communicator_id id;
        annulus_communicator* communicator = nullptr;
        annulus_communicator_make_id(device, &id);
        annulus_communicator_open(device, &id, 1, 0, nullptr, &communicator);
        handle = communicator;
        break;
      }
      case Kind::kRankPlan: {
        auto* const communicator = static_cast<annulus_communicator*>(provide(Kind::kCommunicator));
        annulus_ring_options configured = ANNULUS_RING_OPTIONS_INIT;
        configured.config = kConfig;
        annulus_ring_rank_plan* plan = nullptr;
        annulus_ring_rank_plan_create(device, communicator, &problem, &configured, &plan);
        handle = plan;
        break;
      }
      default:  // texts, references and devices
        break;
    }
    if (handle != nullptr) held_.push_back({handle, kind, true});
    return handle;
  }
  static annulus_operands whole_operands() {
    annulus_operands made = ANNULUS_OPERANDS_INIT;
    void* const* memory = setting().memory;
    made.q = memory[0], made.k = memory[1], made.v = memory[2], made.o = memory[3];
    made.q_strides = made.k_strides = made.v_strides = made.o_strides = {64 * 64, 64 * 64, 64};
    return made;
  }

  // Looks at what a call returned. True where it succeeded.
  bool returned(annulus_status status, const char* function) {
    if (status < ANNULUS_OK || status > ANNULUS_COMMUNICATION)
      wrong("{} returned {}", function, int(status));
    if (status == ANNULUS_INTERNAL || status == ANNULUS_FAULT) {
      wrong("{}: {}", function, annulus_last_error());
    }
    if (status != ANNULUS_OK && annulus_last_error()[0] == '\0') wrong("{} says nothing", function);
    if (status == ANNULUS_OK && !good_) wrong("{} took a handle that is none", function);
    return status == ANNULUS_OK;
  }
  // The handle is what the call that gave the status has stored, and so is read after it.
  template <typename T>
  void made(annulus_status status, T* const& handle, Kind kind, const char* function) {
    if (!returned(status, function)) {
      if (handle != nullptr) wrong("{} failed and made a handle", function);
      return;
    }
    if (handle == nullptr || is_live(kind, handle)) wrong("{} made no new handle", function);
    held_.push_back({handle, kind, true});
  }
  static annulus_status destroy(Kind kind, void* handle) {
    return kDestroy[static_cast<std::size_t>(kind)](handle);
  }
  // Devices are given back by themselves.
  void give_back() {
    give_back(static_cast<Kind>(bytes_.between(1, static_cast<int>(std::size(kDestroy)) - 1)));
  }
  void give_back(Kind kind) {
    void* handle = pick<void>(kind);
    if (!returned(destroy(kind, handle), "destroy")) return;
    for (Held& held : held_) {
      if (held.handle == handle && held.kind == kind) held.live = false;
    }
  }

  const char* pattern() {
    static constexpr const char* kTexts[] = {"causal",
                                             "dense",
                                             "causal & window(5, 3)",
                                             "random(2, 1, 8)",
                                             "blocks()",
                                             "sum(causal, dense)",
                                             "heads(causal, dense)",
                                             "batches(causal, dense)",
                                             "window(",
                                             "",
                                             "vertical_slash([1, 2], [0])",
                                             "blocks(\"/nowhere\")",
                                             "preset(bigbird)"};
    const std::int64_t choice = bytes_.below(14);
    return choice == 13 ? nullptr : kTexts[choice];
  }
  std::int64_t small(std::int64_t most) {
    return bytes_.below(24) == 0 ? bytes_.number() : bytes_.between(0, most);
  }
  int tiny(std::int64_t most) { return static_cast<int>(small(most)); }
  std::size_t count(std::int64_t below) { return static_cast<std::size_t>(bytes_.below(below)); }
  const volatile std::int32_t* flag() {
    const std::int64_t choice = bytes_.below(16);
    return choice == 0 ? &kCancel : choice == 1 ? &kGoOn : nullptr;
  }
  Sized<annulus_work_limit> limit(std::int64_t most) {
    Sized<annulus_work_limit> made(ANNULUS_WORK_LIMIT_INIT, bytes_);
    made->max_work = bytes_.between(0, most);
    made->cancel = flag();
    return made;
  }
  // Launches are by far the slowest part of an input. True where one more is in the budget.
  bool may_launch() { return launches_++ < 1; }
  Sized<annulus_problem> problem(bool planned) {
    Sized<annulus_problem> made(ANNULUS_PROBLEM_INIT, bytes_);
    made->seq_q = bytes_.between(0, kSide);
    made->seq_k = bytes_.between(0, kSide);
    made->dim_qk = made->dim_v = kSide;
    made->pattern = "causal";
    if (planned) return made;
    made->batch = small(2);
    if (bytes_.below(2) == 0) {
      made->heads = 2;
      made->pattern = pattern();
      return made;
    }
    made->heads = small(4);
    made->kv_heads = small(2);
    made->dim_v = small(64);
    made->pattern = pattern();
    made->softcap = static_cast<double>(bytes_.below(3)) - 1;
    made->has_q0 = static_cast<std::int32_t>(small(1));
    made->q0 = bytes_.number();
    made->dtype = static_cast<std::int32_t>(small(4));
    made->want_lse = static_cast<std::int32_t>(small(1));
    made->carry_in = static_cast<std::int32_t>(bytes_.below(16) == 0);
    return made;
  }
  Sized<annulus_plan_options> plan_options() {
    Sized<annulus_plan_options> made(ANNULUS_PLAN_OPTIONS_INIT, bytes_);
    made->config = kConfig;
    made->kv_splits = 1;
    made->cancel = flag();
    made->max_work =
        3'000'000;  // the mask of causal takes two million, and nothing else is planned
    made->block_rows = small(128);
    made->block_columns = small(128);
    return made;
  }
  // With `host_too`, Q, K, V and O may also be host memory, which runs of plans find out and
  // refuse.
  Sized<annulus_operands> operands(bool host_too = true) {
    Sized<annulus_operands> made(ANNULUS_OPERANDS_INIT, bytes_);
    void* const* memory = setting().memory;
    static char host[64];
    const auto place = [&](int i) -> void* {
      const std::int64_t choice = bytes_.below(32);
      return choice == 0 ? nullptr : choice == 1 && host_too ? host : memory[choice == 2 ? 0 : i];
    };
    made->q = place(0), made->k = place(1), made->v = place(2), made->o = place(3);
    for (annulus_strides* strides :
         {&made->q_strides, &made->k_strides, &made->v_strides, &made->o_strides}) {
      *strides = {64 * 64, 64 * 64, 64};
      if (bytes_.below(32) == 0) strides->row = bytes_.below(64);
    }
    return made;
  }
  Sized<annulus_layout_sizes> sizes() {
    Sized<annulus_layout_sizes> made(ANNULUS_LAYOUT_SIZES_INIT, bytes_);
    made->block_rows = small(32);
    made->block_columns = small(32);
    made->seq_q = small(100);
    made->seq_k = small(100);
    made->heads = small(4);
    return made;
  }

  void call() {
    good_ = true;
    const std::uint8_t choice = bytes_.byte();
    if (choice >= 140) return call_more(choice);
    switch (choice % 10) {
      case 0:
        return give_back();
      case 1:
      case 2:
        return call_pattern();
      case 3:
      case 4:
      case 5:
        return call_layout();
      case 6:
        return call_formats();
      case 7:
        return call_device();
      default:
        return call_plan();
    }
  }

  void call_pattern() {
    annulus_text* text = nullptr;
    switch (bytes_.below(9)) {
      case 0:
        return made(annulus_pattern_normalise(pattern(), nullptr, &text), text, Kind::kText,
                    "annulus_pattern_normalise");
      case 1: {
        Sized<annulus_work_limit> limit(ANNULUS_WORK_LIMIT_INIT, bytes_);
        limit->max_work = small(100);
        returned(annulus_pattern_check(pattern(), nullptr, static_cast<std::int32_t>(small(1)),
                                       limit.get()),
                 "annulus_pattern_check");
        return;
      }
      case 2:
        return made(annulus_score_normalise(bytes_.below(2) == 0 ? "softcap(3)" : "alibi([", &text),
                    text, Kind::kText, "annulus_score_normalise");
      case 3: {
        Sized<annulus_pattern_info> info(ANNULUS_PATTERN_INFO_INIT, bytes_);
        returned(annulus_pattern_get_info(pattern(), nullptr, small(8), info.get()),
                 "annulus_pattern_get_info");
        return;
      }
      case 4: {
        Sized<annulus_pairs> pairs(ANNULUS_PAIRS_INIT, bytes_);
        pairs->head = small(4);
        pairs->q = bytes_.number(), pairs->k = bytes_.number();
        pairs->q_count = bytes_.between(0, 8), pairs->k_count = bytes_.between(0, 8);
        pairs->total_k = small(40);
        pairs->batch = small(3);
        if (pairs->batch > 0) --pairs->batch;  // 0 is what most patterns take
        std::vector<std::uint8_t> visible(64);
        returned(annulus_pattern_visible(pattern(), nullptr, pairs.get(), visible.data()),
                 "annulus_pattern_visible");
        return;
      }
      case 5:
        return made(annulus_pattern_of_batch(pattern(), nullptr, small(3), &text), text,
                    Kind::kText, "annulus_pattern_of_batch");
      case 6: {
        const std::int32_t numbers[] = {static_cast<std::int32_t>(bytes_.number()), 5, -1, 7};
        return made(
            annulus_pattern_from_vertical_slash(
                small(2), numbers, static_cast<std::size_t>(bytes_.below(5)), numbers, 2, &text),
            text, Kind::kText, "annulus_pattern_from_vertical_slash");
      }
      case 7: {
        Sized<annulus_pattern_word> word(ANNULUS_PATTERN_WORD_INIT, bytes_);
        const auto which = static_cast<std::size_t>(small(40));
        if (returned(annulus_pattern_word_get(which, word.get()), "annulus_pattern_word_get") &&
            which >= annulus_pattern_word_count()) {
          wrong("word {} of {}", which, annulus_pattern_word_count());
        }
        Sized<annulus_preset> preset(ANNULUS_PRESET_INIT, bytes_);
        returned(annulus_preset_get(static_cast<std::size_t>(small(20)), preset.get()),
                 "annulus_preset_get");
        return;
      }
      default: {
        const char* characters = nullptr;
        std::size_t length = 0;
        if (returned(annulus_text_get(pick<annulus_text>(Kind::kText), &characters, &length),
                     "annulus_text_get") &&
            std::strlen(characters) != length) {
          wrong("a text of {} bytes is said to have {}", std::strlen(characters), length);
        }
      }
    }
  }

  void call_layout() {
    const Bounded bounded;
    annulus_layout* layout = nullptr;
    const auto one = [&] { return pick<annulus_layout>(Kind::kLayout); };
    const auto keep = [&](annulus_status status, const char* function) {
      made(status, layout, Kind::kLayout, function);
    };
    switch (bytes_.below(16)) {
      case 0:
      case 1: {
        auto sized = sizes();
        Sized<annulus_layout_options> options(ANNULUS_LAYOUT_OPTIONS_INIT, bytes_);
        options->threads = 1;
        options->max_work = 1'000'000;
        options->layer = small(3);
        return keep(annulus_layout_make(pattern(), nullptr, sized.get(), options.get(), &layout),
                    "annulus_layout_make");
      }
      case 2: {
        const std::int64_t indptr[] = {0, small(2), 3};
        const std::int32_t indices[] = {0, static_cast<std::int32_t>(small(2)), 1};
        Sized<annulus_block_layout> arrays(ANNULUS_BLOCK_LAYOUT_INIT, bytes_);
        arrays->block_rows = small(16), arrays->block_columns = 16;
        arrays->seq_q = 20, arrays->seq_k = 40;
        arrays->indptr = indptr, arrays->indptr_count = 3;
        arrays->indices = indices, arrays->indices_count = 3;
        return keep(annulus_layout_create(arrays.get(), &layout), "annulus_layout_create");
      }
      case 3: {
        Sized<annulus_block_layout> arrays(ANNULUS_BLOCK_LAYOUT_INIT, bytes_);
        returned(annulus_layout_get(one(), arrays.get()), "annulus_layout_get");
        return;
      }
      case 4: {
        Sized<annulus_layout_statistics> statistics(ANNULUS_LAYOUT_STATISTICS_INIT, bytes_);
        returned(annulus_layout_get_statistics(one(), statistics.get()),
                 "annulus_layout_get_statistics");
        return;
      }
      case 5: {
        double shares[16];
        const auto layers = static_cast<std::int32_t>(bytes_.between(-1, 16));
        returned(annulus_layout_reachability(one(), layers, shares), "annulus_layout_reachability");
        return;
      }
      case 6: {
        Sized<annulus_picture_options> options(ANNULUS_PICTURE_OPTIONS_INIT, bytes_);
        options->head = small(3), options->max_cells = small(20);
        options->svg = static_cast<std::int32_t>(small(1));
        annulus_text* text = nullptr;
        return made(annulus_layout_picture(one(), options.get(), &text), text, Kind::kText,
                    "annulus_layout_picture");
      }
      case 7: {
        annulus_layout* a = one();
        annulus_layout* b = one();
        return keep(annulus_layout_unite(a, b, &layout), "annulus_layout_unite");
      }
      case 8: {
        annulus_layout* a = one();
        annulus_layout* b = one();
        return keep(bytes_.below(2) == 0 ? annulus_layout_intersect(a, b, &layout)
                                         : annulus_layout_subtract(a, b, &layout),
                    "annulus_layout_intersect");
      }
      case 9:
        return keep(annulus_layout_transpose(one(), &layout), "annulus_layout_transpose");
      case 10: {
        const annulus_segment rows[] = {{small(20), small(20)}, {small(30), small(9)}};
        const annulus_segment columns[] = {{small(20), small(20)},
                                           {bytes_.number(), bytes_.number()}};
        return keep(
            annulus_layout_slice(one(), rows, static_cast<std::size_t>(bytes_.below(3)), columns,
                                 static_cast<std::size_t>(bytes_.below(3)), &layout),
            "annulus_layout_slice");
      }
      case 11: {
        const std::int64_t high = small(40), wide = small(40);
        return keep(annulus_layout_reblock(one(), high, wide, &layout), "annulus_layout_reblock");
      }
      case 12: {
        const double density = static_cast<double>(bytes_.below(12)) / 10;
        annulus_layout* from = one();
        const bool good = good_;
        annulus_layout* within = one();
        if (within == nullptr) good_ = good;  // no bound
        return keep(annulus_layout_with_density(from, density, within, &layout),
                    "annulus_layout_with_density");
      }
      case 13:
        return keep(bytes_.below(2) == 0 ? annulus_layout_share_heads(one(), &layout)
                                         : annulus_layout_part_heads(one(), &layout),
                    "annulus_layout_share_heads");
      case 14: {
        const std::int64_t head = small(4);
        return keep(annulus_layout_head(one(), head, &layout), "annulus_layout_head");
      }
      default: {
        Sized<annulus_layout_difference> difference(ANNULUS_LAYOUT_DIFFERENCE_INIT, bytes_);
        annulus_layout* a = one();
        annulus_layout* b = one();
        annulus_text* text = nullptr;
        return made(annulus_layout_compare(a, b, small(4), difference.get(), &text), text,
                    Kind::kText, "annulus_layout_compare");
      }
    }
  }

  void call_formats() {
    const Bounded bounded;
    switch (bytes_.below(7)) {
      case 0: {
        annulus_arrays* arrays = nullptr;
        annulus_layout* layout = pick<annulus_layout>(Kind::kLayout);
        return made(annulus_layout_to_arrays(layout, static_cast<std::int32_t>(small(8)), &arrays),
                    arrays, Kind::kArrays, "annulus_layout_to_arrays");
      }
      case 1: {
        annulus_array array = {};
        static constexpr const char* kNames[] = {"indptr", "indices", "mask", "", "kept", "rows"};
        annulus_arrays* arrays = pick<annulus_arrays>(Kind::kArrays);
        returned(annulus_arrays_get(arrays, kNames[bytes_.below(6)], &array), "annulus_arrays_get");
        return;
      }
      case 2: {
        auto sized = sizes();
        const std::uint8_t mask[64] = {1, 2, 0, 1};
        const annulus_array array = {"mask", mask, static_cast<std::size_t>(bytes_.below(65)),
                                     static_cast<std::int32_t>(small(4))};
        annulus_layout* layout = nullptr;
        return made(
            annulus_layout_from_arrays(static_cast<std::int32_t>(small(8)), sized.get(), &array,
                                       static_cast<std::size_t>(bytes_.below(2)), &layout),
            layout, Kind::kLayout, "annulus_layout_from_arrays");
      }
      case 3: {
        Sized<annulus_cache_limits> limits(ANNULUS_CACHE_LIMITS_INIT, bytes_);
        limits->bytes = bytes_.below(8) == 0 ? bytes_.number() : bytes_.byte() * 1000;
        limits->entries = small(4);
        annulus_layout_cache* cache = nullptr;
        return made(annulus_layout_cache_create(limits.get(), &cache), cache, Kind::kCache,
                    "annulus_layout_cache_create");
      }
      case 4: {
        annulus_layout_query* query = nullptr;
        const char* text = pattern();
        return made(annulus_layout_query_create(text, nullptr, small(32), small(32), small(3),
                                                small(2), &query),
                    query, Kind::kQuery, "annulus_layout_query_create");
      }
      case 5: {
        annulus_text* key = nullptr;
        annulus_layout_query* query = pick<annulus_layout_query>(Kind::kQuery);
        return made(annulus_layout_query_key(query, small(90), small(90), &key), key, Kind::kText,
                    "annulus_layout_query_key");
      }
      default: {
        annulus_layout* layout = nullptr;
        std::int64_t position = 0;
        annulus_layout_cache* cache = pick<annulus_layout_cache>(Kind::kCache);
        annulus_layout_query* query = pick<annulus_layout_query>(Kind::kQuery);
        Sized<annulus_work_limit> limit(ANNULUS_WORK_LIMIT_INIT, bytes_);
        limit->max_work = small(100);
        return made(annulus_layout_cache_get(cache, query, small(90), small(90), limit.get(),
                                             &layout, &position),
                    layout, Kind::kLayout, "annulus_layout_cache_get");
      }
    }
  }

  void call_device() {
    annulus_device* device = pick<annulus_device>(Kind::kDevice);
    switch (bytes_.below(9)) {
      case 0: {
        Sized<annulus_device_info> info(ANNULUS_DEVICE_INFO_INIT, bytes_);
        returned(annulus_device_get_info(device, info.get()), "annulus_device_get_info");
        return;
      }
      case 1: {
        Sized<annulus_memory_statistics> to(ANNULUS_MEMORY_STATISTICS_INIT, bytes_);
        returned(annulus_device_memory_statistics(device, to.get()),
                 "annulus_device_memory_statistics");
        return;
      }
      case 2: {
        void* memory = nullptr;
        const auto size =
            static_cast<std::size_t>(bytes_.below(8) == 0 ? bytes_.number() : bytes_.byte());
        if (!returned(annulus_device_allocate(device, size, &memory), "annulus_device_allocate"))
          return;
        char data[256] = {};
        if (memory != nullptr && size <= sizeof data) {
          returned(annulus_device_copy_to_device(device, memory, data, size),
                   "annulus_device_copy_to_device");
          returned(annulus_device_copy_to_host(device, data, memory, size),
                   "annulus_device_copy_to_host");
        }
        if (!returned(annulus_device_release(device, memory), "annulus_device_release"))
          wrong("memory is not taken back");
        if (memory != nullptr && annulus_device_release(device, memory) == ANNULUS_OK)
          wrong("memory is taken back twice");
        return;
      }
      case 3: {
        std::size_t given = 0;
        returned(annulus_device_trim(device, static_cast<std::size_t>(bytes_.number()), &given),
                 "annulus_device_trim");
        return;
      }
      case 4: {
        annulus_counter counters[8];
        std::size_t count = 0;
        returned(annulus_device_get_counters(device, static_cast<std::int32_t>(small(1)), counters,
                                             static_cast<std::size_t>(bytes_.below(9)), &count),
                 "annulus_device_get_counters");
        return;
      }
      case 5: {
        void* entry = nullptr;
        returned(annulus_device_driver_entry(device, bytes_.below(2) == 0 ? "cuInit" : "cuNothing",
                                             &entry),
                 "annulus_device_driver_entry");
        return;
      }
      case 6: {
        Sized<annulus_simulation> simulation(ANNULUS_SIMULATION_INIT, bytes_);
        simulation->threads = bytes_.below(2) == 0 ? 1 : bytes_.number();
        if (simulation->threads != 1 && simulation->threads >= 0 && simulation->threads <= 1024)
          simulation->threads = 1;
        returned(annulus_device_set_simulation(device, simulation.get()),
                 "annulus_device_set_simulation");
        return;
      }
      case 7: {
        Sized<annulus_device_options> options(ANNULUS_DEVICE_OPTIONS_INIT, bytes_);
        static constexpr const char* kNames[] = {"sim:sm_1", "cuda:77", "sim:sm_80:9", "nothing",
                                                 "sim:"};
        options->name = kNames[bytes_.below(5)];
        annulus_device* opened = nullptr;
        return made(annulus_device_open(options.get(), &opened), opened, Kind::kDevice,
                    "annulus_device_open");
      }
      default:
        returned(annulus_device_synchronize(device), "annulus_device_synchronize");
    }
  }

  void call_plan() {
    annulus_plan* plan = nullptr;
    switch (bytes_.below(16)) {
      case 0:
      case 1:
      case 2: {
        annulus_device* device = pick<annulus_device>(Kind::kDevice);
        auto described = problem(true);
        auto options = plan_options();
        return made(annulus_plan_create(device, described.get(), options.get(), &plan), plan,
                    Kind::kPlan, "annulus_plan_create");
      }
      case 3: {
        annulus_device* device = pick<annulus_device>(Kind::kDevice);
        auto described = problem(false);
        auto options = plan_options();
        Sized<annulus_memory_needed> needed(ANNULUS_MEMORY_NEEDED_INIT, bytes_);
        returned(annulus_plan_memory_needed(device, described.get(), options.get(), needed.get()),
                 "annulus_plan_memory_needed");
        return;
      }
      case 4: {
        Sized<annulus_plan_info> info(ANNULUS_PLAN_INFO_INIT, bytes_);
        returned(annulus_plan_get_info(pick<annulus_plan>(Kind::kPlan), info.get()),
                 "annulus_plan_get_info");
        return;
      }
      case 5: {
        std::size_t size = 0;
        returned(annulus_plan_workspace_bytes(pick<annulus_plan>(Kind::kPlan), &size),
                 "annulus_plan_workspace_bytes");
        return;
      }
      case 6:
      case 7: {
        plan = pick<annulus_plan>(Kind::kPlan);
        auto given = operands();
        if (may_launch()) {
          returned(annulus_plan_run(plan, nullptr, given.get(), scratch()), "annulus_plan_run");
        }
        return;
      }
      case 8: {
        annulus_bound* bound = nullptr;
        plan = pick<annulus_plan>(Kind::kPlan);
        auto given = operands();
        return made(annulus_plan_bind(plan, given.get(), scratch(), &bound), bound, Kind::kBound,
                    "annulus_plan_bind");
      }
      case 9:
        if (!may_launch()) return;
        returned(annulus_bound_run(pick<annulus_bound>(Kind::kBound), nullptr),
                 "annulus_bound_run");
        return;
      case 10: {
        Sized<annulus_prediction> prediction(ANNULUS_PREDICTION_INIT, bytes_);
        returned(annulus_plan_predict(pick<annulus_plan>(Kind::kPlan), prediction.get()),
                 "annulus_plan_predict");
        return;
      }
      case 11: {
        auto described = problem(false);
        Sized<annulus_work_limit> limit(ANNULUS_WORK_LIMIT_INIT, bytes_);
        limit->max_work = 100'000;
        double density = 0;
        returned(annulus_problem_density(described.get(), limit.get(), &density),
                 "annulus_problem_density");
        return;
      }
      case 12: {
        auto described = problem(false);
        auto given = operands();
        returned(
            annulus_problem_validate(described.get(), bytes_.below(2) == 0 ? nullptr : given.get()),
            "annulus_problem_validate");
        return;
      }
      case 13:
        return create_ring();
      case 14: {
        alignas(16) static std::uint16_t zeros[64 * 64 * 2] = {};
        auto described = problem(true);
        Sized<annulus_host_inputs> inputs(ANNULUS_HOST_INPUTS_INIT, bytes_);
        inputs->q = zeros, inputs->k = zeros;
        inputs->v = bytes_.below(8) == 0 ? nullptr : zeros;
        inputs->q_strides = inputs->k_strides = inputs->v_strides = {64 * 64, 64 * 64, 64};
        Sized<annulus_reference_options> options(ANNULUS_REFERENCE_OPTIONS_INIT, bytes_);
        options->threads = 1;
        options->tile_rows = small(64);
        annulus_reference* reference = nullptr;
        return made(
            annulus_reference_create(described.get(), inputs.get(), options.get(), &reference),
            reference, Kind::kReference, "annulus_reference_create");
      }
      default: {
        Sized<annulus_reference_rows> rows(ANNULUS_REFERENCE_ROWS_INIT, bytes_);
        returned(annulus_reference_get(pick<annulus_reference>(Kind::kReference), rows.get()),
                 "annulus_reference_get");
      }
    }
  }

  // ---- Functions beside patterns, layouts, devices and plans

  // Batches, appending and ranks have choices of their own, so that most inputs of the corpus mean
  // what they meant.
  void call_more(std::uint8_t choice) {
    if (choice >= 252) return call_append();
    if (choice >= 244) return call_batch();
    if (choice >= 232) return call_ranks();
    switch (choice % 10) {
      case 0:
        return give_back();
      case 1:
        return call_ring();
      case 2:
        return call_selected();
      case 3:
        return call_meter();
      case 4:
        return call_tracker();
      case 5:
        return call_tuning();
      case 6:
        return call_files();
      case 7:
        return call_states();
      case 8:
        return call_metrics();
      default:
        return call_rest();
    }
  }

  // Memory for a workspace: mostly large enough for every plan here.
  void* scratch() {
    const std::int64_t choice = bytes_.below(16);
    if (choice == 0) return nullptr;
    auto* const bytes = static_cast<std::byte*>(setting().memory[9]);
    return choice == 1 ? bytes + 1 : bytes;
  }
  template <typename T>
  T* place(int index) {
    const std::int64_t choice = bytes_.below(24);
    auto* const bytes = static_cast<std::byte*>(setting().memory[index]);
    return reinterpret_cast<T*>(choice == 0 ? nullptr : choice == 1 ? bytes + 2 : bytes);
  }
  Sized<annulus_operands> operands_with_lse(bool host_too) {
    Sized<annulus_operands> made = operands(host_too);
    made->lse = place<float>(4);
    return made;
  }
  Sized<annulus_problem> problem_with_lse() {
    Sized<annulus_problem> made = problem(true);
    made->want_lse = bytes_.below(12) != 0;
    return made;
  }

  void create_ring() {
    annulus_device* devices[3] = {};
    for (annulus_device*& device : devices) device = setting().device;
    const std::size_t ranks = bytes_.below(8) == 0 ? count(4) : 2;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      devices[rank] = pick<annulus_device>(Kind::kDevice);
    }
    auto described = problem(true);
    if (bytes_.below(2) == 0) described->seq_k = described->seq_q;
    auto plans = plan_options();
    Sized<annulus_ring_options> options(ANNULUS_RING_OPTIONS_INIT, bytes_);
    options->sharding = tiny(2);
    options->multiple = tiny(16);
    options->plans = plans.get();
    options->route = tiny(3);
    switch (bytes_.below(8)) {
      case 0:
        options->config = "mma m64";
        break;
      case 1:  // both have a configuration
        options->config = kConfig;
        break;
      case 2:
        break;
      default:
        options->config = kConfig;
        plans->config = nullptr;
        plans->block_rows = plans->block_columns = 0;
    }
    const std::int64_t cut = bytes_.between(0, kSide);
    const annulus_segment pieces[] = {
        {0, cut}, {cut, described->seq_q - cut}, {cut, described->seq_k - cut}, {small(64), 3}};
    annulus_shard shards[3] = {
        {&pieces[0], 1, &pieces[0], 1}, {&pieces[1], 1, &pieces[2], 1}, {pieces, 0, nullptr, 0}};
    if (bytes_.below(2) == 0) options->shards = shards;
    if (bytes_.below(8) == 0) shards[bytes_.below(3)].q = &pieces[3];
    if (bytes_.below(8) == 0) shards[bytes_.below(3)].k_count = count(3);
    for (annulus_shard& shard : shards) {
      // A count beyond its array would break the contract.
      if (shard.k_count == 2 && shard.k != &pieces[0]) shard.k = &pieces[0];
      if (shard.k == nullptr && shard.k_count > 0 && bytes_.below(2) == 0) shard.k_count = 0;
    }
    if (tiny(3) == 3) {
      Sized<annulus_problem> step(ANNULUS_PROBLEM_INIT, bytes_);
      const bool good = std::exchange(good_, true);  // it takes no handle
      returned(annulus_ring_get_step(ranks, described.get(), options.get(), step.get()),
               "annulus_ring_get_step");
      good_ = good;
    }
    annulus_ring* ring = nullptr;
    made(annulus_ring_create(devices, ranks, described.get(), options.get(), &ring), ring,
         Kind::kRing, "annulus_ring_create");
  }

  void run_ring() {
    annulus_ring* ring = pick<annulus_ring>(Kind::kRing);
    constexpr std::size_t kMost = 4;
    constexpr std::size_t kEach = Setting::kBytes / kMost;
    // Elements lie at the distance of their struct_size.
    std::size_t size = sizeof(annulus_ring_call);
    if (bytes_.below(8) == 0) size = count(9) * 8;
    alignas(16) std::byte calls[kMost * 64 + 64] = {};
    std::vector<Sized<annulus_operands>> given;
    for (std::size_t rank = 0; rank < kMost; ++rank) {
      Sized<annulus_operands> one(ANNULUS_OPERANDS_INIT, bytes_);
      const auto at = [&](int i) {
        return bytes_.below(48) == 0 ? nullptr
                                     : static_cast<std::byte*>(setting().memory[i]) + rank * kEach;
      };
      one->q = at(0), one->k = at(1), one->v = at(2), one->o = at(3);
      one->q_strides = one->k_strides = one->v_strides = one->o_strides = {64 * 64, 64 * 64, 64};
      given.push_back(one);
    }
    for (std::size_t rank = 0; rank < kMost; ++rank) {
      annulus_ring_call call = ANNULUS_RING_CALL_INIT;
      call.struct_size = rank > 0 && bytes_.below(32) == 0 ? count(80) : size;
      call.operands = bytes_.below(32) == 0 ? nullptr : given[rank].get();
      call.workspace = static_cast<std::byte*>(setting().memory[9]) + rank * kEach;
      if (bytes_.below(32) == 0) call.workspace = nullptr;
      std::memcpy(calls + rank * size, &call, std::min(size, sizeof call));
    }
    const std::size_t ranks = bytes_.below(8) == 0 ? count(kMost + 1) : 2;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      annulus_ring_rank info = ANNULUS_RING_RANK_INIT;
      if (annulus_ring_get_rank(ring, rank, &info) == ANNULUS_OK &&
          info.workspace_bytes > static_cast<std::int64_t>(kEach)) {
        wrong("a rank needs {} bytes of workspace", info.workspace_bytes);
      }
    }
    if (!may_launch()) return;
    returned(annulus_ring_run(ring, reinterpret_cast<const annulus_ring_call*>(calls), ranks),
             "annulus_ring_run");
  }

  void call_ring() {
    switch (bytes_.below(7)) {
      case 0:
      case 1:
        return create_ring();
      case 2: {
        Sized<annulus_ring_info> info(ANNULUS_RING_INFO_INIT, bytes_);
        returned(annulus_ring_get_info(pick<annulus_ring>(Kind::kRing), info.get()),
                 "annulus_ring_get_info");
        return;
      }
      case 3: {
        Sized<annulus_ring_rank> info(ANNULUS_RING_RANK_INIT, bytes_);
        annulus_ring* ring = pick<annulus_ring>(Kind::kRing);
        const auto rank = static_cast<std::size_t>(small(3));
        returned(annulus_ring_get_rank(ring, rank, info.get()), "annulus_ring_get_rank");
        return;
      }
      case 4: {
        const char* picture = nullptr;
        if (returned(annulus_ring_get_picture(pick<annulus_ring>(Kind::kRing), &picture),
                     "annulus_ring_get_picture") &&
            std::strstr(picture, "</svg>") == nullptr) {
          wrong("a picture that is no SVG");
        }
        return;
      }
      default:
        return run_ring();
    }
  }

  // Patterns, dtypes and scores are other kernels, which there is no time to compile, so that they
  // are only asked about.
  static annulus_batch_problem batch_problem() {
    annulus_batch_problem made = ANNULUS_BATCH_PROBLEM_INIT;
    made.dim_qk = made.dim_v = kSide;
    made.pattern = "causal";
    made.most = {4, kSide, 0, kSide, 0};
    return made;
  }
  void check_batch() {
    Sized<annulus_batch_problem> batch(batch_problem(), bytes_);
    batch->heads = small(4);
    batch->kv_heads = small(2);
    batch->dim_v = small(64);
    batch->pattern = pattern();
    batch->score = bytes_.below(4) == 0 ? "softcap(3)" : nullptr;
    batch->softcap = static_cast<double>(bytes_.below(3)) - 1;
    batch->most = {small(4), small(64), small(64), small(64), small(255)};
    batch->page_rows = small(64);
    batch->has_scale = tiny(1);
    batch->dtype = tiny(4);
    batch->want_lse = tiny(1);
    batch->carry_out = tiny(1);
    returned(annulus_batch_problem_validate(batch.get()), "annulus_batch_problem_validate");
  }
  void create_batch() {
    annulus_device* device = pick<annulus_device>(Kind::kDevice);
    Sized<annulus_batch_problem> batch(batch_problem(), bytes_);
    batch->heads = bytes_.between(1, 2);
    batch->kv_heads = bytes_.between(1, 2);
    batch->most = {bytes_.between(1, 4), bytes_.between(1, 64), 0, bytes_.between(1, 64),
                   bytes_.between(0, 255)};
    batch->page_rows = bytes_.below(2) == 0 ? 0 : 16;
    batch->want_lse = bytes_.below(4) == 0 ? 1 : 0;
    Sized<annulus_batch_options> options(ANNULUS_BATCH_OPTIONS_INIT, bytes_);
    options->part_keys = bytes_.below(4) == 0 ? small(64) : 0;
    options->max_workspace_bytes = bytes_.below(4) == 0 ? bytes_.number() : 0;
    options->max_multiprocessors = tiny(4);
    options->check_status = tiny(1);
    if (bytes_.below(8) == 0) options->config = "decode m16 n64 w4 s2, chunk m64 n64 w4 s2";
    annulus_batch_plan* plan = nullptr;
    made(annulus_batch_plan_create(device, batch.get(),
                                   bytes_.below(4) == 0 ? nullptr : options.get(), &plan),
         plan, Kind::kBatch, "annulus_batch_plan_create");
  }

  // Lengths, positions and page numbers are in device memory, where a step may have any. What they
  // are read from is as large as they say.
  void run_batch() {
    auto* const plan = pick<annulus_batch_plan>(Kind::kBatch);
    std::int32_t step[40];
    for (std::int32_t& number : step) {
      number =
          static_cast<std::int32_t>(bytes_.below(4) == 0 ? bytes_.number() : bytes_.byte() / 4);
    }
    annulus_device_copy_to_device(setting().device, setting().memory[8], step, sizeof step);
    const auto* const numbers = static_cast<const std::int32_t*>(setting().memory[8]);
    Sized<annulus_batch_metadata> metadata(ANNULUS_BATCH_METADATA_INIT, bytes_);
    metadata->q_begin = numbers;
    metadata->k_length = bytes_.below(16) == 0 ? nullptr : numbers + 8;
    metadata->requests = bytes_.below(2) == 0 ? nullptr : numbers + 16;
    metadata->k_position = bytes_.below(2) == 0 ? nullptr : numbers + 17;
    if (bytes_.below(2) == 0) metadata->k_pages = {numbers + 24, nullptr, bytes_.between(-1, 4)};
    void* const workspace = scratch();
    std::size_t needed = 0;
    if (annulus_batch_plan_workspace_bytes(plan, &needed) == ANNULUS_OK &&
        needed > Setting::kBytes) {
      wrong("a batch needs {} bytes of workspace", needed);
    }
    if (!may_launch() ||
        !returned(annulus_batch_plan_prepare(plan, nullptr, metadata.get(), workspace),
                  "annulus_batch_plan_prepare")) {
      return;
    }
    Sized<annulus_batch_operands> given(ANNULUS_BATCH_OPERANDS_INIT, bytes_);
    void* const* memory = setting().memory;
    given->q = memory[0], given->k = memory[1], given->v = memory[2], given->o = place<void>(3);
    given->lse = bytes_.below(4) == 0 ? place<float>(4) : nullptr;
    given->q_strides = given->o_strides = {2 * kSide, kSide};
    given->lse_strides = {1, kSide};
    given->k_strides = given->v_strides = {16 * kSide, kSide, kSide};
    if (bytes_.below(16) == 0) given->v_strides.row = bytes_.byte();
    given->k_pages = given->v_pages = 4;
    returned(annulus_batch_plan_run(plan, nullptr, given.get(), workspace),
             "annulus_batch_plan_run");
    Sized<annulus_batch_status> status(ANNULUS_BATCH_STATUS_INIT, bytes_);
    if (returned(annulus_batch_plan_get_status(plan, workspace, status.get()),
                 "annulus_batch_plan_get_status") &&
        (status->rule < ANNULUS_RULE_NONE || status->rule > ANNULUS_RULE_PAGE)) {
      wrong("the status is rule {}: {}", status->rule,
            annulus_batch_rule_text(static_cast<int>(status->rule)));
    }
  }

  void call_batch() {
    switch (bytes_.below(8)) {
      case 0:
        return check_batch();
      case 1:
        return create_batch();
      case 2: {
        Sized<annulus_batch_plan_info> info(ANNULUS_BATCH_PLAN_INFO_INIT, bytes_);
        returned(annulus_batch_plan_get_info(pick<annulus_batch_plan>(Kind::kBatch), info.get()),
                 "annulus_batch_plan_get_info");
        return;
      }
      case 3:
        return give_back(Kind::kBatch);
      default:
        return run_batch();
    }
  }

  static annulus_append_problem append_problem() {
    annulus_append_problem made = ANNULUS_APPEND_PROBLEM_INIT;
    made.heads = made.kv_heads = 2;
    made.dim_qk = made.dim_v = kSide;
    made.most = {4, kSide, 0, kSide, 0};
    return made;
  }
  // One that can be planned, or anything.
  Sized<annulus_append_problem> drawn_append(bool any) {
    Sized<annulus_append_problem> drawn(append_problem(), bytes_);
    drawn->heads = any ? small(4) : bytes_.between(0, 2);
    drawn->kv_heads = any ? small(4) : bytes_.between(1, 2);
    drawn->dim_qk = any ? small(64) : 16 * bytes_.between(1, 4);
    drawn->most.rows = any ? small(64) : bytes_.between(1, kSide);
    drawn->page_rows = any ? small(64) : 16 * bytes_.below(2);
    drawn->rotary_dims = any ? small(64) : 0;
    drawn->rotary_base = static_cast<double>(bytes_.between(any ? -1 : 1, 1000));
    drawn->rotary_order = any ? tiny(4) : static_cast<std::int32_t>(bytes_.below(3));
    drawn->place = any ? tiny(4) : static_cast<std::int32_t>(bytes_.between(1, 2));
    drawn->table_dtype = any ? tiny(5) : static_cast<std::int32_t>(bytes_.below(4));
    drawn->dtype = any ? tiny(4) : ANNULUS_BFLOAT16;
    static constexpr double kFrequencies[512] = {1, 0.5, 0.25, -3};
    if (bytes_.below(8) == 0) drawn->frequencies = kFrequencies;
    return drawn;
  }

  // Mostly what the problem that was planned last needs.
  bool needed(bool is_needed) { return bytes_.below(16) == 0 ? !is_needed : is_needed; }

  // Slots and pages are different ones, as the caller of the library has to see to, or none.
  void run_append() {
    auto* const plan = pick<annulus_append_plan>(Kind::kAppend);
    struct {
      std::int64_t slots[kSide], positions[kSide];
      std::int32_t numbers[32], ids[16];
    } step;
    const std::int64_t factor = 2 * bytes_.below(128) + 1;
    for (std::int64_t i = 0; i < kSide; ++i) {
      step.slots[i] = bytes_.below(8) == 0 ? -1 - std::abs(bytes_.number() / 2) : i * factor % 256;
      step.positions[i] = bytes_.below(8) == 0 ? bytes_.number() : bytes_.byte();
    }
    for (std::int32_t& number : step.numbers) {
      number =
          static_cast<std::int32_t>(bytes_.below(4) == 0 ? bytes_.number() : bytes_.byte() / 4);
    }
    for (std::int32_t i = 0; i < 16; ++i) step.ids[i] = bytes_.below(8) == 0 ? i - 16 : i;
    auto* const begin = static_cast<std::byte*>(setting().memory[8]);
    annulus_device_copy_to_device(setting().device, begin, &step, sizeof step);
    const auto at = [&](std::size_t offset) { return begin + offset; };
    const auto* const numbers =
        reinterpret_cast<const std::int32_t*>(at(2 * kSide * sizeof(std::int64_t)));
    Sized<annulus_batch_metadata> metadata(ANNULUS_BATCH_METADATA_INIT, bytes_);
    metadata->q_begin = numbers, metadata->k_length = numbers + 8;
    metadata->requests = bytes_.below(2) == 0 ? nullptr : numbers + 16;
    metadata->k_position = bytes_.below(2) == 0 ? nullptr : numbers + 17;
    const bool paged = needed(appended_.page_rows > 0);
    if (paged) metadata->k_pages = {numbers + 32, nullptr, bytes_.between(-1, 4)};
    Sized<annulus_append_operands> given(ANNULUS_APPEND_OPERANDS_INIT, bytes_);
    void* const* memory = setting().memory;
    const bool rotates = needed(appended_.rotary_order != ANNULUS_ROTARY_NONE);
    if (rotates && needed(appended_.heads > 0)) {
      given->q = memory[0], given->rotated_q = place<void>(3);
    }
    given->new_k = memory[1], given->new_v = memory[2];
    given->q_strides = given->rotated_q_strides = {2 * kSide, kSide};
    given->new_k_strides = given->new_v_strides = {2 * kSide, kSide};
    given->k = place<void>(10), given->v = memory[11];
    // A page, or a slab without pages, has room for 64 rows.
    given->k_strides = given->v_strides = {128 * kSide, 2 * kSide, kSide};
    given->k_pages = given->v_pages = paged ? 16 : 256;
    if (needed(appended_.place == ANNULUS_APPEND_SLOTS)) {
      given->slots = reinterpret_cast<const std::int64_t*>(begin);
      given->rows = bytes_.below(2) == 0 ? nullptr : numbers + 16;
    } else {
      given->step = metadata.get();
    }
    if (rotates && needed(given->slots != nullptr)) {
      given->positions = reinterpret_cast<const std::int64_t*>(at(kSide * sizeof(std::int64_t)));
    }
    if (rotates && needed(appended_.table_dtype != 0)) {
      given->cosines = given->sines = memory[4];
      given->table_stride = 32 + bytes_.byte() / 2, given->table_rows = bytes_.byte();
    }
    auto* const word = static_cast<std::uint32_t*>(memory[12]);
    given->status = bytes_.below(4) == 0 ? nullptr : word;
    if (!may_launch()) return;
    returned(annulus_append_plan_clear_status(plan, nullptr, word),
             "annulus_append_plan_clear_status");
    returned(annulus_append_plan_run(plan, nullptr, given.get()), "annulus_append_plan_run");
    Sized<annulus_append_status> status(ANNULUS_APPEND_STATUS_INIT, bytes_);
    if (returned(annulus_append_plan_get_status(plan, word, status.get()),
                 "annulus_append_plan_get_status") &&
        (status->rule < ANNULUS_APPEND_RULE_NONE || status->rule > ANNULUS_APPEND_RULE_POSITION)) {
      wrong("the status is rule {}: {}", status->rule,
            annulus_append_rule_text(static_cast<int>(status->rule)));
    }
  }

  void call_append() {
    switch (bytes_.below(8)) {
      case 0:
        returned(annulus_append_problem_validate(drawn_append(true).get()),
                 "annulus_append_problem_validate");
        return;
      case 1: {
        annulus_device* const device = pick<annulus_device>(Kind::kDevice);
        Sized<annulus_append_problem> append = drawn_append(false);
        annulus_append_plan* plan = nullptr;
        made(annulus_append_plan_create(device, append.get(), &plan), plan, Kind::kAppend,
             "annulus_append_plan_create");
        appended_ = append.value;
        return;
      }
      case 2: {
        Sized<annulus_append_plan_info> info(ANNULUS_APPEND_PLAN_INFO_INIT, bytes_);
        returned(annulus_append_plan_get_info(pick<annulus_append_plan>(Kind::kAppend), info.get()),
                 "annulus_append_plan_get_info");
        return;
      }
      case 3:
        return give_back(Kind::kAppend);
      default:
        return run_append();
    }
  }

  // ---- Ranks: this process is all of them, or the others do not come

  static annulus_rendezvous_options alone_options() {
    annulus_rendezvous_options made = ANNULUS_RENDEZVOUS_OPTIONS_INIT;
    made.token = "alone";
    return made;
  }

  // What waits for ranks that do not come takes milliseconds, once in an input.
  bool may_wait() { return waits_++ < 1; }

  void create_rendezvous() {
    annulus_rendezvous* rendezvous = nullptr;
    Sized<annulus_rendezvous_options> options(alone_options(), bytes_);
    if (bytes_.below(4) == 0 && may_wait()) {
      // Whole, since an older caller's deadline would be half a minute.
      annulus_rendezvous_options others = alone_options();
      const std::string file = "file:" + setting().folder + "/meeting";
      const char* const addresses[] = {file.c_str(), "tcp:127.0.0.1:1", "tcp:[::1", "file:", "",
                                       nullptr};
      others.address = addresses[bytes_.below(6)];
      others.token = bytes_.below(4) == 0 ? nullptr : "alone";
      others.listen_on = bytes_.below(4) == 0 ? "127.0.0.300" : nullptr;
      others.ranks = static_cast<std::int32_t>(small(3));
      others.rank = static_cast<std::int32_t>(small(2));
      others.deadline_ms = bytes_.between(-1, 8);
      options.value = others;
    }
    if (bytes_.below(3) > 0) {
      return made(annulus_rendezvous_meet(options.get(), &rendezvous), rendezvous,
                  Kind::kRendezvous, "annulus_rendezvous_meet");
    }
    const auto fails = [](void*, const void*, std::size_t, void*) { return 3; };
    return made(annulus_rendezvous_over(bytes_.below(8) == 0 ? nullptr : +fails, nullptr,
                                        options.get(), &rendezvous),
                rendezvous, Kind::kRendezvous, "annulus_rendezvous_over");
  }

  void regroup() {
    auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
    annulus_regroup_options options = ANNULUS_REGROUP_OPTIONS_INIT;
    const std::int32_t without[] = {static_cast<std::int32_t>(small(1)), 0};
    options.without = bytes_.below(8) == 0 ? nullptr : without;
    options.without_count = count(3);
    options.at_least = small(2);
    options.deadline_ms = bytes_.between(-1, 8);
    annulus_rendezvous* regrouped = nullptr;
    made(annulus_rendezvous_regroup(rendezvous, &options, &regrouped), regrouped, Kind::kRendezvous,
         "annulus_rendezvous_regroup");
  }

  void call_rendezvous() {
    switch (bytes_.below(8)) {
      case 0:
        return create_rendezvous();
      case 1: {
        Sized<annulus_rendezvous_info> info(ANNULUS_RENDEZVOUS_INFO_INIT, bytes_);
        returned(
            annulus_rendezvous_get_info(pick<annulus_rendezvous>(Kind::kRendezvous), info.get()),
            "annulus_rendezvous_get_info");
        return;
      }
      case 2: {
        Sized<annulus_rank_state> state(ANNULUS_RANK_STATE_INIT, bytes_);
        auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
        returned(annulus_rendezvous_get_state(rendezvous, static_cast<std::int32_t>(small(2)),
                                              state.get()),
                 "annulus_rendezvous_get_state");
        return;
      }
      case 3: {
        const annulus_position position = {bytes_.number(), bytes_.number(), 3};
        auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
        returned(annulus_rendezvous_post(rendezvous, bytes_.below(8) == 0 ? nullptr : &position),
                 "annulus_rendezvous_post");
        return;
      }
      case 4:
        return give_back(Kind::kRendezvous);
      case 5:
        return regroup();
      default: {
        char own[64] = {1, 2, 3}, all[64] = {};
        std::size_t counts[1] = {};
        std::int32_t arrivals[1] = {};
        auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
        const auto size = static_cast<std::size_t>(bytes_.below(64));
        const std::size_t room = bytes_.below(4) == 0 ? count(64) : size;
        const std::int64_t deadline = bytes_.below(8) == 0 ? bytes_.number() : 5;
        void* const to = bytes_.below(16) == 0 ? nullptr : all;
        const bool gathers = bytes_.below(2) == 0;
        if (returned(gathers ? annulus_rendezvous_gather(rendezvous, own, size, deadline, to, room,
                                                         counts, arrivals)
                             : annulus_rendezvous_all_gather(rendezvous, own, size, deadline, to,
                                                             room, counts),
                     "annulus_rendezvous_gather") &&
            (counts[0] != size || std::memcmp(own, all, size) != 0)) {
          wrong("a rank alone gathers something else than it brought");
        }
      }
    }
  }

  void create_communicator() {
    annulus_communicator_id id = {};
    auto* const device = pick<annulus_device>(Kind::kDevice);
    if (bytes_.below(8) > 0) {
      returned(annulus_communicator_make_id(device, &id), "annulus_communicator_make_id");
    }
    annulus_communicator* communicator = nullptr;
    Sized<annulus_communicator_options> options(ANNULUS_COMMUNICATOR_OPTIONS_INIT, bytes_);
    options->blocking = bytes_.below(12) == 0 ? 2 : bytes_.below(2);
    std::int32_t ranks = 1;
    if (bytes_.below(4) == 0 && may_wait()) {
      annulus_communicator_options others = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
      others.planning_ms = bytes_.between(1, 8);
      options.value = others;
      ranks = static_cast<std::int32_t>(small(3));
    }
    switch (bytes_.below(4)) {
      case 0: {
        auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
        return made(annulus_communicator_meet(device, rendezvous, options.get(), &communicator),
                    communicator, Kind::kCommunicator, "annulus_communicator_meet");
      }
      case 1:  // any other address would be NCCL's to follow
        return made(
            annulus_communicator_borrow(device, nullptr, nullptr, options.get(), &communicator),
            communicator, Kind::kCommunicator, "annulus_communicator_borrow");
      default: {
        const auto rank = static_cast<std::int32_t>(bytes_.below(4) == 0 ? small(2) : 0);
        return made(
            annulus_communicator_open(device, &id, ranks, rank, options.get(), &communicator),
            communicator, Kind::kCommunicator, "annulus_communicator_open");
      }
    }
  }

  // What has become of runs.
  void ask_communicator() {
    auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
    std::int64_t runs = 0;
    std::int32_t state = 0;
    Sized<annulus_communicator_event> event(ANNULUS_COMMUNICATOR_EVENT_INIT, bytes_);
    Sized<annulus_rank_state> peer(ANNULUS_RANK_STATE_INIT, bytes_);
    switch (bytes_.below(5)) {
      case 0:
        returned(annulus_communicator_get_runs(communicator, &runs),
                 "annulus_communicator_get_runs");
        return;
      case 1:
        returned(annulus_communicator_get_state(communicator, small(2), &state),
                 "annulus_communicator_get_state");
        return;
      case 2:
        if (returned(annulus_communicator_wait(communicator, small(2), &state),
                     "annulus_communicator_wait") &&
            state != ANNULUS_RUN_GOOD && state != ANNULUS_RUN_VOID) {
          wrong("a run that was waited for is {}", annulus_run_state_text(state));
        }
        return;
      case 3:
        returned(annulus_communicator_next_event(communicator, small(3), event.get()),
                 "annulus_communicator_next_event");
        return;
      default:
        returned(annulus_communicator_get_peer(communicator, static_cast<std::int32_t>(small(2)),
                                               peer.get()),
                 "annulus_communicator_get_peer");
    }
  }

  void call_communicator() {
    switch (bytes_.below(9)) {
      case 0:
      case 1:
        return create_communicator();
      case 2: {
        Sized<annulus_communicator_info> info(ANNULUS_COMMUNICATOR_INFO_INIT, bytes_);
        returned(annulus_communicator_get_info(pick<annulus_communicator>(Kind::kCommunicator),
                                               info.get()),
                 "annulus_communicator_get_info");
        return;
      }
      case 3: {
        // A rank alone has no peer.
        const annulus_sent_bytes sent = {setting().memory[0], 4, small(2)};
        const annulus_received_bytes received = {setting().memory[1], 4, small(2)};
        auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
        const std::size_t sends = count(2), receives = count(2);
        returned(annulus_communicator_exchange(communicator, nullptr,
                                               bytes_.below(8) == 0 ? nullptr : &sent, sends,
                                               &received, receives, nullptr),
                 "annulus_communicator_exchange");
        return;
      }
      case 4: {
        Sized<annulus_communicator_failure> failure(ANNULUS_COMMUNICATOR_FAILURE_INIT, bytes_);
        if (returned(annulus_communicator_get_failure(
                         pick<annulus_communicator>(Kind::kCommunicator), failure.get()),
                     "annulus_communicator_get_failure") &&
            failure->reason != nullptr && std::strcmp(failure->reason, "given up") != 0) {
          wrong("a communicator was given up because of '{}'", failure->reason);
        }
        return;
      }
      case 5: {
        auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
        returned(
            annulus_communicator_give_up(communicator, bytes_.below(8) == 0 ? nullptr : "given up"),
            "annulus_communicator_give_up");
        return;
      }
      case 6:
        return give_back(Kind::kCommunicator);
      default:
        return ask_communicator();
    }
  }

  void create_rank_plan() {
    auto* const device = pick<annulus_device>(Kind::kDevice);
    auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
    auto described = problem(true);
    Sized<annulus_ring_options> options(ANNULUS_RING_OPTIONS_INIT, bytes_);
    options->config = kConfig;
    options->sharding = tiny(2);
    options->route = tiny(3);
    annulus_ring_rank_plan* plan = nullptr;
    made(annulus_ring_rank_plan_create(device, communicator, described.get(), options.get(), &plan),
         plan, Kind::kRankPlan, "annulus_ring_rank_plan_create");
  }

  void call_ranks() {
    switch (bytes_.below(10)) {
      case 0:
      case 1:
        return call_rendezvous();
      case 2:
      case 3:
      case 4:
        return call_communicator();
      case 5:
        return create_rank_plan();
      case 6: {
        Sized<annulus_ring_info> info(ANNULUS_RING_INFO_INIT, bytes_);
        returned(annulus_ring_rank_plan_get_info(pick<annulus_ring_rank_plan>(Kind::kRankPlan),
                                                 info.get()),
                 "annulus_ring_rank_plan_get_info");
        return;
      }
      case 7: {
        Sized<annulus_ring_rank> info(ANNULUS_RING_RANK_INIT, bytes_);
        returned(annulus_ring_rank_plan_get_rank(pick<annulus_ring_rank_plan>(Kind::kRankPlan),
                                                 info.get()),
                 "annulus_ring_rank_plan_get_rank");
        return;
      }
      case 8:
        return give_back(Kind::kRankPlan);
      default: {
        auto* const plan = pick<annulus_ring_rank_plan>(Kind::kRankPlan);
        Sized<annulus_operands> given = operands();
        Sized<annulus_ring_call> call(ANNULUS_RING_CALL_INIT, bytes_);
        call->operands = bytes_.below(16) == 0 ? nullptr : given.get();
        call->workspace = scratch();
        if (!may_launch()) return;
        std::int64_t run = 0;
        returned(annulus_ring_rank_plan_run(plan, call.get(), &run), "annulus_ring_rank_plan_run");
      }
    }
  }

  // Sizes of blocks are part of the kernels, so that others than 16 are here only where they are
  // refused.
  Sized<annulus_selection> selection(std::int32_t rule) {
    static constexpr std::int64_t kSizes[] = {0, -1, INT64_MIN, INT64_MAX};
    Sized<annulus_selection> made(ANNULUS_SELECTION_INIT, bytes_);
    made->block_rows = made->block_columns = 16;
    if (bytes_.below(24) == 0) made->block_rows = kSizes[bytes_.below(4)];
    if (bytes_.below(24) == 0) made->block_columns = kSizes[bytes_.below(3)];
    made->rule = bytes_.below(24) == 0 ? tiny(4) : rule;
    made->max_blocks = small(5);
    made->sink_blocks = small(2);
    made->diagonal_blocks = small(2);
    if (made->rule == ANNULUS_TOP_P) made->mass = static_cast<double>(bytes_.between(-1, 11)) / 10;
    return made;
  }
  // Lists of block columns, as somebody else may have written them.
  const std::int32_t* listed() {
    std::int32_t numbers[16] = {};
    for (std::int32_t& number : numbers) number = static_cast<std::int32_t>(bytes_.number());
    void* const memory = setting().memory[6];
    annulus_device_copy_to_device(setting().device, memory, numbers, sizeof numbers);
    return place<const std::int32_t>(6);
  }

  void call_selected() {
    annulus_plan* plan = nullptr;
    switch (bytes_.below(5)) {
      case 0:
      case 1: {
        annulus_device* device = pick<annulus_device>(Kind::kDevice);
        auto described = problem(true);
        if (bytes_.below(16) == 0) described->pattern = "sum(causal, dense)";
        auto chosen = selection(bytes_.below(3) == 0 ? ANNULUS_GIVEN : ANNULUS_TOP_K);
        auto options = plan_options();
        return made(annulus_plan_create_selected(device, described.get(), chosen.get(),
                                                 options.get(), &plan),
                    plan, Kind::kPlan, "annulus_plan_create_selected");
      }
      case 2: {
        float shares[8] = {0.5f, 1.0f, std::numeric_limits<float>::quiet_NaN()};
        const std::size_t shown = count(9);
        double mean = 0, least = 0;
        if (returned(annulus_recall_summarise(bytes_.below(8) == 0 ? nullptr : shares, shown, &mean,
                                              bytes_.below(16) == 0 ? nullptr : &least),
                     "annulus_recall_summarise") &&
            shown == 0 && mean != 1) {
          wrong("the recall of nothing is {}", mean);
        }
        return;
      }
      default: {
        plan = pick<annulus_plan>(Kind::kPlan);
        auto given = operands();
        Sized<annulus_selection_buffers> buffers(ANNULUS_SELECTION_BUFFERS_INIT, bytes_);
        if (bytes_.below(2) == 0) buffers->given = listed();
        if (bytes_.below(2) == 0) buffers->chosen = place<std::int32_t>(7);
        // At most 4 rows of blocks, whose entries fit into the memory.
        buffers->max_chosen = bytes_.between(-1, 20);
        void* const workspace = scratch();
        if (!may_launch()) return;
        returned(annulus_plan_run_selected(plan, nullptr, given.get(), workspace,
                                           bytes_.below(8) == 0 ? nullptr : buffers.get()),
                 "annulus_plan_run_selected");
      }
    }
  }

  void call_meter() {
    annulus_recall_meter* meter = nullptr;
    switch (bytes_.below(4)) {
      case 0: {
        annulus_device* device = pick<annulus_device>(Kind::kDevice);
        auto described = problem_with_lse();
        auto options = plan_options();
        return made(annulus_recall_meter_create(device, described.get(), options.get(), &meter),
                    meter, Kind::kMeter, "annulus_recall_meter_create");
      }
      case 1: {
        std::size_t size = 0;
        if (returned(annulus_recall_meter_workspace_bytes(pick<annulus_recall_meter>(Kind::kMeter),
                                                          &size),
                     "annulus_recall_meter_workspace_bytes") &&
            size > Setting::kBytes) {
          wrong("a meter needs {} bytes of workspace", size);
        }
        return;
      }
      default: {
        meter = pick<annulus_recall_meter>(Kind::kMeter);
        auto given = operands_with_lse(true);
        float* const recall = place<float>(8);
        void* const workspace = scratch();
        if (!may_launch()) return;
        returned(annulus_recall_meter_run(meter, nullptr, given.get(), recall, workspace),
                 "annulus_recall_meter_run");
      }
    }
  }

  void call_tracker() {
    annulus_importance_tracker* tracker = nullptr;
    switch (bytes_.below(5)) {
      case 0: {
        annulus_device* device = pick<annulus_device>(Kind::kDevice);
        auto described = problem_with_lse();
        auto chosen = selection(ANNULUS_GIVEN);
        Sized<annulus_tracker_options> options(ANNULUS_TRACKER_OPTIONS_INIT, bytes_);
        options->max_added = small(3), options->max_dropped = small(3);
        return made(annulus_importance_tracker_create(
                        device, described.get(), chosen.get(),
                        bytes_.below(4) == 0 ? nullptr : options.get(), &tracker),
                    tracker, Kind::kTracker, "annulus_importance_tracker_create");
      }
      case 1: {
        std::size_t state = 0, workspace = 0;
        if (returned(
                annulus_importance_tracker_sizes(pick<annulus_importance_tracker>(Kind::kTracker),
                                                 bytes_.below(8) == 0 ? nullptr : &state,
                                                 bytes_.below(8) == 0 ? nullptr : &workspace),
                "annulus_importance_tracker_sizes") &&
            std::max(state, workspace) > Setting::kBytes) {
          wrong("a tracker needs {} and {} bytes", state, workspace);
        }
        return;
      }
      default: {
        tracker = pick<annulus_importance_tracker>(Kind::kTracker);
        const bool updates = bytes_.below(2) == 0;
        auto given = operands_with_lse(false);
        const std::int32_t* const kept = listed();
        auto* const state = place<void>(7);
        void* const workspace = scratch();
        if (!may_launch()) return;
        if (updates) {
          returned(
              annulus_importance_tracker_update(tracker, nullptr, given.get(),
                                                const_cast<std::int32_t*>(kept), state, workspace),
              "annulus_importance_tracker_update");
        } else {
          returned(annulus_importance_tracker_measure(tracker, nullptr, given.get(), kept, state,
                                                      workspace),
                   "annulus_importance_tracker_measure");
        }
      }
    }
  }

  void tune_batch(annulus_device* device, const annulus_tune_options& options) {
    Sized<annulus_batch_problem> batch(batch_problem(), bytes_);
    batch->most.requests = small(4);
    batch->page_rows = small(64);
    annulus_step_requests step[2] = {};
    for (annulus_step_requests& each : step) each = {small(4), small(64), small(64)};
    annulus_tuning* tunings[ANNULUS_REQUEST_CLASSES] = {};
    std::size_t count = 0;
    const std::size_t steps = bytes_.below(3), room = bytes_.below(3);
    const annulus_status status =
        annulus_tune_batch(device, batch.get(), step, steps, &options, tunings, room, &count);
    if (!returned(status, "annulus_tune_batch") && (count != 0 || tunings[0] != nullptr)) {
      wrong("annulus_tune_batch failed and made a handle");
    }
    if (count > room) wrong("annulus_tune_batch made {} handles, with room for {}", count, room);
    for (std::size_t i = 0; i < count; ++i) {
      made(status, tunings[i], Kind::kTuning, "annulus_tune_batch");
    }
  }

  void call_tuning() {
    switch (bytes_.below(7)) {
      case 0:
      case 1: {  // nothing that runs a candidate, which takes seconds
        annulus_device* device = pick<annulus_device>(Kind::kDevice);
        auto described = problem(true);
        if (bytes_.below(4) == 0) described->pattern = pattern();
        annulus_tune_options options = ANNULUS_TUNE_OPTIONS_INIT;
        if (bytes_.below(2) == 0) {
          options.dry_run = 1;
        } else {
          options.cancel = &kCancel;
        }
        options.time_limit_seconds = static_cast<double>(bytes_.between(-1, 8));
        options.seed = bytes_.byte();
        options.force = tiny(1), options.exhaustive = tiny(1), options.cold_cache = tiny(1);
        options.progress = [](void*, const annulus_tune_progress*) {
          wrong("a candidate was run");
        };
        if (!may_launch()) return;
        if (bytes_.below(4) == 0) return tune_batch(device, options);
        annulus_tuning* tuning = nullptr;
        if (tiny(1) == 1) {
          auto chosen = selection(static_cast<std::int32_t>(bytes_.between(0, 4)));
          return made(
              annulus_tune_selected(device, described.get(), chosen.get(), &options, &tuning),
              tuning, Kind::kTuning, "annulus_tune_selected");
        }
        return made(annulus_tune(device, described.get(), &options, &tuning), tuning, Kind::kTuning,
                    "annulus_tune");
      }
      case 2: {
        Sized<annulus_tune_result> result(ANNULUS_TUNE_RESULT_INIT, bytes_);
        returned(annulus_tuning_get(pick<annulus_tuning>(Kind::kTuning), result.get()),
                 "annulus_tuning_get");
        return;
      }
      case 3: {
        Sized<annulus_tune_trial> trial(ANNULUS_TUNE_TRIAL_INIT, bytes_);
        annulus_tuning* tuning = pick<annulus_tuning>(Kind::kTuning);
        returned(annulus_tuning_get_trial(tuning, static_cast<std::size_t>(small(80)), trial.get()),
                 "annulus_tuning_get_trial");
        return;
      }
      case 4: {
        const std::string paths[] = {"", setting().folder, "/nowhere:" + setting().folder, ":",
                                     setting().folder + "/damaged.tuned"};
        annulus_tuned_list* list = nullptr;
        return made(annulus_tuned_list_read(paths[bytes_.below(5)].c_str(), &list), list,
                    Kind::kTuned, "annulus_tuned_list_read");
      }
      case 5: {
        Sized<annulus_tuned_info> info(ANNULUS_TUNED_INFO_INIT, bytes_);
        returned(annulus_tuned_list_get(pick<annulus_tuned_list>(Kind::kTuned), info.get()),
                 "annulus_tuned_list_get");
        return;
      }
      default: {
        if (bytes_.below(2) == 0) return call_packs();
        Sized<annulus_tuned_entry> entry(ANNULUS_TUNED_ENTRY_INIT, bytes_);
        annulus_tuned_list* list = pick<annulus_tuned_list>(Kind::kTuned);
        returned(
            annulus_tuned_list_get_entry(list, static_cast<std::size_t>(small(2)), entry.get()),
            "annulus_tuned_list_get_entry");
      }
    }
  }

  // Packs of tuned results, of which the folder holds damaged ones. Nothing is measured.
  void call_packs() {
    const std::string& folder = setting().folder;
    const char* packs[3] = {path(), path(), path()};
    const std::size_t count = static_cast<std::size_t>(bytes_.below(4));
    const char* const* given = bytes_.below(8) == 0 ? nullptr : packs;
    Sized<annulus_tuned_filter> filter(ANNULUS_TUNED_FILTER_INIT, bytes_);
    filter.value.name = bytes_.below(3) == 0 ? "mma" : nullptr;
    filter.value.measured_only = tiny(1), filter.value.complete_only = tiny(1);
    annulus_tuned_report* report = nullptr;
    const auto given_back = [&](annulus_status status, const char* function) {
      made(status, report, Kind::kTunedReport, function);
    };
    switch (bytes_.below(9)) {
      case 0:
        return given_back(annulus_tuned_export(path(), filter.get(), folder.c_str(), &report),
                          "annulus_tuned_export");
      case 1:
        return given_back(annulus_tuned_import(given, given == nullptr ? 0 : count, filter.get(),
                                               (folder + "/tuned").c_str(), &report),
                          "annulus_tuned_import");
      case 2:
        return given_back(annulus_tuned_merge(given, given == nullptr ? 0 : count, path(), &report),
                          "annulus_tuned_merge");
      case 3:
        return given_back(annulus_tuned_diff(path(), path(), &report), "annulus_tuned_diff");
      case 4: {
        annulus_device* device = pick<annulus_device>(Kind::kDevice);
        Sized<annulus_tuned_verify_options> options(ANNULUS_TUNED_VERIFY_OPTIONS_INIT, bytes_);
        options.value.packs = given;
        options.value.count = given == nullptr ? 0 : count;
        options.value.cancel = &kCancel;
        options.value.measure = bytes_.below(3) - 1;
        if (!may_launch()) return;
        return given_back(annulus_tuned_verify(device, options.get(), &report),
                          "annulus_tuned_verify");
      }
      case 5:
        return given_back(annulus_tuned_prune(folder.c_str(), path(), 1, &report),
                          "annulus_tuned_prune");
      case 6:
        return given_back(annulus_tuned_remove(path(), folder.c_str(), 1, &report),
                          "annulus_tuned_remove");
      case 7: {
        Sized<annulus_tuned_report_info> info(ANNULUS_TUNED_REPORT_INFO_INIT, bytes_);
        returned(
            annulus_tuned_report_get(pick<annulus_tuned_report>(Kind::kTunedReport), info.get()),
            "annulus_tuned_report_get");
        return;
      }
      default: {
        Sized<annulus_tuned_note> note(ANNULUS_TUNED_NOTE_INIT, bytes_);
        Sized<annulus_tuned_entry> entry(ANNULUS_TUNED_ENTRY_INIT, bytes_);
        returned(annulus_tuned_report_get_note(pick<annulus_tuned_report>(Kind::kTunedReport),
                                               static_cast<std::size_t>(small(2)), note.get(),
                                               entry.get()),
                 "annulus_tuned_report_get_note");
      }
    }
  }

  // A path, or null. Two of them can be written to.
  const char* path() {
    static const std::string kPaths[] = {setting().folder + "/a", setting().folder + "/b",
                                         setting().folder, setting().folder + "/none/c", ""};
    const std::int64_t choice = bytes_.below(24);
    if (choice >= 6) return kPaths[choice % 2].c_str();
    return choice == 5 ? nullptr : kPaths[choice].c_str();
  }

  void call_files() {
    annulus_layout* layout = nullptr;
    switch (bytes_.below(6)) {
      case 0: {
        layout = pick<annulus_layout>(Kind::kLayout);
        const char* const to = path();
        if (!returned(annulus_layout_save(layout, to), "annulus_layout_save")) return;
        annulus_layout* again = nullptr;
        annulus_layout_difference difference = ANNULUS_LAYOUT_DIFFERENCE_INIT;
        if (annulus_layout_load(to, &again) != ANNULUS_OK ||
            annulus_layout_compare(layout, again, 0, &difference, nullptr) != ANNULUS_OK) {
          wrong("a layout that was saved: {}", annulus_last_error());
        }
        if (difference.only_first + difference.only_second + difference.flags != 0 ||
            difference.same_sizes != 1) {
          wrong("another layout came back from its file");
        }
        annulus_layout_destroy(again);
        return;
      }
      case 1:
        return made(annulus_layout_load(path(), &layout), layout, Kind::kLayout,
                    "annulus_layout_load");
      case 2:
        return made(annulus_layout_map(path(), &layout), layout, Kind::kLayout,
                    "annulus_layout_map");
      case 3: {
        layout = pick<annulus_layout>(Kind::kLayout);
        const char* const to = path();
        returned(annulus_layout_export(layout, to, tiny(8)), "annulus_layout_export");
        return;
      }
      case 4: {
        auto sized = sizes();
        const char* const from = path();
        const std::int32_t format = tiny(8);
        return made(annulus_layout_import(from, format,
                                          bytes_.below(2) == 0 ? nullptr : sized.get(), &layout),
                    layout, Kind::kLayout, "annulus_layout_import");
      }
      default: {
        annulus_arrays* arrays = nullptr;
        const char* const text = pattern();
        return made(annulus_pattern_to_vertical_slash(text, small(3), &arrays), arrays,
                    Kind::kArrays, "annulus_pattern_to_vertical_slash");
      }
    }
  }

  // A state in host memory with a few small numbers, which add up exactly.
  struct HostState {
    static constexpr int kRows = 4, kDim = 3;
    float acc[kRows * kDim] = {}, m[kRows] = {}, l[kRows] = {};
    Sized<annulus_host_state> state;

    explicit HostState(Bytes& bytes) : state(ANNULUS_HOST_STATE_INIT, bytes) {
      for (int row = 0; row < kRows; ++row) {
        l[row] = static_cast<float>(bytes.below(4));
        m[row] = l[row] == 0 ? -std::numeric_limits<float>::infinity()
                             : static_cast<float>(bytes.between(-3, 3));
        for (int i = 0; i < kDim; ++i) acc[row * kDim + i] = l[row] * static_cast<float>(i);
      }
      state->rows = bytes.below(16) == 0 ? bytes.between(-1, kRows - 1) : kRows;
      state->dim_v = bytes.below(16) == 0 ? bytes.between(-1, kDim - 1) : kDim;
      if (bytes.below(24) == 0) state->version = bytes.number();
    }
    // After the object has its place.
    annulus_host_state* get(Bytes& bytes) {
      state->acc = bytes.below(24) == 0 ? nullptr : acc;
      state->m = bytes.below(24) == 0 ? nullptr : m;
      state->l = bytes.below(24) == 0 ? nullptr : l;
      return state.get();
    }
  };

  void call_states() {
    constexpr int kRows = HostState::kRows, kDim = HostState::kDim;
    switch (bytes_.below(6)) {
      case 0: {
        HostState state(bytes_);
        annulus_host_state* const given = state.get(bytes_);
        if (!returned(annulus_state_clear(given), "annulus_state_clear")) return;
        for (std::int64_t row = 0; row < given->rows; ++row) {
          if (state.l[row] != 0 || !std::isinf(state.m[row])) wrong("row {} is not clear", row);
        }
        return;
      }
      case 1: {
        HostState a(bytes_), none(bytes_), into(bytes_);
        annulus_host_state* const first = a.get(bytes_);
        annulus_host_state* const second = none.get(bytes_);
        annulus_host_state* const to = bytes_.below(3) == 0 ? first : into.get(bytes_);
        const bool clear = bytes_.below(2) == 0;
        if (clear && annulus_state_clear(second) != ANNULUS_OK) return;
        const HostState before = a;
        if (!returned(annulus_state_merge(first, second, to), "annulus_state_merge") || !clear)
          return;
        for (std::int64_t row = 0; row < to->rows; ++row) {
          if (to->l[row] != before.l[row] || to->m[row] != before.m[row]) {
            wrong("merging nothing changed row {}", row);
          }
          for (std::int64_t i = 0; i < to->dim_v; ++i) {
            const std::int64_t at = row * to->dim_v + i;
            if (before.l[row] > 0 && to->acc[at] != before.acc[at])
              wrong("merging nothing changed acc of row {}", row);
          }
        }
        return;
      }
      case 2: {
        HostState state(bytes_);
        float o[kRows * kDim], lse[kRows];
        annulus_host_state* const given = state.get(bytes_);
        const std::int32_t base = tiny(3);
        if (!returned(annulus_state_finish(given, base, bytes_.below(24) == 0 ? nullptr : o,
                                           bytes_.below(24) == 0 ? nullptr : lse),
                      "annulus_state_finish")) {
          return;
        }
        for (std::int64_t row = 0; row < given->rows; ++row) {
          if ((state.l[row] == 0) != std::isinf(lse[row])) wrong("the LSE of row {}", row);
        }
        return;
      }
      case 3: {
        Sized<annulus_tolerance> tolerance(ANNULUS_TOLERANCE_INIT, bytes_);
        returned(annulus_tolerance_get(tiny(5), tolerance.get()), "annulus_tolerance_get");
        return;
      }
      case 4: {  // what is compared has the sizes of the problem of the reference
        static const std::uint16_t zeros[kSide * kSide] = {};
        static const std::uint8_t excused[kSide] = {0, 1};
        static const float lse[kSide] = {};
        annulus_reference* reference = pick<annulus_reference>(Kind::kReference);
        HostState carried(bytes_);
        Sized<annulus_host_result> result(ANNULUS_HOST_RESULT_INIT, bytes_);
        result->o = bytes_.below(16) == 0 ? nullptr : zeros;
        result->o_strides = {64 * 64, 64 * 64, bytes_.below(16) == 0 ? bytes_.below(65) : 64};
        result->lse = bytes_.below(4) == 0 ? lse : nullptr;
        result->state = bytes_.below(8) == 0 ? carried.get(bytes_) : nullptr;
        result->excused = bytes_.below(2) == 0 ? nullptr : excused;
        Sized<annulus_comparison> comparison(ANNULUS_COMPARISON_INIT, bytes_);
        returned(annulus_reference_compare(reference, result.get(), comparison.get()),
                 "annulus_reference_compare");
        return;
      }
      default: {
        alignas(16) static std::uint16_t operand[kSide * kSide] = {};
        std::uint8_t reached[kSide];
        operand[5] = bytes_.below(2) == 0 ? 0x7f80 : 0;  // an infinity in bf16
        auto described = problem(true);
        if (bytes_.below(4) == 0) described->pattern = pattern();
        Sized<annulus_host_inputs> inputs(ANNULUS_HOST_INPUTS_INIT, bytes_);
        inputs->q = inputs->k = operand;
        inputs->v = bytes_.below(8) == 0 ? nullptr : operand;
        inputs->q_strides = inputs->k_strides = inputs->v_strides = {64 * 64, 64 * 64, 64};
        const bool whole = bytes_.below(2) == 0;  // a tile that kernels have
        const std::int64_t rows = whole ? 64 : small(64), columns = whole ? 64 : small(64);
        returned(annulus_reached_rows(described.get(), inputs.get(), rows, columns, reached),
                 "annulus_reached_rows");
      }
    }
  }

  void call_metrics() {
    annulus_text* text = nullptr;
    switch (bytes_.below(8)) {
      case 0: {
        Sized<annulus_metrics> metrics(ANNULUS_METRICS_INIT, bytes_);
        returned(annulus_device_metrics(pick<annulus_device>(Kind::kDevice), metrics.get()),
                 "annulus_device_metrics");
        return;
      }
      case 1: {
        Sized<annulus_metrics> metrics(ANNULUS_METRICS_INIT, bytes_);
        metrics->plans = bytes_.number();
        static constexpr const char* kLabels[] = {nullptr, "", "device=\"0\"", "\n"};
        return made(annulus_metrics_text(metrics.get(), kLabels[bytes_.below(4)], &text), text,
                    Kind::kText, "annulus_metrics_text");
      }
      case 2: {
        Sized<annulus_run_times> times(ANNULUS_RUN_TIMES_INIT, bytes_);
        returned(annulus_plan_times(pick<annulus_plan>(Kind::kPlan), times.get()),
                 "annulus_plan_times");
        return;
      }
      case 3: {
        std::int64_t spans = bytes_.below(4) == 0 ? bytes_.number() : bytes_.byte();
        if (spans > 256 && spans <= 1 << 24) spans = 256;  // takes memory for as many
        if (spans == 0) spans = 1;
        traced_ = returned(annulus_trace_start(spans), "annulus_trace_start") || traced_;
        return;
      }
      case 4:
        returned(annulus_trace_stop(), "annulus_trace_stop");
        return;
      case 5: {
        Sized<annulus_trace_state> state(ANNULUS_TRACE_STATE_INIT, bytes_);
        returned(annulus_trace_read_state(state.get()), "annulus_trace_read_state");
        return;
      }
      case 6:
        return made(annulus_trace_json(&text), text, Kind::kText, "annulus_trace_json");
      default:
        returned(annulus_trace_write(path()), "annulus_trace_write");
    }
  }

  void call_rest() {
    switch (bytes_.below(12)) {
      case 0: {
        annulus_installation* made_now = nullptr;
        if (examined_) return;
        examined_ = true;
        const std::string folders[] = {"", setting().folder + "/kernels", "/dev/null/kernels"};
        return made(annulus_installation_examine(folders[bytes_.below(3)].c_str(), &made_now),
                    made_now, Kind::kInstallation, "annulus_installation_examine");
      }
      case 1: {
        Sized<annulus_installation_info> info(ANNULUS_INSTALLATION_INFO_INIT, bytes_);
        returned(
            annulus_installation_get(pick<annulus_installation>(Kind::kInstallation), info.get()),
            "annulus_installation_get");
        return;
      }
      case 2: {
        Sized<annulus_library_report> report(ANNULUS_LIBRARY_REPORT_INIT, bytes_);
        auto* const of = pick<annulus_installation>(Kind::kInstallation);
        returned(annulus_installation_get_library(of, tiny(4), report.get()),
                 "annulus_installation_get_library");
        return;
      }
      case 3: {
        Sized<annulus_listed_device> listed(ANNULUS_LISTED_DEVICE_INIT, bytes_);
        auto* const of = pick<annulus_installation>(Kind::kInstallation);
        returned(annulus_installation_get_device(of, count(3), listed.get()),
                 "annulus_installation_get_device");
        return;
      }
      case 4: {
        const int status = tiny(14);
        if (annulus_status_text(status)[0] == '\0') wrong("status {} has no text", status);
        if (annulus_version() != ANNULUS_VERSION || annulus_version_text()[0] == '\0')
          wrong("version {}", annulus_version());
        return;
      }
      case 5: {
        const auto index = static_cast<std::size_t>(small(12));
        std::int64_t dim_qk = 0, dim_v = 0;
        if (returned(annulus_dims_get(index, &dim_qk, bytes_.below(16) == 0 ? nullptr : &dim_v),
                     "annulus_dims_get") != (index < annulus_dims_count()) &&
            index >= annulus_dims_count()) {
          wrong("head dims {} of {}", index, annulus_dims_count());
        }
        return;
      }
      case 6: {
        Sized<annulus_preset> preset(ANNULUS_PRESET_INIT, bytes_);
        const auto index = static_cast<std::size_t>(small(20));
        if (returned(annulus_preset_get(index, preset.get()), "annulus_preset_get") &&
            index >= annulus_preset_count()) {
          wrong("preset {} of {}", index, annulus_preset_count());
        }
        return;
      }
      case 7: {
        annulus_device* device = pick<annulus_device>(Kind::kDevice);
        Sized<annulus_cache_counters> host(ANNULUS_CACHE_COUNTERS_INIT, bytes_);
        Sized<annulus_cache_counters> there(ANNULUS_CACHE_COUNTERS_INIT, bytes_);
        returned(
            annulus_device_get_list_counters(device, bytes_.below(4) == 0 ? nullptr : host.get(),
                                             bytes_.below(4) == 0 ? nullptr : there.get()),
            "annulus_device_get_list_counters");
        return;
      }
      case 8: {
        annulus_layout_cache* cache = pick<annulus_layout_cache>(Kind::kCache);
        if (bytes_.below(2) == 0) {
          returned(annulus_layout_cache_clear(cache), "annulus_layout_cache_clear");
          return;
        }
        Sized<annulus_cache_counters> counters(ANNULUS_CACHE_COUNTERS_INIT, bytes_);
        returned(annulus_layout_cache_get_counters(cache, counters.get()),
                 "annulus_layout_cache_get_counters");
        return;
      }
      case 9: {
        auto sized = sizes();
        Sized<annulus_layout_options> options(ANNULUS_LAYOUT_OPTIONS_INIT, bytes_);
        options->threads = 1;
        options->max_work = 1'000'000;
        options->cancel = flag();
        Sized<annulus_layout_statistics> statistics(ANNULUS_LAYOUT_STATISTICS_INIT, bytes_);
        const char* const text = pattern();
        returned(
            annulus_pattern_statistics(text, nullptr, sized.get(), options.get(), statistics.get()),
            "annulus_pattern_statistics");
        return;
      }
      case 10: {
        annulus_device* device = pick<annulus_device>(Kind::kDevice);
        auto described = problem(true);
        auto options = plan_options();
        returned(annulus_plan_prefetch(device, described.get(), options.get()),
                 "annulus_plan_prefetch");
        return;
      }
      default:  // the allocator of the second device runs out
        setting().allocator.left = bytes_.below(4);
        setting().allocator.by_null = bytes_.below(2) == 0;
        if (bytes_.below(2) == 0) annulus_device_trim(setting().limited, 0, nullptr);
    }
  }

  annulus_append_problem appended_ = append_problem();  // what was planned last
  Bytes& bytes_;
  std::vector<Held> held_;
  int launches_ = 0;
  int waits_ = 0;
  int planned_ = 0;  // handles that were provided and took a plan
  bool traced_ = false;
  bool examined_ = false;  // looking at an installation takes milliseconds
  bool good_ = true;       // all handles of the current call are what they should be
};

}  // namespace
}  // namespace annulus::fuzz

// Compiles the kernels that the plans, the rings and the selections of inputs need.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const auto check = [](annulus_status status) {
    if (status != ANNULUS_OK) annulus::fuzz::wrong("{}", annulus_last_error());
  };
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  problem.seq_q = problem.seq_k = problem.dim_qk = problem.dim_v = annulus::fuzz::kSide;
  problem.pattern = "causal";
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  options.config = annulus::fuzz::kConfig;
  options.kv_splits = 1;
  annulus_selection selection = ANNULUS_SELECTION_INIT;
  selection.block_rows = selection.block_columns = 16;
  annulus_ring_options sharded = ANNULUS_RING_OPTIONS_INIT;
  sharded.config = annulus::fuzz::kConfig;
  for (annulus_device* device :
       {annulus::fuzz::setting().device, annulus::fuzz::setting().limited}) {
    annulus_plan* plan = nullptr;
    problem.want_lse = 0;
    check(annulus_plan_create(device, &problem, &options, &plan));
    annulus_plan_destroy(plan);
    for (const std::int32_t rule : {ANNULUS_TOP_K, ANNULUS_TOP_P, ANNULUS_GIVEN}) {
      selection.rule = rule;
      selection.max_blocks = 2;
      check(annulus_plan_create_selected(device, &problem, &selection, &options, &plan));
      annulus_plan_destroy(plan);
    }
    annulus_device* const devices[] = {device, device};
    for (const std::int32_t sharding : {ANNULUS_CONTIGUOUS, ANNULUS_ZIGZAG}) {
      sharded.sharding = sharding;
      annulus_ring* ring = nullptr;
      check(annulus_ring_create(devices, 2, &problem, &sharded, &ring));
      annulus_ring_destroy(ring);
    }
    const annulus_segment pieces[] = {{0, 20}, {20, 44}};  // uneven, not at multiples of tiles
    const annulus_shard shards[] = {{&pieces[0], 1, &pieces[0], 1}, {&pieces[1], 1, &pieces[1], 1}};
    sharded.shards = shards;
    annulus_ring* uneven = nullptr;
    check(annulus_ring_create(devices, 2, &problem, &sharded, &uneven));
    annulus_ring_destroy(uneven);
    sharded.shards = nullptr;
    problem.want_lse = 1;
    annulus_recall_meter* meter = nullptr;
    check(annulus_recall_meter_create(device, &problem, &options, &meter));
    annulus_recall_meter_destroy(meter);
    annulus_importance_tracker* tracker = nullptr;
    check(annulus_importance_tracker_create(device, &problem, &selection, nullptr, &tracker));
    annulus_importance_tracker_destroy(tracker);
    annulus_batch_problem batch = ANNULUS_BATCH_PROBLEM_INIT;
    batch.dim_qk = batch.dim_v = annulus::fuzz::kSide;
    batch.pattern = "causal";
    batch.most = {4, annulus::fuzz::kSide, 0, annulus::fuzz::kSide, 0};
    for (const std::int64_t page_rows : {0, 16}) {
      batch.page_rows = page_rows;
      annulus_batch_plan* of_batch = nullptr;
      check(annulus_batch_plan_create(device, &batch, nullptr, &of_batch));
      annulus_batch_plan_destroy(of_batch);
    }
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  annulus::fuzz::Bytes bytes(data, size);
  annulus::fuzz::Program(&bytes).run();
  return 0;
}
