#include "gpu_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "annulus/device.h"
#include "annulus/kernels.h"
#include "api/impl.h"
#include "base/fail.h"
#include "base/random.h"
#include "batch/batch_cost.h"
#include "device/stream.h"
#include "gpu_operands.h"
#include "gpu_state.h"
#include "harness.h"

namespace annulus::bench {
namespace {

using Json = nlohmann::json;

void say(const Json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

// The answer of `work`, or any exception as an answer.
template <typename Work>
Json answer_or_error(const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

Json state_json(const std::optional<GpuState>& state) {
  if (!state) return nullptr;
  return {{"sm_mhz", state->sm_megahertz},
          {"memory_mhz", state->memory_megahertz},
          {"watts", state->milliwatts / 1000.0},
          {"celsius", state->celsius}};
}

// ---- Facts about the plan of a case

Json facts_of(const Plan& plan) {
  const PlanPrediction predicted = plan.predict();
  const PlanInfo& info = plan.info();
  return {{"config", info.config},
          {"decisions", info.decisions},
          {"plan_ms", info.plan_ms},
          {"compile_ms", info.compile_ms},
          {"predicted_micros", predicted.predicted_micros},
          {"predicted_range", {predicted.min_micros, predicted.max_micros}}};
}

BatchOptions options_of(const GpuCase& one) {
  BatchOptions options;
  options.part_keys = one.part_keys;
  return options;
}

// The pipe model has predictions for decoding and for prepare() only.
Json facts_of(const Device& device, const GpuCase& one, const BatchInfo& info) {
  Json facts = {{"config", info.config},
                {"decisions", info.decisions},
                {"plan_ms", info.plan_ms},
                {"compile_ms", info.compile_ms}};
  if (one.kind == GpuCaseKind::kChunk) return facts;
  const Device::Impl& inside = api::inside(device);
  const batch::BatchPlanData plan =
      batch::make_plan(one.batch, options_of(one), api::limits_of(inside));
  std::vector<batch::StepRequest> step;
  for (const Request& request : one.requests) step.push_back({request.queries, request.keys});
  const auto micros = [&](const attention::PipeDevice& on) {
    const auto made = batch::predict_step(on, one.batch, plan.classes.front(), step);
    return one.kind == GpuCaseKind::kPrepare ? made.predicted_prepare_micros
                                             : made.predicted_micros;
  };
  const device::DeviceInfo& chip = inside.context->info();
  const double predicted = micros(attention::pipe_device(chip));
  const auto range = attention::predict_range(chip, predicted, micros);
  facts["predicted_micros"] = predicted;
  facts["predicted_range"] = {range.least, range.most};
  return facts;
}

Json facts_of(const AppendInfo& info) {
  return {{"config", fmt::format("append, {} threads, {} registers", info.threads, info.registers)},
          {"compile_ms", info.compile_ms}};
}

// ---- A case that is ready to run

class Subject {
 public:
  virtual ~Subject() = default;
  virtual void run() const = 0;  // puts one run on the default stream
  virtual Json facts() const = 0;
};

class AttentionSubject : public Subject {
 public:
  AttentionSubject(const Device& device, const GpuCase& one)
      : plan_(device.plan(one.attention.problem)),
        operands_(device, one.attention.problem),
        workspace_(device.allocate(plan_.workspace_bytes())) {}
  void run() const override { plan_.run(nullptr, operands_.get(), workspace_.data()); }
  Json facts() const override { return facts_of(plan_); }

 private:
  Plan plan_;
  GpuOperands operands_;
  DeviceMemory workspace_;
};

class BatchSubject : public Subject {
 public:
  BatchSubject(const Device& device, const GpuCase& one)
      : facts_(facts_of(device, one, plan_batch(device, one.batch, options_of(one)).info())),
        prepares_(one.kind == GpuCaseKind::kPrepare),
        step_(device, one.batch, one.requests, options_of(one), Contents::kRandom) {
    const BatchStatus status = step_.status();
    if (status.rule != BatchRule::kNone) {
      base::fail(ErrorCode::kInternal, "request {} of the step has {}", status.request,
                 to_string(status.rule));
    }
  }
  void run() const override { prepares_ ? step_.prepare() : step_.run(); }
  Json facts() const override { return facts_; }

 private:
  Json facts_;
  bool prepares_;
  Step step_;
};

// Appends the newest key of each request to a random place in pages.
class AppendSubject : public Subject {
 public:
  AppendSubject(const Device& device, const GpuCase& one) : plan_(plan_append(device, one.append)) {
    const AppendProblem& of = one.append;
    const std::int64_t rows = of.most.rows, pages = one.batch.most.keys / of.page_rows;
    const auto tensor = [&](std::int64_t elements) {
      memory_.push_back(random_memory(device, of.dtype, static_cast<std::size_t>(elements)));
      return memory_.back().data();
    };
    const auto put = [&](const std::vector<std::int64_t>& values) {
      memory_.push_back(device.allocate(values.size() * 8));
      device.copy_to_device(memory_.back().data(), values.data(), values.size() * 8);
      return static_cast<const std::int64_t*>(memory_.back().data());
    };
    const std::int64_t q_row = of.heads * of.dim_qk, k_row = of.kv_heads * of.dim_qk;
    operands_.q = tensor(rows * q_row);
    operands_.rotated_q = tensor(rows * q_row);
    operands_.new_k = tensor(rows * k_row);
    operands_.new_v = tensor(rows * k_row);
    operands_.k = tensor(pages * of.page_rows * k_row);
    operands_.v = tensor(pages * of.page_rows * k_row);
    operands_.q_strides = operands_.rotated_q_strides = {q_row, of.dim_qk};
    operands_.new_k_strides = operands_.new_v_strides = {k_row, of.dim_qk};
    operands_.k_strides = operands_.v_strides = {of.page_rows * k_row, k_row, of.dim_qk};
    operands_.k_pages = operands_.v_pages = pages;
    base::Random random(7);
    std::vector<std::int64_t> slots, positions;
    for (std::int64_t row = 0; row < rows; ++row) {
      // Each request has a separate share of the pages, so that no two slots are equal.
      const std::int64_t share = pages / rows * of.page_rows;
      slots.push_back(row * share + random.below(static_cast<std::uint32_t>(share)));
      positions.push_back(one.requests[static_cast<std::size_t>(row)].keys - 1);
    }
    operands_.slots = put(slots);
    operands_.positions = put(positions);
  }
  void run() const override { plan_.run(nullptr, operands_); }
  Json facts() const override { return facts_of(plan_.info()); }

 private:
  AppendPlan plan_;
  std::vector<DeviceMemory> memory_;
  AppendOperands operands_;
};

std::unique_ptr<Subject> make_subject(const Device& device, const GpuCase& one) {
  switch (one.kind) {
    case GpuCaseKind::kAttention:
      return std::make_unique<AttentionSubject>(device, one);
    case GpuCaseKind::kAppend:
      return std::make_unique<AppendSubject>(device, one);
    default:
      return std::make_unique<BatchSubject>(device, one);
  }
}

Json planned_facts(const Device& device, const GpuCase& one) {
  switch (one.kind) {
    case GpuCaseKind::kAttention:
      return facts_of(device.plan(one.attention.problem));
    case GpuCaseKind::kAppend:
      return facts_of(plan_append(device, one.append).info());
    default:
      return facts_of(device, one, plan_batch(device, one.batch).info());
  }
}

// ---- Time on the device

// Blocks the default stream while work is put on it. Then the device executes the work without
// gaps, and host time does not count. A simulated device executes work as soon as it gets it, so
// its stream is not blocked.
class Hold {
 public:
  Hold(const Device& device, device::ContextPointer context) : context_(std::move(context)) {
    const auto launch = reinterpret_cast<int (*)(abi::CUstream, void (*)(void*), void*)>(
        device.driver_entry("cuLaunchHostFunc"));
    if (launch == nullptr || device.info().simulated) return;
    const device::ContextScope scope(*context_);
    const auto wait = [](void* released) {
      const double until = wall_seconds() + kMaxSeconds;
      while (!static_cast<std::atomic<bool>*>(released)->load() && wall_seconds() < until) {
        std::this_thread::yield();
      }
    };
    abi::check(context_->table(), launch(nullptr, wait, &released_), "cuLaunchHostFunc");
  }
  // Waits for all work, because the driver reads `released_` until then.
  ~Hold() {
    release();
    try {
      device::synchronize(*context_, nullptr);
    } catch (const Error&) {  // the next call of the driver returns the same error
    }
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  void release() { released_ = true; }

 private:
  // A driver that loads one of its own kernels on first use may wait for the device while the
  // stream is blocked. So the stream continues after this time.
  static constexpr double kMaxSeconds = 0.5;

  device::ContextPointer context_;
  std::atomic<bool> released_{false};
};

class Worker {
 public:
  Worker(const std::string& name, bool tiny)
      : device_(Device::open(name)),
        context_(api::inside(device_).context),
        monitor_(pci_bus(device_)),
        cases_(gpu_cases(tiny)),
        // twice the capacity of L2
        flush_(device_.allocate(static_cast<std::size_t>(
            std::max<std::int64_t>(1 << 20, simulated() ? 0 : 2 * context_->info().l2_bytes)))) {
    fill_l2();
    device_.synchronize();
  }

  Json greeting() const {
    const DeviceInfo& info = device_.info();
    return {{"version", "annulus " ANNULUS_VERSION_TEXT},
            {"device", info.description},
            {"architecture", info.architecture},
            {"simulated", info.simulated},
            {"multiprocessors", info.multiprocessors},
            {"driver", info.driver_version},
            {"nvrtc", info.nvrtc_version}};
  }

  Json answer(const Json& question) {
    const std::string what = question.value("ask", "");
    if (what == "load") return load(question.at("problem").at("name"));
    if (what == "measure") return measure(question.value("cold", false), question.value("runs", 1));
    if (what == "copy") return copy();
    if (what == "state") return {{"state", state_json(monitor_.read())}};
    base::fail(ErrorCode::kInvalidArgument,
               "'{}' is not a request; send load, measure, copy or state", what);
  }

 private:
  bool simulated() const { return device_.info().simulated; }

  Json load(const std::string& name) {
    subject_.reset();
    device_.trim();
    const auto found = std::ranges::find(cases_, name, &GpuCase::name);
    if (found == cases_.end()) {
      base::fail(ErrorCode::kInvalidArgument, "there is no problem '{}'; see --list", name);
    }
    const double start = wall_seconds();
    subject_ = make_subject(device_, *found);
    subject_->run();
    device_.synchronize();
    const double first = (wall_seconds() - start) * 1e3;
    const double later = times([&] { subject_->run(); }, false, 1, nullptr).front();
    return {{"first_ms", first}, {"ms", later}, {"facts", subject_->facts()}};
  }

  Json measure(bool cold, int runs) {
    if (!subject_) base::fail(ErrorCode::kInvalidArgument, "no problem was loaded");
    Json state;
    const std::vector<double> ms = times([&] { subject_->run(); }, cold, runs, &state);
    return {{"ms", ms}, {"state", state}};
  }

  // The rate of copies between two places in device memory.
  Json copy() {
    const std::size_t bytes = simulated() ? 1 << 20 : std::size_t{2} << 30;
    const DeviceMemory from = random_memory(device_, Dtype::kBfloat16, bytes / 2);
    const DeviceMemory to = device_.allocate(bytes);
    const Json before = state_json(monitor_.read());
    const auto run = [&] {
      const device::ContextScope scope(*context_);
      abi::check(context_->table(),
                 context_->table().memcpy_dtod_async(reinterpret_cast<std::uintptr_t>(to.data()),
                                                     reinterpret_cast<std::uintptr_t>(from.data()),
                                                     bytes, nullptr),
                 "cuMemcpyDtoDAsync");
    };
    run();  // one run before the measurement
    device_.synchronize();
    Json during;
    const double ms = median(times(run, false, simulated() ? 1 : 60, &during));
    return {{"ceiling", "copy"},
            {"terabytes_a_second", 2 * static_cast<double>(bytes) / (ms * 1e9)},
            {"bytes", 2 * static_cast<double>(bytes)},
            {"by", "cuMemcpyDtoDAsync, random data"},
            {"before", before},
            {"during", during}};
  }

  void fill_l2() {
    const device::ContextScope scope(*context_);
    abi::check(context_->table(),
               context_->table().memset_d8_async(reinterpret_cast<std::uintptr_t>(flush_.data()),
                                                 ++filled_with_, flush_.bytes(), nullptr),
               "cuMemsetD8Async");
  }

  // The milliseconds of each run. Also reads the state of the device while it works.
  std::vector<double> times(const std::function<void()>& run, bool cold, int runs, Json* state) {
    std::vector<device::Event> begins, ends;
    {
      Hold hold(device_, context_);
      if (!cold && !simulated()) run();  // leaves in L2 the data that a run leaves there
      for (int i = 0; i < runs; ++i) {
        if (cold) fill_l2();
        begins.emplace_back(context_, device::Event::Timing::kOn).record(nullptr);
        run();
        ends.emplace_back(context_, device::Event::Timing::kOn).record(nullptr);
      }
      hold.release();
      if (state != nullptr) *state = state_json(monitor_.read());
    }
    std::vector<double> ms;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      ms.push_back(device::elapsed_millis(*context_, begins[i], ends[i]));
    }
    return ms;
  }

  Device device_;
  device::ContextPointer context_;
  GpuMonitor monitor_;
  std::vector<GpuCase> cases_;
  DeviceMemory flush_;
  unsigned char filled_with_ = 0;
  std::unique_ptr<Subject> subject_;
};

}  // namespace

void serve_gpu_cases(const std::string& device, bool tiny) {
  Worker worker(device, tiny);
  say(worker.greeting());
  for (std::string line; std::getline(std::cin, line);) {
    say(answer_or_error([&] { return worker.answer(Json::parse(line)); }));
  }
}

bool plan_gpu_cases(const std::string& name, const std::vector<GpuCase>& cases) {
  const Device device = Device::open(name);
  bool good = true;
  for (const GpuCase& one : cases) {
    const Json facts = answer_or_error([&] { return planned_facts(device, one); });
    Json line = {{"name", one.name()}};
    for (const char* field : {"config", "compile_ms", "error"}) {
      if (facts.contains(field)) line[field] = facts[field];
    }
    say(line);
    good = good && !line.contains("error");
  }
  return good;
}

void compile_gpu_cases(const std::string& folder, const std::vector<std::string>& gpus,
                       const std::vector<GpuCase>& cases) {
  WarmWork work;
  for (const GpuCase& one : cases) {
    if (one.kind == GpuCaseKind::kAttention) {
      work.shapes.push_back({.problem = one.attention.problem});
    } else if (one.kind != GpuCaseKind::kAppend) {
      work.batches.push_back({.problem = one.batch});
    }
  }
  WarmOptions options;
  options.folder = std::filesystem::absolute(folder).string();
  options.devices = gpus;
  options.tuned_path = "none";
  const WarmResult made = warm(work, options);
  say({{"kernels", made.kernels}, {"compiled", made.compiled}, {"bytes", made.bytes}});
  for (const WarmFailure& failure : made.failures) {
    base::fail(failure.code, "{} for {}: {}", failure.wanted, failure.device, failure.error);
  }
}

}  // namespace annulus::bench
