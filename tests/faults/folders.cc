// Uses the library with unusable folders for kernels and for tuned results:
//
//   fault_folders [--seed N] [--cache FOLDER] [--entries 100000]
//
// A folder may be a file, a link to itself, a pipe, full of strange entries, open to all users, or
// removed during its use. Even then a device must open, plan and run with the right answer. Tuning
// must keep its result, or report before the search why it cannot. Listing results and kernels must
// end. A child that has not ended after five minutes counts as hung. Exit code 1: something was
// wrong.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "annulus/tune.h"
#include "annulus/types.h"
#include "faults/flows.h"
#include "faults/in_children.h"
#include "faults/options.h"

namespace {

using namespace annulus;
namespace fs = std::filesystem;

constexpr unsigned kSeconds = 300;

Problem tiny_problem() {
  Problem problem = test::small_problem();
  problem.seq_q = problem.seq_k = 32;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = Pattern::parse("causal");
  return problem;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Makes `path` what `name` describes. `entries` are names that the library itself would use there.
struct Hostile {
  const char* name;
  std::function<void(const std::string& path, const std::vector<std::string>& entries)> make;
};

std::vector<Hostile> hostile_folders(long count) {
  using Names = std::vector<std::string>;
  // Puts something under each name that the library would use, and under some other names.
  const auto each = [](const std::function<void(const std::string&)>& put) {
    return [put](const std::string& path, const Names& entries) {
      fs::create_directory(path);
      fs::permissions(path, fs::perms::owner_all);
      for (const std::string& name : entries) {
        fs::create_directories(fs::path(path + "/" + name).parent_path());
        for (const char* end : {"", ".kernel", ".tuned", ".lock"}) put(path + "/" + name + end);
      }
    };
  };
  return {
      {"a file", [](const std::string& path, const Names&) { write_text(path, "no folder"); }},
      {"a link to itself",
       [](const std::string& path, const Names&) { fs::create_symlink(path, path); }},
      {"a link to nothing",
       [](const std::string& path, const Names&) { fs::create_symlink(path + "/none", path); }},
      {"a pipe", [](const std::string& path, const Names&) { mkfifo(path.c_str(), 0600); }},
      {"below a file", [](const std::string& path,
                          const Names&) { write_text(fs::path(path).parent_path(), "no folder"); }},
      {"open to all",
       [](const std::string& path, const Names&) {
         fs::create_directory(path);
         fs::permissions(path, fs::perms::all);
       }},
      {"without permissions",
       [](const std::string& path, const Names&) {
         fs::create_directory(path);
         fs::permissions(path, fs::perms::none);
       }},
      {"a device",
       [](const std::string& path, const Names&) { fs::create_symlink("/dev/full", path); }},
      {"read-only by its file system",
       [](const std::string& path, const Names&) { fs::create_directory_symlink("/proc", path); }},
      {"pipes for entries", each([](const std::string& name) { mkfifo(name.c_str(), 0600); })},
      {"folders for entries", each([](const std::string& name) { fs::create_directory(name); })},
      {"links to themselves for entries",
       each([](const std::string& name) { fs::create_symlink(name, name); })},
      {"links to /dev/zero for entries",
       each([](const std::string& name) { fs::create_symlink("/dev/zero", name); })},
      {"empty entries", each([](const std::string& name) { write_text(name, ""); })},
      {"junk for entries",
       each([](const std::string& name) { write_text(name, std::string(5000, '\xff')); })},
      {"sparse entries of 2^40 bytes", each([](const std::string& name) {
         write_text(name, "annulus");
         if (truncate(name.c_str(), std::int64_t{1} << 40) != 0) unlink(name.c_str());
       })},
      {"names with line ends",
       [](const std::string& path, const Names&) {
         fs::create_directory(path);
         fs::permissions(path, fs::perms::owner_all);
         for (const char* name : {"/a\nb.kernel", "/\n", "/a\nb.tuned", "/\x1b[2J.kernel",
                                  "/\xff\xfe.tuned", "/.annulus-\n.tmp"}) {
           write_text(path + name, "x");
         }
       }},
      {"many entries", [count](const std::string& path, const Names& entries) {
         fs::create_directory(path);
         fs::permissions(path, fs::perms::owner_all);
         const std::string below =
             path + "/" + std::string(entries.empty() ? "" : fs::path(entries[0]).parent_path());
         fs::create_directories(below);
         fs::permissions(below, fs::perms::owner_all);
         for (long i = 0; i < count; ++i) {
           const std::string name = below + "/" + std::to_string(i);
           write_text(name + (i % 3 == 0 ? ".kernel" : i % 3 == 1 ? ".tuned" : ".tmp"), "");
         }
       }}};
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    if (each.is_regular_file()) names.push_back(fs::relative(each, folder));
  }
  return names;
}

// Prints the reason if the result is wrong. Runs in a child.
bool is_right(const char* what, const std::string& cache, const std::string& tuned,
              const test::Answer& expected, bool remove) {
  try {
    const Device device = Device::open(test::options_of({cache, tuned}));
    if (remove) {
      fs::remove_all(cache);
      fs::remove_all(tuned);
    }
    if (!(test::run_problem(device, test::small_problem()) == expected)) {
      std::printf("WRONG: %s: another answer\n", what);
      return false;
    }
    list_tuned(tuned);
    try {
      const TuneResult result = tune(device, tiny_problem());
      if (result.path.empty() && result.file.empty()) {
        std::printf("WRONG: %s: a tuned result is lost\n", what);
        return false;
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kFile) return true;
      std::printf("WRONG: %s: tuning: %s\n", what, error.what());
      return false;
    }
    return true;
  } catch (const std::exception& error) {
    std::printf("WRONG: %s: %s\n", what, error.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  long count = 100000;
  std::string cache;
  std::vector<std::string> chosen;
  test::read_options(argc, argv,
                     {test::option("--entries", &count), test::option("--cache", &cache),
                      test::option("--only", &chosen)});
  std::string scratch = (fs::temp_directory_path() / "annulus-folders-XXXXXX").string();
  if (mkdtemp(scratch.data()) == nullptr || cache.empty()) return 2;
  const test::SharedWithChildren<std::array<std::uint16_t, 8192>> values;
  const test::SharedWithChildren<std::size_t> values_count;
  // The right answer, and the names that the library gives its files.
  const std::string good = scratch + "/good";
  const std::string made = test::run_in_child(600, [&] {
    const Device device = Device::open(test::options_of({cache, good}));
    const test::Answer answer = test::run_problem(device, test::small_problem());
    *values_count = answer.values.size();
    std::ranges::copy(answer.values, values->begin());
    tune(device, tiny_problem());
  });
  if (!made.empty()) return 2;
  const test::Answer expected{{values->data(), values->data() + *values_count}, ""};
  std::vector<std::string> kernels;
  for (const std::string& name : files_below(cache)) {
    if (name.ends_with(".kernel") && kernels.size() < 400) kernels.push_back(name);
  }
  const std::vector<std::string> results = files_below(good);

  int cases = 0, wrong = 0;
  const auto is_chosen = [&](const std::string& what) {
    return chosen.empty() || std::ranges::find(chosen, what) != chosen.end();
  };
  const auto look = [&](const std::string& what, const std::string& kernel_folder,
                        const std::string& tuned_folder, bool remove) {
    ++cases;
    const std::string ended = test::run_in_child(kSeconds, [&] {
      const bool right = is_right(what.c_str(), kernel_folder, tuned_folder, expected, remove);
      std::fflush(stdout);
      if (!right) _exit(1);
    });
    if (ended.empty()) return;
    ++wrong;
    std::printf("WRONG: %s: %s\n", what.c_str(), ended.c_str());
  };
  for (const Hostile& hostile : hostile_folders(count)) {
    // Each is in a separate parent folder, so that it can be of any kind itself.
    const auto make = [&](const std::vector<std::string>& entries) {
      const std::string above = scratch + "/" + std::to_string(cases);
      fs::create_directory(above);
      hostile.make(above + "/folder", entries);
      return above + "/folder";
    };
    const std::string of_results = std::string("results: ") + hostile.name;
    if (is_chosen(of_results)) look(of_results, cache, make(results), false);
    const std::string of_kernels = std::string("kernels: ") + hostile.name;
    if (is_chosen(of_kernels)) look(of_kernels, make(kernels), good, false);
  }
  const std::string removed = "both removed while in use";
  fs::create_directory(scratch + "/gone");
  if (is_chosen(removed)) look(removed, scratch + "/gone/cache", scratch + "/gone/tuned", true);
  std::printf("%d cases: hostile folders, %d wrong\n", cases, wrong);
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
  return wrong == 0 ? 0 : 1;
}
