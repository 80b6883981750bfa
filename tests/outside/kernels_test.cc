// Kernels that are compiled ahead, and devices that do not compile.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "annulus/kernels.h"
#include "annulus/observe.h"
#include "outside/outside.h"
#include "outside/variable.h"

namespace {

namespace fs = std::filesystem;
using namespace annulus;
using test::Variable;

Problem problem_of(Pattern pattern) {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = problem.seq_k = 96;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = std::move(pattern);
  return problem;
}

struct Notes {
  std::vector<std::string> lines;
  LogCallback log() {
    return [this](LogLevel, std::string_view text) { lines.emplace_back(text); };
  }
};

// Fills a folder with the kernels of problems, by planning them with the folder as the cache.
void fill(const std::string& folder, const std::vector<Problem>& problems) {
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.cache_dir = folder;
  const Device device = Device::open(options);
  for (const Problem& problem : problems) device.plan(problem);
  for (const auto& each : fs::directory_iterator(folder)) {
    if (each.path().extension() == ".lock") fs::remove(each.path());
  }
}

DeviceOptions compiling_never(const std::string& kernels_path) {
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.cache_dir = "";
  options.tuned_path = "";
  options.kernels_path = kernels_path;
  options.compile = Compile::kNever;
  return options;
}

std::vector<std::uint16_t> answer_of(const Device& device, const Problem& problem) {
  test::Tensors tensors(device, problem, 5);
  device.plan(problem).run(nullptr, tensors.operands);
  device.synchronize();
  tensors.read_back(device);
  return tensors.o;
}

TEST_CASE("a device that compiles nothing runs what was compiled ahead") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path("kernels");
  const Problem problem = problem_of(causal());
  fill(folder, {problem});
  Notes notes;
  DeviceOptions options = compiling_never("/nonexistent/kernels:" + folder);
  options.log = notes.log();
  const Device device = Device::open(options);
  CHECK(device.info().nvrtc_version.empty());
  CHECK(device.info().compile_problem.find("compile") != std::string::npos);
  CHECK(device.info().kernels_path.starts_with("/nonexistent/kernels:" + folder));
  CHECK(device.info().kernel_origin.find("any nvrtc") != std::string::npos);
  CHECK(answer_of(device, problem) == answer_of(test::device(), problem));
  CHECK(device.plan(problem).info().source == "memory");
  const Metrics metrics = device.metrics();
  CHECK(metrics.compiles == 0);
  CHECK(metrics.kernels_from_disk == 1);
  CHECK(metrics.kernels_compiled_ahead == 1);
  CHECK(notes.lines.empty());  // it was requested
  // A folder that is only read is not changed.
  for (const auto& each : fs::directory_iterator(folder)) {
    CHECK(each.path().extension() == ".kernel");
  }
}

TEST_CASE("the folder goes before the compiler, and its path may be the environment's") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path("kernels");
  const Problem problem = problem_of(causal() & window(40, 0));
  fill(folder, {problem});
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.cache_dir = "";
  const Variable path("ANNULUS_KERNELS", folder);
  const Device device = Device::open(options);
  CHECK(device.info().compile_problem.empty());
  CHECK_FALSE(device.info().nvrtc_version.empty());
  device.plan(problem);
  CHECK(device.metrics().kernels_compiled_ahead == 1);
  CHECK(device.metrics().compiles == 0);
  const std::vector<KernelListing> listed = list_shipped_kernels();
  REQUIRE(listed.size() >= 1);
  CHECK(listed[0].folder == folder);
  CHECK(listed[0].usable);
  CHECK(listed[0].kernels == 1);
  REQUIRE(listed[0].sets.size() == 1);
  CHECK(listed[0].sets[0].origin == device.info().kernel_origin);
  CHECK(listed[0].sets[0].bytes == listed[0].bytes);
  CHECK(listed[0].sets[0].oldest > 1'700'000'000);
  // The program's word for "no folder".
  const Variable none("ANNULUS_KERNELS", "none");
  CHECK(Device::open(options).info().kernels_path.empty());
  options.kernels_path = "none";
  CHECK(Device::open(options).info().kernels_path.empty());
  CHECK(list_shipped_kernels("").empty());
}

