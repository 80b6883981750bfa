#include "batch/batch_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include "attention/kernels/withheld.h"
#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/math.h"
#include "batch/batch_choice.h"
#include "batch/batch_cost.h"
#include "batch/row_forms.h"
#include "batch/step_operands.h"
#include "pattern/positions.h"

namespace annulus::batch {
namespace {

// Parts are whole tiles in every configuration.
constexpr std::int64_t kLeastPart = 128, kMaxPart = std::int64_t{1} << 20;
constexpr std::int64_t kInt = std::numeric_limits<std::int32_t>::max();
// list_blocks has a bit for each block in shared memory.
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 18;

// The most keys that one rank has of `keys` keys, which belong to `requests` requests. The bounds
// of a problem are bounds of whole requests, and the plan of every rank is laid out for the rank
// with the most keys.
std::int64_t max_held(const BatchProblem& problem, std::int64_t keys, std::int64_t requests) {
  const KeyInterleave& of = problem.interleave;
  if (of.ranks == 1) return keys;
  if (requests == 1) return held_keys({of.block, of.ranks, 0}, keys);
  const std::int64_t period = of.block * of.ranks;
  return std::min(keys, keys / period * of.block + requests * of.block);
}

// The bounds for the keys that one rank has.
BatchBounds held_bounds(const BatchProblem& problem) {
  BatchBounds most = problem.most;
  most.keys_of_one = max_held(problem, most.keys_of_one, 1);
  most.keys = std::min(max_held(problem, most.keys, most.requests),
                       pattern::product(most.requests, most.keys_of_one));
  return most;
}

// The number of CTAs of a class, if the device holds `resident` CTAs at a time.
std::int64_t persistent_ctas(const ClassPlan& plan, std::int64_t resident) {
  return std::max<std::int64_t>(1, std::min(resident, plan.lists.works * plan.packing.row_columns));
}

// chunk_forward computes a request if its queries, with the heads of a group, are more rows than
// this.
constexpr std::int64_t kMaxDecodeRows = 64;

// Typical steps, by which the length of parts is chosen.
struct TypicalSteps {
  std::vector<StepRequest> longest;  // the longest requests, up to the number that the bounds
                                     // allow together
  std::vector<StepRequest> even;     // all requests with an even share of the keys
  std::vector<StepRequest> unlike;   // requests of lengths from 1 to the longest
  std::vector<StepRequest> one;      // the longest request alone
};
TypicalSteps typical_steps(const BatchBounds& most) {
  // If there are more requests than this, they are dealt out evenly with any length of parts.
  constexpr std::int64_t kMaxListed = 1024;
  const std::int64_t requests = std::min(most.requests, kMaxListed);
  const auto alike = [](std::int64_t count, std::int64_t keys) {
    return std::vector<StepRequest>(static_cast<std::size_t>(count), {1, keys});
  };
  TypicalSteps steps;
  steps.longest =
      alike(std::clamp<std::int64_t>(most.keys / most.keys_of_one, 1, requests), most.keys_of_one);
  steps.even =
      alike(requests, std::clamp<std::int64_t>(most.keys / most.requests, 1, most.keys_of_one));
  std::int64_t keys = 0;
  for (std::int64_t i = 1; i <= requests && keys < most.keys; ++i) {
    const double length = std::pow(static_cast<double>(most.keys_of_one),
                                   static_cast<double>(i) / static_cast<double>(requests));
    steps.unlike.push_back({1, std::min(static_cast<std::int64_t>(length), most.keys - keys)});
    keys += steps.unlike.back().keys;
  }
  steps.one = alike(1, most.keys_of_one);
  return steps;
}

// The most keys that a number in the tiles of one row can stand for: the keys of its request, or of
// its list of blocks, which are whole.
std::int64_t numbered_keys(const BatchProblem& problem) {
  const BatchBounds most = held_bounds(problem);
  if (problem.block_keys == 0) return most.keys_of_one;
  return std::min(base::round_up(most.keys_of_one, problem.block_keys),
                  pattern::product(problem.max_blocks, problem.block_keys));
}

// The length of parts if the caller leaves it open: the length with the least time of typical steps
// by the pipe model. Steps that are as large as the bounds decide first. If their times differ
// little, requests of different lengths and single requests decide; short parts are good for both.
// Lists and states fit `max_bytes` and kMaxStateBytes.
std::int64_t choose_part(const BatchProblem& problem, const ClassPlan& given,
                         std::int64_t max_bytes, const attention::DeviceLimits& limits) {
  constexpr std::int64_t kShortest = 256;
  constexpr std::int64_t kMaxStateBytes = std::int64_t{48} << 20;
  constexpr double kOfUnlike = 1.0 / 4, kOfOne = 1.0 / 8;
  const attention::PipeDevice device = attention::pipe_device(limits);
  // The CTAs of the whole device count, because BatchOptions::max_multiprocessors must not change a
  // bit of the results.
  const std::int64_t resident =
      std::int64_t{limits.multiprocessors} * attention::cta_shape(given.config).resident;
  BatchBounds most = held_bounds(problem);
  most.keys_of_one = numbered_keys(problem);
  most.keys = std::min(most.keys, pattern::product(most.requests, most.keys_of_one));
  const TypicalSteps steps = typical_steps(most);
  const std::int64_t whole =
      std::clamp(base::round_up(most.keys_of_one, kLeastPart), kShortest, kMaxPart);
  std::int64_t best = whole;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](std::int64_t part) {
    ClassPlan plan = given;
    plan.part_keys = part;
    plan.lists = lay_out(problem, plan.packing, plan.max_queries, part, 0);
    if (plan.lists.end > std::min(max_bytes, kMaxStateBytes)) return;
    plan.joins = plan.lists.slots > 0;
    plan.ctas = persistent_ctas(plan, resident);
    const auto time = [&](const std::vector<StepRequest>& requests) {
      return std::log(predict_step(device, problem, plan, requests).predicted_micros);
    };
    const double cost = time(steps.longest) + time(steps.even) + kOfUnlike * time(steps.unlike) +
                        kOfOne * time(steps.one);
    if (cost >= least) return;
    least = cost;
    best = part;
  };
  for (std::int64_t part = kShortest; part < whole; part *= 2) {
    consider(part);
    if (part + part / 2 < whole) consider(part + part / 2);
  }
  consider(whole);
  return best;
}

}  // namespace

