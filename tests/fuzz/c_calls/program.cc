// The calls and handles that an input chooses, and the requirements on every result.

#include <iterator>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {
namespace {

constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::kTask) + 1;

// The destroy functions of all kinds, in the order of the kinds.
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
    destroy_as<annulus_merge_plan, annulus_merge_plan_destroy>,
    destroy_as<annulus_join_plan, annulus_join_plan_destroy>,
    destroy_as<annulus_gather_plan, annulus_gather_plan_destroy>,
    destroy_as<annulus_warm_work, annulus_warm_work_destroy>,
    destroy_as<annulus_background_tuning, annulus_background_tuning_destroy>,
    destroy_as<annulus_tuning_report, annulus_tuning_report_destroy>,
    destroy_as<annulus_task, annulus_task_drop>,
};
static_assert(std::size(kDestroy) == kKinds);

}  // namespace

Program::~Program() {
  keep_tasks();
  // Plans and layouts may be destroyed before the handles from which they were made.
  for (const Held& held : held_) {
    if (held.live && held.kind != Kind::kDevice) destroy(held.kind, held.handle);
  }
  setting().allocator.left = INT64_MAX;
  setting().tasks.refuse(false);
  if (traced_) annulus_trace_stop();
}

void Program::run() {
  held_.push_back({setting().device, Kind::kDevice, true});
  held_.push_back({setting().limited, Kind::kDevice, true});
  for (int calls = 0; calls < 24 && !bytes_.empty(); ++calls) call();
}

void* Program::pick_any(Kind kind) {
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
  return handle;
}

bool Program::is_live(Kind kind, const void* handle) const {
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    return held.live && held.kind == kind && held.handle == handle;
  });
}

void* Program::provide(Kind kind) {
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
                       kind == Kind::kCommunicator || kind == Kind::kRankPlan ||
                       kind == Kind::kMerge || kind == Kind::kJoin || kind == Kind::kGather ||
                       kind == Kind::kBackgroundTuning;
  if (planned && planned_++ >= 2) return nullptr;
  switch (kind) {
    case Kind::kPlan: {
      annulus_plan* plan = nullptr;
      const std::int64_t chosen = bytes_.below(3);
      if (chosen == 0) {
        annulus_plan_create(device, &problem, &options, &plan);
      } else {
        selection.rule = chosen == 1 ? ANNULUS_TOP_K : ANNULUS_GIVEN;
        annulus_plan_options selected = options;
        selected.selection = &selection;
        annulus_plan_create(device, &problem, &selected, &plan);
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
      annulus_tuning_create(device, &problem, &dry, &tuning);
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
    case Kind::kMerge: {
      annulus_merge_problem merge = merge_problem();
      merge.form = static_cast<std::int32_t>(bytes_.between(1, 2));
      annulus_merge_plan* plan = nullptr;
      annulus_merge_plan_create(device, &merge, &plan);
      merged_ = merge;
      handle = plan;
      break;
    }
    case Kind::kJoin: {
      auto* const communicator = static_cast<annulus_communicator*>(provide(Kind::kCommunicator));
      annulus_join_problem join = join_problem();
      join.form = static_cast<std::int32_t>(bytes_.between(1, 2));
      annulus_join_plan* plan = nullptr;
      annulus_join_plan_create(device, communicator, &join, &plan);
      joined_ = join;
      handle = plan;
      break;
    }
    case Kind::kGather: {
      auto* const communicator = static_cast<annulus_communicator*>(provide(Kind::kCommunicator));
      annulus_gather_problem gather = ANNULUS_GATHER_PROBLEM_INIT;
      gather.heads = 2, gather.dim = kSide, gather.max_rows = kSide;
      annulus_gather_plan* plan = nullptr;
      annulus_gather_plan_create(device, communicator, &gather, &plan);
      handle = plan;
      break;
    }
    case Kind::kWarmWork: {
      annulus_warm_work* work = nullptr;
      annulus_warm_work_create(&work);
      handle = work;
      break;
    }
    case Kind::kTuningReport: {
      annulus_tuning_report* report = nullptr;
      annulus_tuning_report_make(nullptr, 0, with.folder.c_str(), &report);
      handle = report;
      break;
    }
    case Kind::kBackgroundTuning: {
      const annulus_problem* const problems[] = {&problem};
      annulus_background_tuning_options tunes = background_options();
      tunes.problems = problems, tunes.problem_count = 1;
      annulus_background_tuning* tuning = nullptr;
      annulus_background_tuning_create(device, &tunes, &tuning);
      keep_tasks();
      handle = tuning;
      break;
    }
    default:  // texts, references, devices and tasks are not made here
      break;
  }
  if (handle != nullptr) held_.push_back({handle, kind, true});
  return handle;
}

bool Program::returned(annulus_status status, const char* function) {
  if (status < ANNULUS_OK || status > ANNULUS_COMMUNICATION)
    wrong("{} returned {}", function, int(status));
  if (status == ANNULUS_INTERNAL || status == ANNULUS_FAULT) {
    wrong("{}: {}", function, annulus_last_error());
  }
  if (status != ANNULUS_OK && annulus_last_error()[0] == '\0') wrong("{} says nothing", function);
  if (status == ANNULUS_OK && !good_) wrong("{} took a handle that is none", function);
  return status == ANNULUS_OK;
}

annulus_status Program::destroy(Kind kind, void* handle) {
  return kDestroy[static_cast<std::size_t>(kind)](handle);
}

void Program::give_back() {
  give_back(static_cast<Kind>(bytes_.between(1, static_cast<int>(kLastDrawn))));
}

void Program::give_back(Kind kind) {
  void* handle = pick<void>(kind);
  if (!returned(destroy(kind, handle), "destroy")) return;
  for (Held& held : held_) {
    if (held.handle == handle && held.kind == kind) held.live = false;
  }
}

// Each range of choices keeps its meaning, so that the inputs of the corpus keep theirs.
void Program::call() {
  good_ = true;
  const std::uint8_t choice = bytes_.byte();
  if (choice >= 252) return call_append();
  if (choice >= 244) return call_batch();
  if (choice >= 232) return call_ranks();
  if (choice >= 128 && choice < 140) {
    switch (choice) {
      case 128:
        return call_merge();
      case 129:
        return call_join();
      case 130:
        return call_gather();
      case 131:
        return call_slices();
      case 132:
      case 133:
        return call_kernels();
      case 134:
      case 135:
      case 136:
        return call_late_plan();
      case 137:
        return call_background_tuning();
      default:
        return call_tuned_reports();
    }
  }
  switch (choice < 128 ? choice % 10 : 10 + choice % 10) {
    case 0:
    case 10:
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
    case 8:
    case 9:
      return call_plan();
    case 11:
      return call_ring();
    case 12:
      return call_selected();
    case 13:
      return call_meter();
    case 14:
      return call_tracker();
    case 15:
      return call_tuning();
    case 16:
      return call_files();
    case 17:
      return call_states();
    case 18:
      return call_metrics();
    default:
      return call_rest();
  }
}

}  // namespace annulus::fuzz
