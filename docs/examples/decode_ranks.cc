// Decoding over ranks. The keys of one request are distributed over four ranks in turn. Each rank
// computes attention over the keys that it holds, and their answers are joined. The cache grows
// from 1 to 192 keys of the activations of a real transformer. All steps use the same plans. Every
// 32 steps the answer of all ranks is compared with attention over the whole cache.
//
// Here the ranks are threads, and each has a separate device. The devices are simulated if
// ANNULUS_DEVICE names a simulated one, or if there are fewer than four GPUs. Ranks in separate
// processes would meet as in ring_rank.cc.

#include <annulus/batch.h>
#include <annulus/join.h>
#include <annulus/types.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Elements = std::vector<std::uint16_t>;  // fp16

constexpr int kRanks = 4;
constexpr std::int64_t kTokens = 512, kSteps = 192, kHeads = 12, kDim = 32, kRow = kHeads * kDim;

// The first layer of a tensor [layers, tokens, H, D] of a safetensors file. The file has the length
// of its header, the header in JSON with the place of each tensor, and the data.
Elements read_tensor(const std::string& path, char name) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::size_t entry = bytes.find(std::string{'"', name, '"'});
  const std::size_t begin = bytes.find('[', bytes.find("data_offsets", entry)) + 1;
  if (begin == 0) throw std::runtime_error(path + " has no q, k and v");
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  Elements tensor(kTokens * kRow);
  const std::size_t first = 8 + header + std::strtoull(&bytes[begin], nullptr, 10);
  bytes.copy(reinterpret_cast<char*>(tensor.data()), tensor.size() * 2, first);
  return tensor;
}

double value_of(std::uint16_t fp16) {
  const int exponent = fp16 >> 10 & 31, digits = (fp16 & 1023) + (exponent > 0 ? 1024 : 0);
  return std::ldexp((fp16 & 0x8000) != 0 ? -digits : digits, std::max(exponent, 1) - 25);
}

struct Text {
  Elements q, k, v;
};

// The device of a rank.
annulus::Device open_device(int rank) {
  const std::string number = ":" + std::to_string(rank);
  const std::string first = annulus::Device::open().info().name;  // "cuda:0", or "sim:sm_90a"
  const bool simulated = first.starts_with("sim:");
  if (simulated) return annulus::Device::open(first.substr(0, first.find(':', 4)) + number);
  try {
    annulus::Device::open("cuda:" + std::to_string(kRanks - 1));
  } catch (const annulus::Error&) {
    return annulus::Device::open("sim:sm_90a" + number);
  }
  return annulus::Device::open("cuda" + number);
}

// One rank. It holds the keys rank, rank + 4, rank + 8, ... of the request.
class Rank {
 public:
  Rank(const annulus::Device& device, const annulus::Communicator& ranks, const Text& text)
      : device_(device),
        batch_(annulus::plan_batch(device, batch_problem(ranks.rank()))),
        append_(annulus::plan_append(device, append_problem(ranks.rank()))),
        join_(annulus::plan_join(device, ranks, join_problem())) {
    for (const Elements* tensor : {&text.q, &text.k, &text.v}) {
      rows_.push_back(device.allocate(tensor->size() * 2));
      device.copy_to_device(rows_.back().data(), tensor->data(), rows_.back().bytes());
    }
    const std::int32_t begins[] = {0, 1};
    device.copy_to_device(q_begin_.data(), begins, sizeof begins);
    step_.q_begin = static_cast<const std::int32_t*>(q_begin_.data());
    step_.k_length = static_cast<const std::int32_t*>(k_length_.data());
  }

  // The step of a token. The rank that holds its key and value writes them, all ranks compute
  // attention over the keys that they hold, and each rank gets the joined answer.
  void step(std::int64_t token) {
    const auto length = static_cast<std::int32_t>(token + 1);
    device_.copy_to_device(k_length_.data(), &length, sizeof length);

    annulus::AppendOperands append;
    append.new_k = row_of(rows_[1], token), append.new_v = row_of(rows_[2], token);
    append.new_k_strides = append.new_v_strides = {kRow, kDim};
    append.k = k_.data(), append.v = v_.data();
    append.k_strides = append.v_strides = {kTokens * kRow, kRow, kDim};
    append.step = step_;
    append_.run(nullptr, append);

    batch_.prepare(nullptr, step_, workspace_.data());
    annulus::BatchOperands operands;
    operands.q = row_of(rows_[0], token);
    operands.k = k_.data(), operands.v = v_.data();
    operands.o = partial_o_.data(), operands.lse = static_cast<float*>(partial_lse_.data());
    operands.q_strides = operands.o_strides = {kRow, kDim};
    operands.lse_strides = {kHeads, 1};
    operands.k_strides = operands.v_strides = append.k_strides;
    batch_.run(nullptr, operands, workspace_.data());

    annulus::JoinOperands join;
    join.rows = 1;
    join.o = operands.o, join.lse = operands.lse;
    join.o_strides = join.joined_o_strides = operands.o_strides;
    join.lse_strides = join.joined_lse_strides = operands.lse_strides;
    join.joined_o = o_.data(), join.joined_lse = static_cast<float*>(lse_.data());
    join_.run(nullptr, join, join_workspace_.data());
    device_.synchronize();
  }
  Elements answer() const {
    Elements o(kRow);
    device_.copy_to_host(o.data(), o_.data(), o_.bytes());
    return o;
  }
  const annulus::JoinInfo& info() const { return join_.info(); }

