#include "batch/serving.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "abi/check.h"
#include "api/impl.h"
#include "support/counted_calls.h"

namespace annulus::test {
namespace {

constexpr std::int64_t kRequests = 6, kQueries = 3, kKeys = 300, kPageRows = 16;
constexpr std::int64_t kPages = 60;  // fewer than all requests would need at their greatest lengths
constexpr std::int64_t kHeads = 4, kKvHeads = 2, kDim = 64;
constexpr std::int64_t kWidth = (kKeys + kPageRows - 1) / kPageRows + 1;
constexpr std::int64_t kRowElements = kKvHeads * kDim;
constexpr std::int64_t kPageElements = kPageRows * kRowElements;
constexpr std::uint16_t kNan = 0x7fff;

BatchProblem serving_problem() {
  BatchProblem problem;
  problem.heads = kHeads;
  problem.kv_heads = kKvHeads;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = causal();
  problem.page_rows = kPageRows;
  problem.want_lse = true;
  problem.most = {.requests = kRequests,
                  .rows = kRequests * kQueries,
                  .rows_of_one = kQueries,
                  .keys_of_one = kKeys,
                  .keys = kPages * kPageRows};
  return problem;
}

BatchOptions serving_options() {
  BatchOptions options;
  options.part_keys = 128;
  return options;
}

// Counts the driver's calls during its lifetime.
class Counting {
 public:
  Counting() { CountedCalls::counting = true; }
  ~Counting() { CountedCalls::counting = false; }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
};

}  // namespace

Serving::Serving(const Device& device, std::uint64_t seed)
    : device_(device),
      plan_(plan_batch(device, serving_problem(), serving_options())),
      stream_(api::inside(device).context),
      random_(seed),
      seed_(seed) {
  const auto memory = [&](std::int64_t bytes) {
    return device_.allocate(static_cast<std::size_t>(bytes));
  };
  k_ = memory(kPages * kPageElements * 2);
  v_ = memory(kPages * kPageElements * 2);
  q_ = memory(kRequests * kQueries * kHeads * kDim * 2);
  o_ = memory(kRequests * kQueries * kHeads * kDim * 2);
  lse_ = memory(kRequests * kQueries * kHeads * 4);
  q_begin_ = memory((kRequests + 1) * 4);
  k_length_ = memory(kRequests * 4);
  requests_ = memory(4);
  table_ = memory(kRequests * kWidth * 4);
  workspace_ = memory(static_cast<std::int64_t>(plan_.workspace_bytes()));
  const auto numbers = [](const DeviceMemory& of) {
    return static_cast<const std::int32_t*>(of.data());
  };
  metadata_.q_begin = numbers(q_begin_);
  metadata_.k_length = numbers(k_length_);
  metadata_.requests = numbers(requests_);
  metadata_.k_pages = {numbers(table_), nullptr, kWidth};
  operands_.q = q_.data();
  operands_.k = k_.data();
  operands_.v = v_.data();
  operands_.o = o_.data();
  operands_.lse = static_cast<float*>(lse_.data());
  operands_.q_strides = operands_.o_strides = {kHeads * kDim, kDim};
  operands_.lse_strides = {kHeads, 1};
  operands_.k_strides = operands_.v_strides = {kPageElements, kRowElements, kDim};
  operands_.k_pages = operands_.v_pages = kPages;

  const device::Context& context = *api::inside(device_).context;
  const device::ContextScope scope(context);
  for (std::int32_t page = 0; page < kPages; ++page) free_page(page);
  const abi::CudaTable& cuda = context.table();
  const Counting counting;
  abi::check(cuda, cuda.stream_begin_capture(stream_.handle(), abi::kCaptureGlobal), "capture");
  plan_.prepare(stream_.handle(), metadata_, workspace_.data());
  plan_.run(stream_.handle(), operands_, workspace_.data());
  abi::check(cuda, cuda.stream_end_capture(stream_.handle(), &graph_), "capture");
  abi::check(cuda, cuda.graph_instantiate(&exec_, graph_, 0), "instantiate");
}

Serving::~Serving() {
  const device::Context& context = *api::inside(device_).context;
  const device::ContextScope scope(context);
  stream_.synchronize();
  context.table().graph_exec_destroy(exec_);
  context.table().graph_destroy(graph_);
}

void Serving::write(const void* to, std::int64_t offset, const void* from, std::int64_t bytes) {
  const abi::CudaTable& cuda = api::inside(device_).context->table();
  const auto address = reinterpret_cast<abi::CUdeviceptr>(to) + static_cast<std::uint64_t>(offset);
  abi::check(
      cuda,
      cuda.memcpy_htod_async(address, from, static_cast<std::size_t>(bytes), stream_.handle()),
      "write");
}

void Serving::free_page(std::int32_t page) {
  static const std::vector<std::uint16_t> kNothing(kPageElements, kNan);
  write(k_.data(), page * kPageElements * 2, kNothing.data(), kPageElements * 2);
  write(v_.data(), page * kPageElements * 2, kNothing.data(), kPageElements * 2);
  free_.push_back(page);
}

// Gives a request `keys` more keys.
void Serving::grow(Live* live, std::int64_t keys) {
  for (; keys > 0; --keys) {
    const std::int64_t key = live->request.keys++;
    if (key % kPageRows == 0) {
      const std::size_t drawn = random_.below(static_cast<std::uint32_t>(free_.size()));
      live->pages.push_back(free_[drawn]);
      free_.erase(free_.begin() + static_cast<std::int64_t>(drawn));
    }
    const std::int64_t at =
        (live->pages.back() * kPageElements + key % kPageRows * kRowElements) * 2;
    write(k_.data(), at, live->tensors.k.data() + key * kRowElements, kRowElements * 2);
    write(v_.data(), at, live->tensors.v.data() + key * kRowElements, kRowElements * 2);
  }
}

bool Serving::join() {
  const std::int64_t prompt = random_.below(200);
  if (std::ssize(live_) == kRequests || std::ssize(free_) < prompt / kPageRows + 2 * kRequests) {
    return false;
  }
  Live& live = live_.emplace_back();
  live.request.seed = seed_ * 100000 + static_cast<std::uint64_t>(++joined_);
  live.tensors = program::tensors_of(
      plan_.problem(), {.queries = kQueries, .keys = kKeys, .seed = live.request.seed});
  grow(&live, prompt);
  return true;
}

void Serving::leave(std::size_t index) {
  for (const std::int32_t page : live_[index].pages) free_page(page);
  live_.erase(live_.begin() + static_cast<std::int64_t>(index));
}

void Serving::move_page(Live* live) {
  if (live->pages.empty() || free_.empty()) return;
  std::int32_t& page = live->pages[random_.below(static_cast<std::uint32_t>(live->pages.size()))];
  const abi::CudaTable& cuda = api::inside(device_).context->table();
  const std::int32_t other = free_.back();
  free_.pop_back();
  for (const DeviceMemory* memory : {&k_, &v_}) {
    const auto begin = reinterpret_cast<abi::CUdeviceptr>(memory->data());
    const auto at = [&](std::int32_t of) {
      return begin + static_cast<std::uint64_t>(of * kPageElements * 2);
    };
    abi::check(cuda,
               cuda.memcpy_dtod_async(at(other), at(page), kPageElements * 2, stream_.handle()),
               "move a page");
  }
  free_page(std::exchange(page, other));
  ++moved_;
}

void Serving::change() {
  for (std::size_t i = live_.size(); i-- > 0;) {
    const bool full = live_[i].request.keys + kQueries > kKeys;
    if (full || std::ssize(free_) < kRequests || random_.below(60) == 0) leave(i);
  }
  while (live_.empty() || random_.below(8) == 0) {
    if (!join() && !live_.empty()) break;
  }
  if (random_.below(8) == 0)
    move_page(&live_[random_.below(static_cast<std::uint32_t>(live_.size()))]);
  for (Live& live : live_) {
    live.request.queries = random_.below(8) == 0 ? 1 + random_.below(kQueries) : 1;
    grow(&live, live.request.queries);
    longest_ = std::max(longest_, live.request.keys);
  }
}

// Writes the data that the step's work reads: rows of Q, lengths and pages. Entries after a
// request's last page are invalid.
void Serving::write_step() {
  std::vector<std::int32_t> q_begin = {0}, k_length, table(kRequests * kWidth, -1);
  for (std::size_t r = 0; r < live_.size(); ++r) {
    const Live& live = live_[r];
    write(q_.data(), q_begin.back() * kHeads * kDim * 2, live.tensors.q.data(),
          live.request.queries * kHeads * kDim * 2);
    q_begin.push_back(q_begin.back() + static_cast<std::int32_t>(live.request.queries));
    k_length.push_back(static_cast<std::int32_t>(live.request.keys));
    std::ranges::copy(live.pages, table.begin() + static_cast<std::int64_t>(r) * kWidth);
  }
  const auto count = static_cast<std::int32_t>(live_.size());
  write(q_begin_.data(), 0, q_begin.data(), std::ssize(q_begin) * 4);
  write(k_length_.data(), 0, k_length.data(), std::ssize(k_length) * 4);
  write(requests_.data(), 0, &count, 4);
  write(table_.data(), 0, table.data(), std::ssize(table) * 4);
}

void Serving::step(bool by_graph) {
  const device::Context& context = *api::inside(device_).context;
  const device::ContextScope scope(context);
  change();
  write_step();
  const Counting counting;
  if (by_graph) {
    abi::check(context.table(), context.table().graph_launch(exec_, stream_.handle()), "replay");
  } else {
    plan_.prepare(stream_.handle(), metadata_, workspace_.data());
    plan_.run(stream_.handle(), operands_, workspace_.data());
  }
}

std::string Serving::first_wrong() {
  stream_.synchronize();
  const BatchProblem& problem = plan_.problem();
  std::vector<std::uint16_t> o(kRequests * kQueries * kHeads * kDim);
  std::vector<float> lse(kRequests * kQueries * kHeads);
  device_.copy_to_host(o.data(), o_.data(), o.size() * 2);
  device_.copy_to_host(lse.data(), lse_.data(), lse.size() * 4);
  std::int64_t row = 0;
  for (const Live& live : live_) {
    const std::int64_t queries = live.request.queries;
    program::RequestTensors tensors = live.tensors;
    tensors.q.resize(static_cast<std::size_t>(queries * kHeads * kDim));
    tensors.k.resize(static_cast<std::size_t>(live.request.keys * kRowElements));
    tensors.v.resize(tensors.k.size());
    program::RequestAnswer answer;
    answer.o.assign(o.begin() + row * kHeads * kDim, o.begin() + (row + queries) * kHeads * kDim);
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t i = 0; i < queries; ++i) {
        answer.lse.push_back(lse[static_cast<std::size_t>((row + i) * kHeads + h)]);
      }
    }
    row += queries;
    const Comparison made = program::compare(
        problem, live.request, program::reference(problem, live.request, tensors), answer);
    if (made.within_tolerance && made.checked_rows == kHeads * queries) continue;
    return fmt::format("request of {} queries and {} keys: error {} in {} of {} rows: {}", queries,
                       live.request.keys, made.error_row_max, made.wrong_rows, made.checked_rows,
                       made.first_wrong);
  }
  const BatchStatus status = plan_.status(workspace_.data());
  if (status.rule == BatchRule::kNone) return {};
  return fmt::format("request {} has {}", status.request, to_string(status.rule));
}

}  // namespace annulus::test