void check_options(const BatchOptions& options) {
  using attention::check_count;
  check_count("max_multiprocessors", options.max_multiprocessors, 0, kInt);
  check_count("max_workspace_bytes", options.max_workspace_bytes, 0,
              std::numeric_limits<std::int64_t>::max());
  if (options.part_keys == 0) return;
  check_count("part_keys", options.part_keys, kLeastPart, kMaxPart);
  if (options.part_keys % kLeastPart != 0) {
    base::fail(ErrorCode::kInvalidArgument, "part_keys is {}; it must be a multiple of {}",
               options.part_keys, kLeastPart);
  }
}

BatchProblem with_bounds(BatchProblem problem) {
  BatchBounds& most = problem.most;
  if (most.rows_of_one == 0) most.rows_of_one = most.rows;
  const std::int64_t all_keys = pattern::product(most.requests, most.keys_of_one);
  most.keys = most.keys == 0 ? all_keys : std::min(most.keys, all_keys);
  return problem;
}

std::int64_t most_few_queries(const BatchProblem& problem) {
  const std::int64_t group = problem.heads / problem.kv_heads;
  return std::min(std::max<std::int64_t>(1, kMaxDecodeRows / group), problem.most.rows_of_one);
}

kernels::Pages pages_of(const BatchProblem& problem) {
  using kernels::Pages;
  if (problem.page_rows == 0) return Pages::kNone;
  if (problem.page_rows % 64 == 0) return Pages::k64;
  return problem.page_rows % 16 == 0 ? Pages::k16 : Pages::kAny;
}

Packing pack(const BatchProblem& problem, std::int64_t tile_rows) {
  const std::int64_t group = problem.heads / problem.kv_heads;
  Packing packing;
  packing.tile_heads = std::min(group, tile_rows);
  packing.head_tiles = base::ceil_div(group, packing.tile_heads);
  packing.tile_queries = std::max<std::int64_t>(1, tile_rows / packing.tile_heads);
  packing.columns = problem.kv_heads * packing.head_tiles;
  packing.row_columns = packing.columns;
  return packing;
}

BlocksLayout lay_out_blocks(const BatchProblem& problem) {
  BlocksLayout layout;
  if (problem.block_keys == 0) return layout;
  const std::int64_t lists = problem.most.requests * problem.kv_heads;
  layout.blocks_at = base::round_up<std::int64_t>(
      lists * static_cast<std::int64_t>(sizeof(kernels::BlockList)), 256);
  layout.end = base::round_up<std::int64_t>(
      layout.blocks_at + lists * problem.max_blocks * std::int64_t{sizeof(std::int32_t)}, 256);
  return layout;
}

