// Makes file calls fail in typical uses of files, one call in each pass or all calls from one on:
//
//   fault_file_calls --for 3600 [--flow NAME]... [--points N] [--seed N] [--only-code ERRNO] --cache FOLDER
//   fault_file_calls --flow tune --call 17 --code 28 --for-good 1 --cache FOLDER   one pass again
//
// The n-th file call of libannulus.so fails with EIO, ENOSPC or EINTR, or moves few bytes, for
// every n. Runs must succeed, because files only save work. A tuned result must be in its folder,
// or must be returned as text that the user can put there. A layout must be written whole or stay
// unchanged, with a typed error. An interrupted call and a short call must have no effect at all.
// Nothing may be damaged, and no descriptor may stay open. FOLDER has compiled kernels and is only
// read. Exit code 1: a pass was wrong. Each such pass is printed.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "annulus/layout.h"
#include "annulus/tune.h"
#include "annulus/types.h"
#include "faults/failing_files.h"
#include "faults/flows.h"
#include "faults/in_children.h"
#include "faults/options.h"

namespace {

using namespace annulus;
using test::FileFault;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

struct Arguments {
  std::vector<std::string> flows;
  double seconds = 1e9;
  std::uint64_t seed = 0;
  std::size_t points = ~std::size_t{0};  // the most points of each flow
  std::string cache;
  int only_code = -1;  // the only errno to use in all passes
  FileFault one;
};

// A use of files, in a folder that is new in each pass and has a copy of FOLDER's kernels. Calls
// fail during `act`. `why_wrong` examines the result, and returns "" if it is right.
struct Flow {
  const char* name;
  std::function<void(const std::string& folder)> prepare;
  std::function<test::Answer(const std::string& folder)> act;
  std::function<std::string(const std::string& folder, const test::Answer* answer)> why_wrong;
  bool never_fails = false;
};

Problem tiny_problem() {
  Problem problem = test::small_problem();
  problem.seq_q = problem.seq_k = 32;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = Pattern::parse("causal");
  return problem;
}

std::string warnings;  // warnings of the device that was opened last

Device open(const std::string& folder) {
  DeviceOptions options = test::options_of({folder + "/cache", folder + "/tuned"});
  warnings.clear();
  options.log = [](LogLevel, std::string_view text) { warnings += text; };
  return Device::open(options);
}

void write_text(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// Results must be complete, in the tuned folder or in the text that tune() returned.
std::string why_tuned_wrong(const std::string& folder, const test::Answer* answer) {
  std::size_t results = 0;
  for (const char* name : {"/tuned", "/by_hand"}) {
    if (!fs::exists(folder + name)) continue;
    for (const auto& each : fs::recursive_directory_iterator(folder + name)) {
      fs::permissions(each, each.is_directory() ? fs::perms::owner_all
                                                : fs::perms::owner_read | fs::perms::owner_write);
    }
    const TunedListing listing = list_tuned(folder + name);
    for (const std::string& ignored : listing.ignored) return "not used: " + ignored;
    results += listing.entries.size();
  }
  if (answer != nullptr && results != 1) return std::to_string(results) + " results are kept";
  return "";
}

// The exported and imported results are complete, or do not exist.
std::string why_pack_wrong(const std::string& folder, const test::Answer* answer) {
  if (const std::string why = why_tuned_wrong(folder, answer); !why.empty()) return why;
  const TunedListing listing = list_tuned(folder + "/a.pack:" + folder + "/other");
  for (const std::string& ignored : listing.ignored) return "not used: " + ignored;
  if (answer == nullptr || listing.entries.size() == 2) return "";
  return std::to_string(listing.entries.size()) + " results are in the pack and the folder";
}

BlockLayout layout_of(const char* pattern) {
  return make_layout(Pattern::parse(pattern), {16, 16, 256, 256, 1});
}
constexpr char kLayoutFile[] = "/a.npy";
test::Answer read_layout(const std::string& folder) {
  const BlockLayout read =
      import_layout(folder + kLayoutFile, LayoutFormat::kNpy, {16, 16, 256, 256, 1});
  return {{read.indices.begin(), read.indices.end()}, ""};
}

std::vector<Flow> all_flows() {
  const auto nothing = [](const std::string&) {};
  const auto right = [](const std::string&, const test::Answer*) { return std::string(); };
  const auto run = [](const std::string& folder) {
    return test::run_problem(open(folder), tiny_problem());
  };
  return {{"run", nothing, run, right, true},
          // Removes the kernels on disk, so that one is stored.
          {"compile", [](const std::string& folder) { fs::remove_all(folder + "/cache"); }, run,
           right, true},
          {"tune", nothing,
           [](const std::string& folder) {
             const TuneResult result = tune(open(folder), tiny_problem());
             if (result.path.empty()) {
               write_text(folder + "/by_hand/" + result.file_name, result.file);
             }
             return test::Answer{{result.config.begin(), result.config.end()}, ""};
           },
           why_tuned_wrong},
          {"tuned",  // starts with an existing result
           [](const std::string& folder) { tune(open(folder), tiny_problem()); }, run, right, true},
          {"pack", [](const std::string& folder) { tune(open(folder), tiny_problem()); },
           [](const std::string& folder) {
             const TunedReport made = export_tuned(folder + "/a.pack", {}, folder + "/tuned");
             // Entries that could not be read are reported, and the pack lacks them.
             if (!made.left_out.empty()) throw Error(ErrorCode::kFile, made.left_out.front());
             import_tuned({folder + "/a.pack"}, {}, folder + "/other");
             return test::Answer{};
           },
           why_pack_wrong},
          {"import",
           [](const std::string& folder) {
             export_layout(layout_of("causal"), folder + kLayoutFile, LayoutFormat::kNpy);
           },
           read_layout, right},
          {"export",
           [](const std::string& folder) {
             export_layout(layout_of("causal"), folder + kLayoutFile, LayoutFormat::kNpy);
           },
           [](const std::string& folder) {
             export_layout(layout_of("window(31,0)"), folder + kLayoutFile, LayoutFormat::kNpy);
             return test::Answer{};
           },
           [](const std::string& folder, const test::Answer* answer) {
             const auto found = read_layout(folder).values;
             const auto is = [&](const char* pattern) {
               const BlockLayout layout = layout_of(pattern);
               return found ==
                      std::vector<std::uint16_t>(layout.indices.begin(), layout.indices.end());
             };
             if (is("window(31,0)")) return std::string();
             return answer == nullptr && is("causal") ? "" : std::string("the file is damaged");
           }}};
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

// Results that the child writes for its parent, which lives longer.
struct Shared {
  std::size_t next = 0, tried = 0, errors = 0, unreached = 0, wrong = 0;
  bool done = false;
  FileFault at;
};

class Passes {
 public:
  Passes(const Flow& flow, const Arguments& arguments, Clock::time_point end, Shared& shared)
      : flow_(flow), arguments_(arguments), end_(end), shared_(shared) {}

  void run() {
    fresh_folder();
    test::begin_file_fault({});
    expected_ = flow_.act(folder_);
    const int calls = test::end_file_fault();
    const std::vector<FileFault> points = points_of(calls);
    for (; shared_.next < points.size() && Clock::now() < end_; ++shared_.next) {
      shared_.at = points[shared_.next];
      fresh_folder();
      pass(shared_.at);
    }
    fs::remove_all(folder_);
    shared_.done = true;
  }

  void tell(const std::string& what) const {
    std::printf("WRONG --flow %s --call %d --code %d --for-good %d: %s\n", flow_.name,
                shared_.at.call, shared_.at.code, shared_.at.for_good, what.c_str());
    std::fflush(stdout);
  }

 private:
  void fresh_folder() {
    if (!folder_.empty()) fs::remove_all(folder_);
    folder_ = (fs::temp_directory_path() / "annulus-files-XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    fs::create_directory(folder_ + "/cache");
    fs::permissions(folder_ + "/cache", fs::perms::owner_all);
    for (const auto& each : fs::directory_iterator(arguments_.cache)) {
      if (each.path().extension() == ".kernel") {
        fs::copy_file(each, fs::path(folder_) / "cache" / each.path().filename());
      }
    }
    flow_.prepare(folder_);
  }

  std::vector<FileFault> points_of(int calls) const {
    if (arguments_.one.call >= 0) return {arguments_.one};
    std::vector<FileFault> points;
    for (int i = 0; i < calls; ++i) {
      for (const int code : {EIO, ENOSPC}) {
        points.push_back({i, code, false});
        points.push_back({i, code, true});
      }
      points.push_back({i, EINTR, false});
      points.push_back({i, 0, false});
    }
    points.push_back({0, 0, true});
    std::erase_if(points, [&](const FileFault& each) {
      return arguments_.only_code >= 0 && each.code != arguments_.only_code;
    });
    std::mt19937_64 random(arguments_.seed);
    if (points.size() > arguments_.points) {
      std::ranges::shuffle(points, random);
      points.resize(arguments_.points);
    }
    return points;
  }

  void pass(const FileFault& at) {
    alarm(600);  // the time limit of each pass
    const std::size_t before = open_descriptors();
    std::string wrong;
    std::optional<test::Answer> answer;
    const bool harmless = at.code == EINTR || at.code == 0;
    warnings.clear();
    test::begin_file_fault(at);
    try {
      answer = flow_.act(folder_);
      test::end_file_fault();
      if (!(*answer == expected_)) wrong = "another answer";
    } catch (const Error& error) {
      test::end_file_fault();
      ++shared_.errors;
      if (flow_.never_fails || harmless || error.code() != ErrorCode::kFile) wrong = error.what();
    } catch (const std::exception& error) {
      test::end_file_fault();
      wrong = std::string("no typed error: ") + error.what();
    }
    const char* const call = test::failed_file_call();
    shared_.unreached += call == nullptr;
    ++shared_.tried;
    try {
      if (wrong.empty()) wrong = flow_.why_wrong(folder_, answer ? &*answer : nullptr);
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    if (wrong.empty() && harmless && !warnings.empty()) wrong = "a warning: " + warnings;
    if (wrong.empty() && open_descriptors() != before) {
      wrong = std::to_string(before) + " descriptors were open before, " +
              std::to_string(open_descriptors()) + " are now";
    }
    if (wrong.empty()) return;
    ++shared_.wrong;
    tell(std::string("as ") + (call == nullptr ? "nothing" : call) + " failed: " + wrong);
  }

  const Flow& flow_;
  const Arguments& arguments_;
  const Clock::time_point end_;
  Shared& shared_;
  std::string folder_;
  test::Answer expected_;
};

// Returns the number of wrong passes.
std::size_t run_flow(const Flow& flow, const Arguments& arguments, Clock::time_point end) {
  const test::SharedWithChildren<Shared> shared;
  Passes passes(flow, arguments, end, *shared);
  std::size_t ends = 0;
  while (!shared->done) {
    const std::size_t before = shared->tried;
    const std::string ended = test::run_in_child(600, [&] { passes.run(); });
    if (shared->done) break;
    ++ends;
    passes.tell(ended);
    if (shared->tried == before && ends > 1) break;
    ++shared->next;
  }
  std::printf(
      "%-8s %5zu cases: calls of files failed: %zu errors, %zu not reached, %zu wrong, %zu ends of "
      "the process\n",
      flow.name, shared->tried, shared->errors, shared->unreached, shared->wrong, ends);
  std::fflush(stdout);
  return shared->wrong + ends;
}

Arguments parse(int argc, char** argv) {
  using test::option;
  Arguments arguments;
  int for_good = 0;
  test::read_options(argc, argv,
                     {option("--flow", &arguments.flows), option("--for", &arguments.seconds),
                      option("--seed", &arguments.seed), option("--points", &arguments.points),
                      option("--cache", &arguments.cache), option("--call", &arguments.one.call),
                      option("--only-code", &arguments.only_code),
                      option("--code", &arguments.one.code), option("--for-good", &for_good)});
  arguments.one.for_good = for_good != 0;
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const Flow& flow : all_flows()) std::printf("%s\n", flow.name);
    return 0;
  }
  const Arguments arguments = parse(argc, argv);
  std::vector<Flow> chosen = all_flows();
  std::erase_if(chosen, [&](const Flow& flow) {
    return !arguments.flows.empty() &&
           std::ranges::find(arguments.flows, flow.name) == arguments.flows.end();
  });
  if (chosen.empty() || arguments.cache.empty()) return 2;
  // A folder with the kernels that the flows need.
  const std::string kernels = (fs::path(arguments.cache) / "fault_files").string();
  Arguments with = arguments;
  with.cache = kernels;
  if (!test::run_in_child(600, [&] {
         tune(Device::open(test::options_of({kernels, ""})), tiny_problem());
       }).empty()) {
    return 2;
  }
  std::size_t wrong = 0;
  for (const Flow& flow : chosen) {
    // The time is shared evenly among the flows.
    const auto share =
        std::chrono::duration<double>(arguments.seconds / static_cast<double>(chosen.size()));
    wrong +=
        run_flow(flow, with, Clock::now() + std::chrono::duration_cast<Clock::duration>(share));
  }
  return wrong == 0 ? 0 : 1;
}
