// The planned shapes with their counts, in memory and in a file that several processes write.

#include "shape_log/shape_log.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "annulus/types.h"
#include "base/random.h"
#include "shape_log/shape_line.h"
#include "support/faulty_files.h"
#include "support/options.h"
#include "support/processes.h"

namespace annulus::shape_log {
namespace {

using test::FaultyFiles;
using test::ScratchFolder;

Problem problem_of(std::int64_t length, const Pattern& pattern = {}) {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = length;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  return problem;
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::int64_t count_of(const std::string& path, const Problem& problem) {
  const auto shapes = parse_shape_log(read(path));
  REQUIRE(shapes);
  const auto found = shapes->counts.find(shape_line(problem));
  return found == shapes->counts.end() ? 0 : found->second;
}

// A log that writes on request, and at its end.
struct Made {
  explicit Made(const std::string& path, std::shared_ptr<base::FileSystem> files = nullptr,
                std::chrono::milliseconds wait = std::chrono::hours(1)) {
    ShapeLogOptions options;
    options.path = path;
    options.first_wait = options.longest_wait = wait;
    options.lock_wait = std::chrono::milliseconds(200);
    options.on_failure = [this] { ++failures; };
    log.emplace(options, counts, base::Log([this](base::LogLevel, std::string_view text) {
                  notes.emplace_back(text);
                }),
                std::make_shared<base::Noted>(), std::move(files));
  }
  void add(const Problem& problem, int times = 1) {
    for (int i = 0; i < times; ++i) counts->add(problem, {});
  }

  std::shared_ptr<ShapeCounts> counts = std::make_shared<ShapeCounts>();
  std::vector<std::string> notes;
  std::atomic<int> failures{0};
  std::optional<ShapeLog> log;
};

std::int64_t taken_of(ShapeCounts& counts, const std::string& line) {
  for (const auto& [each, count] : counts.take().lines) {
    if (*each == line) return count;
  }
  return 0;
}

TEST_CASE("a shape is counted by what it is, not by which object says so") {
  ShapeCounts counts;
  const Problem problem = problem_of(100, causal());
  for (int i = 0; i < 5; ++i) CHECK(counts.add(problem, {}));
  // Another tree with the same text. It may be at the memory address of the previous one.
  for (int i = 0; i < 5; ++i) CHECK(counts.add(problem_of(100, Pattern::parse("causal")), {}));
  for (int i = 0; i < 50; ++i) {
    counts.add(problem_of(100, i % 2 == 0 ? window(i, 0) : window(0, i)), {});
  }
  CHECK(taken_of(counts, shape_line(problem)) == 10);
  CHECK(counts.take().empty());
}

TEST_CASE("what launches nothing is no shape") {
  ShapeCounts counts;
  CHECK(counts.add(problem_of(0, causal()), {}));
  Problem none = problem_of(64, causal());
  none.batch = 0;
  CHECK(counts.add(none, {}));
  CHECK(counts.take().empty());
}

TEST_CASE("everything that a line states makes another shape") {
  std::vector<std::pair<Problem, PlanOptions>> all;
  const auto add = [&](const auto& change) {
    Problem problem = problem_of(64, causal());
    PlanOptions options;
    change(problem, options);
    all.emplace_back(problem, options);
  };
  add([](Problem&, PlanOptions&) {});
  add([](Problem& p, PlanOptions&) { p.batch = 2; });
  add([](Problem& p, PlanOptions&) { p.kv_heads = 1; });
  add([](Problem& p, PlanOptions&) { p.heads = p.kv_heads = 4; });
  add([](Problem& p, PlanOptions&) { p.seq_q = 1; });
  add([](Problem& p, PlanOptions&) { p.q0 = 0; });
  add([](Problem& p, PlanOptions&) { p.k0 = 0; });
  add([](Problem& p, PlanOptions&) { p.k0 = 7; });
  add([](Problem& p, PlanOptions&) { p.total_k = 100; });
  add([](Problem& p, PlanOptions&) { p.dim_v = 32; });
  add([](Problem& p, PlanOptions&) { p.dtype = Dtype::kFloat16; });
  add([](Problem& p, PlanOptions&) { p.layer = 3; });
  add([](Problem& p, PlanOptions&) { p.carry_in = true; });
  add([](Problem& p, PlanOptions&) { p.carry_out = true; });
  add([](Problem& p, PlanOptions&) { p.score.softcap = 5; });
  add([](Problem& p, PlanOptions&) { p.score.scale = 5; });
  add([](Problem& p, PlanOptions&) { p.score.alibi = {0.5, 0.25}; });
  add([](Problem& p, PlanOptions&) { p.score.alibi = {0.5, 0.125}; });
  add([](Problem& p, PlanOptions&) { p.score.sink_logit = {0.5}; });
  add([](Problem& p, PlanOptions&) { p.score.bias = {{1, 2, 3}}; });
  add([](Problem& p, PlanOptions&) { p.score = Score::parse("score_mod(score * 3)"); });
  add([](Problem&, PlanOptions& o) { o.kv_splits = 2; });
  add([](Problem&, PlanOptions& o) { o.max_multiprocessors = 2; });
  add([](Problem&, PlanOptions& o) { o.config = "mma m64 n64 w4 s2"; });
  ShapeCounts counts;
  for (int round = 0; round < 3; ++round) {
    for (const auto& [problem, options] : all) CHECK(counts.add(problem, options));
  }
  const ShapeCounts::Taken taken = counts.take();
  CHECK(taken.lines.size() == all.size());
  for (const auto& [line, count] : taken.lines) {
    CAPTURE(*line);
    CHECK(count == 3);
  }
}

BatchProblem batch_of(std::int64_t requests) {
  BatchProblem batch;
  batch.heads = 4;
  batch.kv_heads = 2;
  batch.dim_qk = batch.dim_v = 64;
  batch.pattern = causal();
  batch.most = {.requests = requests, .rows = requests, .keys_of_one = 500};
  batch.page_rows = 16;
  return batch;
}

TEST_CASE("a batch is counted by its bounds, and everything that its line states is another one") {
  std::vector<std::pair<BatchProblem, BatchOptions>> all;
  const auto add = [&](const auto& change) {
    BatchProblem batch = batch_of(8);
    BatchOptions options;
    change(batch, options);
    all.emplace_back(batch, options);
  };
  add([](BatchProblem&, BatchOptions&) {});
  add([](BatchProblem& b, BatchOptions&) { b.most.requests = 7; });
  add([](BatchProblem& b, BatchOptions&) { b.most.rows = 80; });
  add([](BatchProblem& b, BatchOptions&) { b.most.rows_of_one = 4; });
  add([](BatchProblem& b, BatchOptions&) { b.most.keys_of_one = 600; });
  add([](BatchProblem& b, BatchOptions&) { b.most.keys = 700; });
  add([](BatchProblem& b, BatchOptions&) { b.heads = 8; });
  add([](BatchProblem& b, BatchOptions&) { b.kv_heads = 1; });
  add([](BatchProblem& b, BatchOptions&) { b.dim_v = 32; });
  add([](BatchProblem& b, BatchOptions&) { b.dtype = Dtype::kFloat16; });
  add([](BatchProblem& b, BatchOptions&) { b.pattern = window(9, 0); });
  add([](BatchProblem& b, BatchOptions&) { b.score.softcap = 5; });
  add([](BatchProblem& b, BatchOptions&) { b.page_rows = 0; });
  add([](BatchProblem& b, BatchOptions&) { b.block_keys = 64, b.max_blocks = 3; });
  add([](BatchProblem& b, BatchOptions&) { b.block_keys = 64, b.max_blocks = 4; });
  add([](BatchProblem& b, BatchOptions&) { b.row_limits = true; });
  add([](BatchProblem& b, BatchOptions&) { b.interleave = {16, 4, 1}; });
  add([](BatchProblem& b, BatchOptions&) { b.interleave = {16, 4, 2}; });
  add([](BatchProblem& b, BatchOptions&) { b.carry_in = true; });
  add([](BatchProblem& b, BatchOptions&) { b.carry_out = true; });
  add([](BatchProblem&, BatchOptions& o) { o.part_keys = 256; });
  add([](BatchProblem&, BatchOptions& o) { o.max_multiprocessors = 2; });
  add([](BatchProblem&, BatchOptions& o) { o.config = "decode m16 n64 w4 s2"; });
  ShapeCounts counts;
  for (int round = 0; round < 3; ++round) {
    for (const auto& [batch, options] : all) CHECK(counts.add(batch, options));
  }
  // Bounds with default values are written as the values that they stand for.
  BatchProblem written_out = batch_of(8);
  written_out.most.rows_of_one = 8;
  written_out.most.keys = 8 * 500;
  CHECK(counts.add(written_out, {}));
  const ShapeCounts::Taken taken = counts.take();
  CHECK(taken.lines.size() == all.size());
  for (const auto& [line, count] : taken.lines) {
    CAPTURE(*line);
    CHECK(count == (*line == shape_line(batch_of(8)) ? 4 : 3));
  }
  CHECK(shape_line(batch_of(8)) ==
        "--heads 4 --kv-heads 2 --most-requests 8 --most-keys-of-one 500 --page 16 --dim 64 "
        "--pattern \"causal\"");
}

TEST_CASE("batches are among what was planned most often") {
  ShapeCounts counts;
  counts.keep_problems();
  BatchOptions named;
  named.config = "decode m16 n64 w4 s2";
  for (int i = 0; i < 9; ++i) counts.add(batch_of(9), named);
  for (int i = 0; i < 2; ++i) counts.add(batch_of(5), {});
  counts.add(problem_of(20), {});
  CHECK(counts.kept() == 2);
  const auto first = counts.most_frequent({});
  REQUIRE(first);
  CHECK(std::get<BatchProblem>(first->second).most.requests == 5);
  CHECK(first->first == shape_line(batch_of(5)));
  const auto second = counts.most_frequent({first->first});
  REQUIRE(second);
  CHECK(std::get<Problem>(second->second).seq_q == 20);
}

TEST_CASE("what no line can state, and what finds no room, is counted as left out") {
  ShapeCounts counts;
  const auto layout =
      std::make_shared<BlockLayout>(BlockLayout{32, 64, 64, 64, 1, {0, 1, 2}, {0, 0}, {}});
  CHECK_FALSE(counts.add(problem_of(64, blocks(layout)), {}));
  std::vector<std::int64_t> many(20'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(2 * i);
  CHECK_FALSE(counts.add(problem_of(64, global(many)), {}));
  counts.leave_out();
  for (std::size_t i = 0; i < kMaxShapes + 10; ++i) {
    CHECK(counts.add(problem_of(static_cast<std::int64_t>(i) + 1), {}) == (i < kMaxShapes));
  }
  const ShapeCounts::Taken taken = counts.take();
  CHECK(taken.lines.size() == kMaxShapes);
  CHECK(taken.left_out == 13);
  counts.put_back(taken);
  CHECK(counts.take().left_out == 13);
}

TEST_CASE("the problem that was planned most often is known while somebody wants it") {
  ShapeCounts counts;
  const Problem before = problem_of(10);
  for (int i = 0; i < 9; ++i) counts.add(before, {});
  counts.keep_problems();
  CHECK_FALSE(counts.most_frequent({}));
  PlanOptions forced;
  forced.config = "mma m64 n64 w4 s2";
  for (int i = 0; i < 9; ++i) counts.add(problem_of(40), forced);
  for (int i = 0; i < 2; ++i) counts.add(problem_of(20), {});
  for (int i = 0; i < 3; ++i) counts.add(problem_of(30), {});
  counts.add(before, {});
  CHECK(counts.kept() == 3);
  std::set<std::string> done;
  std::vector<std::int64_t> order;
  while (const auto found = counts.most_frequent(done)) {
    const Problem& problem = std::get<Problem>(found->second);
    order.push_back(problem.seq_q);
    CHECK(found->first == shape_line(problem));
    done.insert(found->first);
  }
  CHECK(order == std::vector<std::int64_t>{30, 20, 10});
}

TEST_CASE("problems are kept until nobody wants them, and are not there for who comes later") {
  const auto counts = std::make_shared<ShapeCounts>();
  auto first = std::make_unique<ProblemKeeper>(counts);
  auto second = std::make_unique<ProblemKeeper>(counts);
  std::weak_ptr<const detail::PatternNode> node;
  {
    const Pattern pattern = window(7, 0);
    node = pattern.shared_node();
    counts->add(problem_of(64, pattern), {});
  }
  for (int i = 0; i < 9; ++i) counts->add(problem_of(20), {});
  first.reset();
  CHECK(counts->most_frequent({}));
  CHECK_FALSE(node.expired());
  second.reset();
  CHECK_FALSE(counts->most_frequent({}));
  CHECK(node.expired());
  const std::int64_t kept = counts->kept();
  const ProblemKeeper third(counts);
  CHECK_FALSE(counts->most_frequent({}));
  counts->add(problem_of(20), {});
  for (int i = 0; i < 2; ++i) counts->add(problem_of(30), {});
  CHECK(counts->kept() == kept + 2);
  const auto found = counts->most_frequent({});
  REQUIRE(found);
  CHECK(std::get<Problem>(found->second).seq_q == 30);
}

TEST_CASE("a file is in the order of counts, then of lines, and reads as it was written") {
  LoggedShapes shapes;
  shapes.counts = {{"--heads 2", 3}, {"--heads 1", 3}, {"--heads 3", 70}, {"--heads 4", 0}};
  const std::string text = print_shape_log(shapes);
  CHECK(text ==
        "# annulus shapes 2: what was planned, the most frequent first\n"
        "--count 70 --heads 3\n--count 3 --heads 1\n--count 3 --heads 2\n--count 0 --heads 4\n");
  shapes.left_out = 12;
  const auto again = parse_shape_log(print_shape_log(shapes));
  REQUIRE(again);
  CHECK(again->counts == shapes.counts);
  CHECK(again->left_out == 12);
  // Changes that users may make to a file.
  const auto edited = parse_shape_log(
      "# annulus shapes 1\n\n  --heads 9\n# mine\nrubbish\n"
      "--count x --heads 1\n--count -4 --heads 1\n"
      "--count 5 --heads 2\n--count 6 --heads 2");
  REQUIRE(edited);
  CHECK(edited->counts == std::map<std::string, std::int64_t>{{"--heads 9", 0}, {"--heads 2", 11}});
  CHECK(parse_shape_log("")->counts.empty());
  CHECK_FALSE(parse_shape_log("# something else\n--heads 1\n"));
  CHECK(parse_shape_log("# annulus shapes 1")->counts.empty());
  CHECK(parse_shape_log("# annulus shapes 2")->counts.empty());
  for (const char* later : {"# annulus shapes 10", "# annulus shapes 10: what was planned\n",
                            "# annulus shapes 3: what was planned\n", "# annulus shapes 1.5\n"}) {
    CHECK_FALSE(parse_shape_log(later));
  }
  // If there are too many shapes, the most frequent ones stay.
  LoggedShapes many;
  for (std::size_t i = 0; i < kMaxShapes + 5; ++i) {
    many.counts["--seq " + std::to_string(i)] = static_cast<std::int64_t>(i);
  }
  const auto kept = parse_shape_log(print_shape_log(many));
  REQUIRE(kept);
  CHECK(kept->counts.size() == kMaxShapes);
  CHECK_FALSE(kept->counts.contains("--seq 4"));
  CHECK(kept->left_out == 0 + 1 + 2 + 3 + 4);
}

TEST_CASE("a log of before batches were counted is added to") {
  const ScratchFolder folder;
  const std::string path = folder / "shapes";
  const std::string line = shape_line(problem_of(100));
  std::ofstream(path) << "# annulus shapes 1: what was planned, the most frequent first\n"
                      << "# 3 plans are left out, which no line can state\n--count 5 " << line
                      << '\n';
  {
    Made made(path);
    made.add(problem_of(100), 2);
    made.counts->add(batch_of(8), {});
  }
  CHECK(read(path) ==
        "# annulus shapes 2: what was planned, the most frequent first\n# 3 plans are left out, "
        "which no line can state or for which there was no room\n--count 7 " +
            line + "\n--count 1 " + shape_line(batch_of(8)) + '\n');
}

TEST_CASE("logs of one file add up, and the file is its user's alone") {
  const ScratchFolder folder;
  const std::string path = folder / "shapes";
  const Problem often = problem_of(100, causal()), seldom = problem_of(50);
  {
    Made first(path), second(path);
    first.add(often, 3);
    second.add(often, 4);
    second.add(seldom);
    first.log->write();
    second.log->write();
    CHECK(count_of(path, often) == 7);
    first.log->write();  // there is nothing new
    CHECK(count_of(path, often) == 7);
    first.add(often, 2);
  }
  CHECK(count_of(path, often) == 9);
  CHECK(count_of(path, seldom) == 1);
  struct stat found;
  REQUIRE(stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  CHECK(folder.entries() == 2);  // the file and its lock
}

TEST_CASE("temporaries of killed writers go with the first write") {
  const ScratchFolder folder;
  const std::string path = folder / "shapes";
  const std::string old = folder / ".annulus-0123456789abcdef.tmp";
  const std::string fresh = folder / ".annulus-fedcba9876543210.tmp";
  std::ofstream(old) << "#", std::ofstream(fresh) << "#";
  std::filesystem::last_write_time(
      old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  Made log(path);
  log.add(problem_of(50));
  log.log->write();
  CHECK_FALSE(std::filesystem::exists(old));
  CHECK(std::filesystem::exists(fresh));  // it may belong to a writer that is still running
}

// A full file. Each of its lines has `plans` plans.
void write_full(const std::string& path, std::int64_t plans) {
  LoggedShapes full;
  for (std::size_t i = 0; i < kMaxShapes; ++i) {
    full.counts["--heads 1 --seq " + std::to_string(100'000 + i)] = plans;
  }
  std::ofstream(path, std::ios::trunc) << print_shape_log(full);
}

LoggedShapes shapes_of(const std::string& path) {
  const auto shapes = parse_shape_log(read(path));
  REQUIRE(shapes);
  return *shapes;
}

TEST_CASE("what is planned often gets into a full file, however seldom between two writes") {
  const ScratchFolder folder;
  const std::string path = folder / "shapes";
  const Problem problem = problem_of(100);
  write_full(path, 10);
  Made made(path);
  const auto plan = [&](int times) {
    made.add(problem, times);
    made.log->write();
  };
  for (int i = 1; i <= 3; ++i) {
    plan(3);
    CHECK(count_of(path, problem) == 0);
    CHECK(shapes_of(path).left_out == 3 * i);
  }
  plan(3);
  CHECK(count_of(path, problem) == 12);
  CHECK(shapes_of(path).left_out == 10);  // the plans of the line that it replaced
  CHECK(shapes_of(path).counts.size() == kMaxShapes);
  plan(1);
  CHECK(count_of(path, problem) == 13);
  CHECK(shapes_of(path).left_out == 10);
  // Another writer replaces the line and its plans. This writer cannot know that, and counts from
  // there.
  write_full(path, 20);
  plan(5);
  plan(5);
  CHECK(count_of(path, problem) == 0);
  CHECK(shapes_of(path).left_out == 10);
  // A writer that starts a new file starts with no plans.
  std::filesystem::remove(path);
  plan(1);
  CHECK(count_of(path, problem) == 1);
  CHECK(shapes_of(path).left_out == 0);
}

TEST_CASE("what had no room is offered again after a write that failed") {
  const ScratchFolder folder;
  const std::string path = folder / "shapes";
  const Problem problem = problem_of(100);
  write_full(path, 10);
  auto files = std::make_shared<FaultyFiles>();
  files->code = ENOSPC;
  Made made(path, files);
  made.add(problem, 9);
  made.log->write();
  made.add(problem);
  files->refuse_writes = true;
  CHECK_THROWS_AS(made.log->write(), Error);
  files->refuse_writes = false;
  made.add(problem);
  made.log->write();
  CHECK(count_of(path, problem) == 11);
  CHECK(shapes_of(path).left_out == 10);
}

TEST_CASE("a log is written beside the caller") {
  const ScratchFolder folder;
  const std::string path = folder / "shapes";
  Made made(path, nullptr, std::chrono::milliseconds(10));
  made.add(problem_of(100));
  for (int i = 0; i < 1000 && !std::filesystem::exists(path); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(count_of(path, problem_of(100)) == 1);
}

TEST_CASE("whatever call fails, the counts wait for a better time, and a line is written once") {
  const ScratchFolder folder;
  const std::string path = folder / "shapes";
  const Problem problem = problem_of(100);
  const auto with_fault = [&](int at) {
    auto files = std::make_shared<FaultyFiles>();
    files->code = ENOSPC;
    files->fail_at = at;
    Made made(path, files);
    made.add(problem, 2);
    bool failed = false;
    try {
      made.log->write();
    } catch (const Error& error) {
      failed = true;
      CHECK(error.code() == ErrorCode::kFile);
    }
    CHECK(made.failures == (failed ? 1 : 0));
    CHECK(files->opened() == 0);
    const int calls = files->calls();
    made.log->write();  // now the call succeeds
    CHECK(made.notes.empty());
    return calls;
  };
  const int calls = with_fault(-1);
  CHECK(calls > 8);
  for (int at = 0; at < calls; ++at) {
    CAPTURE(at);
    const std::int64_t had = count_of(path, problem);
    with_fault(at);
    CHECK(count_of(path, problem) == had + 2);
  }
  auto full = std::make_shared<FaultyFiles>();
  full->code = EROFS;
  full->refuse_writes = true;
  Made made(path, full, std::chrono::milliseconds(2));
  made.add(problem);
  while (made.failures < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  made.log.reset();
  int warnings = 0;
  for (const std::string& note : made.notes) warnings += note.find("Read-only") != note.npos;
  CHECK(warnings == 1);
  CHECK(folder.entries() == 2);
}

TEST_CASE("a file of another kind, and one whose lock somebody keeps, are left as they are") {
  const ScratchFolder folder;
  std::ofstream(folder / "mine") << "not to be lost\n";
  Made made(folder / "mine");
  made.add(problem_of(10));
  CHECK_THROWS_WITH_AS(made.log->write(), doctest::Contains("is not a log of shapes"), Error);
  std::filesystem::create_directory(folder / "inner");
  Made of_folder(folder / "inner");
  of_folder.add(problem_of(10));
  CHECK_THROWS_WITH_AS(of_folder.log->write(),
                       doctest::Contains("it is not a regular file; name another"), Error);
  made.log.reset();
  CHECK(read(folder / "mine") == "not to be lost\n");
  CHECK(made.notes.size() == 1);

  const std::string later = "# annulus shapes 10: what was planned, the most frequent first\n";
  std::ofstream(folder / "later") << later;
  Made newer(folder / "later");
  newer.add(problem_of(10));
  newer.log.reset();
  CHECK(read(folder / "later") == later);
  REQUIRE(newer.notes.size() == 1);
  CHECK(newer.notes.front().find("is not a log of shapes") != std::string::npos);

  base::FileSystem files;
  const int held = files.open(base::kHere, folder / "log.lock", 0102, 0600);  // O_CREAT | O_RDWR
  REQUIRE(files.lock(held) == 0);
  Made waiting(folder / "log");
  waiting.add(problem_of(10));
  CHECK_THROWS_WITH_AS(waiting.log->write(), doctest::Contains("another process has held"), Error);
  CHECK_FALSE(std::filesystem::exists(folder / "log"));
  files.close(held);
  waiting.log->write();
  CHECK(count_of(folder / "log", problem_of(10)) == 1);
}

TEST_CASE("threads plan and write at the same time, and no plan is lost") {
  const ScratchFolder folder;
  const std::string path = folder / "shapes";
  constexpr int kThreads = 4, kPlans = 500;
  const Problem problem = problem_of(100, causal());
  {
    Made made(path, nullptr, std::chrono::milliseconds(1));
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kPlans; ++i) {
          made.add(i % 2 == 0 ? problem : problem_of(100, Pattern::parse("causal")));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(count_of(path, problem) == kThreads * kPlans);
}

// --kills N kills more of them.
TEST_CASE("killed writers leave a whole file, and writers side by side lose nothing") {
  const ScratchFolder folder;
  const std::string path = folder / "shapes";
  const int rounds = test::options().kills > 0 ? test::options().kills : 30;
  base::Random random(test::options().seed);
  std::int64_t last = 0;
  for (int round = 0; round < rounds; ++round) {
    const pid_t writer = test::start([&] {
      Made made(path);
      while (true) {
        made.add(problem_of(10 + static_cast<std::int64_t>(random.below(30))));
        made.log->write();
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random.below(8000)));
    kill(writer, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(writer, &status, 0) == writer);
    CHECK(WIFSIGNALED(status));
    if (!std::filesystem::exists(path)) continue;
    const std::string text = read(path);
    const auto shapes = parse_shape_log(text);
    REQUIRE(shapes);
    CHECK(print_shape_log(*shapes) == text);
    std::int64_t sum = 0;
    for (const auto& [line, count] : shapes->counts) sum += count;
    CHECK(sum >= last);
    last = sum;
  }
  std::filesystem::remove(path);
  std::vector<pid_t> writers;
  for (int i = 0; i < 3; ++i) {
    writers.push_back(test::start([&] {
      Made made(path);
      for (int n = 0; n < 20; ++n) {
        made.add(problem_of(10));
        try {
          made.log->write();
        } catch (const Error&) {  // the others held the lock for a long time
        }
      }
      made.log.reset();
      _exit(made.notes.empty() ? 0 : 1);
    }));
  }
  int lost = 0;
  for (const pid_t writer : writers) {
    int status = 0;
    REQUIRE(waitpid(writer, &status, 0) == writer);
    lost += status != 0;
  }
  if (lost == 0) CHECK(count_of(path, problem_of(10)) == 60);
}

}  // namespace
}  // namespace annulus::shape_log