// Let a request have t tiles of rows and k keys, and let all requests together have at most T tiles
// of rows and K keys. Then the sum of t max(1, ceil(k / part)) is at most the sum of t + t floor(k
// / part). A row has several parts only if k > part, and at most K / (part + 1) requests have more
// than `part` keys. If columns have rows of their own, all numbers are multiplied by the number of
// columns.
ListLayout lay_out(const BatchProblem& problem, const Packing& packing, std::int64_t max_queries,
                   std::int64_t part_keys, std::int64_t begin) {
  constexpr std::int64_t kEndless = std::int64_t{1} << 60;
  const BatchBounds most = held_bounds(problem);
  ListLayout layout;
  const std::int64_t queries = packing.tile_queries;
  const std::int64_t own = packing.columns / packing.row_columns;
  const std::int64_t rows_of_one = base::ceil_div(max_queries, queries) * own;
  layout.rows = std::min({most.requests * rows_of_one, most.rows * own,
                          (most.rows + most.requests * (queries - 1)) / queries * own});
  // The keys for which the tiles of a row have numbers.
  const std::int64_t keys_of_one = numbered_keys(problem);
  const std::int64_t keys =
      problem.block_keys == 0
          ? most.keys
          : std::min(most.keys + most.requests * problem.block_keys, most.requests * keys_of_one);
  const std::int64_t parts_of_one = base::ceil_div(keys_of_one, part_keys);
  const std::int64_t whole_parts =
      std::min(kEndless, pattern::product(keys / part_keys, rows_of_one));
  const std::int64_t all_parts = pattern::product(layout.rows, parts_of_one);
  layout.works = std::min(layout.rows + whole_parts, all_parts);
  if (parts_of_one > 1) {
    const std::int64_t split = std::min(most.requests, keys / (part_keys + 1));
    layout.slots = std::min(whole_parts + rows_of_one * split, all_parts);
  }
  layout.slot_rows = std::min(max_queries, queries) * packing.tile_heads;
  // Kernels store the number of a work in 31 bits. A work of combine_parts is a group of state
  // rows.
  const std::int64_t state_rows =
      pattern::product(layout.slots, packing.row_columns * layout.slot_rows);
  if (layout.works > kInt / packing.row_columns || state_rows > kInt) {
    layout.end = std::numeric_limits<std::int64_t>::max();
    return layout;
  }
  std::int64_t at = begin;
  const auto place = [&](std::int64_t count, std::int64_t bytes) {
    const std::int64_t here = at;
    at = base::round_up<std::int64_t>(at + count * bytes, 256);
    return here;
  };
  layout.header_at = place(1, sizeof(kernels::BatchHeader));
  layout.requests_at = place(most.requests, sizeof(kernels::BatchRequest));
  layout.row_begin_at = place(most.requests + 1, sizeof(std::int32_t));
  layout.rows_at = place(layout.rows, sizeof(kernels::BatchRow));
  layout.works_at = place(layout.works, sizeof(kernels::BatchWork));
  layout.joined_at = place(layout.rows, sizeof(std::int32_t));
  layout.acc_at = place(state_rows * problem.dim_v, sizeof(float));
  layout.m_at = place(state_rows, sizeof(float));
  layout.l_at = place(state_rows, sizeof(float));
  layout.end = at;
  return layout;
}

Problem largest_request(const BatchProblem& problem) {
  Problem one;
  one.heads = problem.heads;
  one.kv_heads = problem.kv_heads;
  one.seq_q = problem.most.rows_of_one;
  one.seq_k = problem.most.keys_of_one;
  one.dim_qk = problem.dim_qk;
  one.dim_v = problem.dim_v;
  one.dtype = problem.dtype;
  one.pattern = problem.pattern;
  one.score = problem.score;
  one.want_lse = problem.want_lse;
  one.lse_base = problem.lse_base;
  one.carry_in = problem.carry_in;
  one.carry_out = problem.carry_out;
  return one;
}

