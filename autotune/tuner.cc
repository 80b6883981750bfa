#include "autotune/tuner.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <numeric>
#include <utility>

#include "annulus/types.h"
#include "annulus/version.h"
#include "attention/kernels/family.h"
#include "autotune/batch_workbench.h"
#include "autotune/replay.h"
#include "autotune/stand_in.h"
#include "autotune/workbench.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "base/work.h"
#include "batch/batch_choice.h"
#include "device/simulator.h"
#include "pattern/layout_file.h"
#include "selection/selection_plan.h"
#include "tuned/batch_key.h"
#include "tuned/entry_problem.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;

// The most pairs in the tiles of all parts. The oracle computes some millions of pairs per second
// on one core. The simulator runs one or two warp instructions for each pair.
constexpr double kMaxPairsMeasured = 8e6;
constexpr double kMaxPairsSimulated = 1.5e6;

// Switches a simulated device to checked mode, which counts everything, until the end of a scope.
class CountingMode {
 public:
  explicit CountingMode(const device::Context& context)
      : context_(context), before_(device::simulator_options(context)) {
    if (!before_) return;
    abi::SimulatorOptions options = *before_;
    options.checked = 1;
    device::set_simulator_options(context_, options);
  }
  ~CountingMode() {
    if (!before_) return;
    try {
      device::set_simulator_options(context_, *before_);
    } catch (...) {  // the device is lost, which the next call on it reports
    }
  }
  CountingMode(const CountingMode&) = delete;
  CountingMode& operator=(const CountingMode&) = delete;

 private:
  const device::Context& context_;
  std::optional<abi::SimulatorOptions> before_;
};

// The parts of a problem with its first and its last rows and keys. If tiles differ there, they
// differ in the whole problem.
std::vector<Problem> corners_of(const Problem& problem) {
  constexpr std::int64_t kRows = 2048;
  Problem first = problem;
  first.batch = std::min(problem.batch, problem.pattern.distinct_batches(problem.batch));
  first.q0 = problem.q_position();
  first.k0 = problem.k_position();
  first.total_k = problem.context().seq_k;
  Problem last = first;
  first.seq_q = std::min(problem.seq_q, kRows);
  first.seq_k = std::min(problem.seq_k, kRows);
  const auto begin = [](std::int64_t length) {
    return std::max<std::int64_t>(0, length - kRows) / kPartRows * kPartRows;
  };
  last.q0 = problem.q_position() + begin(problem.seq_q);
  last.k0 = problem.k_position() + begin(problem.seq_k);
  last.seq_q = problem.seq_q - begin(problem.seq_q);
  last.seq_k = problem.seq_k - begin(problem.seq_k);
  return {first, last};
}

// Whether the heads or rows that a configuration puts into one CTA or cluster may share it, checked
// on the corners of the problem.
bool shares(const KernelConfig& config, const std::vector<Problem>& corners,
            const attention::DeviceLimits& limits) {
  if (attention::cta_shape(config).packed_heads() == 1) return true;
  try {
    for (const Problem& corner : corners) {
      attention::make_branch_plans(corner, attention::Choice{config, "a candidate", {}}, limits);
    }
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnsupported) return false;
    throw;
  }
}

std::int64_t rounded(double value) {
  return std::max<std::int64_t>(1, std::llround(std::min(value, 1e18)));
}

}  // namespace

