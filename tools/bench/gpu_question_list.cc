#include "gpu_problems.h"
#include "gpu_questions.h"

namespace annulus::bench {
namespace {

GpuQuestion about(const GpuProblem& problem, std::string name, std::string asks,
                  std::vector<QuestionVariant> variants) {
  return {std::move(name), std::move(asks), problem.name,
          problem.problem, problem.flop,    std::move(variants)};
}

}  // namespace

std::vector<GpuQuestion> gpu_questions(bool tiny) {
  const std::vector<GpuProblem> problems = gpu_problems(tiny);
  const auto find = [&](const std::string& begins, const std::string& ends) -> const GpuProblem& {
    for (const GpuProblem& one : problems) {
      if (one.name.starts_with(begins) && one.name.ends_with(ends)) return one;
    }
    throw std::logic_error("no problem " + begins + " ... " + ends);
  };
  const GpuProblem& dense = find("D128", "full");
  const GpuProblem& causal_128 = find("D128", "causal");
  const GpuProblem& dense_64 = find("D64", "full");
  const GpuProblem& dense_256 = find("D256", "full");
  const GpuProblem& own_blocks = find("D128", "a layout for each head");
  GpuProblem dense_8 = dense;
  dense_8.name += " e4m3";
  dense_8.problem.dtype = Dtype::kFloat8E4M3;
  GpuProblem dense_64_8 = dense_64;
  dense_64_8.name += " e4m3";
  dense_64_8.problem.dtype = Dtype::kFloat8E4M3;
  GpuProblem causal_256 = dense_256;
  causal_256.name = "D256 causal";
  causal_256.problem.pattern = causal();
  causal_256.flop = dense_256.flop * (1 + 1.0 / static_cast<double>(causal_256.problem.seq_q)) / 2;

  const std::string two = "wgmma m128 n128 w8 s2", three = "wgmma m192 n80 w12 s2";
  const std::string wide = "wgmma m192 n128 w12 s2", single = "wgmma m64 n64 w4 s2 b2";
  const std::string narrow = "wgmma m128 n64 w8 s2", middle = "wgmma m128 n80 w8 s2";
  const std::string two_8 = "wgmma8 m128 n128 w8 s2";
  const std::vector<std::string> no_pin = {"ANNULUS_NO_PIN"};
  return {
      about(dense, "clusters",
            "what clusters are worth, and what releasing to the cluster in every step cost",
            {{two, {}}, {two + " c2", {}}, {two + " c2", {"ANNULUS_RELEASE_TO_CLUSTER"}}}),
      about(causal_128, "scheduler", "works by a fixed stride, or drawn from a counter",
            {{two, {}}, {two, {}, true}, {three, {}}, {three, {}, true}}),
      about(causal_256, "scheduler_d256",
            "the same at D 256, where the rows of a round differ most",
            {{narrow, {}}, {narrow, {}, true}}),
      about(dense_64, "turns_d64", "whether consumers should take turns at D 64",
            {{wide, {}}, {wide + " f", {}}, {two + " q", {}}, {two + " q f", {}}}),
      about(dense, "turns_d128", "the same at D 128, where two consumers need them by the model",
            {{two, {}}, {two + " f", {}}}),
      about(own_blocks, "resident", "one CTA of a multiprocessor, or two, for blocks of 64 a head",
            {{single, {}},
             {"wgmma m64 n64 w4 s2", {}},
             {"wgmma m64 n64 w4 s2 x2", {}},
             {"wgmma m64 n64 w4 s2 q x2", {}}}),
      about(dense_256, "d256_keys", "64 keys to a step, or 80",
            {{narrow, {}}, {middle, {}}, {narrow + " c2", {}}, {middle + " c2", {}}}),
      about(dense, "pin", "whether powers kept under products pay", {{two, {}}, {two, no_pin}}),
      about(dense_64, "pin_d64", "the same at D 64", {{wide, {}}, {wide, no_pin}}),
      about(causal_128, "causal_tiles", "192 rows and 80 keys, or 128 and 128",
            {{three, {}}, {two, {}}}),
      about(dense, "dense_tiles", "the same without a mask", {{two, {}}, {three, {}}}),
      about(dense_8, "tiles_e4m3", "e4m3 with turns and without, and more keys to a step",
            {{two_8 + " f", {}},
             {two_8, {}},
             {"wgmma8 m128 n160 w8 s2 f", {}},
             {"wgmma8 m128 n160 w8 s2", {}}}),
      about(dense_64_8, "turns_e4m3_d64", "turns of e4m3 at D 64",
            {{two_8, {}}, {two_8 + " f", {}}}),
  };
}

}  // namespace annulus::bench
