#include "attention/plan/plan.h"

#include <algorithm>
#include <numbers>
#include <utility>

#include "attention/cost/pipe_model.h"
#include "attention/kernels/family.h"
#include "attention/kernels/mask_program.h"
#include "attention/plan/choose_split.h"
#include "attention/plan/describe.h"
#include "attention/plan/group.h"
#include "attention/tiles/tile_grid.h"
#include "attention/tiles/visible_keys.h"
#include "base/fail.h"
#include "base/math.h"
#include "base/work.h"
#include "pattern/batches.h"

namespace annulus::attention {
namespace {

// Persistent CTAs count the works of a launch in an int.
constexpr std::int64_t kMaxWorks = std::int64_t{1} << 30;

// The launches of a plan with `rows` tile rows, or parts of them, for each head: the smallest
// number that the limits of a grid, kMaxWorks and the form allow. Only the last one may have fewer
// batches.
Launches split_batches(const Problem& problem, const KernelConfig& config, std::int64_t rows,
                       std::int64_t max_batches) {
  if (problem.seq_q == 0 || problem.batch == 0) return {};
  std::int64_t most = kMaxGridZ;
  if (family_of(config).persistent) {
    most = std::clamp<std::int64_t>(kMaxWorks / (rows * problem.heads), 1, most);
  }
  if (max_batches > 0) most = std::min(most, max_batches);
  const Launches launches(problem.batch, most);
  if (launches.size() > kMaxLaunches) {
    base::fail(ErrorCode::kUnsupported,
               "{} batches at most {} in a launch are {} launches, and a plan has at most {}; set "
               "fewer batches at a time",
               problem.batch, most, launches.size(), kMaxLaunches);
  }
  return launches;
}

// The position of each row, padded with zeros to whole tiles.
std::vector<std::int32_t> positions_of(const std::vector<Segment>& segments, std::int64_t tile) {
  std::vector<std::int32_t> positions;
  for (const Segment& segment : segments) {
    for (std::int64_t i = 0; i < segment.length; ++i) {
      positions.push_back(static_cast<std::int32_t>(segment.start + i));
    }
  }
  const auto rows = static_cast<std::int64_t>(positions.size());
  positions.resize(static_cast<std::size_t>(base::round_up(rows, tile)), 0);
  return positions;
}

// The smallest interval that holds all positions; empty if there are none.
pattern::Interval hull_of(const std::vector<Segment>& segments) {
  pattern::Interval hull;
  for (const Segment& segment : segments) {
    const pattern::Interval positions = {segment.start, segment.start + segment.length};
    if (positions.empty()) continue;
    hull = hull.empty() ? positions
                        : pattern::Interval{std::min(hull.begin, positions.begin),
                                            std::max(hull.end, positions.end)};
  }
  return hull;
}

// Charges the steps (base/) that NVRTC will take for the texts of a mask and a score, before
// anything is planned with them. NVRTC cannot be interrupted, and its time for each part of a text
// grows with the number of parts. The steps are charged even if the kernel is in a cache, so that a
// plan takes the same number of steps on every machine.
void charge_texts(const pattern::MaskCode& mask, const ScoreStructure& score) {
  // The steps of one call or operation, and of a pair of them. Measured: 0.5 s for a mask of 50
  // calls in the mma family and 2.8 s in the wgmma family; 4.3 s and 14 s for 200 calls; 1.1 s and
  // 5.7 s for a score of 625 operations.
  constexpr std::int64_t kStepsOfCall = 2'000'000, kStepsOfCalls = 16'000;
  constexpr std::int64_t kStepsOfOperation = 300'000, kStepsOfOperations = 300;
  const std::int64_t steps =
      mask.calls * (kStepsOfCall + mask.calls * kStepsOfCalls) +
      score.operations * (kStepsOfOperation + score.operations * kStepsOfOperations);
  // The launches of a ring and the branches of a sum that have the same texts share a kernel.
  base::charge_once(mask.text + "\n" + score.text, steps,
                    fmt::format("compiling a mask of {} calls and a score of {} operations",
                                mask.calls, score.operations));
}

// The problem with the placement's positions, keys of the sequence and layer in place of its own
// positions, keys and layer.
Problem placed_problem(Problem problem, const pattern::Placement& placement) {
  if (!placement.q.empty()) problem.q0 = placement.q.front().start;
  if (!placement.k.empty()) problem.k0 = placement.k.front().start;
  if (placement.context.seq_k >= 0) problem.total_k = placement.context.seq_k;
  problem.layer = placement.context.layer;
  // The pattern of a single batch may need neither lists nor a mask that depends on the batch.
  problem.pattern = pattern::for_batches(problem.pattern, problem.batch);
  return problem;
}

// The facts that all configurations have in common: the problem, its placement, and its mask.
struct Asked {
  const Problem& problem;
  const pattern::Placement& placement;
  const pattern::MaskCode& mask;
  bool general;
};

std::shared_ptr<const TileList> tiles_for(const Asked& asked, const KernelConfig& config,
                                          kernels::Positions positions, ListForm form,
                                          TileCache* cache) {
  const auto& [problem, given, mask, general] = asked;
  const pattern::Placement placement =
      positions == kernels::Positions::kTwoSegments
          ? in_whole_tiles(given, config.tile_rows, config.tile_columns)
          : given;
  const std::int64_t rows = config.tile_rows;
  const std::int64_t columns = config.tile_columns;
  const BlockLayout* layout = mask.layout.get();
  if (form != ListForm::kShortest) {
    return std::make_shared<const TileList>(
        make_tile_list(problem, placement, rows, columns, layout, form));
  }
  if (cache != nullptr) return cache->get(problem, placement, rows, columns, layout);
  return std::make_shared<const TileList>(
      make_plan_tiles(problem, placement, rows, columns, layout));
}

// The problem cut into the tiles of one configuration, and whether the tiles allow it.
struct Tiled {
  KernelConfig config;
  std::shared_ptr<const TileList> tiles;
  KernelFeatures features;
  Grouping grouping;
};

// The bits of a block mask belong to rows of the tensor, and the tiles of two segments do not begin
// at multiples of a tile's rows.
kernels::Positions positions_of(const Asked& asked, const KernelConfig& config) {
  const kernels::Positions positions = positions_for(config, segments_of(asked.placement));
  return positions == kernels::Positions::kTwoSegments && asked.mask.layout != nullptr
             ? kernels::Positions::kOfRows
             : positions;
}

Tiled tile(const Asked& asked, const KernelConfig& config, ListForm form, TileCache* cache) {
  KernelFeatures features = features_of(asked.problem, positions_of(asked, config), asked.mask);
  features.general = asked.general;
  Tiled tiled = {config, tiles_for(asked, config, features.positions, form, cache), features, {}};
  tiled.features.tile_order = tiled.tiles->tile_order;
  tiled.grouping = group_of(config, asked.problem, *tiled.tiles, tiled.features);
  return tiled;
}

// The first configuration of the choice that the tiles allow. If that is the second choice, it
// becomes the configuration of *choice, and the first one is added in front of the rejected ones.
Tiled tile_choice(const Asked& asked, Choice* choice, ListForm form, TileCache* cache) {
  Tiled first = tile(asked, choice->config, form, cache);
  if (first.grouping.group) return first;
  if (!choice->second) base::fail(ErrorCode::kUnsupported, "{}", first.grouping.why_not);
  Tiled second = tile(asked, *choice->second, form, cache);
  if (!second.grouping.group) base::fail(ErrorCode::kUnsupported, "{}", second.grouping.why_not);
  std::erase_if(choice->rejected,
                [&](const Rejected& other) { return other.config == second.config; });
  choice->rejected.insert(choice->rejected.begin(), {first.config, first.grouping.why_not});
  choice->reason = fmt::format("the second choice: {}", first.grouping.why_not);
  choice->config = second.config;
  return second;
}

// The works of the only launch of a plan with a head start.
std::int64_t works_of(const LaunchPlan& plan, const Problem& problem) {
  return work_count(problem, plan.group, launched_rows(plan), problem.batch);
}

constexpr char kDeepMask[] =
    "the pattern joins more parts inside of one another than a general kernel's mask can";

pattern::MaskCode mask_of(const Problem& problem, const pattern::Placement& placement,
                          const PlanForm& form) {
  const pattern::MaskScope scope = {problem.heads, hull_of(placement.q), placement.context};
  if (!form.general) return pattern::emit(problem.pattern, kernels::kMaskNumbers, scope);
  auto program = emit_program(problem.pattern, kernels::kMaskNumbers, scope);
  if (!program) base::fail(ErrorCode::kUnsupported, "{}", kDeepMask);
  return std::move(*program);
}

// Bytes of the arrays that Forward uploads. An entry for a segment or a merged row has four words.
std::int64_t uploaded_bytes(const LaunchPlan& plan, const Problem& problem) {
  const ScoreTables& tables = plan.score_tables;
  const std::size_t parts = plan.split.segments.size() + plan.split.merged.size();
  const std::size_t ordered =
      plan.head_start.empty() ? 0 : static_cast<std::size_t>(works_of(plan, problem));
  const auto words = ordered + 4 * parts + plan.mask.lists.size() + plan.q_positions.size() +
                     plan.k_positions.size() + tables.slopes.size() + tables.bias.size() +
                     tables.sinks.size() + plan.score_code.words.size();
  return plan.tiles->device_bytes() + static_cast<std::int64_t>(words * sizeof(std::int32_t));
}

// Bytes of the counter of works, with padding that keeps the memory after it aligned.
constexpr std::int64_t kCounterBytes = 16;

// Requires: the plan has its configuration, tiles and split.
DealtWorks deal_works(const LaunchPlan& plan, const Problem& problem, const DeviceLimits& limits,
                      Dealt dealt) {
  if (plan.launches.empty()) return {};
  const TileCounts tiles = plan.split.empty() ? count_tiles(*plan.tiles, problem)
                                              : count_parts(*plan.tiles, plan.split, problem);
  return deal_works(pipe_device(limits), plan.config, plan.features.dims, tiles,
                    estimate_work(plan.config, plan.features, tiles), dealt);
}

}  // namespace

std::int64_t launched_rows(const LaunchPlan& plan) {
  return plan.split.empty() ? plan.tiles->row_tiles : plan.split.segment_count;
}

LaunchPlan make_plan(const Problem& problem, const Choice& choice, const DeviceLimits& limits,
                     const PlanForm& form, TileCache* cache) {
  return make_plan(problem, placement_of(problem), choice, limits, form, cache);
}

LaunchPlan make_plan(Problem problem, const pattern::Placement& placement, const Choice& choice,
                     const DeviceLimits& limits, const PlanForm& form, TileCache* cache) {
  // The mask and the score come first, because the features depend on them, and the grouping of
  // tiles depends on the features; then the configuration and its tiles, which decide how rows are
  // split; then the kernel.
  problem = placed_problem(std::move(problem), placement);
  LaunchPlan plan;
  plan.mask = mask_of(problem, placement, form);
  plan.score_code = score_code(problem.score.score_mod);
  charge_texts(plan.mask, plan.score_code.structure);

  Choice taken = choice;
  Tiled tiled =
      tile_choice({problem, placement, plan.mask, form.general}, &taken, form.list, cache);
  plan.keys = visible_keys(problem, placement);
  plan.config = tiled.config;
  plan.reason = std::move(taken.reason);
  plan.rejected = std::move(taken.rejected);
  plan.tiles = std::move(tiled.tiles);
  plan.group = *tiled.grouping.group;
  SplitChoice split =
      choose_split({problem, plan.config, *plan.tiles, plan.group, tiled.features, limits},
                   form.kv_splits, form.max_kv_splits);
  plan.split = std::move(split.split);
  plan.split_reason = std::move(split.reason);
  plan.features = std::move(tiled.features);
  plan.features.split = !plan.split.empty();
  if (plan.features.positions == kernels::Positions::kOfRows) {
    plan.q_positions = positions_of(placement.q, plan.config.tile_rows);
    plan.k_positions = positions_of(placement.k, plan.config.tile_columns);
  }

  // If B or Sq is 0 there are no launches, and the shape has no CTAs and is not used.
  const std::int64_t rows = launched_rows(plan);
  plan.launches = split_batches(problem, plan.config, rows, form.max_batches);
  plan.shape = launch_shape(plan.config, problem, plan.group, rows, limits.multiprocessors);
  if (family_of(plan.config).pace(plan.config).deal == Deal::kCounter && !form.general) {
    const DealtWorks works = deal_works(plan, problem, limits, form.dealt);
    plan.features.draws_work = works.drawn;
    if (plan.launches.size() == 1) plan.head_start = works.head_start;
  }
  plan.spec = kernel_spec(plan.config, plan.features, limits.arch);
  if (plan.features.split) {
    plan.combine_spec = combine_spec(plan.config, plan.features, limits.arch);
    // Launches follow one another on the stream and share the slots, so the workspace is for the
    // first launch, which has the most batches. There is at least one launch, because an empty
    // problem is never split.
    plan.workspace_bytes = plan.split.workspace_bytes(
        plan.tiles->tile_rows, problem.dim_v, problem.heads * plan.launches.front().batches);
  }
  if (plan.features.draws_work) {
    plan.drawn_offset = base::round_up(plan.workspace_bytes, kCounterBytes);
    plan.workspace_bytes = plan.drawn_offset + kCounterBytes;
  }
  plan.score = score_numbers(problem);
  plan.score_tables = score_tables(problem.score);
  plan.lse_factor =
      problem.lse_base == LseBase::kNatural ? static_cast<float>(std::numbers::ln2) : 1.0f;
  plan.device_bytes = uploaded_bytes(plan, problem);
  plan.problem = std::move(problem);
  plan.placement = placement;
  plan.decisions = describe(plan, limits);
  return plan;
}

}  // namespace annulus::attention