namespace {

// Finds the heuristic's choice among the candidates, or adds it.
void place_standard(const KernelConfig& standard, Candidates* made) {
  const auto same = [&](const tuned::Trial& trial) { return trial.config == standard; };
  auto found = std::ranges::find_if(made->trials, same);
  if (found == made->trials.end()) found = made->trials.insert(found, {.config = standard});
  made->default_at = static_cast<std::size_t>(found - made->trials.begin());
}

std::optional<Candidates> find_batch_candidates(const Target& target,
                                                const attention::DeviceLimits& limits,
                                                const attention::PipeDevice& pipes, bool simulated,
                                                const std::function<bool()>& stopped) {
  const tuned::BatchTarget& of = *target.batch;
  Candidates made;
  const tuned::Space space = tuned::enumerate(of.problem, of.requests, limits, pipes, simulated);
  made.equal = space.equal;
  for (const KernelConfig& config : space.candidates) made.trials.push_back({.config = config});
  place_standard(target.standard, &made);
  for (tuned::Trial& trial : made.trials) {
    if (stopped && stopped()) return std::nullopt;
    trial.predicted = predicted_cycles(pipes, limits, of, trial.config);
  }
  return made;
}

std::optional<Candidates> find_candidates(const Target& target,
                                          const attention::DeviceLimits& limits,
                                          const attention::PipeDevice& pipes, bool simulated,
                                          const std::function<bool()>& stopped) {
  if (target.batch) return find_batch_candidates(target, limits, pipes, simulated, stopped);
  const Problem& problem = target.problem;
  const attention::Dims dims = {problem.dim_qk, problem.dim_v};
  Candidates made;
  const tuned::Space space = tuned::enumerate(dims, problem.dtype, limits, pipes, simulated);
  made.equal = space.equal;
  const std::vector<Problem> corners = corners_of(problem);
  for (const KernelConfig& config : space.candidates) {
    if (target.why_not && target.why_not(config)) continue;
    if (shares(config, corners, limits)) made.trials.push_back({.config = config});
  }
  place_standard(target.standard, &made);
  for (const Problem& branch : attention::branch_problems(problem)) {
    const attention::KernelFeatures features = attention::features_of(branch);
    // Counting tiles is slow, and configurations with the same tile size share the counts.
    std::map<std::pair<int, int>, attention::TileCounts> counts;
    for (tuned::Trial& trial : made.trials) {
      const std::pair tile(trial.config.tile_rows, trial.config.tile_columns);
      auto at = counts.find(tile);
      if (at == counts.end()) {
        auto counted = attention::count_tiles(branch, tile.first, tile.second, stopped);
        if (!counted) return std::nullopt;
        at = counts.emplace(tile, std::move(*counted)).first;
      }
      trial.predicted +=
          attention::predict(pipes, trial.config, dims, at->second,
                             attention::estimate_work(trial.config, features, at->second),
                             attention::least_bytes(branch))
              .predicted_cycles;
    }
  }
  return made;
}

}  // namespace

Target target_of(const Problem& problem, const attention::DeviceLimits& limits) {
  return {
      .problem = problem,
      .checked = problem,
      .shape = tuned::shape_key(problem),
      .standard = attention::choose_config(problem, limits).config,
      .why_not = {},
      .state = [problem](tuned::Entry::Origin* origin) { tuned::state_problem(problem, origin); }};
}

Target target_of(const Problem& problem, const Selection& selection,
                 const attention::DeviceLimits& limits, std::uint64_t seed) {
  return {
      .problem = stand_in(problem, selection, seed),
      .checked = small_stand_in(problem, selection, seed),
      .shape = tuned::shape_key(problem, selection),
      .standard = selection::choose_config(problem, selection, limits).config,
      .why_not = [](const KernelConfig& config) { return selection::why_not(config); },
      .state =
          [=](tuned::Entry::Origin* origin) { tuned::state_selected(problem, selection, origin); }};
}

Target target_of(const tuned::BatchTarget& batch, const attention::DeviceLimits& limits) {
  const Problem problem = tuned::as_problem(batch.problem, batch.requests);
  return {.problem = problem,
          .checked = problem,
          .shape = tuned::shape_key(batch.problem, batch.requests),
          .standard = batch::choose_config(batch.requests, batch.problem, limits).config,
          .batch = batch,
          .why_not = {},
          .state = [batch](tuned::Entry::Origin* origin) { tuned::state_batch(batch, origin); }};
}

Target stated_target(const tuned::Entry& entry, const attention::DeviceLimits& limits,
                     std::uint64_t seed) {
  if (entry.shape.requests != tuned::Requests::kNone)
    return target_of(tuned::batch_of(entry), limits);
  if (entry.shape.pattern != tuned::PatternClass::kChosen)
    return target_of(tuned::problem_of(entry), limits);
  const auto [problem, selection] = tuned::selected_of(entry);
  return target_of(problem, selection, limits, seed);
}

