// Runs the golden programs on one device and writes the results, so that the results of a GPU and
// of the simulator can be compared afterwards:
//
//   golden_programs --device cuda:0 --json silicon.json
//   golden_programs --device sim:sm_80 --json simulator.json
//   golden_programs --device cuda:0 --go-on silicon.json     the same, but continues a report
//   golden_programs --compare silicon.json simulator.json    names every instruction that differs
//   golden_programs --write FOLDER                           writes the programs as .ptx files
//   golden_programs --list
//
// A program that does not end on a GPU, or that destroys the context, ends the process. With
// --go-on the report is written nevertheless. The same command then records that program as refused
// and runs the programs after it. It can be repeated until all have run.
//
// Exits with 0 if all results are equal to their definitions, with 1 otherwise, and with 2 for
// wrong usage.

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "annulus/types.h"
#include "base/hash.h"
#include "base/json.h"
#include "device/stream.h"
#include "golden/runner.h"

namespace annulus::golden {
namespace {

std::string digest(const std::vector<std::uint64_t>& words) {
  return base::digest(std::as_bytes(std::span(words))).hex();
}

base::Json read_report(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return base::parse_json(text.str(), path, {.bytes = 256u << 20});
}

// Writes either the whole report or nothing.
void write_report(const base::Json& report, const std::string& path) {
  std::ofstream(path + ".new") << report.dump() << "\n";
  std::filesystem::rename(path + ".new", path);
}

// The file in which --go-on stores the name of the program that is running.
std::string running_path(const std::string& json_path) { return json_path + ".running"; }

// Reads the file of an earlier process: its results, and the program during which it ended.
void take_earlier(const std::string& json_path, base::Json& report) {
  if (std::filesystem::exists(json_path)) {
    report["programs"] = read_report(json_path).at("programs");
  }
  std::string name;
  std::ifstream running(running_path(json_path));
  std::getline(running, name);
  for (const auto& entry : report["programs"]) {
    if (entry.at("name") == name) return;
  }
  for (const Golden& golden : all_programs()) {
    if (golden.name != name) continue;
    report["programs"].push_back({{"name", name},
                                  {"inputs", digest(golden.in)},
                                  {"status", "refused"},
                                  {"error", name + ": did not end, or ended the process"},
                                  {"words", base::Json::array()}});
  }
}

// Whether a program has left the context in a state in which nothing can run.
bool is_lost(const device::Context& context) {
  try {
    device::synchronize(context, nullptr);
    return false;
  } catch (const Error&) {
    return true;
  }
}

// Writes one object: {"device": ..., "programs": [{"name", "inputs", "status", "error"?, "words":
// [...]}]}.
int run_programs(const std::string& device, const std::string& json_path, const std::string& ptx,
                 const std::string& only, bool goes_on) {
  constexpr unsigned kMaxSeconds = 10;  // limit for a program on a GPU; most take milliseconds
  constexpr std::chrono::seconds kBetweenWrites{5};  // each write has all results so far
  const device::ContextPointer context = open_device(device);
  base::Json report;
  report["device"] = device;
  report["name"] = context->info().name;
  report["programs"] = base::Json::array();
  if (goes_on) take_earlier(json_path, report);
  std::set<std::string> earlier;
  for (const auto& entry : report["programs"]) earlier.insert(entry.at("name").get<std::string>());
  auto written = std::chrono::steady_clock::now();
  int bad = 0;
  int unmodelled = 0;
  int all = 0;
  for (const Golden& golden : all_programs()) {
    if (!only.empty() && golden.name.find(only) == std::string::npos) continue;
    if (!runs_on(golden, *context) || earlier.contains(golden.name)) continue;
    if (goes_on) {
      std::ofstream(running_path(json_path)) << golden.name << "\n";
      if (!context->info().simulated) alarm(kMaxSeconds);  // its signal ends the process
    }
    const Outcome outcome = run(context, golden, ptx);
    alarm(0);
    ++all;
    base::Json entry;
    entry["name"] = golden.name;
    entry["inputs"] = digest(golden.in);
    entry["status"] = outcome.good() ? "ok" : outcome.error.empty() ? "differs" : "refused";
    if (!outcome.error.empty()) entry["error"] = outcome.error;
    if (outcome.mismatches) entry["mismatches"] = outcome.mismatches;
    base::Json words = base::Json::array();
    for (const std::uint64_t word : outcome.out) words.push_back(fmt::format("{:016x}", word));
    entry["words"] = std::move(words);
    report["programs"].push_back(std::move(entry));
    const bool lost = goes_on && !outcome.error.empty() && is_lost(*context);
    const auto now = std::chrono::steady_clock::now();
    if (lost || (goes_on && now - written > kBetweenWrites)) {
      write_report(report, json_path);
      written = now;
    }
    if (lost) {
      fmt::print("refused  {}; nothing runs after it in this process\n", outcome.error);
      return 1;
    }
    if (outcome.good()) continue;
    if (!golden.modelled && !outcome.error.empty() && context->info().simulated) {
      ++unmodelled;
      continue;
    }
    ++bad;
    if (!outcome.error.empty()) fmt::print("refused  {}\n", outcome.error);
    for (const Mismatch& mismatch : outcome.first) fmt::print("differs  {}\n", mismatch.text);
    if (outcome.mismatches > outcome.first.size()) {
      fmt::print("         ... {} words of {} differ\n", outcome.mismatches, golden.name);
    }
  }
  fmt::print("{} of {} programs agree with their definitions on {}; {} are not modelled\n",
             all - bad - unmodelled, all, device, unmodelled);
  if (goes_on) {
    write_report(report, json_path);
    std::filesystem::remove(running_path(json_path));
  } else if (!json_path.empty()) {
    std::ofstream(json_path) << report.dump() << "\n";
  }
  return bad == 0 ? 0 : 1;
}

// The words of `golden` for which the manual allows several values: approximations, NaN, open
// results.
std::vector<bool> open_words(const Golden& golden) {
  const std::size_t each = 8 / static_cast<std::size_t>(golden.word_bytes);
  std::vector<Word> expected(golden.out_words * each);
  golden.define(golden, golden.in, expected);
  std::vector<bool> open(golden.out_words, false);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (may_vary(expected[i])) open[i / each] = true;
  }
  return open;
}

int compare_reports(const std::string& left_path, const std::string& right_path) {
  const base::Json left = read_report(left_path);
  const base::Json right = read_report(right_path);
  std::map<std::string, const base::Json*> others;
  for (const auto& entry : right.at("programs"))
    others[entry.at("name").get<std::string>()] = &entry;
  std::map<std::string, Golden> programs;
  for (Golden& golden : all_programs()) programs[golden.name] = std::move(golden);
  int differing = 0;
  for (const auto& entry : left.at("programs")) {
    const std::string name = entry.at("name").get<std::string>();
    const auto found = others.find(name);
    const auto program = programs.find(name);
    if (found == others.end() || program == programs.end() ||
        found->second->at("inputs") != entry.at("inputs")) {
      fmt::print("missing  {} (or run with other inputs)\n", name);
      ++differing;
      continue;
    }
    const auto& a = entry.at("words");
    const auto& b = found->second->at("words");
    if (a.size() != b.size()) {
      fmt::print("refused  {} by one of the devices\n", name);
      ++differing;
      continue;
    }
    const std::vector<bool> open = open_words(program->second);
    std::size_t count = 0;
    std::size_t allowed = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < std::min(a.size(), open.size()); ++i) {
      if (a[i] == b[i]) continue;
      if (open[i])
        ++allowed;
      else if (count++ == 0)
        first = i;
    }
    if (allowed) fmt::print("varies   {}: {} words, where the manual leaves room\n", name, allowed);
    if (count == 0) continue;
    ++differing;
    fmt::print("differs  {}: {} words, first at {}: {} and {} ({} and {})\n", name, count, first,
               a[first].get<std::string>(), b[first].get<std::string>(),
               entry.at("status").get<std::string>(),
               found->second->at("status").get<std::string>());
  }
  fmt::print("{} of {} programs differ\n", differing, left.at("programs").size());
  return differing == 0 ? 0 : 1;
}