 private:
  static annulus::BatchProblem batch_problem(int rank) {
    annulus::BatchProblem problem;
    problem.heads = problem.kv_heads = kHeads, problem.dim_qk = problem.dim_v = kDim;
    problem.dtype = annulus::Dtype::kFloat16, problem.pattern = annulus::causal();
    problem.want_lse = true;  // the join needs it
    problem.most.requests = problem.most.rows = 1, problem.most.keys_of_one = kTokens;
    problem.interleave = {1, kRanks, rank};  // lengths count the keys of the whole request
    return problem;
  }
  static annulus::AppendProblem append_problem(int rank) {
    const annulus::BatchProblem batch = batch_problem(rank);
    annulus::AppendProblem problem;
    problem.kv_heads = batch.kv_heads, problem.dim_qk = problem.dim_v = kDim;
    problem.dtype = batch.dtype, problem.most = batch.most, problem.interleave = batch.interleave;
    problem.place = annulus::AppendPlace::kRequests;
    return problem;
  }
  static annulus::JoinProblem join_problem() {
    annulus::JoinProblem problem;
    problem.heads = kHeads, problem.dim_v = kDim, problem.dtype = annulus::Dtype::kFloat16;
    problem.max_rows = 1;
    return problem;
  }
  static const void* row_of(const annulus::DeviceMemory& memory, std::int64_t row) {
    return static_cast<const std::uint16_t*>(memory.data()) + row * kRow;
  }
  annulus::DeviceMemory memory(std::size_t bytes) const { return device_.allocate(bytes); }

  annulus::Device device_;
  annulus::BatchPlan batch_;
  annulus::AppendPlan append_;
  annulus::JoinPlan join_;
  std::vector<annulus::DeviceMemory> rows_;  // Q, K and V of all tokens
  annulus::DeviceMemory k_ = memory(kTokens * kRow * 2), v_ = memory(kTokens * kRow * 2);
  annulus::DeviceMemory partial_o_ = memory(kRow * 2), o_ = memory(kRow * 2);
  annulus::DeviceMemory partial_lse_ = memory(kHeads * 4), lse_ = memory(kHeads * 4);
  annulus::DeviceMemory q_begin_ = memory(8), k_length_ = memory(4);
  annulus::DeviceMemory workspace_ = memory(batch_.workspace_bytes());
  annulus::DeviceMemory join_workspace_ = memory(join_.workspace_bytes());
  annulus::BatchMetadata step_;
};

// The largest difference between a token's answer and attention in double over all keys up to the
// token.
double difference(const Text& text, std::int64_t token, const Elements& o) {
  double largest = 0;
  for (std::int64_t head = 0; head < kHeads; ++head) {
    const auto at = [&](const Elements& tensor, std::int64_t row, std::int64_t i) {
      return value_of(tensor[row * kRow + head * kDim + i]);
    };
    std::vector<double> sum(kDim);
    double total = 0;
    for (std::int64_t key = 0; key <= token; ++key) {
      double score = 0;
      for (std::int64_t i = 0; i < kDim; ++i) score += at(text.q, token, i) * at(text.k, key, i);
      const double weight = std::exp(score / std::sqrt(kDim));
      total += weight;
      for (std::int64_t i = 0; i < kDim; ++i) sum[i] += weight * at(text.v, key, i);
    }
    for (std::int64_t i = 0; i < kDim; ++i) {
      largest = std::max(largest, std::abs(sum[i] / total - value_of(o[head * kDim + i])));
    }
  }
  return largest;
}

int run(const std::string& path) {
  const Text text = {read_tensor(path, 'q'), read_tensor(path, 'k'), read_tensor(path, 'v')};
  std::vector<annulus::Device> devices;
  for (int rank = 0; rank < kRanks; ++rank) devices.push_back(open_device(rank));
  const annulus::CommunicatorId id = annulus::make_communicator_id(devices[0]);
  std::vector<std::string> wrong(kRanks);
  double largest = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < kRanks; ++number) {
    threads.emplace_back([&, number] {
      try {
        const auto ranks = annulus::Communicator::open(devices[number], id, kRanks, number);
        Rank rank(devices[number], ranks, text);
        for (std::int64_t token = 0; token < kSteps; ++token) {
          rank.step(token);
          if (number != 0 || token % 32 != 31) continue;
          largest = std::max(largest, difference(text, token, rank.answer()));
        }
        if (number != 0) return;
        std::printf("%lld steps of one request, whose keys are dealt out to %d ranks (%s, ...)\n",
                    static_cast<long long>(kSteps), kRanks, devices[0].info().name.c_str());
        std::printf("a step: %d exchange of %lld bytes from each rank\n", rank.info().exchanges,
                    static_cast<long long>(rank.info().bytes_sent));
      } catch (const annulus::Error& error) {
        wrong[number] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text_of_rank : wrong) {
    if (!text_of_rank.empty()) throw std::runtime_error(text_of_rank);
  }
  constexpr double kMost = 2e-3;  // bounds the errors of fp16 answers up to about 2
  std::printf("largest difference from attention over all keys: %.2g\n", largest);
  return largest <= kMost ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count > 1 ? words[1] : "docs/examples/data/minilm_alice.safetensors");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "decode_ranks: %s\n", error.what());
    return 1;
  }
}
