// Opens libannulus.so with dlopen, uses it and closes it, again and again:
//
//   fault_reload LIBRARY --rounds 1000 [--cache FOLDER]
//
// Each round plans a problem and runs it on a simulated device, through C functions that it looks
// up. After every round the process must have as many threads, mappings and open files as after the
// first few rounds. Exit code 1: it did not, or a call failed.

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "faults/options.h"

#include "annulus/c.h"

namespace {

struct Counts {
  long threads = 0, mappings = 0, files = 0;
};

Counts counts() {
  const auto entries = [](const char* folder) {
    return static_cast<long>(std::distance(std::filesystem::directory_iterator(folder), {}));
  };
  Counts all{entries("/proc/self/task"), 0, entries("/proc/self/fd")};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++all.mappings;
  return all;
}

// Returns "" if the round succeeded, or else the error.
std::string round(const char* library, const char* cache) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return dlerror();
#define FUNCTION(name) const auto name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name))
  FUNCTION(annulus_device_open);
  FUNCTION(annulus_device_close);
  FUNCTION(annulus_device_allocate);
  FUNCTION(annulus_device_release);
  FUNCTION(annulus_device_copy_to_device);
  FUNCTION(annulus_device_synchronize);
  FUNCTION(annulus_plan_create);
  FUNCTION(annulus_plan_destroy);
  FUNCTION(annulus_plan_run);
  FUNCTION(annulus_last_error);
#undef FUNCTION
  annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
  options.name = "sim:sm_80";
  options.cache_dir = cache;
  options.tuned_path = "";
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  problem.heads = problem.kv_heads = 1;
  problem.seq_q = problem.seq_k = 64;
  problem.dim_qk = problem.dim_v = 64;
  annulus_device* device = nullptr;
  annulus_plan* plan = nullptr;
  void* memory = nullptr;
  annulus_status status = annulus_device_open(&options, &device);
  if (status == ANNULUS_OK) status = annulus_plan_create(device, &problem, nullptr, &plan);
  const std::vector<std::uint16_t> zeros(64 * 64);
  const std::size_t bytes = zeros.size() * 2;
  if (status == ANNULUS_OK) status = annulus_device_allocate(device, 2 * bytes, &memory);
  if (status == ANNULUS_OK) {
    status = annulus_device_copy_to_device(device, memory, zeros.data(), bytes);
  }
  if (status == ANNULUS_OK) {
    annulus_operands operands = ANNULUS_OPERANDS_INIT;
    operands.q = operands.k = operands.v = memory;
    operands.o = static_cast<char*>(memory) + bytes;
    const annulus_strides strides = {64 * 64, 64 * 64, 64};
    operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides = strides;
    status = annulus_plan_run(plan, nullptr, &operands, nullptr);
  }
  if (status == ANNULUS_OK) status = annulus_device_synchronize(device);
  const std::string text = status == ANNULUS_OK ? "" : annulus_last_error();
  if (plan != nullptr) annulus_plan_destroy(plan);
  if (memory != nullptr) annulus_device_release(device, memory);
  if (device != nullptr) annulus_device_close(device);
  if (dlclose(handle) != 0) return dlerror();
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kFirst = 5;
  int rounds = 20;
  std::string cache;
  if (argc < 2) return 2;
  annulus::test::read_options(
      argc, argv,
      {annulus::test::option("--rounds", &rounds), annulus::test::option("--cache", &cache)}, 2);
  Counts first;
  for (int i = 0; i < rounds; ++i) {
    const std::string problem = round(argv[1], cache.c_str());
    const Counts now = counts();
    if (i < kFirst) {
      first = {std::max(first.threads, now.threads), std::max(first.mappings, now.mappings),
               std::max(first.files, now.files)};
    }
    if (!problem.empty() || now.threads > first.threads || now.files > first.files ||
        now.mappings > first.mappings) {
      std::printf(
          "WRONG: round %d: %s; %ld threads, %ld mappings, %ld files; at first %ld, %ld, %ld\n", i,
          problem.c_str(), now.threads, now.mappings, now.files, first.threads, first.mappings,
          first.files);
      return 1;
    }
  }
  std::printf("%d cases: rounds of dlopen and dlclose; %ld threads, %ld mappings, %ld files\n",
              rounds, first.threads, first.mappings, first.files);
  return 0;
}
