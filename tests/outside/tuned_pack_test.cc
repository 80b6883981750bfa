// Tuned results that are copied between machines, as another project's program does it.

#include "annulus/tune.h"

#include <atomic>
#include <filesystem>
#include <fstream>

#include "outside/outside.h"

namespace annulus {
namespace {

struct Tuned {
  test::ScratchFolder scratch;
  Device device;
  Problem problem;
  Tuned() : device(open(scratch.path("tuned"))) {
    problem.heads = 4;
    problem.kv_heads = 2;
    problem.seq_q = problem.seq_k = 64;
    problem.dim_qk = problem.dim_v = 32;
    problem.pattern = causal();
    tune(device, problem);
  }
  static Device open(const std::string& path) {
    DeviceOptions options;
    options.name = "sim:sm_80";
    options.tuned_path = path;
    return Device::open(options);
  }
};

TEST_CASE("a search that was cut short goes on, and its journal decides again without a device") {
  Tuned of;
  TuneOptions options;
  std::atomic<bool> cancel = false;
  options.force = options.keep_journal = true;
  options.cancel = &cancel;
  options.progress = [&](const TuneProgress& at) { cancel = at.done == 5; };
  const TuneResult cut = tune(of.device, of.problem, options);
  CHECK(cut.status == TuneStatus::kPartial);
  CHECK(cut.resumed == 0);
  CHECK(replay_tuning(cut.journal).status == TuneStatus::kPartial);
  options.progress = {};
  cancel = false;
  const TuneResult whole = tune(of.device, of.problem, options);
  CHECK(whole.status == TuneStatus::kTuned);
  CHECK(whole.resumed == 5);
  CHECK(whole.journal == cut.journal);
  const TuneResult replayed = replay_tuning(whole.journal);
  CHECK(replayed.status == TuneStatus::kTuned);
  CHECK(replayed.config == whole.config);
  CHECK(replayed.ratio == whole.ratio);
  CHECK(replayed.tried == whole.tried);
  CHECK_THROWS_AS(replay_tuning(of.scratch.path("tuned")), Error);
  const TuningReport report = tuning_report({whole.journal});
  CHECK(report.searches == 1);
  CHECK(report.json.find("\"configuration\":\"" + whole.config + '"') != std::string::npos);
  CHECK(report.json.find("\"stored\":") == std::string::npos);
  CHECK(tuning_report({}, of.scratch.path("tuned")).json.find("\"stored\":") != std::string::npos);
  CHECK_THROWS_AS(tuning_report({of.scratch.path("missing")}), Error);
  // No search continues from this journal.
  for (const bool dry_run : {true, false}) {
    const TunedReport pruned = prune_tuned(of.scratch.path("tuned"), {}, dry_run);
    REQUIRE(pruned.notes.size() == 1);
    CHECK(pruned.notes[0].entry.path == whole.journal);
    CHECK(pruned.notes[0].verdict == TunedVerdict::kRemoved);
    CHECK(pruned.notes[0].text == "its search has ended");
    CHECK(pruned.left_out.empty());
    CHECK(std::ifstream(whole.journal).good() == dry_run);
  }
  // If keeping is not requested, a search that ends leaves no journal.
  options.keep_journal = false;
  CHECK(tune(of.device, of.problem, options).journal.empty());
}

TEST_CASE("results are exported, merged, compared, brought in and used from a pack") {
  Tuned of;
  const std::string pack = of.scratch.path("a.pack"), copy = of.scratch.path("b.pack");
  const TunedReport exported = export_tuned(pack, {}, of.scratch.path("tuned"));
  REQUIRE(exported.notes.size() == 1);
  CHECK(exported.notes[0].entry.packed);
  CHECK(exported.left_out.empty());
  CHECK(merge_tuned({pack, pack}, copy).notes.size() == 1);
  CHECK(diff_tuned(pack, copy).notes.empty());
  CHECK(diff_tuned(pack, of.scratch.path("tuned")).notes.empty());
  test::check_fails(ErrorCode::kFile, "nothing is at '" + of.scratch.path("nowhere") + "'",
                    [&] { diff_tuned(of.scratch.path("nowhere"), pack); });
  std::filesystem::create_directory(of.scratch.path("empty"));
  // The existing pack is not replaced.
  test::check_fails(ErrorCode::kInvalidArgument, "there is no tuned result",
                    [&] { export_tuned(pack, {}, of.scratch.path("empty")); });
  test::check_fails(ErrorCode::kInvalidArgument, "the filter leaves none of the 1 tuned results",
                    [&] {
                      TunedFilter other;
                      other.name = "nothing like it";
                      export_tuned(pack, other, of.scratch.path("tuned"));
                    });
  const TunedReport came =
      diff_tuned(of.scratch.path("nowhere") + ":" + of.scratch.path("empty"), pack);
  REQUIRE(came.notes.size() == 1);
  CHECK(came.notes[0].verdict == TunedVerdict::kSecondOnly);

  // The pack alone serves plans.
  const Device by_pack = Tuned::open(pack);
  CHECK(by_pack.plan(of.problem).info().tuned == pack);
  const TunedReport why = why_tuned(by_pack, of.problem);
  REQUIRE(why.notes.size() == 1);
  CHECK(why.notes[0].verdict == TunedVerdict::kUsed);
  CHECK(why.config == by_pack.plan(of.problem).info().config);
  Problem longer = of.problem;
  longer.seq_q = longer.seq_k = 4096;
  const TunedReport far = why_tuned(by_pack, longer);
  REQUIRE(far.notes.size() == 1);
  CHECK(far.notes[0].verdict == TunedVerdict::kUnused);
  CHECK(far.notes[0].text.find("other problems") != std::string::npos);

  const TunedReport brought = import_tuned({pack}, {}, of.scratch.path("other"));
  REQUIRE(brought.notes.size() == 1);
  CHECK(brought.notes[0].verdict == TunedVerdict::kAdded);
  CHECK(import_tuned({pack}, {}, of.scratch.path("other")).notes[0].verdict == TunedVerdict::kKept);
  CHECK(Tuned::open(of.scratch.path("other")).plan(of.problem).info().tuned ==
        brought.notes[0].entry.path);
}

TEST_CASE("results are verified, also by measuring, pruned and removed") {
  Tuned of;
  const TunedReport all = verify_tuned(of.device);
  REQUIRE(all.notes.size() == 1);
  CHECK(all.notes[0].verdict == TunedVerdict::kUsed);
  int told = 0;
  TunedVerifyOptions options;
  options.measure = 5;
  options.progress = [&](const TunedNote& note) {
    ++told;
    CHECK(std::string(to_string(note.verdict)) == "holds");
  };
  CHECK(verify_tuned(of.device, options).notes[0].verdict == TunedVerdict::kHolds);
  CHECK(told == 1);
  std::atomic<bool> cancel{true};
  options.cancel = &cancel;
  CHECK(verify_tuned(of.device, options).notes[0].verdict == TunedVerdict::kUsed);
  CHECK(told == 1);
  options.measure = -1;
  test::check_fails(ErrorCode::kInvalidArgument, "measure is -1",
                    [&] { verify_tuned(of.device, options); });
  const Device other = Device::open("sim:sm_90a");
  const std::string pack = of.scratch.path("a.pack");
  export_tuned(pack, {}, of.scratch.path("tuned"));
  TunedVerifyOptions named;
  named.packs = {pack};
  const TunedReport there = verify_tuned(other, named);
  REQUIRE(there.notes.size() == 1);
  CHECK(there.notes[0].verdict == TunedVerdict::kUnused);
  CHECK(there.notes[0].text.find("sm_80, not sm_90a") != std::string::npos);

  const std::string path = of.scratch.path("tuned");
  const std::string file = list_tuned(path).entries.at(0).path;
  const std::string damaged = file.substr(0, file.rfind('/')) + "/0.tuned";
  std::ofstream(damaged) << "annulus-tuned 3 old\n";
  std::ofstream(file.substr(0, file.rfind('/')) + "/1.tuned") << "annulus-tuned 99 later\n";
  const TunedReport pruned = prune_tuned(path);
  REQUIRE(pruned.notes.size() == 1);
  CHECK(pruned.notes[0].entry.path == damaged);
  CHECK(pruned.notes[0].verdict == TunedVerdict::kRemoved);
  CHECK(prune_tuned(path).notes.empty());
  CHECK(prune_tuned(path).left_out.size() == 1);  // a newer library's file, which stays
  CHECK(prune_tuned(path, of.device.info().tuned_key).notes.empty());
  CHECK(prune_tuned(path, other.info().tuned_key, true).notes.size() == 1);
  test::check_fails(ErrorCode::kInvalidArgument, "0 tuned results",
                    [&] { remove_tuned("nothing like it", path); });
  CHECK(remove_tuned("mma", path, true).notes.size() == 1);
  CHECK(remove_tuned("mma", path).notes.size() == 1);
  CHECK(list_tuned(path).entries.empty());
  test::check_fails(ErrorCode::kInvalidArgument, "one digest over all its lines",
                    [&] { remove_tuned("mma", pack); });
}

TEST_CASE("selections and batches are explained and measured again as problems are") {
  const test::ScratchFolder scratch;
  const std::string tuned = scratch.path("tuned");
  const Device device = Tuned::open(tuned);
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 500;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = causal();
  Selection selection;
  selection.block_rows = selection.block_columns = 64;
  selection.max_blocks = 4;
  BatchProblem batch;
  batch.heads = 4;
  batch.kv_heads = 2;
  batch.dim_qk = batch.dim_v = 64;
  batch.pattern = causal();
  batch.page_rows = 16;
  batch.most = {.requests = 2, .rows = 200, .rows_of_one = 100, .keys_of_one = 300};
  const TuneResult chosen = tune(device, problem, selection);
  const std::vector<TuneResult> classes = tune_batch(device, batch);
  REQUIRE(classes.size() == 2);

  const TunedReport of_selection = why_tuned(device, problem, selection);
  CHECK(of_selection.config == device.plan(problem, selection).info().config);
  CHECK(of_selection.shape == chosen.shape);
  CHECK(of_selection.reason.find("of this very kind of problem") != std::string::npos);
  REQUIRE(of_selection.notes.size() == 3);
  CHECK(of_selection.notes[0].entry.path == chosen.path);
  CHECK(of_selection.notes[0].verdict == TunedVerdict::kUsed);
  CHECK(of_selection.notes[1].verdict == TunedVerdict::kUnused);
  CHECK(of_selection.notes[1].text.find("it is for other problems: requests of") !=
        std::string::npos);
  CHECK(why_tuned(device, problem).notes[0].verdict == TunedVerdict::kUnused);

  const TunedReport of_batch = why_tuned(device, batch);
  CHECK(of_batch.config == plan_batch(device, batch).info().config);
  CHECK(of_batch.shape == classes[0].shape + "; " + classes[1].shape);
  REQUIRE(of_batch.notes.size() == 3);
  for (int i = 0; i < 2; ++i) {
    CHECK(of_batch.notes[i].verdict == TunedVerdict::kUsed);
    CHECK(of_batch.notes[i].text.find("of this very kind of problem") != std::string::npos);
  }
  CHECK(of_batch.notes[2].entry.path == chosen.path);
  CHECK(of_batch.notes[2].verdict == TunedVerdict::kUnused);
  // A named configuration takes precedence over a result. A batch with longer requests takes the
  // result from a distance.
  const TunedReport named = why_tuned(device, batch, {.config = classes[0].default_config});
  CHECK(named.config.find(classes[0].default_config) == 0);
  CHECK(named.reason.find("the caller names a configuration; tuned, ") == 0);
  BatchProblem longer = batch;
  longer.most.keys_of_one = 600;
  CHECK(why_tuned(device, longer).reason.find("2 half powers of two away") != std::string::npos);
  longer.most.keys_of_one = 30000;
  const TunedReport far = why_tuned(device, longer);
  CHECK(far.reason == "the heuristic's choice; the heuristic's choice");
  CHECK(far.notes[0].text.find("half powers of two away, more than 4") != std::string::npos);

  TunedVerifyOptions options;
  options.measure = 3;
  const TunedReport measured = verify_tuned(device, options);
  REQUIRE(measured.notes.size() == 3);
  for (const TunedNote& note : measured.notes) {
    CAPTURE(note.entry.shape);
    CAPTURE(note.text);
    CHECK(note.verdict == TunedVerdict::kHolds);
    CHECK(note.entry.pattern == "causal");
  }
}

TEST_CASE("packs that cannot be read say why") {
  const test::ScratchFolder scratch;
  const std::string pack = scratch.path("a.pack");
  test::check_fails(ErrorCode::kFile, pack, [&] { merge_tuned({pack}, scratch.path("b.pack")); });
  std::ofstream(pack) << "annulus-tuned-pack 99 x\n";
  test::check_fails(ErrorCode::kUnsupported, "a newer library",
                    [&] { import_tuned({pack}, {}, scratch.path("t")); });
  std::ofstream(pack) << "annulus-tuned-pack 4 x\n";
  test::check_fails(ErrorCode::kInvalidFile, "digest", [&] { diff_tuned(pack, pack); });
  std::ofstream(pack) << "{}\n";
  test::check_fails(ErrorCode::kInvalidFile, "not a pack", [&] { diff_tuned(pack, pack); });
  test::check_fails(ErrorCode::kInvalidArgument, "no pack", [&] { merge_tuned({}, pack); });
  test::check_fails(ErrorCode::kFile, "no folder", [&] { import_tuned({}, {}, ""); });
}

}  // namespace
}  // namespace annulus
