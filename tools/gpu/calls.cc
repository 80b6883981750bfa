#include "gpu/calls.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace annulus::gpu {
namespace {

constexpr double kListSeconds = 20;

// Splits a shell line into words. It supports quotes and nothing else of a shell's syntax.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (inside) words.push_back(std::exchange(word, {}));
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) throw std::runtime_error("a quote is open in: " + text);
  if (inside) words.push_back(word);
  return words;
}

// "wgmma" for "wgmma m64 n64 w4 s2 b2", and "decode, chunk" for "decode m16 ..., chunk m64 ...".
std::string families_of(const std::string& config) {
  std::string families;
  std::size_t begin = 0;
  while (begin < config.size()) {
    const std::size_t end = std::min(config.find(", ", begin), config.size());
    const std::string one = config.substr(begin, end - begin);
    families += (families.empty() ? "" : ", ") + one.substr(0, one.find(' '));
    begin = end + 2;
  }
  return families;
}

// Checks that `annulus run` used the families that the line expects, and that it compared the
// answer.
std::string check_run(const std::string& expected, const Json& json) {
  const std::string config = json.value("config", "");
  if (families_of(config) != expected) {
    return "it ran '" + config + "' and not a kernel of " + expected;
  }
  if (!json.value("within_tolerance", false)) return "its answer is not within the tolerance";
  return "";
}

std::string check_outcome(const Json& json) {
  const std::string outcome = json.value("outcome", "pass");
  if (outcome == "pass" || outcome == "skipped") return "";
  // `tells` explains wrong results. If the program stopped before it had results, `error` has the
  // reason.
  return json.value("error", json.value("tells", outcome));
}

std::string check_question(const Json& json) { return json.value("error", ""); }

Step line_step(const Kit& kit, const Line& line) {
  Step step;
  step.name = "line " + line.text;
  step.max_seconds = 40;
  if (line.expected == "test") {
    std::vector<std::string> words = {kit.path("device_tests"), "--device", kit.device,
                                      "--no-colors=true", "--source-file=*/tests/" + line.words[0]};
    if (line.words.size() > 1) words.push_back("--test-case=" + line.words[1]);
    step.command = kit.command(std::move(words));
    return step;
  }
  std::vector<std::string> words = {kit.path("annulus"), "run", "--device", kit.device, "--json"};
  words.insert(words.end(), line.words.begin(), line.words.end());
  if (!kit.shape_log.empty()) words.insert(words.end(), {"--shape-log", kit.shape_log});
  step.command = kit.command(std::move(words));
  step.check = [expected = line.expected](const Json& json) { return check_run(expected, json); };
  return step;
}

// The files of device tests, the fastest first. The kit has the seconds that each file took when
// the kit was made.
std::vector<std::string> test_files(const Kit& kit) {
  std::ifstream file(kit.path("tests.txt"));
  std::vector<std::pair<double, std::string>> files;
  double seconds = 0;
  for (std::string name; file >> seconds >> name;) files.emplace_back(seconds, name);
  std::ranges::stable_sort(files, {}, &std::pair<double, std::string>::first);
  std::vector<std::string> names;
  for (auto& [time, name] : files) names.push_back(std::move(name));
  return names;
}

// Starts with a kernel of the oldest family, because the other families need the results of the
// micro tests.
Group first_kernel(const Kit& kit) {
  Step first;
  first.name = "first kernel";
  first.command =
      kit.command({kit.path("annulus"), "run", "--device", kit.device, "--heads", "1", "--seq",
                   "64", "--dim", "64", "--config", "mma m64 n64 w4 s2", "--json"});
  first.max_seconds = 60;
  first.check = [](const Json& json) { return check_run("mma", json); };
  return {.name = "device", .width = 1, .steps = {std::move(first)}};
}

// Keeps a file under its file name.
void keep(Results& results, const std::string& path) {
  const std::string why = results.keep_file(path, path.substr(path.rfind('/') + 1));
  if (!why.empty()) std::printf("not kept: %s\n", why.c_str());
}

}  // namespace

Line parse_line(const std::string& text) {
  const std::size_t colon = text.find(": ");
  if (colon == text.npos) throw std::runtime_error("no family is expected by: " + text);
  Line line{text.substr(0, colon), words_of(text.substr(colon + 2)), text.substr(colon + 2)};
  const bool test = line.expected == "test";
  if (line.words.empty() || (!test && line.words[0] != "run")) {
    throw std::runtime_error("neither a test nor annulus run: " + text);
  }
  if (!test) line.words.erase(line.words.begin());
  return line;
}

std::vector<Line> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    if (!text.empty() && text[0] != '#') lines.push_back(parse_line(text));
  }
  return lines;
}

