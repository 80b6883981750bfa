#include "faults/flows.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "annulus/layout.h"
#include "annulus/ring.h"
#include "annulus/tune.h"

namespace annulus::test {

DeviceOptions options_of(const Folders& folders) {
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.cache_dir = folders.cache;
  options.tuned_path = folders.tuned;
  options.simulation.threads = 1;  // gives each pass the same order of stacks
  return options;
}

Problem small_problem() {
  Problem problem;
  problem.heads = problem.kv_heads = 1;
  problem.seq_q = problem.seq_k = 96;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = Pattern::parse("causal & (window(31,0) | strided(4,16,16))");
  return problem;
}

namespace {

struct Tensors {
  Tensors(const Device& device, const Problem& problem)
      : q(device.allocate(bytes(problem))), o(device.allocate(bytes(problem))) {
    std::vector<std::uint16_t> values(bytes(problem) / 2);
    std::mt19937 random(1);
    for (std::uint16_t& value : values) {
      value = static_cast<std::uint16_t>(0x3f00 + random() % 0x100);
    }
    device.copy_to_device(q.data(), values.data(), q.bytes());
    operands.q = operands.k = operands.v = q.data();
    operands.o = o.data();
    operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides =
        Strides::bshd(problem.seq_q, problem.heads, problem.dim_qk);
  }
  static std::size_t bytes(const Problem& p) {
    return static_cast<std::size_t>(p.batch * p.heads * p.seq_q * p.dim_qk) * 2;
  }
  Answer read(const Device& device) const {
    Answer answer{std::vector<std::uint16_t>(o.bytes() / 2), ""};
    device.copy_to_host(answer.values.data(), o.data(), o.bytes());
    return answer;
  }
  DeviceMemory q, o;
  Operands operands;
};

Answer run_plan(const Device& device, const Plan& plan) {
  const Tensors tensors(device, plan.problem());
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  plan.run(nullptr, tensors.operands, workspace.data());
  device.synchronize();
  return tensors.read(device);
}

Answer text_answer(const std::string& text) { return {{text.begin(), text.end()}, ""}; }

}  // namespace

Answer run_problem(const Device& device, const Problem& problem) {
  return run_plan(device, device.plan(problem));
}

std::vector<Flow> flows() {
  const auto open = [](const Folders& folders) { return Device::open(options_of(folders)); };
  return {
      {"open",
       [](const Folders& folders) {
         return [folders] {
           const Device device = Device::open(options_of(folders));
           return text_answer(device.info().name);
         };
       }},
      {"plan_memory",
       [=](const Folders& folders) {
         const Device device = open(folders);
         device.plan(small_problem());
         return [=] { return run_plan(device, device.plan(small_problem())); };
       }},
      {"plan_disk",
       [=](const Folders& folders) {
         open(folders).plan(small_problem());
         return [=] {
           const Device device = open(folders);
           return run_plan(device, device.plan(small_problem()));
         };
       }},
      {"plan_compile",
       [=](const Folders&) {
         return [=] {
           const Device device = open({});
           return run_plan(device, device.plan(small_problem()));
         };
       }},
      {"run",
       [=](const Folders& folders) {
         const Device device = open(folders);
         const Plan plan = device.plan(small_problem());
         return [=] { return run_plan(device, plan); };
       }},
      {"prefetch",
       [=](const Folders& folders) {
         const Device device = open(folders);
         return [=] {
           device.prefetch(small_problem());
           return run_plan(device, device.plan(small_problem()));
         };
       }},
      {"ring",
       [=](const Folders& folders) {
         const std::vector<Device> devices(2, open(folders));
         return [=] {
           Problem problem = small_problem();
           problem.seq_q = problem.seq_k = 128;
           const RingPlan plan =
               plan_ring(devices, problem, make_shards(Sharding::kZigzag, 2, 128, 128));
           std::vector<Tensors> tensors;
           std::vector<DeviceMemory> workspaces;
           std::vector<RingCall> calls(2);
           for (int rank = 0; rank < 2; ++rank) {
             tensors.emplace_back(devices[0], plan.rank_problem(rank));
             workspaces.push_back(devices[0].allocate(plan.workspace_bytes(rank)));
           }
           for (std::size_t rank = 0; rank < 2; ++rank) {
             calls[rank].operands = tensors[rank].operands;
             calls[rank].workspace = workspaces[rank].data();
           }
           plan.run(calls);
           devices[0].synchronize();
           Answer answer;
           for (const Tensors& each : tensors) {
             const Answer part = each.read(devices[0]);
             answer.values.insert(answer.values.end(), part.values.begin(), part.values.end());
           }
           return answer;
         };
       }},
      {"tune",
       [=](const Folders& folders) {
         const Device device = open(folders);
         return [=] {
           TuneOptions options;
           options.force = true;
           const TuneResult result = tune(device, small_problem(), options);
           Answer answer = text_answer(result.config);
           for (const TuneCandidate& each : result.trials) answer.told += each.outcome + "\n";
           answer.told += result.problem;
           // The amount of free memory that a device keeps depends on the timing of its threads.
           device.trim();
           return answer;
         };
       }},
      {"import",
       [](const Folders& folders) {
         std::filesystem::create_directories(folders.cache);
         const std::string path = folders.cache + "/faults.npy";
         const BlockLayout layout =
             make_layout(Pattern::parse("causal | global(16)"), {16, 16, 256, 256, 1});
         export_layout(layout, path, LayoutFormat::kNpy);
         return [path] {
           const BlockLayout read = import_layout(path, LayoutFormat::kNpy, {16, 16, 256, 256, 1});
           return Answer{{read.indices.begin(), read.indices.end()}, ""};
         };
       }},
  };
}

std::vector<Flow> flows_of(const std::vector<std::string>& names) {
  std::vector<Flow> chosen = flows();
  if (names.empty()) return chosen;
  std::erase_if(
      chosen, [&](const Flow& flow) { return std::ranges::find(names, flow.name) == names.end(); });
  return chosen;
}

}  // namespace annulus::test
