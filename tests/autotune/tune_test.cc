// Tuning through the public interface, on a device.

#include "annulus/tune.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "annulus/ring.h"
#include "annulus/types.h"
#include "api/impl.h"
#include "attention/kernels/family.h"
#include "attention/kernels/mma/config.h"
#include "autotune/tuner.h"
#include "base/thread_pool.h"
#include "support/device.h"
#include "support/device_case.h"
#include "support/faulty_files.h"
#include "tuned/entry_problem.h"

namespace annulus {
namespace {

namespace fs = std::filesystem;
using test::ScratchFolder;

struct Opened {
  std::vector<std::string> notes;
  Device device;

  explicit Opened(const std::string& tuned_path, const std::string& templates = "")
      : device(open(tuned_path, templates, &notes)) {}
  static Device open(const std::string& tuned_path, const std::string& templates,
                     std::vector<std::string>* notes) {
    DeviceOptions options;
    options.name = test::device_name();
    options.tuned_path = tuned_path;
    options.template_dir = templates;
    options.log = [notes](LogLevel, std::string_view text) { notes->emplace_back(text); };
    return Device::open(options);
  }
};

Problem problem(std::int64_t seq = 300, const char* pattern = "causal") {
  Problem made;
  made.heads = 4;
  made.kv_heads = 2;
  made.seq_q = made.seq_k = seq;
  made.dim_qk = made.dim_v = 32;
  made.pattern = Pattern::parse(pattern);
  return made;
}

std::uint64_t launches(const Device& device) {
  for (const auto& [name, count] : device.counters()) {
    if (name == "launches") return count;
  }
  return 0;
}

bool says(const std::vector<std::string>& lines, const std::string& part) {
  for (const std::string& line : lines) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("a tuned result is found, kept, used, and not searched for again") {
  const ScratchFolder scratch;
  const std::string path = scratch / "tuned";
  TuneResult result;
  {
    Opened opened(path);
    const Plan before = opened.device.plan(problem());
    CHECK(before.info().tuned.empty());
    int calls = 0;
    TuneOptions options;
    options.progress = [&](const TuneProgress& progress) {
      CHECK(progress.done == ++calls);
      CHECK(progress.best_ratio <= 1);
      CHECK_FALSE(progress.config.empty());
    };
    result = tune(opened.device, problem(), options);
    CHECK(result.status == TuneStatus::kTuned);
    CHECK(result.predicted == opened.device.info().simulated);
    CHECK(result.default_config == before.info().config);
    CHECK(result.ratio_high <= 1);
    CHECK(result.time <= result.default_time);
    CHECK(calls == result.tried + result.dropped);
    CHECK(result.tried > 5);
    CHECK(result.dropped == 0);
    CHECK(static_cast<int>(result.trials.size()) == result.candidates);
    CHECK(fs::exists(result.path));
    CHECK(result.problem.empty());
    // The device that tuned uses the result at once.
    CHECK(opened.device.plan(problem()).info().tuned == result.path);
    CHECK(opened.notes.empty());
  }
  // Another device object finds the result, and its answers are right.
  Opened opened(path);
  const Plan plan = opened.device.plan(problem());
  CHECK(plan.info().tuned == result.path);
  CHECK(plan.info().config == result.config);
  CHECK(plan.info().source == "disk");  // the search has compiled the kernel
  CHECK(says(plan.info().decisions, "tuned"));
  if (result.config != result.default_config) {
    CHECK(says(plan.info().rejected, result.default_config + ": the heuristic's choice"));
  }
  const test::Case host = test::make_case(problem(), 3);
  base::ThreadPool pool;
  const auto comparison =
      annulus::compare(problem(), attention::reference(problem(), host.inputs(), pool),
                       test::run_case(opened.device, host).result());
  CHECK(comparison.within_tolerance);
  // Plans for which the result is not valid do not use it.
  PlanOptions forced;
  forced.config = result.default_config;
  CHECK(opened.device.plan(problem(), forced).info().tuned.empty());
  CHECK(opened.device.plan(problem(300, "dense")).info().tuned.empty());
  CHECK(opened.device.plan(problem(3000)).info().tuned.empty());
  const Plan near = opened.device.plan(problem(450));
  CHECK(near.info().tuned == result.path);
  CHECK(says(near.info().decisions, "half powers of two away"));
  Problem nothing = problem();
  nothing.seq_q = 0;
  CHECK(opened.device.plan(nothing).info().tuned.empty());

  // A second call measures nothing. Neither does a call for a problem of the same kind.
  const std::uint64_t before = launches(opened.device);
  const TuneResult again = tune(opened.device, problem(290));
  CHECK(again.status == TuneStatus::kAlreadyThere);
  CHECK(again.config == result.config);
  CHECK(again.path == result.path);
  CHECK(launches(opened.device) == before);
  CHECK(opened.notes.empty());
}

TEST_CASE("a dry run says what would be tried and does nothing") {
  const ScratchFolder scratch;
  Opened opened(scratch / "tuned");
  const std::uint64_t before = launches(opened.device);
  TuneOptions options;
  options.dry_run = true;
  const TuneResult result = tune(opened.device, problem(), options);
  CHECK(result.status == TuneStatus::kPlanned);
  CHECK(result.candidates > 20);
  CHECK(static_cast<int>(result.trials.size()) == result.candidates);
  for (const TuneCandidate& trial : result.trials) {
    CHECK(trial.outcome == "not tried");
    CHECK(trial.model_cycles > 0);
  }
  CHECK(launches(opened.device) == before);
  CHECK_FALSE(fs::exists(scratch / "tuned"));
}

TEST_CASE("a limit or the caller ends a search; the best so far stays and a later call goes on") {
  const ScratchFolder scratch;
  Opened opened(scratch / "tuned");
  TuneOptions options;
  options.time_limit_seconds = 1e-9;
  const std::uint64_t before = launches(opened.device);
  const TuneResult none = tune(opened.device, problem(), options);
  CHECK(none.status == TuneStatus::kPartial);
  CHECK(none.config == none.default_config);
  CHECK(none.tried == 0);
  CHECK(none.path.empty());
  CHECK(opened.device.plan(problem()).info().tuned.empty());

  // Classifying the rows of this problem takes minutes.
  Problem longest = problem(1 << 30);
  longest.pattern = causal() & Pattern::parse("random(64, 0, 64)");
  const TuneResult unknown = tune(opened.device, longest, options);
  CHECK(unknown.status == TuneStatus::kPartial);
  CHECK(unknown.tried == 0);

  std::atomic<bool> cancel{true};
  TuneOptions cancelled;
  cancelled.cancel = &cancel;
  CHECK(tune(opened.device, problem(), cancelled).status == TuneStatus::kPartial);
  CHECK(launches(opened.device) == before);
  cancel = false;
  cancelled.progress = [&](const TuneProgress& progress) { cancel = progress.done >= 8; };
  const TuneResult partial = tune(opened.device, problem(), cancelled);
  CHECK(partial.status == TuneStatus::kPartial);
  CHECK(partial.tried + partial.dropped == 8);
  CHECK(partial.ratio_high <= 1);
  CHECK(fs::exists(partial.path));
  CHECK(opened.device.plan(problem()).info().tuned == partial.path);

  // A call that measures nothing names the stored result, which plans use.
  for (const bool dry_run : {false, true}) {
    options.dry_run = dry_run;
    const TuneResult kept = tune(opened.device, problem(), options);
    CHECK(kept.tried == 0);
    CHECK(kept.config == partial.config);
    CHECK(kept.path == partial.path);
    CHECK(kept.ratio == partial.ratio);
  }

  const TuneResult whole = tune(opened.device, problem());
  CHECK(whole.status == TuneStatus::kTuned);
  CHECK(whole.path == partial.path);
  CHECK(whole.ratio <= partial.ratio * 1.001);
  CHECK(tune(opened.device, problem()).status == TuneStatus::kAlreadyThere);
  TuneOptions force;
  force.force = true;
  force.cancel = &cancel;
  cancel = false;
  force.progress = [&](const TuneProgress& progress) { cancel = progress.done >= 2; };
  CHECK(tune(opened.device, problem(), force).status == TuneStatus::kPartial);
}

void refused(const Device& device, const Problem& bad, ErrorCode code) {
  try {
    tune(device, bad);
    FAIL("tuned");
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == code, error.what());
  }
}

TEST_CASE("what cannot be tuned or kept is refused before anything runs") {
  const ScratchFolder scratch;
  std::ofstream(scratch / "file") << "x";
  Opened opened(scratch / "file");
  const std::uint64_t before = launches(opened.device);
  refused(opened.device, problem(), ErrorCode::kFile);
  Problem bad = problem();
  bad.seq_q = 0;
  refused(opened.device, bad, ErrorCode::kInvalidArgument);
  bad = problem();
  bad.batch = 0;
  refused(opened.device, bad, ErrorCode::kInvalidArgument);
  bad = problem();
  bad.kv_heads = 3;
  refused(opened.device, bad, ErrorCode::kInvalidArgument);
  for (const double seconds : {-1.0, std::nan("")}) {
    TuneOptions options;
    options.time_limit_seconds = seconds;
    CHECK_THROWS_AS(tune(opened.device, problem(), options), Error);
  }
  CHECK(launches(opened.device) == before);
}

TEST_CASE("without a folder a result serves its own device and no other") {
  Opened opened("");
  TuneOptions options;
  std::atomic<bool> cancel{false};
  options.cancel = &cancel;
  options.progress = [&](const TuneProgress& progress) { cancel = progress.done >= 4; };
  const TuneResult result = tune(opened.device, problem(), options);
  CHECK(result.path.empty());
  CHECK(result.problem.empty());
  CHECK(opened.device.plan(problem()).info().tuned == "memory");
  Opened other("");
  CHECK(other.device.plan(problem()).info().tuned.empty());
  CHECK(opened.notes.empty());
}

TEST_CASE("a tuned kernel that does not work here gives way to the heuristic, with one line") {
  const ScratchFolder scratch;
  fs::copy(ANNULUS_TEMPLATES, scratch / "t", fs::copy_options::recursive);
  const std::string kernel = scratch / "t/kernels/mma/mma_forward.cu";
  std::ostringstream text;
  text << std::ifstream(kernel).rdbuf();
  std::string source = text.str();
  const std::string anchor = "static_assert(kStages >= 1";
  REQUIRE(source.find(anchor) != std::string::npos);
  source.insert(source.find(anchor), "static_assert(kColumns != 128, \"not here\");\n  ");
  std::ofstream(kernel) << source;

  // Entries that name a kernel that does not compile, for this device and these templates.
  const Problem around_problem = problem(600);
  const ShardMap around_shards = make_shards(Sharding::kContiguous, 2, 600, 600);
  tuned::Entry entry;
  {
    Opened opened(scratch / "tuned", scratch / "t");
    entry.shape = tuned::shape_key(problem());
    entry.config = entry.default_config = attention::MmaConfig{64, 128, 4, 2, false, 2};
    entry.revision = entry.default_revision = entry.config.family->revision;
    entry.predicted = opened.device.info().simulated;
    entry.complete = true;
    entry.time = 1;
    entry.default_time = 2;
    entry.ratio_low_ppm = entry.ratio_high_ppm = 500'000;
    entry.rounds = entry.candidates = 1;
    tuned::TunedStore& store = *api::inside(opened.device).tuned;
    REQUIRE(store.store(entry, false).outcome == tuned::TunedStore::Outcome::kStored);
    entry.shape = tuned::shape_key(ring_step(around_problem, around_shards));
    REQUIRE(store.store(entry, false).outcome == tuned::TunedStore::Outcome::kStored);
  }
  // With the library's own templates the entry belongs to another device, and is not mentioned.
  Opened own(scratch / "tuned");
  const Plan heuristic = own.device.plan(problem());
  CHECK(heuristic.info().tuned.empty());
  CHECK(own.notes.empty());

  Opened opened(scratch / "tuned", scratch / "t");
  for (int i = 0; i < 3; ++i) {
    const Plan plan = opened.device.plan(problem());
    CHECK(plan.info().tuned.empty());
    CHECK(plan.info().config == heuristic.info().config);
  }
  REQUIRE(opened.notes.size() == 1);
  CHECK(opened.notes[0].find("mma m64 n128 w4 s2 x2 does not work here") != std::string::npos);
  // A ring does not use it either.
  Opened around(scratch / "tuned", scratch / "t");
  const std::vector<Device> devices(2, around.device);
  const RingInfo info = plan_ring(devices, around_problem, around_shards).info();
  CHECK(info.tuned.empty());
  CHECK(info.config == heuristic.info().config);
  REQUIRE(around.notes.size() == 1);
  CHECK(around.notes[0].find("does not work here") != std::string::npos);
}

TEST_CASE("candidates that are wrong or fault are dropped, and the others are tuned") {
  if (!test::on_simulator()) return;
  const ScratchFolder scratch;
  fs::copy(ANNULUS_TEMPLATES, scratch / "t", fs::copy_options::recursive);
  const std::string kernel = scratch / "t/kernels/mma/mma_forward.cu";
  std::ostringstream text;
  text << std::ifstream(kernel).rdbuf();
  std::string source = text.str();
  const std::string anchor = "static_assert(kStages >= 1";
  source.insert(source.find(anchor),
                "static_assert(kStages != 4, \"no four\");\n"
                "  if (kStages == 3) *static_cast<int*>(nullptr) = 1;\n  ");
  std::ofstream(kernel) << source;
  Opened opened(scratch / "tuned", scratch / "t");
  const TuneResult result = tune(opened.device, problem());
  CHECK(result.status == TuneStatus::kTuned);
  CHECK(result.dropped > 0);
  for (const TuneCandidate& trial : result.trials) {
    CAPTURE(trial.config);
    CAPTURE(trial.outcome);
    if (trial.outcome == "not tried") continue;
    const bool fine = trial.config.find("s3") == std::string::npos &&
                      trial.config.find("s4") == std::string::npos;
    CHECK((trial.outcome == "tried") == fine);
  }
  CHECK(opened.device.plan(problem()).info().tuned == result.path);
}

// tools/bench/tune_bench measures this for more shapes.
TEST_CASE("the search comes within 3 % of the whole space") {
  if (!test::on_simulator()) return;
  Opened opened("");
  TuneOptions all;
  all.exhaustive = true;
  const TuneResult best = tune(opened.device, problem(150), all);
  TuneOptions some;
  some.force = true;
  const TuneResult found = tune(opened.device, problem(150), some);
  CHECK(best.tried == best.candidates);
  CHECK(found.tried < best.tried);
  CHECK(found.time <= 1.03 * best.time);
  CHECK(found.time <= found.default_time);
  CHECK(best.time <= best.default_time);
}

TEST_CASE("a ring uses what was tuned for its step, and no other's result") {
  Opened opened("");
  const Problem whole = problem(600);
  const ShardMap shards = make_shards(Sharding::kZigzag, 2, 600, 600);
  const std::vector<Device> devices(2, opened.device);
  CHECK(plan_ring(devices, whole, shards).info().tuned.empty());
  Problem alone = whole;
  alone.seq_q = alone.seq_k = 344;  // segments begin at multiples of 128 rows
  tune(opened.device, alone);
  CHECK(plan_ring(devices, whole, shards).info().tuned.empty());
  const Problem step = ring_step(whole, shards);
  CHECK(step.seq_q == 344);
  CHECK(step.seq_k == 344);
  CHECK(step.carry_in);
  CHECK(step.carry_out);
  const ShardMap one = make_shards(Sharding::kContiguous, 1, 600, 600);
  CHECK_FALSE(ring_step(whole, one).carry_in);
  CHECK_THROWS_AS(ring_step(alone, shards), Error);
  const TuneResult result = tune(opened.device, step);
  const RingInfo info = plan_ring(devices, whole, shards).info();
  CHECK(info.tuned == "memory");
  CHECK(info.config == result.config);
  PlanOptions asked;
  asked.config = result.default_config;
  CHECK(plan_ring(devices, whole, shards, {asked}).info().tuned.empty());
}

TEST_CASE("plans with a selection use what was tuned for it") {
  const ScratchFolder scratch;
  Opened opened(scratch / "tuned");
  const Problem whole = problem(700);
  Selection selection;
  selection.block_rows = selection.block_columns = 64;
  selection.max_blocks = 4;
  CHECK(opened.device.plan(whole, selection).info().tuned.empty());
  const TuneResult result = tune(opened.device, whole, selection);
  CHECK(result.status == TuneStatus::kTuned);
  CHECK(result.tried > 2);
  for (const TuneCandidate& trial : result.trials) {
    if (trial.outcome == "tried" || trial.outcome == "not tried") continue;
    // On a GPU the search drops kernels that spill. A simulated device does not run ptxas.
    const bool spills = trial.outcome.find(" registers, spills ") != std::string::npos;
    CHECK_MESSAGE((spills && !test::on_simulator()), trial.config, ": ", trial.outcome);
  }
  CHECK(result.shape.find("chosen blocks of 64 x 64") != std::string::npos);
  const PlanInfo info = opened.device.plan(whole, selection).info();
  CHECK(info.tuned == result.path);
  CHECK(info.config == result.config);
  CHECK(tune(opened.device, whole, selection).status == TuneStatus::kAlreadyThere);
  // Other plans do not use it: plans without a selection, with other blocks, or with many more
  // blocks.
  CHECK(opened.device.plan(whole).info().tuned.empty());
  Selection other = selection;
  other.block_columns = 32;
  CHECK(opened.device.plan(whole, other).info().tuned.empty());
  other = selection;
  other.max_blocks = 11;
  CHECK(opened.device.plan(whole, other).info().tuned.empty());
  const Opened again(scratch / "tuned");
  CHECK(again.device.plan(whole, selection).info().config == result.config);
  other.max_blocks = -1;
  CHECK_THROWS_AS(tune(opened.device, whole, other), Error);
}

BatchProblem batch_problem(std::int64_t rows_of_one = 1) {
  BatchProblem made;
  made.heads = 4;
  made.kv_heads = 2;
  made.dim_qk = made.dim_v = 64;
  made.pattern = causal();
  made.page_rows = 16;
  made.most.requests = 8;
  made.most.rows = 8 * rows_of_one;
  made.most.rows_of_one = rows_of_one;
  made.most.keys_of_one = 4096;
  return made;
}

TEST_CASE("kernels of a batch are tuned, kept, and used by batches with about the same bounds") {
  const ScratchFolder scratch;
  Opened opened(scratch / "tuned");
  const BatchProblem problem = batch_problem();
  CHECK(plan_batch(opened.device, problem).info().tuned.empty());
  const std::vector<TuneResult> results = tune_batch(opened.device, problem);
  REQUIRE(results.size() == 1);
  const TuneResult& few = results[0];
  CHECK(few.status == TuneStatus::kTuned);
  CHECK(few.dropped == 0);
  CHECK(few.tried > 1);
  CHECK(few.default_config ==
        plan_batch(opened.device, problem, {.config = few.default_config}).info().config);
  CHECK(few.shape.find("requests of few queries, pages of a multiple of 16") != std::string::npos);
  CHECK(fs::exists(few.path));
  const BatchInfo info = plan_batch(opened.device, problem).info();
  CHECK(info.tuned == few.path);
  CHECK(info.config == few.config);
  CHECK(tune_batch(opened.device, problem)[0].status == TuneStatus::kAlreadyThere);
  // Another process reads the result. It does not apply to another page size, another class, or a
  // named configuration.
  const Opened again(scratch / "tuned");
  CHECK(plan_batch(again.device, problem).info().tuned == few.path);
  CHECK(again.notes.empty());
  BatchProblem other = problem;
  other.page_rows = 64;
  CHECK(plan_batch(again.device, other).info().tuned.empty());
  other = problem;
  other.most.keys_of_one = 65536;
  CHECK(plan_batch(again.device, other).info().tuned.empty());
  CHECK(plan_batch(again.device, problem, {.config = few.default_config}).info().tuned.empty());
  Problem alone;  // the size of the batch, as one problem
  alone.batch = 8;
  alone.heads = 4;
  alone.kv_heads = 2;
  alone.seq_q = 1;
  alone.seq_k = 4096;
  alone.dim_qk = alone.dim_v = 64;
  alone.pattern = causal();
  CHECK(again.device.plan(alone).info().tuned.empty());
}

TEST_CASE("each class of requests that a step has is tuned") {
  Opened opened("");
  const BatchProblem problem = batch_problem(200);
  TuneOptions dry;
  dry.dry_run = true;
  const auto classes = [&](const std::vector<StepRequests>& step) {
    std::vector<std::string> kernels;
    for (const TuneResult& result : tune_batch(opened.device, problem, step, dry)) {
      CHECK(result.status == TuneStatus::kPlanned);
      CHECK(result.candidates > 3);
      kernels.push_back(result.default_config.substr(0, 5));
    }
    return kernels;
  };
  using Kernels = std::vector<std::string>;
  CHECK(classes({}) == Kernels{"decod", "chunk"});
  CHECK(classes({{7, 1, 1000}, {1, 200, 900}}) == Kernels{"decod", "chunk"});
  CHECK(classes({{8, 1, 1000}}) == Kernels{"decod"});
  CHECK(classes({{2, 150, 150}}) == Kernels{"chunk"});
  for (const StepRequests& wrong :
       {StepRequests{9, 1, 1}, StepRequests{0, 1, 1}, StepRequests{1, 201, 300},
        StepRequests{1, 0, 1}, StepRequests{1, 1, 4097}, StepRequests{1, 1, 0}}) {
    CHECK_THROWS_WITH_AS(tune_batch(opened.device, problem, {wrong}, dry),
                         doctest::Contains("not within the bounds"), Error);
  }
}

TEST_CASE("a batch's search that was cut short goes on where it was, for the same step alone") {
  const ScratchFolder scratch;
  Opened opened(scratch / "tuned");
  const BatchProblem problem = batch_problem();
  std::atomic<bool> cancel{false};
  TuneOptions options;
  options.cancel = &cancel;
  options.progress = [&](const TuneProgress& at) { cancel = at.done == 3; };
  const std::vector<StepRequests> step = {{8, 1, 700}};
  const TuneResult cut = tune_batch(opened.device, problem, step, options)[0];
  CHECK(cut.status == TuneStatus::kPartial);
  CHECK(cut.resumed == 0);
  CHECK(fs::exists(cut.journal));
  cancel = false;
  const TuneResult other = tune_batch(opened.device, problem, {{8, 1, 800}}, options)[0];
  CHECK(other.resumed == 0);
  cancel = false;
  options.progress = {};
  const TuneResult whole = tune_batch(opened.device, problem, step, options)[0];
  CHECK(whole.status == TuneStatus::kTuned);
  CHECK(whole.resumed == 3);
  CHECK_FALSE(fs::exists(cut.journal));
}

TEST_CASE("the listing tells what was kept") {
  const ScratchFolder scratch;
  Opened opened(scratch / "tuned");
  std::atomic<bool> cancel{false};
  TuneOptions options;
  options.cancel = &cancel;
  options.progress = [&](const TuneProgress& progress) { cancel = progress.done >= 3; };
  const TuneResult result = tune(opened.device, problem(), options);
  const TunedListing listing = list_tuned(scratch / "tuned");
  REQUIRE(listing.entries.size() == 1);
  const TunedEntry& entry = listing.entries[0];
  CHECK(entry.path == result.path);
  CHECK(entry.config == result.config);
  CHECK(entry.shape == result.shape);
  CHECK(entry.predicted == result.predicted);
  CHECK_FALSE(entry.complete);
  CHECK(entry.seq_q == 300);
  CHECK(entry.kv_heads == 2);
  CHECK(entry.library_version == ANNULUS_VERSION);
  CHECK(entry.time == doctest::Approx(result.time));
  // The measured problem can be measured again.
  const auto kept = api::inside(opened.device).tuned->find_exact(tuned::shape_key(problem()));
  REQUIRE(kept);
  CHECK(tuned::problem_of(kept->entry).pattern == problem().pattern);
  CHECK(kept->entry.origin.nvrtc_version >= 12000);
  CHECK(listing.ignored.empty());
  CHECK(list_tuned(scratch / "nowhere").entries.empty());
  CHECK(list_tuned("").folders.empty());
}

}  // namespace
}  // namespace annulus
