// The program that tools/gpu_check starts on a GPU, with steps that behave as a GPU may make them
// behave: they hang, crash, print without end, leave processes behind, or find the disk full.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "gpu/calls.h"
#include "support/faulty_files.h"

namespace annulus::gpu {
namespace {

namespace fs = std::filesystem;

Step shell(std::string name, std::string script, double max_seconds = 20) {
  return {.name = std::move(name),
          .command = {.words = {"sh", "-c", std::move(script)}, .variables = {}},
          .max_seconds = max_seconds};
}

Clock::time_point in_seconds(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// The complete lines of a call that have the given member.
std::vector<Json> lines_with(const std::string& folder, const char* member) {
  std::vector<Json> found;
  std::ifstream file(folder + "/right.jsonl");
  for (std::string text; std::getline(file, text);) {
    Json line = Json::parse(text, nullptr, false);
    if (line.is_object() && line.contains(member)) found.push_back(std::move(line));
  }
  return found;
}

std::string outcome_of(const std::string& folder, const std::string& step) {
  for (const Json& line : lines_with(folder, "step")) {
    if (line["step"] == step) return line["outcome"];
  }
  return "not there";
}

TEST_CASE("whatever a step does, the others have their results") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch / "out";
  Results results(folder, "right");
  const std::string deaf = "trap '' TERM INT HUP; echo '{\"before\": 1}'; ";
  const Group group{.name = "g",
                    .width = 4,
                    .steps = {shell("good", "echo '{\"a\": 1}'; echo words; echo '{\"b\": 2}'"),
                              shell("several lines", "printf '{\\n\"c\":\\n3}\\n'"),
                              shell("hangs", deaf + "while :; do sleep 0.05; done", 0.5),
                              shell("its child hangs", deaf + "(trap '' TERM; sleep 60)", 0.5),
                              shell("leaves a process", "sleep 60 & exit 0"),
                              shell("fails", "echo why >&2; exit 3"),
                              shell("prints without end", "yes '{\"x\": 1}'", 0.7),
                              shell("writes no JSON", "printf '\\377{\\000}{{{'; exit 0"),
                              shell("crashes", "kill -SEGV $$"),
                              {.name = "is not there",
                               .command = {.words = {scratch / "nothing"}, .variables = {}}},
                              shell("last", "true")}};
  const auto begin = Clock::now();
  const Tally tally = run_groups({group}, in_seconds(60), results);
  CHECK(std::chrono::duration<double>(Clock::now() - begin).count() < 20);
  CHECK(tally.passed == 5);
  CHECK(tally.failed == 6);
  CHECK(outcome_of(folder, "good") == "pass");
  CHECK(outcome_of(folder, "hangs") == "hang");
  CHECK(outcome_of(folder, "its child hangs") == "hang");
  CHECK(outcome_of(folder, "prints without end") == "hang");
  CHECK(outcome_of(folder, "fails") == "fail");
  CHECK(outcome_of(folder, "crashes") == "crash");
  CHECK(outcome_of(folder, "is not there") == "fail");
  CHECK(outcome_of(folder, "last") == "pass");
  int objects = 0;
  for (const Json& line : lines_with(folder, "of")) objects += line["of"] != "prints without end";
  CHECK(objects == 5);  // a, b, c, and two objects that steps wrote before they hung
  CHECK(fs::file_size(folder + "/right.jsonl") < 4 << 20);
  std::ifstream failures(folder + "/failures.txt");
  const std::string text{std::istreambuf_iterator<char>(failures), {}};
  CHECK(text.find("== fails\nwhy") != std::string::npos);
}

TEST_CASE("a deadline ends what runs, and the same command goes on from there") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch / "out", mark = scratch / "mark";
  const Group group{.name = "g",
                    .width = 1,
                    .steps = {shell("once", "echo x >> " + mark), shell("long", "sleep 30"),
                              shell("later", "true")}};
  {
    Results results(folder, "right");
    const Tally tally = run_groups({group}, in_seconds(1), results);
    CHECK(tally.passed == 1);
    CHECK(tally.not_begun == 2);
    CHECK(outcome_of(folder, "long") == "out of time");
  }
  // Simulates a process that was killed in the middle of a line.
  std::ofstream(folder + "/right.jsonl", std::ios::app) << R"({"step": "lat)";
  Results results(folder, "right");
  Group again = group;
  again.steps[1] = shell("long", "true");
  const Tally tally = run_groups({again}, in_seconds(20), results);
  CHECK(tally.earlier == 1);
  CHECK(tally.passed == 2);
  CHECK(outcome_of(folder, "later") == "pass");
  CHECK(fs::file_size(mark) == 2);  // it did not run again
  again.steps[0].always = true;
  CHECK(run_groups({again}, in_seconds(20), results).earlier == 2);
  CHECK(fs::file_size(mark) == 4);
}

