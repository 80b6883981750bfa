#include "batch_step.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/random.h"
#include "gpu_operands.h"

namespace annulus::bench {

BatchProblem problem_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim,
                        const std::vector<Request>& requests, std::int64_t page_rows) {
  BatchProblem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.dim_qk = problem.dim_v = dim;
  problem.pattern = causal();
  problem.page_rows = page_rows;
  problem.most.requests = std::ssize(requests);
  for (const Request& request : requests) {
    problem.most.rows += request.queries;
    problem.most.rows_of_one = std::max(problem.most.rows_of_one, request.queries);
    problem.most.keys_of_one = std::max(problem.most.keys_of_one, request.keys);
    problem.most.keys += request.keys;
  }
  return problem;
}

std::vector<Request> decoding(std::int64_t count, std::int64_t keys) {
  return std::vector<Request>(static_cast<std::size_t>(count), {1, keys});
}

std::vector<Request> uniform(std::int64_t count, std::int64_t most, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < count; ++i) {
    requests.push_back({1, 1 + random.below(static_cast<std::uint32_t>(most))});
  }
  return requests;
}
std::vector<Request> log_uniform(std::int64_t count, double most, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < count; ++i) {
    requests.push_back({1, static_cast<std::int64_t>(std::exp(random.uniform() * std::log(most)))});
  }
  return requests;
}

Device open_fast(const char* name) {
  DeviceOptions options;
  options.name = name;
  Device device = Device::open(options);
  SimulationOptions fast;
  fast.checked = false;
  device.set_simulation(fast);
  return device;
}

Step::Step(const Device& device, const BatchProblem& problem, const std::vector<Request>& requests,
           const BatchOptions& options, Contents contents)
    : device_(device), contents_(contents), plan_(plan_batch(device, problem, options)) {
  std::vector<std::int32_t> q_begin = {0}, k_length, ids, begin = {0};
  std::int32_t key = 0;
  for (const Request& request : requests) {
    q_begin.push_back(q_begin.back() + static_cast<std::int32_t>(request.queries));
    k_length.push_back(static_cast<std::int32_t>(request.keys));
    if (problem.page_rows == 0) {
      begin.push_back(key += static_cast<std::int32_t>(request.keys));
      continue;
    }
    for (std::int64_t i = 0; i < base::ceil_div(request.keys, problem.page_rows); ++i) {
      ids.push_back(static_cast<std::int32_t>(ids.size()));
    }
    begin.push_back(static_cast<std::int32_t>(ids.size()));
  }
  base::Random random(5);
  for (std::size_t i = ids.size(); contents == Contents::kRandom && i > 1; --i) {
    std::swap(ids[i - 1], ids[random.below(static_cast<std::uint32_t>(i))]);
  }
  metadata_.q_begin = put(q_begin);
  metadata_.k_length = put(k_length);
  std::int64_t rows = key;
  if (problem.page_rows > 0) {
    rows = std::ssize(ids) * problem.page_rows;
    metadata_.k_pages = {put(ids), put(begin), 0};
    operands_.k_pages = operands_.v_pages = std::ssize(ids);
  } else {
    metadata_.k_begin = put(begin);
  }
  const std::int64_t q_row = problem.heads * problem.dim_qk;
  const std::int64_t o_row = problem.heads * problem.dim_v;
  const std::int64_t k_row = problem.kv_heads * problem.dim_qk;
  const std::int64_t v_row = problem.kv_heads * problem.dim_v;
  const std::int64_t page = std::max<std::int64_t>(problem.page_rows, 1);
  operands_.q = tensor(problem.most.rows * q_row);
  operands_.o = tensor(problem.most.rows * o_row);
  operands_.k = tensor(rows * k_row);
  operands_.v = tensor(rows * v_row);
  operands_.q_strides = {q_row, problem.dim_qk};
  operands_.o_strides = {o_row, problem.dim_v};
  operands_.k_strides = {page * k_row, k_row, problem.dim_qk};
  operands_.v_strides = {page * v_row, v_row, problem.dim_v};
  workspace_ = device_.allocate(plan_.workspace_bytes());
  prepare();
  device_.synchronize();
  for (const Request& request : requests) {
    visible_bytes_ += static_cast<double>(2 * request.keys * (k_row + v_row));
  }
}

std::map<std::string, double> Step::counters() const {
  device_.counters(true);
  run();
  device_.synchronize();
  std::map<std::string, double> all;
  for (const auto& [name, value] : device_.counters()) all[name] = static_cast<double>(value);
  return all;
}

const std::int32_t* Step::put(const std::vector<std::int32_t>& values) {
  memory_.push_back(device_.allocate(std::max<std::size_t>(values.size(), 1) * 4));
  device_.copy_to_device(memory_.back().data(), values.data(), values.size() * 4);
  return static_cast<const std::int32_t*>(memory_.back().data());
}
void* Step::tensor(std::int64_t elements) {
  const auto count = static_cast<std::size_t>(elements);
  if (contents_ == Contents::kRandom) {
    memory_.push_back(random_memory(device_, plan_.problem().dtype, count));
    return memory_.back().data();
  }
  const std::vector<std::uint16_t> values(count);
  memory_.push_back(device_.allocate(values.size() * 2));
  device_.copy_to_device(memory_.back().data(), values.data(), values.size() * 2);
  return memory_.back().data();
}

}  // namespace annulus::bench