// Writes all forms for one architecture into one module, with an entry for each, because an
// assembler is faster with one large file than with a thousand small ones. Programs written by hand
// get separate files.
int write_programs(const std::string& folder, const std::string& ptx) {
  std::filesystem::create_directories(folder);
  std::map<std::string, std::string> forms;  // by header
  int number = 0;
  for (const Golden& golden : all_programs()) {
    const std::string text = program_text(golden, ptx);
    if (golden.text.empty()) {
      std::ofstream(fmt::format("{}/{}.ptx", folder, golden.name)) << text;
      continue;
    }
    const std::size_t entry = text.find(".visible .entry golden(");
    std::string& module = forms[text.substr(0, entry)];
    if (module.empty()) module = text.substr(0, entry);
    module += fmt::format("// {}\n.visible .entry golden_{}(", golden.name, number++);
    module += text.substr(text.find('(', entry) + 1) + "\n";
  }
  int file = 0;
  for (const auto& [header, module] : forms) {
    std::ofstream(fmt::format("{}/forms{}.ptx", folder, file++)) << module;
  }
  return 0;
}

int main_with(const std::vector<std::string>& arguments) {
  std::string device = "sim:sm_80";
  std::string json;
  std::string go_on;
  std::string ptx = ANNULUS_GOLDEN_PTX;
  std::string only;
  std::string write;
  // A value follows every option except --list and --compare, which end the loop.
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& option = arguments[i];
    const std::string value = i + 1 < arguments.size() ? arguments[i + 1] : std::string();
    if (option == "--list") {
      for (const Golden& golden : all_programs()) fmt::print("{}\n", golden.name);
      return 0;
    }
    if (option == "--compare" && i + 2 < arguments.size())
      return compare_reports(value, arguments[i + 2]);
    std::string* target = option == "--device"  ? &device
                          : option == "--json"  ? &json
                          : option == "--go-on" ? &go_on
                          : option == "--ptx"   ? &ptx
                          : option == "--only"  ? &only
                          : option == "--write" ? &write
                                                : nullptr;
    if (!target || value.empty()) {
      fmt::print(stderr, "golden_programs: '{}' is no option or lacks its value\n", option);
      return 2;
    }
    *target = value;
  }
  if (!write.empty()) return write_programs(write, ptx);
  return run_programs(device, go_on.empty() ? json : go_on, ptx, only, !go_on.empty());
}

}  // namespace
}  // namespace annulus::golden

int main(int argc, char** argv) {
  try {
    return annulus::golden::main_with({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "golden_programs: {}\n", error.what());
    return 1;
  }
}