namespace {

// The classes of requests, without their lists: the requests that fit a few tiles of
// decode_forward, and, if the bounds allow others, the other requests.
std::vector<ClassPlan> classes_of(const BatchProblem& problem, const BatchOptions& options,
                                  const attention::DeviceLimits& limits) {
  const std::vector<KernelConfig> named =
      named_configs(options.config, {problem.dim_qk, problem.dim_v});
  const std::int64_t few = most_few_queries(problem);
  std::vector<ClassPlan> classes;
  const auto add = [&](RequestClass requests, std::int64_t least, std::int64_t most) {
    ClassPlan made;
    const auto config = named_for(requests, named, problem, limits);
    if (config) {
      made.config = *config;
      made.named = true;
      made.withheld =
          attention::why_withheld(*config, {problem.dim_qk, problem.dim_v}, limits).value_or("");
    } else {
      ClassChoice choice = choose_config(requests, problem, limits);
      made.config = choice.config;
      made.withheld = std::move(choice.withheld);
    }
    made.packing = pack(problem, made.config.tile_rows);
    made.least_queries = least;
    made.max_queries = most;
    classes.push_back(std::move(made));
  };
  add(RequestClass::kFewQueries, 1, few);
  if (problem.most.rows_of_one > few) {
    add(RequestClass::kManyQueries, few + 1, problem.most.rows_of_one);
  } else if (const auto config = named_for(RequestClass::kManyQueries, named, problem, limits)) {
    base::fail(ErrorCode::kUnsupported,
               "configuration '{}' is not possible here: it is for requests of more than {} "
               "queries, and no request of this batch has so many",
               to_string(*config), few);
  }
  return classes;
}

// Finds the forms of the keys that the heads of each column see. Columns get rows of their own if
// their forms differ, or if each head of keys has a list of blocks.
void add_forms(BatchPlanData* plan, ClassPlan* of) {
  const BatchProblem& problem = plan->problem;
  const std::int64_t group = problem.heads / problem.kv_heads;
  const std::int64_t distinct = problem.pattern.distinct_heads(problem.heads);
  Packing& packing = of->packing;
  // From heads that differ to the index of their forms.
  std::map<std::vector<std::int64_t>, int> known;
  for (std::int64_t column = 0; column < packing.columns; ++column) {
    const std::int64_t in_group = column % packing.head_tiles * packing.tile_heads;
    const std::int64_t count = std::min(packing.tile_heads, group - in_group);
    std::set<std::int64_t> heads;
    for (std::int64_t i = 0; i < std::min(count, distinct); ++i) {
      heads.insert((column / packing.head_tiles * group + in_group + i) % distinct);
    }
    const std::vector<std::int64_t> listed(heads.begin(), heads.end());
    const auto [at, is_new] = known.try_emplace(listed, 0);
    if (is_new) {
      HeadForms forms = find_forms(problem.pattern, listed);
      const auto same = std::ranges::find(plan->forms, forms);
      at->second = static_cast<int>(same - plan->forms.begin());
      if (same == plan->forms.end()) plan->forms.push_back(std::move(forms));
    }
    of->forms.push_back(at->second);
  }
  const bool alike = std::ranges::all_of(of->forms, [&](int i) { return i == of->forms[0]; });
  if (alike && problem.block_keys == 0) {
    of->forms.resize(1);
  } else {
    packing.row_columns = 1;
  }
}

std::string describe(const ClassPlan& of, kernels::Pages pages) {
  std::string text = fmt::format(
      "{} to {} queries: {}{}, {} heads and up to {} queries to a tile of rows, {} CTAs; keys in "
      "parts of {}, up to {} works in a step, {} of them joined{}",
      of.least_queries, of.max_queries, to_string(of.config),
      of.named ? " (requested by the caller)" : "", of.packing.tile_heads, of.packing.tile_queries,
      of.ctas, of.part_keys, of.lists.works, of.lists.slots,
      of.packing.row_columns < of.packing.columns ? "; each column of heads has works of its own"
                                                  : "");
  if (kernel_of(of.config).by_maps) {
    const int unit = unit_keys(of.config, pages);
    text +=
        fmt::format("; copied by tensor maps, {} {} at a time", unit, unit == 1 ? "key" : "keys");
  }
  if (!of.withheld.empty()) {
    text +=
        fmt::format("; {}{}", of.withheld,
                    of.named ? "; this configuration runs because the caller requested it" : "");
  }
  return text;
}

}  // namespace