TEST_CASE("what an object says can fail a step") {
  const test::ScratchFolder scratch;
  Results results(scratch / "out", "right");
  Step step = shell("checked", "echo '{\"n\": 1}'; echo '{\"n\": 2}'");
  step.check = [](const Json& json) { return json["n"] == 2 ? "two" : ""; };
  CHECK(run_groups({{.name = "g", .width = 1, .steps = {step}}}, in_seconds(20), results).failed ==
        1);
  Step silent = shell("silent", "echo words");
  silent.check = step.check;
  run_groups({{.name = "g", .width = 1, .steps = {silent}}}, in_seconds(20), results);
  CHECK(lines_with(scratch / "out", "wrong")[0]["wrong"] == "two");
  CHECK(lines_with(scratch / "out", "wrong")[1]["wrong"] == "it printed no result");
}

TEST_CASE("an object of other types than its check reads fails one step alone") {
  const test::ScratchFolder scratch;
  Results results(scratch / "out", "right");
  Step step = shell("null", "echo '{\"config\": null}'");
  step.check = [](const Json& json) { return json.value("config", ""); };
  const Group group{.name = "g", .width = 1, .steps = {step, shell("next", "true")}};
  const Tally tally = run_groups({group}, in_seconds(20), results);
  CHECK(tally.failed == 1);
  CHECK(tally.passed == 1);
}

TEST_CASE("a failure keeps what was printed beside the standard error") {
  const test::ScratchFolder scratch;
  Results results(scratch / "out", "right");
  const Step step = shell("both", "echo which check; echo noise >&2; exit 1");
  run_groups({{.name = "g", .width = 1, .steps = {step}}}, in_seconds(20), results);
  CHECK(lines_with(scratch / "out", "tail")[0]["tail"] == "noise\nwhich check\n");
}

TEST_CASE("a program that fails is heard if that counts") {
  const Command fails{.words = {"sh", "-c", "echo why; exit 4"}, .variables = {}};
  CHECK(lines_of(fails, 10).empty());
  CHECK(lines_of(fails, 10, Failing::kCounts) == std::vector<std::string>{"why"});
}

TEST_CASE("a full disk loses no line that is printed, and never the room for later ones") {
  const test::ScratchFolder scratch;
  LineFile file(scratch / "lines", 100);
  CHECK(file.add(std::string(60, 'a')));
  CHECK_FALSE(file.add(std::string(60, 'b')));
  CHECK(file.add(std::string(20, 'c')));
  if (access("/dev/full", W_OK) == 0) {
    LineFile full("/dev/full", 1 << 20);
    CHECK_FALSE(full.add("a line"));
  }
  Results results(scratch / "out", "right");
  CHECK(results.keep_file(scratch / "missing", "m") == "there is no " + (scratch / "missing"));
  for (int i = 0; i < 10; ++i) results.keep_file(scratch / "lines", "f" + std::to_string(i));
  CHECK(std::distance(fs::directory_iterator(scratch / "out"), {}) == 8);
}

TEST_CASE("whenever the process is killed, finished steps are readable and none runs on") {
  for (int round = 0; round < 20; ++round) {
    const test::ScratchFolder scratch;
    const std::string folder = scratch / "out", alive = scratch / "alive";
    const pid_t child = fork();
    if (child == 0) {
      Results results(folder, "right");
      Group group{.name = "g", .width = 3, .steps = {}};
      for (int i = 0; i < 200; ++i) {
        const std::string n = std::to_string(i);
        group.steps.push_back(shell(n, "echo '{\"n\": " + n + "}'; echo " + n + " > " + alive));
      }
      group.steps.push_back(shell("end", "sleep 30; echo > " + alive));
      freopen("/dev/null", "w", stdout);
      run_groups({group}, in_seconds(60), results);
      _exit(0);
    }
    usleep(static_cast<useconds_t>(5'000 + 17'000 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    // If a step's end is recorded, its earlier output must be there too.
    std::size_t said = 0;
    for (const Json& line : lines_with(folder, "of")) said += line["says"]["n"].is_number();
    CHECK(said >= lines_with(folder, "step").size());
    usleep(30'000);
    fs::remove(alive);
    usleep(50'000);
    CHECK_FALSE(fs::exists(alive));
  }
}

TEST_CASE("lines say what they expect") {
  const Line line = parse_line(R"(decode, chunk: run --requests "1/5 x 2" -p 'causal & sink(4)')");
  CHECK(line.expected == "decode, chunk");
  CHECK(line.words == std::vector<std::string>{"--requests", "1/5 x 2", "-p", "causal & sink(4)"});
  CHECK_THROWS_WITH_AS(parse_line("run -H 1"), "no family is expected by: run -H 1",
                       std::runtime_error);
  CHECK_THROWS_AS(parse_line("mma: tune"), std::runtime_error);
  CHECK_THROWS_AS(parse_line("mma: run 'x"), std::runtime_error);
}

}  // namespace
}  // namespace annulus::gpu
