#include "gpu_cases.h"

#include <fmt/core.h>

#include <stdexcept>

namespace annulus::bench {
namespace {

constexpr std::int64_t kPageRows = 16;

double bytes_of(const Problem& p) {
  const auto in = static_cast<double>(size_in_bytes(p.dtype));
  const auto out = static_cast<double>(size_in_bytes(p.output_dtype()));
  const auto batch = static_cast<double>(p.batch), heads = static_cast<double>(p.heads);
  return batch * (heads * static_cast<double>(p.seq_q) *
                      (static_cast<double>(p.dim_qk) * in + static_cast<double>(p.dim_v) * out) +
                  static_cast<double>(p.kv_heads * p.seq_k * (p.dim_qk + p.dim_v)) * in);
}

GpuCase attention_case(GpuProblem problem) {
  GpuCase made;
  made.least_bytes = bytes_of(problem.problem);
  made.attention = std::move(problem);
  return made;
}

// The case of a problem. Its density is computed, and it has no target.
GpuCase attention_case(std::string name, const Problem& problem) {
  GpuProblem made;
  made.name = std::move(name);
  made.problem = problem;
  made.density = pair_density(problem).value;
  made.flop = flop_of(problem, made.density);
  return attention_case(std::move(made));
}

GpuCase batch_case(GpuCaseKind kind, std::string name, std::vector<Request> requests) {
  GpuCase made;
  made.kind = kind;
  made.attention.name = std::move(name);
  made.batch = problem_of(32, 8, 128, requests, kPageRows);
  const Request& one = requests.front();
  // All requests as one problem. Peers use it, and so does the calculation of useful work.
  Problem& problem = made.attention.problem;
  problem.batch = std::ssize(requests);
  problem.heads = made.batch.heads;
  problem.kv_heads = made.batch.kv_heads;
  problem.seq_q = one.queries;
  problem.seq_k = one.keys;
  problem.dim_qk = problem.dim_v = made.batch.dim_qk;
  problem.pattern = causal();
  made.attention.density = pair_density(problem).value;
  if (kind == GpuCaseKind::kDecode || kind == GpuCaseKind::kChunk) {
    made.attention.flop = flop_of(problem, made.attention.density);
    made.least_bytes = bytes_of(problem);
  } else if (kind == GpuCaseKind::kPrepare) {
    // prepare() reads these arrays of BatchMetadata.
    made.least_bytes = static_cast<double>(4 * (2 * problem.batch + 1));
  } else {
    AppendProblem& append = made.append;
    append.heads = problem.heads;
    append.kv_heads = problem.kv_heads;
    append.dim_qk = append.dim_v = problem.dim_qk;
    append.page_rows = kPageRows;
    append.rotary.order = RotaryOrder::kHalves;
    append.most.rows = problem.batch;
    // Q, K and V of the new rows are read and written. Each row also has a slot and a position of 8
    // bytes.
    const std::int64_t row = problem.heads * problem.dim_qk + 2 * problem.kv_heads * problem.dim_qk;
    made.least_bytes = static_cast<double>(problem.batch * (row * 2 * 2 + 16));
  }
  made.requests = std::move(requests);
  return made;
}

}  // namespace

std::vector<GpuCase> gpu_cases(bool tiny) {
  std::vector<GpuProblem> known = gpu_problems(tiny);
  const auto take = [&](const std::string& name) {
    for (auto one = known.begin(); one != known.end(); ++one) {
      if (one->name != name) continue;
      GpuProblem found = std::move(*one);
      known.erase(one);
      return attention_case(std::move(found));
    }
    throw std::logic_error("gpu_problems() has no '" + name + "'");
  };
  const std::int64_t seq = tiny ? 256 : 16384, many = tiny ? 512 : 40960;
  const std::int64_t heads = tiny ? 2 : 16;
  const std::string s = tiny ? "256" : "16k", m = tiny ? "512" : "40k";
  const auto problem = [&](std::int64_t batch, std::int64_t rows, const Pattern& pattern) {
    Problem made;
    made.batch = batch;
    made.heads = made.kv_heads = heads;
    made.seq_q = made.seq_k = rows;
    made.dim_qk = made.dim_v = 128;
    made.pattern = pattern;
    return made;
  };
  std::vector<GpuCase> all;
  all.push_back(take(fmt::format("D128 {} full", s)));
  all.push_back(take(fmt::format("D128 {} causal", s)));
  all.push_back(take(fmt::format("D128 {} block 128, 90 % sparse", m)));
  all.back().late_peers = true;
  for (const std::int64_t part : {4, 2}) {
    const std::int64_t rows = seq / part;
    const std::string text = tiny ? fmt::format("{}", rows) : fmt::format("{}k", rows / 1024);
    all.push_back(attention_case(fmt::format("D128 {} causal, batch {}", text, part),
                                 problem(part, rows, causal())));
  }
  all.push_back(take(fmt::format("D64 {} full", s)));
  all.push_back(take(fmt::format("D256 {} full", s)));
  for (const bool is_causal : {false, true}) {
    Problem e4m3 = problem(1, seq, is_causal ? causal() : Pattern());
    e4m3.dtype = Dtype::kFloat8E4M3;
    all.push_back(
        attention_case(fmt::format("D128 {} {} e4m3", s, is_causal ? "causal" : "full"), e4m3));
  }

  const auto decode = [&](std::int64_t requests, std::int64_t keys, double bar,
                          std::int64_t part_keys = 0) {
    const std::int64_t length = tiny ? keys / 64 : keys,
                       count = tiny ? (requests + 15) / 16 : requests;
    const std::string text = tiny ? fmt::format("{}", length) : fmt::format("{}k", length / 1024);
    all.push_back(batch_case(
        GpuCaseKind::kDecode,
        fmt::format("decode B{} 32/8 {} D128{}", count, text,
                    part_keys > 0 ? fmt::format(", parts of {}", part_keys) : std::string()),
        decoding(count, length)));
    all.back().bar_memory = bar;
    all.back().part_keys = part_keys;
  };
  decode(32, 4096, 0);
  decode(64, 8192, 0.90);  // the target share of decode_shapes()
  decode(1, 32768, 0);
  all.push_back(
      batch_case(GpuCaseKind::kChunk,
                 tiny ? "chunk of 96 over 256 32/8 D128" : "chunk of 2k over 16k 32/8 D128",
                 {tiny ? Request{96, 256} : Request{2048, 16384}}));
  all.push_back(take(fmt::format("D128 {} block 64, 90 % sparse, a layout for each head", m)));
  constexpr std::int64_t kWindow = 4096;
  const std::int64_t window_keys = tiny ? 128 : kWindow;
  all.push_back(attention_case(fmt::format("D128 {} causal window {}", m, tiny ? "128" : "4k"),
                               problem(1, many, causal() & window(window_keys - 1, 0))));
  all.back().window = window_keys;
  all.back().late_peers = true;
  const std::int64_t step = tiny ? 4 : 64, step_keys = tiny ? 128 : 8192;
  all.push_back(batch_case(GpuCaseKind::kAppend, fmt::format("append B{} 32/8 D128", step),
                           decoding(step, step_keys)));
  all.push_back(batch_case(GpuCaseKind::kPrepare, fmt::format("prepare B{} 32/8 D128", step),
                           decoding(step, step_keys)));
  // The remaining problems, after the dense problem with which sparse ones are compared.
  all.push_back(take(fmt::format("D128 {} full", m)));
  for (GpuProblem& one : known) all.push_back(attention_case(std::move(one)));
  // Parts of other lengths show whether the model's choice of the length is the best.
  for (const std::int64_t part : {1024, 2048, 4096}) {
    decode(1, 32768, 0, part);
    decode(32, 4096, 0, part);
  }
  for (const std::int64_t part : {1024, 4096, 8192}) decode(64, 8192, 0, part);
  return all;
}

nlohmann::json describe(const GpuCase& one) {
  static constexpr const char* kKinds[] = {"attention", "decode", "chunk", "prepare", "append"};
  const GpuProblem& of = one.attention;
  const Problem& p = of.problem;
  const char* mask = of.block > 0                                            ? "blocks"
                     : one.window > 0                                        ? "window"
                     : of.density < 1 || one.kind != GpuCaseKind::kAttention ? "causal"
                                                                             : "dense";
  return {{"name", of.name},
          {"kind", kKinds[static_cast<int>(one.kind)]},
          {"batch", p.batch},
          {"heads", p.heads},
          {"kv_heads", p.kv_heads},
          {"seq_q", p.seq_q},
          {"seq_k", p.seq_k},
          {"dim", p.dim_qk},
          {"dtype", to_string(p.dtype)},
          {"mask", mask},
          {"window", one.window},
          {"block", of.block},
          {"layouts", of.layouts},
          {"kept_of_a_row", of.kept},
          {"density", of.density},
          {"useful_flop", of.flop},
          {"least_bytes", one.least_bytes}};
}

}  // namespace annulus::bench