std::optional<Candidates> candidates_of(const Target& target, const attention::DeviceLimits& limits,
                                        const attention::PipeDevice& pipes, bool simulated,
                                        const std::function<bool()>& stopped) {
  try {
    const base::Work work({.steps = 0, .cancelled = stopped}, "tuning");
    return find_candidates(target, limits, pipes, simulated, stopped);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    return std::nullopt;
  }
}

std::vector<Problem> parts_for(const Target& target, const Candidates& candidates,
                               double max_pairs) {
  const Problem& problem = target.checked;
  const std::int64_t group = problem.heads / problem.kv_heads;
  int packed = 1;
  for (const tuned::Trial& trial : candidates.trials) {
    const int heads = attention::cta_shape(trial.config).packed_heads();
    if (group % heads == 0) packed = std::lcm(packed, heads);
  }
  return choose_parts(problem, max_pairs, packed);
}

SearchResult tune_problem(const TuneJob& job,
                          const std::function<void(const SearchProgress&)>& progress) {
  const device::DeviceInfo& info = job.context->info();
  const attention::PipeDevice pipes = attention::pipe_device(info);
  std::optional<CountingMode> mode;
  if (job.turns == nullptr) mode.emplace(*job.context);
  // A stop also ends the oracle's work, which takes a second, or more on one thread.
  const base::Work work({.steps = 0, .cancelled = job.search.stopped}, "tuning");
  double max_pairs = info.simulated ? kMaxPairsSimulated : kMaxPairsMeasured;
  if (job.max_pairs > 0) max_pairs = job.max_pairs;
  // All processors except the one that measures. If the search shares the device with a working
  // host, it uses none.
  const int compilers = job.turns == nullptr ? base::processors() - 1 : 0;
  std::optional<Verifier> verifier;
  std::unique_ptr<Workbench> on_device, workbench;
  if (job.target.batch) {
    workbench = batch_workbench(job.context, job.kernels, job.limits, *job.target.batch, job.seed,
                                job.threads, compilers);
  } else {
    verifier.emplace(job.context, job.kernels, job.limits,
                     parts_for(job.target, job.candidates, max_pairs), job.seed, job.threads);
    if (info.simulated) {
      workbench = std::make_unique<PredictedWorkbench>(*verifier, job.kernels, pipes,
                                                       job.target.problem, compilers);
    } else {
      workbench = std::make_unique<MeasuredWorkbench>(
          *verifier, job.context, job.kernels, job.limits, job.target.problem, job.seed, compilers);
    }
  }
  if (job.turns != nullptr) {
    on_device = std::move(workbench);
    workbench = std::make_unique<TurnWorkbench>(
        *on_device, *job.turns,
        [&]() -> std::shared_ptr<void> { return std::make_shared<CountingMode>(*job.context); });
  }
  if (job.journal == nullptr) {
    return search(job.candidates.trials, job.candidates.default_at, *workbench, job.search,
                  progress);
  }
  JournalWorkbench journaled(workbench.get(), job.journal->before(),
                             [&](const tuned::Finding& finding) { job.journal->add(finding); });
  tuned::SearchOptions options = job.search;
  options.nominated = job.journal->before().options.nominated;
  return search(job.candidates.trials, job.candidates.default_at, journaled, options, progress);
}

namespace {

// The properties of a batch that its representative problem does not have.
std::string asked_of(const tuned::BatchTarget& of) {
  const BatchProblem& problem = of.problem;
  const BatchBounds& most = problem.most;
  const KeyInterleave& ranks = problem.interleave;
  std::string text =
      fmt::format("|{} {} {} {} {}|{} {} {}|{} {} {} {}|{} {}", most.requests, most.rows,
                  most.rows_of_one, most.keys_of_one, most.keys, problem.page_rows,
                  problem.block_keys, problem.max_blocks, ranks.block, ranks.ranks, ranks.rank,
                  problem.row_limits, of.options.part_keys, of.options.max_multiprocessors);
  for (const batch::StepRequest& request : of.step) {
    text += fmt::format("|{}/{}", request.queries, request.keys);
  }
  return text;
}

}  // namespace