TEST_CASE("a kernel that is missing is named with the line that compiles it ahead") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path("kernels");
  fill(folder, {problem_of(causal())});
  const Device device = Device::open(compiling_never(folder));
  Problem problem = problem_of(window(8, 0) | sink(4));
  problem.kv_heads = 1;
  problem.seq_k = 128;
  problem.dtype = Dtype::kFloat16;
  problem.score.softcap = 30;
  problem.carry_out = true;
  PlanOptions options;
  options.kv_splits = 1;
  const auto says = [&](const std::string& part, auto&& call) {
    test::check_fails(ErrorCode::kLibrary, part, call);
  };
  const auto plan = [&] { device.plan(problem, options); };
  says("mma_forward (mma m", plan);
  says(
      "--heads 2 --kv-heads 1 --seq 96 --seq-k 128 --dim 32 --dtype fp16 --pattern \"window(8, 0) "
      "| sink(4)\" --score \"softcap(30)\" --carry out --kv-splits 1",
      plan);
  says("'" + folder + "' (kernels: 1", plan);
  says("annulus warm", plan);
  says("--heads 2 --kv-heads 1", [&] { device.prefetch(problem, options); });
  CHECK(device.metrics().plans_failed >= 5);
  CHECK(device.metrics().kernels_failed >= 5);
  // Existing kernels still run.
  CHECK(device.plan(problem_of(causal())).info().source == "disk");
}

TEST_CASE("ANNULUS_COMPILE says it for all devices that do not say it themselves") {
  DeviceOptions options = compiling_never("");
  options.compile = Compile::kDefault;
  {
    const Variable never("ANNULUS_COMPILE", "never");
    CHECK_FALSE(Device::open(options).info().compile_problem.empty());
    options.compile = Compile::kMissing;
    CHECK(Device::open(options).info().compile_problem.empty());
  }
  options.compile = Compile::kDefault;
  const Variable wrong("ANNULUS_COMPILE", "sometimes");
  test::check_fails(ErrorCode::kInvalidArgument, "missing or never",
                    [&] { Device::open(options); });
}

TEST_CASE("without a usable NVRTC a device opens with one warning and runs what is there") {
  const test::ScratchFolder scratch;
  const std::string cache = scratch.path("cache");
  const Problem problem = problem_of(dense());
  fill(cache, {problem});
  const Variable path("ANNULUS_LIBRARY_PATH", ANNULUS_USELESS_NVRTC_FOLDER);
  REQUIRE_FALSE(find_libraries().nvrtc.usable());
  Notes notes;
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.cache_dir = cache;
  options.kernels_path = "";
  options.log = notes.log();
  const Device device = Device::open(options);
  REQUIRE(notes.lines.size() == 1);
  CHECK(notes.lines[0].find("only kernels that are compiled already") != std::string::npos);
  CHECK(device.info().nvrtc_version.empty());
  CHECK(device.info().compile_problem == find_libraries().nvrtc.problem);
  // The cache is used, no matter which program compiled its kernels.
  CHECK(device.plan(problem).info().source == "disk");
  CHECK(device.metrics().kernels_compiled_ahead == 0);
  test::check_fails(ErrorCode::kLibrary, "pip install nvidia-cuda-nvrtc",
                    [&] { device.plan(problem_of(causal() | sink(3))); });
  CHECK(notes.lines.size() == 1);
}

