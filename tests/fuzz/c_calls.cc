// Sequences of calls of the C interface. Each byte of an input chooses a function, its handles
// (live ones, ones that were given back, ones of another kind, null, any number), sizes of structs
// and small numbers. Whatever the order, each call returns a code that the header knows, with a
// text where it failed; a handle that is none is refused, and one that is given back is gone.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "annulus/c.h"
#include "annulus/c_inspect.h"
#include "annulus/c_layout.h"
#include "annulus/c_layout_formats.h"
#include "annulus/c_oracle.h"
#include "annulus/c_pattern.h"
#include "annulus/c_ring.h"
#include "annulus/c_selection.h"
#include "annulus/c_tune.h"
#include "fuzz/fuzz.h"

namespace annulus::fuzz {
namespace {

// What a program holds for as long as it runs: a device, and memory on it for operands.
struct Setting {
  annulus_device* device = nullptr;
  void* memory[4] = {};  // zeros
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
    const std::vector<std::byte> zeros(kBytes);
    for (void*& place : memory) {
      annulus_device_allocate(device, kBytes, &place);
      annulus_device_copy_to_device(device, place, zeros.data(), kBytes);
    }
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
  kTuned
};

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

class Program {
 public:
  explicit Program(Bytes* bytes) : bytes_(*bytes) {}
  ~Program() {
    // Whatever is left; plans and layouts may go before what they were made of.
    for (const Held& held : held_) {
      if (held.live && held.kind != Kind::kDevice) destroy(held.kind, held.handle);
    }
  }

  void run() {
    held_.push_back({setting().device, Kind::kDevice, true});
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
      if (!fit.empty()) handle = fit[choice % fit.size()];
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

  // Looks at what a call returned. True where it succeeded.
  bool returned(annulus_status status, const char* function) {
    if (status < ANNULUS_OK || status > ANNULUS_CANCELLED)
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
    switch (kind) {
      case Kind::kDevice:
        return annulus_device_close(static_cast<annulus_device*>(handle));
      case Kind::kPlan:
        return annulus_plan_destroy(static_cast<annulus_plan*>(handle));
      case Kind::kBound:
        return annulus_bound_destroy(static_cast<annulus_bound*>(handle));
      case Kind::kText:
        return annulus_text_destroy(static_cast<annulus_text*>(handle));
      case Kind::kLayout:
        return annulus_layout_destroy(static_cast<annulus_layout*>(handle));
      case Kind::kArrays:
        return annulus_arrays_destroy(static_cast<annulus_arrays*>(handle));
      case Kind::kCache:
        return annulus_layout_cache_destroy(static_cast<annulus_layout_cache*>(handle));
      case Kind::kQuery:
        return annulus_layout_query_destroy(static_cast<annulus_layout_query*>(handle));
      case Kind::kReference:
        return annulus_reference_destroy(static_cast<annulus_reference*>(handle));
      case Kind::kTuning:
        return annulus_tuning_destroy(static_cast<annulus_tuning*>(handle));
      case Kind::kTuned:
        return annulus_tuned_list_destroy(static_cast<annulus_tuned_list*>(handle));
    }
    return ANNULUS_OK;
  }
  void give_back() {
    const Kind kind = static_cast<Kind>(bytes_.between(1, 10));
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
  Sized<annulus_problem> problem(bool planned) {
    Sized<annulus_problem> made(ANNULUS_PROBLEM_INIT, bytes_);
    made->seq_q = bytes_.between(0, 64);
    made->seq_k = bytes_.between(0, 64);
    made->dim_qk = made->dim_v = 64;
    made->pattern = "causal";
    if (planned) return made;
    made->batch = small(2);
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
    made->config = "mma m64 n64 w4 s2";
    made->kv_splits = 1;
    made->max_work = 1'000'000;
    made->block_rows = small(128);
    made->block_columns = small(128);
    return made;
  }
  Sized<annulus_operands> operands() {
    Sized<annulus_operands> made(ANNULUS_OPERANDS_INIT, bytes_);
    void* const* memory = setting().memory;
    static char host[64];
    const auto place = [&](int i) -> void* {
      const std::int64_t choice = bytes_.below(32);
      return choice == 0 ? nullptr : choice == 1 ? host : memory[choice == 2 ? 0 : i];
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
    switch (bytes_.below(10)) {
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
        returned(annulus_plan_run(plan, nullptr, given.get(), nullptr), "annulus_plan_run");
        return;
      }
      case 8: {
        annulus_bound* bound = nullptr;
        plan = pick<annulus_plan>(Kind::kPlan);
        auto given = operands();
        return made(annulus_plan_bind(plan, given.get(), nullptr, &bound), bound, Kind::kBound,
                    "annulus_plan_bind");
      }
      case 9:
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
      case 13: {  // refused: a ring takes a second to compile
        annulus_device* devices[2] = {pick<annulus_device>(Kind::kDevice),
                                      pick<annulus_device>(Kind::kDevice)};
        Sized<annulus_ring_options> options(ANNULUS_RING_OPTIONS_INIT, bytes_);
        options->sharding = 7;
        auto described = problem(true);
        annulus_ring* ring = nullptr;
        if (annulus_ring_create(devices, static_cast<std::size_t>(bytes_.below(3)), described.get(),
                                options.get(), &ring) == ANNULUS_OK)
          wrong("a ring without a sharding");
        return;
      }
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

  Bytes& bytes_;
  std::vector<Held> held_;
  bool good_ = true;  // all handles of the current call are what they should be
};

}  // namespace
}  // namespace annulus::fuzz

// Compiles the kernel that the plans need.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  problem.seq_q = problem.seq_k = problem.dim_qk = problem.dim_v = 64;
  problem.pattern = "causal";
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  options.config = "mma m64 n64 w4 s2";
  options.kv_splits = 1;
  annulus_plan* plan = nullptr;
  if (annulus_plan_create(annulus::fuzz::setting().device, &problem, &options, &plan) !=
      ANNULUS_OK) {
    annulus::fuzz::wrong("{}", annulus_last_error());
  }
  annulus_plan_destroy(plan);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  annulus::fuzz::Bytes bytes(data, size);
  annulus::fuzz::Program(&bytes).run();
  return 0;
}