base::Json subject_of(const Target& target, const Candidates& candidates,
                      const std::string& identity, bool simulated,
                      const tuned::Entry::Origin& origin, const tuned::SearchOptions& options,
                      std::uint64_t seed) {
  const Problem& problem = target.problem;
  base::Json about = {{"device", identity},
                      {"library", ANNULUS_VERSION},
                      {"driver", origin.driver_version},
                      {"nvrtc", origin.nvrtc_version}};
  const auto state_revisions = [&](const auto& kernels) {
    for (const auto* kernel : kernels) about["families"][kernel->name] = kernel->revision;
  };
  if (target.batch) {
    state_revisions(batch::batch_kernels());
  } else {
    state_revisions(attention::families());
  }
  about["shape"] = to_string(target.shape);
  about["sizes"] = {problem.batch, problem.heads, problem.kv_heads,     problem.seq_q,
                    problem.seq_k, problem.layer, problem.q_position(), problem.k_position()};
  // The sizes are for users to read. The digest covers the whole problem, including the blocks of
  // layouts.
  std::string asked = problem.pattern.to_string();
  pattern::add_layout_digests(problem.pattern.node(), &asked);
  const ScaleBlocks& blocks = problem.scale_blocks;
  asked +=
      fmt::format("|{}|{}|{}|{}|{}|{}", problem.score.to_string(), problem.total_k.value_or(-1),
                  blocks.q, blocks.k, blocks.v, to_string(problem.output_dtype()));
  if (target.batch) asked += asked_of(*target.batch);
  about["pattern"] = base::digest(asked).hex();
  about["seed"] = seed;
  return tuned::subject_of(std::move(about), candidates.trials, candidates.default_at, simulated,
                           options);
}

tuned::Entry compared(const SearchResult& result, bool predicted, tuned::CacheState l2) {
  // Predicted times are cycles. Measured times are microseconds, and are stored as nanoseconds.
  const double unit = predicted ? 1.0 : 1e3;
  const tuned::Trial& winner = result.trials[result.winner];
  tuned::Entry entry;
  entry.config = winner.config;
  entry.default_config = result.trials[result.default_at].config;
  entry.revision = entry.config.family->revision;
  entry.default_revision = entry.default_config.family->revision;
  entry.predicted = predicted;
  entry.complete = result.complete;
  entry.time = rounded(result.winner_time * unit);
  entry.default_time = rounded(result.default_time * unit);
  // The default's ratio to itself is 1. A winner other than the default has an upper bound below 1.
  const bool is_default = result.winner == result.default_at;
  entry.ratio_low_ppm = is_default ? 1'000'000 : rounded(winner.ratio.low * 1e6);
  entry.ratio_high_ppm = is_default ? 1'000'000 : rounded(winner.ratio.high * 1e6);
  entry.cold_cache = l2 == tuned::CacheState::kCold;
  if (winner.other_ratio) entry.other_ratio_ppm = rounded(winner.other_ratio->middle * 1e6);
  entry.rounds = std::max(1, winner.rounds);
  entry.repeated_rounds = result.repeated;
  entry.candidates = std::max(1, result.tried);
  if (result.runner_up) entry.runner_up = result.trials[*result.runner_up].config;
  return entry;
}

tuned::Entry entry_of(const Target& target, const SearchResult& result, bool predicted,
                      tuned::CacheState l2, tuned::Entry::Origin origin) {
  tuned::Entry entry = compared(result, predicted, l2);
  entry.shape = target.shape;
  origin.library_version = ANNULUS_VERSION;
  origin.when = std::time(nullptr);
  target.state(&origin);
  entry.origin = std::move(origin);
  return entry;
}

}  // namespace annulus::autotune
