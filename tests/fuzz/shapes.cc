// Descriptions of problems. Every field of a problem and of the options of its plan is drawn. Most
// are small, and some are at a limit or at the edge of a type. A description must be refused with a
// reason or planned within its limits of work and memory, with the same result twice. Sometimes a
// description of a batch is planned too. Sometimes a small problem that needs one of a few kernels
// is run and compared with the oracle.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "annulus/oracle.h"
#include "batch/batch_plan.h"
#include "fuzz/fuzz.h"
#include "fuzz/pattern_grammar.h"
#include "support/random_problem.h"

namespace annulus::fuzz {
namespace {

// Patterns whose kernels are compiled before the first input.
constexpr const char* kRunPatterns[] = {"dense", "causal", "causal & window(20, 5)"};

Device open_device(const char* name) {
  DeviceOptions options;
  options.name = name;
  options.tuned_path = "";
  options.host_lists = options.device_lists = {std::int64_t{4} << 20, 16};
  options.max_device_bytes = std::int64_t{256} << 20;
  options.simulation.threads = 1;
  return Device::open(options);
}

const Device& device(bool hopper) {
  static const Device kAmpere = open_device("sim:sm_80"), kHopper = open_device("sim:sm_90a");
  return hopper ? kHopper : kAmpere;
}

// Draws a number that is mostly in the given range, and sometimes any number.
std::int64_t field(Bytes& bytes, std::int64_t low, std::int64_t high) {
  return bytes.below(32) == 0 ? bytes.number() : bytes.between(low, high);
}

std::int64_t length(Bytes& bytes) {
  switch (bytes.below(6)) {
    case 0:
      return bytes.number();
    case 1:
      return bytes.between(0, 200) * 64;
    case 2:
      return bytes.between(0, 255) * bytes.between(0, 255) * bytes.between(0, 255);
    default:
      return bytes.byte();
  }
}

Problem problem_from(Bytes& bytes) {
  Problem problem;
  problem.batch = field(bytes, 0, 3);
  problem.kv_heads = field(bytes, 1, 4);
  problem.heads =
      bytes.below(8) == 0 ? bytes.number() : problem.kv_heads % 4096 * bytes.between(1, 4);
  problem.seq_q = length(bytes);
  problem.seq_k = bytes.below(3) == 0 ? problem.seq_q : length(bytes);
  static constexpr std::int64_t kDims[] = {64, 128, 32, 96, 192, 256};
  problem.dim_qk = bytes.below(32) == 0 ? bytes.number() : kDims[bytes.below(6)];
  problem.dim_v = bytes.below(32) == 0 ? bytes.number() : problem.dim_qk;
  problem.dtype = static_cast<Dtype>(bytes.below(8) == 0 ? bytes.below(6) : 1 + bytes.below(2));
  problem.pattern = Pattern::parse(PatternGrammar(&bytes).pattern(), {.allow_files = false});
  const std::uint8_t flags = bytes.byte();
  if ((flags & 1) != 0) problem.q0 = bytes.number();
  if ((flags & 2) != 0) problem.k0 = bytes.number();
  if ((flags & 4) != 0) problem.total_k = bytes.number();
  if ((flags & 8) != 0) problem.layer = bytes.number();
  problem.want_lse = (flags & 16) != 0;
  problem.carry_in = (flags & 32) != 0;
  problem.carry_out = (flags & 64) != 0;
  if ((flags & 128) != 0) {
    static constexpr const char* kScores[] = {"softcap(30)",
                                              "alibi([0.5, 0.25])",
                                              "scale(0)",
                                              "sink_logit([1, 2])",
                                              "bias([1, 2, 3])",
                                              "scale(-1e20)",
                                              "softcap(1e-30)",
                                              "score_mod(score + q - k)",
                                              "score_mod(where(q < k, -inf, tanh(score)))"};
    problem.score = Score::parse(kScores[bytes.below(9)]);
  }
  if (problem.dtype == Dtype::kFloat8E4M3) {
    problem.scale_blocks = {bytes.below(3) * 32, bytes.below(3) * 64, bytes.number()};
  }
  return problem;
}

PlanOptions options_from(Bytes& bytes) {
  PlanOptions options;
  options.work.steps = 200'000;
  static constexpr const char* kConfigs[] = {"mma m64 n64 w4 s2", "wgmma m64 n64 w4 s2",
                                             "mma m128 n64 w4 s2", "mma m0 n0", "nothing"};
  if (bytes.below(4) == 0) options.config = kConfigs[bytes.below(5)];
  options.max_multiprocessors = static_cast<int>(field(bytes, 0, 4));
  options.kv_splits = static_cast<int>(field(bytes, 0, 6));
  if (bytes.below(4) == 0)
    options.max_workspace_bytes = bytes.below(2) == 0 ? bytes.number() : bytes.byte() * 4096;
  if (bytes.below(4) == 0) {
    options.block_rows = field(bytes, 0, 200);
    options.block_columns = field(bytes, 0, 200);
  }
  if (bytes.below(8) == 0) {
    OperandStrides strides;
    for (Strides* one : {&strides.q, &strides.k, &strides.v, &strides.o}) {
      *one = {bytes.number() & ~7, bytes.number() & ~7, bytes.number() & ~7};
    }
    options.strides = strides;
  }
  return options;
}

BatchProblem batch_from(Bytes& bytes) {
  const Problem one = problem_from(bytes);
  BatchProblem batch;
  batch.heads = one.heads;
  batch.kv_heads = one.kv_heads;
  batch.dim_qk = one.dim_qk;
  batch.dim_v = one.dim_v;
  batch.dtype = one.dtype;
  batch.pattern = one.pattern;
  batch.score = one.score;
  batch.carry_in = one.carry_in;
  batch.carry_out = one.carry_out;
  batch.want_lse = one.want_lse && !one.carry_out;
  batch.most.requests = field(bytes, 1, 255);
  batch.most.rows = std::max<std::int64_t>(length(bytes), 1);
  batch.most.rows_of_one = bytes.below(2) == 0 ? 0 : field(bytes, 1, 40);
  batch.most.keys_of_one = std::max<std::int64_t>(length(bytes), 1);
  batch.most.keys = bytes.below(2) == 0 ? 0 : length(bytes);
  batch.page_rows = bytes.below(2) == 0 ? 16 : field(bytes, 0, 80);
  if (bytes.below(4) == 0) batch.block_keys = 16 * field(bytes, 0, 20);
  if (batch.block_keys > 0 || bytes.below(40) == 0) batch.max_blocks = field(bytes, 1, 300);
  batch.row_limits = bytes.below(4) == 0;
  if (bytes.below(4) == 0) {
    batch.interleave = {.block = field(bytes, 0, 70), .ranks = field(bytes, 0, 9)};
    batch.interleave.rank = field(bytes, 0, 8);
  }
  return batch;
}

BatchOptions batch_options_from(Bytes& bytes) {
  BatchOptions options;
  options.max_multiprocessors = static_cast<int>(field(bytes, 0, 4));
  options.part_keys = bytes.below(2) == 0 ? 0 : bytes.between(0, 15) * 128;
  if (bytes.below(4) == 0) options.max_workspace_bytes = bytes.byte() * 65536;
  static constexpr const char* kConfigs[] = {
      "decode m16 n64 w4 s2", "chunk m64 n32 w4 s3, decode m16 n128 w4 s4 x2",
      "chunk_wgmma m128 n48 w8 s1", "chunk m128 n16 w4 s2 q", "decode m16 n64 w4 s2, "};
  if (bytes.below(4) == 0) options.config = kConfigs[bytes.below(std::size(kConfigs))];
  return options;
}

// Plans without a device, because nothing is compiled.
void plan_batch(Bytes& bytes) {
  const BatchProblem problem = batch_from(bytes);
  const BatchOptions options = batch_options_from(bytes);
  validate(problem);
  const attention::DeviceLimits limits = {jit::parse_arch("sm_90a"), 132, 227 * 1024};
  const WorkScope scope({.steps = 2'000'000});
  const batch::BatchPlanData plan = batch::make_plan(problem, options, limits);
  const std::int64_t workspace = plan.workspace_bytes;
  if (workspace <= 0 || workspace % 16 != 0) wrong("{} bytes of workspace", workspace);
  if (options.max_workspace_bytes > 0 && workspace > options.max_workspace_bytes) {
    wrong("{} bytes of workspace, at most {}", workspace, options.max_workspace_bytes);
  }
  if (plan.classes.empty() || plan.forms.empty()) wrong("no class, or no form");
  for (const batch::ClassPlan& of : plan.classes) {
    if (of.part_keys < 128 || of.part_keys % 128 != 0) wrong("parts of {}", of.part_keys);
    if (of.ctas < 1) wrong("{} CTAs", of.ctas);
  }
  // The row forms must agree with what single queries of the heads of a column see.
  const batch::ClassPlan& of = plan.classes.front();
  const std::int64_t group = problem.heads / problem.kv_heads;
  for (int i = 0; i < 4; ++i) {
    const auto q = static_cast<int>(bytes.between(-100, 100));
    const int first = static_cast<int>(bytes.between(-100, 50));
    const std::int64_t column = bytes.between(0, of.packing.columns - 1);
    const std::size_t row = of.forms.size() == 1 ? 0 : static_cast<std::size_t>(column);
    const batch::HeadForms& forms = plan.forms[static_cast<std::size_t>(of.forms[row])];
    const auto view = [](const std::vector<kernels::RowForm>& some) -> kernels::RowForms {
      return {some.data(), static_cast<int>(some.size())};
    };
    const kernels::KeyRuns runs =
        kernels::runs_of(view(forms.some), view(forms.all), q, 1, first, 100);
    const std::int64_t in_group = column % of.packing.head_tiles * of.packing.tile_heads;
    const std::int64_t heads = std::min(of.packing.tile_heads, group - in_group);
    for (int key = 0; key < 100; ++key) {
      std::int64_t seeing = 0;
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t head = column / of.packing.head_tiles * group + in_group + h;
        seeing += problem.pattern.visible(head, q, first + key) ? 1 : 0;
      }
      if (runs.sees(key) != (seeing > 0)) {
        wrong("the query at {} and the key at {}: visible to {} heads", q, first + key, seeing);
      }
      const bool all = runs.all_see(key, key + 1);
      if (all && seeing < heads) wrong("the query at {} is not masked", q);
      if (!all && seeing == heads && heads == 1) wrong("the query at {} is masked", q);
    }
  }
  const batch::BatchPlanData again = batch::make_plan(problem, options, limits);
  if (again.workspace_bytes != workspace || again.decisions != plan.decisions) {
    wrong("another plan for the same batch");
  }
}

// Runs a problem that is small enough for the simulator and uses one of the compiled kernels.
void run(const Device& on, Bytes& bytes) {
  Problem problem;
  problem.heads = bytes.between(1, 2);
  problem.seq_q = bytes.between(0, 70);
  problem.seq_k = bytes.between(0, 90);
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = Pattern::parse(kRunPatterns[bytes.below(3)]);
  if (bytes.below(2) != 0) problem.q0 = bytes.between(-100, 100);
  const test::Case host = test::make_case(problem, bytes.byte());
  PlanOptions options;
  options.config = "mma m64 n64 w4 s2";
  options.kv_splits = 1;
  const auto upload = [&](const test::HostTensor& tensor) {
    DeviceMemory memory = on.allocate(tensor.bits.size() * sizeof(std::uint16_t));
    if (memory.bytes() > 0) on.copy_to_device(memory.data(), tensor.bits.data(), memory.bytes());
    return memory;
  };
  const DeviceMemory q = upload(host.q), k = upload(host.k), v = upload(host.v), o = upload(host.o);
  Operands operands;
  operands.q = q.data(), operands.q_strides = host.q.strides;
  operands.k = k.data(), operands.k_strides = host.k.strides;
  operands.v = v.data(), operands.v_strides = host.v.strides;
  operands.o = o.data(), operands.o_strides = host.o.strides;
  on.plan(problem, options).run(nullptr, operands);
  on.synchronize();
  std::vector<std::uint16_t> answer(host.o.bits.size());
  if (!answer.empty()) on.copy_to_host(answer.data(), o.data(), o.bytes());
  ReferenceOptions one_thread;
  one_thread.threads = 1;
  const Reference expected = reference(problem, host.inputs(), one_thread);
  HostResult result;
  result.o = answer.data();
  result.o_strides = host.o.strides;
  const Comparison made = compare(problem, expected, result);
  if (!made.within_tolerance) wrong("{}: {}", host.text, made.first_wrong);
}

void check(Bytes& bytes) {
  const std::uint8_t first = bytes.byte();
  const Device& on = device((first & 1) != 0);
  if (first % 128 == 127) return run(device(false), bytes);
  if (first % 128 >= 124) return plan_batch(bytes);
  const Problem problem = problem_from(bytes);
  const PlanOptions options = options_from(bytes);
  validate(problem);
  if (first % 8 < 2)
    refusal_of([&] {
      const double density = pair_density(problem, {.steps = 200'000}).value;
      if (!(density >= 0 && density <= 1)) wrong("a density of {}", density);
    });
  const MemoryNeeded needed = on.memory_needed(problem, options);
  if (needed.workspace_bytes < 0 || needed.device_bytes < 0) wrong("negative bytes");
  if (options.max_workspace_bytes > 0 && needed.workspace_bytes > options.max_workspace_bytes) {
    wrong("{} bytes of workspace, at most {}", needed.workspace_bytes, options.max_workspace_bytes);
  }
  if (first % 8 != 7) return;
  const MemoryNeeded again = on.memory_needed(problem, options);
  if (again.workspace_bytes != needed.workspace_bytes ||
      again.device_bytes != needed.device_bytes) {
    wrong("another plan for the same problem");
  }
}

}  // namespace
}  // namespace annulus::fuzz

// Compiles the kernels for run(). This takes a second, or reads them from the cache.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using namespace annulus::fuzz;
  for (const char* pattern : kRunPatterns) {
    annulus::Problem problem;
    problem.seq_q = problem.seq_k = 70;
    problem.dim_qk = problem.dim_v = 64;
    problem.pattern = annulus::Pattern::parse(pattern);
    annulus::PlanOptions options;
    options.config = "mma m64 n64 w4 s2";
    options.kv_splits = 1;
    device(false).plan(problem, options);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  annulus::fuzz::Bytes bytes(data, size);
  annulus::fuzz::refusal_of([&] { annulus::fuzz::check(bytes); });
  return 0;
}