std::vector<Group> right_groups(const Kit& kit, Results& results) {
  std::vector<Group> groups = {first_kernel(kit)};

  Group micro{.name = "micro", .width = 4, .steps = {}};
  for (const std::string& name :
       lines_of(kit.command({kit.path("micro_tests"), "--list"}), kListSeconds)) {
    micro.steps.push_back(
        {.name = "micro " + name,
         .command = kit.command({kit.path("micro_tests"), "--device", kit.device, "--case", name}),
         .max_seconds = 20,
         .check = check_outcome});
  }
  groups.push_back(std::move(micro));

  Group lines{.name = "line", .width = 8, .steps = {}};
  for (const Line& line : read_lines(kit.path("right.lines"))) {
    lines.steps.push_back(line_step(kit, line));
  }
  groups.push_back(std::move(lines));

  Group questions{.name = "question", .width = 1, .steps = {}};
  for (const std::string& name :
       lines_of(kit.command({kit.path("gpu_questions"), "--list"}), kListSeconds)) {
    std::vector<std::string> words = {kit.path("gpu_questions"), "--device", kit.device,
                                      "--question", name};
    if (kit.rehearsal) words.insert(words.end(), {"--tiny", "--rounds", "1"});
    questions.steps.push_back({.name = "question " + name,
                               .command = kit.command(std::move(words)),
                               .max_seconds = 40,
                               .check = check_question});
  }
  groups.push_back(std::move(questions));

  // The tests run with their default numbers of random problems. The pack has no kernels for more.
  Group tests{.name = "test", .width = 4, .steps = {}};
  for (const std::string& file : test_files(kit)) {
    std::vector<std::string> words = {kit.path("device_tests"), "--device", kit.device,
                                      "--no-colors=true", "--source-file=*/tests/" + file};
    tests.steps.push_back({.name = "test " + file,
                           .command = kit.command(std::move(words)),
                           .max_seconds = kit.rehearsal ? 900.0 : 120.0});
  }
  groups.push_back(std::move(tests));

  // This group comes last, because the steps before it have judged the kernels. The results of the
  // golden programs are compared with the simulator's results later, by tools/gpu_report.
  const std::string golden = kit.scratch + "/golden_device.json";
  Group programs{.name = "golden", .width = 1, .steps = {}};
  // A program that hangs or faults ends its process. The next process continues after that program.
  constexpr int kProcesses = 6;
  for (int i = 1; i <= kProcesses; ++i) {
    programs.steps.push_back(
        {.name = i == 1 ? "golden" : "golden, process " + std::to_string(i),
         .command = kit.command({kit.path("golden_programs"), "--device", kit.device, "--ptx",
                                 kit.path("ptx"), "--go-on", golden}),
         .max_seconds = 120});
  }
  programs.steps.push_back({.name = "golden, compressed",
                            .command = kit.command({"gzip", "-6", "-f", golden}),
                            .max_seconds = 20,
                            .after = [golden, &results] { keep(results, golden + ".gz"); }});
  groups.push_back(std::move(programs));
  return groups;
}

std::vector<Group> fast_groups(const Kit& kit, double seconds, double tune_seconds,
                               Results& results) {
  std::vector<Group> groups = {first_kernel(kit)};

  // The timings end by themselves. The extra seconds are for a worker that does not end.
  const double timing_seconds = std::max(5.0, seconds - tune_seconds - 10);
  std::vector<std::string> words = {kit.path("gpu_bench"), "--device", kit.device, "--seconds",
                                    std::to_string(static_cast<int>(timing_seconds))};
  if (kit.rehearsal) words.push_back("--tiny");
  if (kit.torch) {
    for (const char* peer : {"flash", "cudnn", "flex"}) {
      const std::string on = kit.rehearsal ? "--rehearse" : "--device " + kit.device;
      words.insert(words.end(),
                   {"--peer", std::string(peer) + "=exec " + kit.python + " '" +
                                  kit.path("gpu_peers.py") + "' " + on + " --backend " + peer});
    }
  }
  Group timings{.name = "timing", .width = 1, .steps = {}};
  timings.steps.push_back({.name = "timings",
                           .command = kit.command(std::move(words)),
                           .max_seconds = timing_seconds + 5,
                           // They end without an error when their time is over, so a later call
                           // measures more
                           .always = true});
  groups.push_back(std::move(timings));
  if (tune_seconds <= 0) return groups;

  // The tuner compiles kernels even if the other steps may not. Its results so far are exported
  // when it is ended.
  const std::string tuned = kit.scratch + "/found", pack = kit.scratch + "/tuned.pack";
  Group tune{.name = "tune", .width = 1, .steps = {}};
  // After its limit the search still finishes what it has begun. A fifth of the time is for that.
  const int limit = std::max(1, static_cast<int>(0.8 * tune_seconds));
  Command search = kit.command({kit.path("annulus"), "tune", "--device", kit.device, "--shapes",
                                kit.path("tune.shapes"), "--tuned", tuned, "--time-limit",
                                std::to_string(limit) + "s", "--json"});
  search.variables.push_back("ANNULUS_COMPILE=missing");
  tune.steps.push_back({.name = "tune",
                        .command = std::move(search),
                        .max_seconds = tune_seconds,
                        .good_exits = {3}});  // the time limit was reached
  tune.steps.push_back({.name = "tune, exported",
                        .command = kit.command({kit.path("annulus"), "tuned", "export", pack,
                                                "--tuned", tuned, "--json"}),
                        .max_seconds = 15,
                        .after = [pack, &results] { keep(results, pack); }});
  groups.push_back(std::move(tune));
  return groups;
}

}  // namespace annulus::gpu