TEST_CASE("warm compiles what plans, selections and batches will ask for") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path("kernels");
  WarmWork work;
  work.shapes.push_back({problem_of(causal())});
  PlanOptions split;
  split.kv_splits = 3;
  Problem decode = problem_of(dense());
  decode.seq_q = 1;
  decode.seq_k = 1000;
  work.shapes.push_back({decode, split});
  Selection selection;
  selection.block_rows = selection.block_columns = 16;
  selection.max_blocks = 3;
  work.shapes.push_back({problem_of(causal()), {}, selection});
  BatchProblem batch;
  batch.heads = 2;
  batch.dim_qk = batch.dim_v = 32;
  batch.pattern = causal();
  batch.most = {.requests = 3, .rows = 6, .keys_of_one = 100};
  batch.page_rows = 16;
  work.batches.push_back({batch});
  WarmOptions options;
  options.folder = folder;
  options.devices = {"sim:sm_80"};
  std::int64_t last = 0, kernels = 0;
  options.progress = [&](const WarmProgress& at) {
    CHECK(at.done == last + 1);
    last = at.done;
    kernels = at.kernels;
    CHECK_FALSE(at.last.empty());
  };
  const WarmResult made = warm(work, options);
  CHECK(made.complete());
  CHECK(made.compiled == made.kernels);
  CHECK(last == made.kernels);
  CHECK(kernels == made.kernels);
  CHECK(made.nvrtc_version == test::device().info().nvrtc_version);
  CHECK(made.devices == std::vector<std::string>{"sim:sm_80 (sm_80, ptx)"});
  last = 0;
  CHECK(warm(work, options).there == made.kernels);

  const Device device = Device::open(compiling_never(folder));
  device.plan(problem_of(causal()));
  device.plan(decode, split);
  device.plan(problem_of(causal()), selection);
  plan_batch(device, batch);
  CHECK(device.metrics().compiles == 0);
  // Only requested kernels were compiled, and perhaps a kernel for plans that must use less memory.
  CHECK(device.metrics().kernels_compiled_ahead >= made.kernels - 1);

  // A set flag ends the call before the first kernel.
  const std::atomic<bool> cancel{true};
  options.cancel = &cancel;
  options.progress = {};
  const WarmResult none = warm(work, options);
  CHECK(none.cancelled);
  CHECK_FALSE(none.complete());
  options.cancel = nullptr;
  options.folder = "kernels";
  test::check_fails(ErrorCode::kInvalidArgument, "absolute", [&] { warm(work, options); });
  options.folder = folder;
  options.devices = {"tpu"};
  test::check_fails(ErrorCode::kInvalidArgument, "'tpu' is not the name of a known GPU",
                    [&] { warm(work, options); });
}

TEST_CASE("GPUs that are known by name have kernels without being here") {
  const test::ScratchFolder scratch;
  std::vector<std::string> architectures;
  for (const KnownGpu& gpu : known_gpus()) {
    CHECK_FALSE(gpu.description.empty());
    architectures.push_back(gpu.architecture);
    // One of each architecture.
    if (std::ranges::count(architectures, gpu.architecture) > 1) continue;
    WarmOptions options;
    options.folder = scratch.path(gpu.name);
    options.devices = {gpu.name};
    const WarmResult made = warm({.shapes = {{problem_of(causal())}}, .batches = {}}, options);
    CHECK(made.complete());
    CHECK(made.kernels >= 1);
    const KernelListing listed = list_kernels(options.folder);
    REQUIRE(listed.sets.size() == 1);
    CHECK(listed.sets[0].origin.starts_with(gpu.architecture + ", image cubin"));
    // These kernels cannot be used on a simulated device.
    CHECK(why_unused(listed.sets[0], test::device().info(), true).starts_with("made for sm_"));
  }
  CHECK(std::ranges::count(architectures, "sm_80") == 2);
  CHECK(std::ranges::count(architectures, "sm_90a") == 4);
}