BatchPlanData make_plan(const BatchProblem& given, const BatchOptions& options,
                        const attention::DeviceLimits& limits) {
  check_options(options);
  BatchPlanData plan;
  plan.problem = with_bounds(given);
  const BatchProblem& problem = plan.problem;
  const Problem one = largest_request(problem);
  plan.mask = pattern::emit(problem.pattern, kernels::kMaskNumbers, {problem.heads, {}, {}});
  plan.classes = classes_of(problem, options, limits);
  for (ClassPlan& of : plan.classes) add_forms(&plan, &of);
  plan.features = {.attention = attention::features_of(one),
                   .pages = pages_of(problem),
                   .listed = problem.block_keys > 0,
                   .row_limits = problem.row_limits,
                   .interleaved = problem.interleave.ranks > 1};
  for (const ClassPlan& of : plan.classes) {
    const std::int64_t queries = std::min(of.max_queries, of.packing.tile_queries);
    for (const int i : of.forms) {
      const HeadForms& forms = plan.forms[static_cast<std::size_t>(i)];
      plan.features.runs = std::max(plan.features.runs, max_runs(forms, queries));
    }
  }
  plan.blocks = lay_out_blocks(problem);
  plan.workspace_bytes = plan.blocks.end;

  const int multiprocessors = options.max_multiprocessors > 0
                                  ? std::min(options.max_multiprocessors, limits.multiprocessors)
                                  : limits.multiprocessors;
  // The rest of the caller's limit, for the classes that may compute keys in parts.
  std::int64_t left = options.max_workspace_bytes > 0 ? options.max_workspace_bytes
                                                      : std::numeric_limits<std::int64_t>::max();
  left -= std::min(left, plan.blocks.end);
  for (ClassPlan& of : plan.classes) {
    if (kernel_of(of.config).takes_parts) continue;
    of.part_keys = base::round_up(numbered_keys(problem), kLeastPart);
    left -= std::min(left, lay_out(problem, of.packing, of.max_queries, of.part_keys, 0).end);
  }
  for (ClassPlan& of : plan.classes) {
    const std::int64_t resident =
        std::int64_t{multiprocessors} * attention::cta_shape(of.config).resident;
    if (kernel_of(of.config).takes_parts) {
      of.part_keys =
          options.part_keys > 0 ? options.part_keys : choose_part(problem, of, left, limits);
    }
    of.lists = lay_out(problem, of.packing, of.max_queries, of.part_keys, plan.workspace_bytes);
    plan.workspace_bytes = of.lists.end;
    if (of.lists.end == std::numeric_limits<std::int64_t>::max()) {
      base::fail(ErrorCode::kUnsupported,
                 "a step within the bounds may have {} parts of {} keys for {} tiles of heads "
                 "each, of {} rows if they are joined, and a launch takes 2^31 - 1 of either; give "
                 "smaller bounds or longer parts",
                 of.lists.works, of.part_keys, of.packing.row_columns, of.lists.slot_rows);
    }
    of.joins = of.lists.slots > 0;
    of.ctas = persistent_ctas(of, resident);
    of.spec = rows_spec(of.config, plan.features, limits.arch);
    if (of.joins) of.combine = combine_spec(plan.features, limits.arch);
    plan.decisions.push_back(describe(of, plan.features.pages));
  }
  if (options.max_workspace_bytes > 0 && plan.workspace_bytes > options.max_workspace_bytes) {
    base::fail(ErrorCode::kOutOfMemory,
               "a step within the bounds needs {} bytes of workspace in parts of {} keys, and "
               "max_workspace_bytes is {}; give smaller bounds, especially of the keys of all "
               "requests together",
               plan.workspace_bytes, plan.classes.front().part_keys, options.max_workspace_bytes);
  }
  plan.score = attention::score_numbers(one);
  plan.score_tables = attention::score_tables(problem.score);
  plan.score_code = attention::score_code(problem.score.score_mod);
  plan.lse_factor =
      problem.lse_base == LseBase::kNatural ? static_cast<float>(std::numbers::ln2) : 1.0f;
  plan.prepare = prepare_spec(plan.features, limits.arch);
  if (plan.features.listed) plan.list_blocks = list_blocks_spec(limits.arch);
  return plan;
}

std::vector<jit::KernelSpec> kernels_of(const BatchPlanData& plan) {
  std::vector<jit::KernelSpec> specs = {plan.prepare};
  if (plan.features.listed) specs.push_back(plan.list_blocks);
  for (const ClassPlan& of : plan.classes) {
    specs.push_back(of.spec);
    if (of.joins) specs.push_back(of.combine);
  }
  return specs;
}

}  // namespace annulus::batch