TEST_CASE("a plan is decided for a GPU that is not here") {
  const Problem problem = problem_of(causal());
  DeviceOptions on;
  on.name = "a100";
  on.tuned_path = "";
  const std::vector<PlanPreview> previews = preview_plan(on, problem);
  REQUIRE(previews.size() == 1);
  const PlanPreview& made = previews.front();
  CHECK(made.device.multiprocessors == 108);
  CHECK(made.device.architecture == "sm_80");
  CHECK(made.predicted.predicted_micros > made.predicted.min_micros);
  CHECK(made.info.source.empty());
  CHECK(made.info.registers == 0);
  // A plan with its kernel has the same tiles and the same launch.
  PlanOptions options;
  options.config = made.info.config;
  const PlanInfo real = test::device().plan(problem, options).info();
  CHECK(made.info.config == real.config);
  CHECK(made.info.full_tiles == real.full_tiles);
  CHECK(made.info.partial_tiles == real.partial_tiles);
  CHECK(made.info.ctas == real.ctas);
  CHECK(made.info.threads == real.threads);
  CHECK(made.info.shared_bytes == real.shared_bytes);
  on.name = "sm_90";  // an architecture without tensor maps
  for (const PlanPreview& each : preview_plan(on, problem)) {
    CHECK(each.info.kernel.starts_with("mma"));
  }
  on.name = "cuda:0";
  test::check_fails(ErrorCode::kInvalidArgument, "'cuda:0' is not the name of a known GPU",
                    [&] { preview_plan(on, problem); });
  on.name = "a100";
  options.config = "wgmma m128 n128 w8 s2";
  CHECK_THROWS_AS(preview_plan(on, problem, options), Error);
}

TEST_CASE("a set of kernels says why it does not serve a device") {
  const DeviceInfo info = test::device().info();
  KernelSet set;
  set.origin = info.kernel_origin;
  CHECK(why_unused(set, info, false).empty());
  const std::size_t nvrtc = set.origin.find("nvrtc ") + 6;
  set.origin.replace(nvrtc, set.origin.find(", ", nvrtc) - nvrtc, "11.4 (another)");
  CHECK(why_unused(set, info, false).find("nvrtc 11.4 (another), not nvrtc") != std::string::npos);
  CHECK(why_unused(set, info, true).empty());  // the folder was given on purpose
  set.origin = "no kernel of this version of the library";
  CHECK(why_unused(set, info, true) == set.origin);
}

TEST_CASE("a folder of kernels is pruned and verified") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path("kernels");
  fill(folder, {problem_of(causal()), problem_of(dense())});
  VerifyResult whole = verify_kernels(folder);
  CHECK(whole.folder == folder);
  CHECK(whole.kernels == 2);
  CHECK(whole.damaged.empty());
  const std::string first = fs::directory_iterator(folder)->path().string();
  std::ofstream(first, std::ios::app) << "more";
  const VerifyResult found = verify_kernels(folder);
  REQUIRE(found.damaged.size() == 1);
  CHECK(found.damaged[0].name == fs::path(first).filename());
  CHECK(found.damaged[0].why.find("sizes") != std::string::npos);
  CHECK_FALSE(found.damaged[0].removed);
  CHECK(verify_kernels(folder, true).damaged[0].removed);
  CHECK(verify_kernels(folder).damaged.empty());
  CHECK(prune_kernels({.folder = folder, .useless = true}).removed == 0);
  CHECK(prune_kernels({.folder = folder, .max_bytes = 0, .dry_run = true}).removed == 1);
  const PruneResult pruned = prune_kernels({.folder = folder, .max_bytes = 0});
  CHECK(pruned.removed == 1);
  CHECK(pruned.removed_bytes > 1000);
  CHECK(pruned.left == 0);
  CHECK(pruned.left_bytes == 0);
  test::check_fails(ErrorCode::kFile, "no folder", [&] { verify_kernels(folder + "/none"); });
  test::check_fails(ErrorCode::kFile, "no folder", [&] { prune_kernels({.folder = ""}); });
}

TEST_CASE("the line of a shape states the problem and the options of its plan") {
  Problem problem = problem_of(causal() & window(511, 0));
  problem.batch = 2;
  problem.total_k = 500;
  PlanOptions options;
  options.config = "mma m64 n64 w4 s2 x3";
  options.max_multiprocessors = 20;
  CHECK(shape_line(problem) ==
        "--batch 2 --heads 2 --kv-heads 1 --seq 96 --total-k 500 --dim 32 --pattern \"causal & "
        "window(511, 0)\"");
  CHECK(shape_line(problem, options) ==
        shape_line(problem) + " --config \"mma m64 n64 w4 s2 x3\" --max-multiprocessors 20");
}

}  // namespace