namespace annulus::inline v0 {

void validate(const BatchProblem& given) {
  using attention::check_count;
  const BatchBounds& most = given.most;
  check_count("most.requests", most.requests, 1, batch::kMaxRequests);
  check_count("most.rows", most.rows, 1, kMaxPosition);
  check_count("most.rows_of_one", most.rows_of_one, 0, most.rows);
  check_count("most.keys_of_one", most.keys_of_one, 1, kMaxPosition);
  check_count("most.keys", most.keys, 0, std::numeric_limits<std::int64_t>::max());
  check_count("page_rows", given.page_rows, 0, kMaxPosition);
  // The numbers of the keys of a list, whose blocks are whole, have 31 bits.
  check_count("block_keys", given.block_keys, 0, kMaxPosition / 2);
  if (given.block_keys == 0 && given.max_blocks != 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "max_blocks is {}, but block_keys is 0, so there are no lists of blocks; give "
               "block_keys, or leave max_blocks out",
               given.max_blocks);
  }
  if (given.block_keys > 0) check_count("max_blocks", given.max_blocks, 1, batch::kMaxBlocks);
  if (given.block_keys % kernels::kBlockGrain != 0) {
    base::fail(ErrorCode::kUnsupported,
               "block_keys is {}; kernels take lists of blocks of a multiple of {} keys",
               given.block_keys, static_cast<int>(kernels::kBlockGrain));
  }
  if (given.block_keys > 0 && most.keys_of_one / given.block_keys >= batch::kMaxBlocks) {
    base::fail(ErrorCode::kUnsupported,
               "a request of {} keys has more than {} blocks of {} keys, which is more than a list "
               "can have; give larger blocks",
               most.keys_of_one, batch::kMaxBlocks, given.block_keys);
  }
  batch::check_interleave(given.interleave);
  if (given.interleave.ranks > 1 && given.block_keys > 0) {
    base::fail(
        ErrorCode::kUnsupported,
        "keys are interleaved between {} ranks and requests have lists of blocks of {} keys, "
        "so a rank has parts of blocks, which no kernel takes; give whole blocks to ranks, each "
        "with a list of its own",
        given.interleave.ranks, given.block_keys);
  }
  if (given.dtype != Dtype::kFloat16 && given.dtype != Dtype::kBfloat16) {
    const bool known = given.dtype == Dtype::kFloat32 || given.dtype == Dtype::kFloat8E4M3;
    base::fail(known ? ErrorCode::kUnsupported : ErrorCode::kInvalidArgument,
               "dtype {} ({}) of Q, K, V and O has no kernel for batches; convert to fp16 or bf16",
               static_cast<int>(given.dtype), to_string(given.dtype));
  }
  batch::check_has_forms(given.pattern);
  validate(batch::largest_request(batch::with_bounds(given)));
  if (given.block_keys > 0 && most.requests * given.kv_heads > batch::kInt) {
    base::fail(ErrorCode::kUnsupported,
               "{} requests with {} heads of K and V each have more than 2^31 - 1 lists of blocks, "
               "which is the most that a launch takes; give smaller bounds",
               most.requests, given.kv_heads);
  }
}

const char* to_string(BatchRule rule) {
  switch (rule) {
    case BatchRule::kNone:
      return "nothing";
    case BatchRule::kRequests:
      return "more requests than planned, or a negative number";
    case BatchRule::kRows:
      return "rows of Q that descend, are negative, end beyond the bound, or belong to an earlier "
             "request";
    case BatchRule::kRowsOfOne:
      return "more rows of Q than one request may have";
    case BatchRule::kKeys:
      return "a number of keys that is negative or beyond the bound";
    case BatchRule::kPages:
      return "more keys than its pages or the rows of K or V hold, or a begin outside";
    case BatchRule::kAllKeys:
      return "more keys than all requests together may have";
    case BatchRule::kPosition:
      return "positions beyond 2^30";
    case BatchRule::kPage:
      return "a page number that does not exist";
    case BatchRule::kBlocks:
      return "a block beyond its keys, or one that is named twice";
    case BatchRule::kRowEnd:
      return "a row whose keys end below 0 or beyond the request's";
  }
  return "an unknown rule";
}

}  // namespace annulus::inline v0
