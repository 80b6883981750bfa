// Measures the error of sparse attention on the activations of a real transformer, against the
// share of blocks that it visits. It compares fixed patterns with blocks that are chosen on the
// device. It prints a table in Markdown and draws the curves. The table has no times, so it is the
// same on every machine, even with a simulated device.
//
//   selection_bench [--device NAME] [--input FILE] [--svg FILE] [--filter TEXT]
//
// --filter: only ways to choose blocks whose names contain TEXT.

#include <annulus/device.h>
#include <annulus/selection.h>
#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/half.h"
#include "base/safetensors.h"

namespace {

using namespace annulus;

constexpr std::int64_t kBlock = 16;

// Q, K and V of the file on the device, with memory for O, LSE and recall.
class Activations {
 public:
  Activations(const Device& device, const std::string& path) : device_(device) {
    base::FileSystem files;
    const base::Safetensors file = base::read_safetensors(files, path);
    const std::vector<std::int64_t> shape = file.tensors.at("q").shape;  // [B, S, H, D]
    problem_.batch = shape.at(0);
    problem_.seq_q = problem_.seq_k = shape.at(1);
    problem_.heads = problem_.kv_heads = shape.at(2);
    problem_.dim_qk = problem_.dim_v = shape.at(3);
    problem_.dtype = Dtype::kFloat16;
    problem_.want_lse = true;
    const Strides strides = Strides::bshd(shape[1], shape[2], shape[3]);
    operands_.q_strides = operands_.k_strides = operands_.v_strides = operands_.o_strides = strides;
    for (const char* name : {"q", "k", "v"}) {
      const base::TensorView& tensor = file.tensors.at(name);
      if (tensor.type != base::TensorType::kF16 || tensor.shape != shape) {
        base::fail(ErrorCode::kInvalidFile, "{} of {} is not F16 of the shape of q", name, path);
      }
      memory_.push_back(device.allocate(tensor.bytes.size()));
      device.copy_to_device(memory_.back().data(), tensor.bytes.data(), tensor.bytes.size());
    }
    const std::size_t rows = row_count();
    memory_.push_back(device.allocate(memory_.front().bytes()));
    memory_.push_back(device.allocate(rows * sizeof(float)));
    memory_.push_back(device.allocate(rows * sizeof(float)));
    operands_.q = memory_[0].data();
    operands_.k = memory_[1].data();
    operands_.v = memory_[2].data();
    operands_.o = memory_[3].data();
    operands_.lse = static_cast<float*>(memory_[4].data());
  }

  const Problem& problem() const { return problem_; }
  const Operands& operands() const { return operands_; }
  float* recall() const { return static_cast<float*>(memory_[5].data()); }
  std::size_t row_count() const {
    return static_cast<std::size_t>(problem_.batch * problem_.heads * problem_.seq_q);
  }
  std::vector<float> output() const {
    std::vector<std::uint16_t> bits(memory_[3].bytes() / 2);
    device_.copy_to_host(bits.data(), memory_[3].data(), memory_[3].bytes());
    std::vector<float> values;
    for (const std::uint16_t value : bits) values.push_back(base::fp16_to_float(value));
    return values;
  }
  std::vector<float> recalled() const {
    std::vector<float> values(row_count());
    device_.copy_to_host(values.data(), recall(), memory_[5].bytes());
    return values;
  }

 private:
  Device device_;
  Problem problem_;
  Operands operands_;
  std::vector<DeviceMemory> memory_;
};

struct Point {
  std::string method, setting;
  double density = 0;  // visited blocks divided by all blocks
  double error = 0;    // relative Frobenius error of O
  double mean_recall = 0;
  double least_recall = 0;
};

class Study {
 public:
  Study(const Device& device, const std::string& path, std::string filter)
      : device_(device),
        data_(device, path),
        meter_(device, data_.problem()),
        filter_(std::move(filter)) {
    const Plan dense = device.plan(data_.problem());
    const DeviceMemory workspace = device.allocate(dense.workspace_bytes());
    dense.run(nullptr, data_.operands(), workspace.data());
    dense_ = data_.output();
  }

  void pattern(const std::string& method, const std::string& text) {
    if (!wanted(method)) return;
    Problem problem = data_.problem();
    problem.pattern = Pattern::parse(text);
    PlanOptions options;
    options.block_rows = options.block_columns = kBlock;
    const Plan plan = device_.plan(problem, options);
    const DeviceMemory workspace = device_.allocate(plan.workspace_bytes());
    plan.run(nullptr, data_.operands(), workspace.data());
    add(method, text, plan.info().block_density.value);
  }

  void chosen(const std::string& method, const std::string& setting, Selection selection) {
    if (!wanted(method)) return;
    selection.block_rows = selection.block_columns = kBlock;
    const Problem& problem = data_.problem();
    const Plan plan = device_.plan(problem, selection);
    const DeviceMemory workspace = device_.allocate(plan.workspace_bytes());
    const std::int64_t columns = selection.columns(problem.seq_k);
    std::vector<std::int32_t> indices(static_cast<std::size_t>(
        problem.batch * problem.heads * selection.rows(problem.seq_q) * columns));
    const DeviceMemory memory = device_.allocate(indices.size() * sizeof(std::int32_t));
    SelectionBuffers buffers;
    buffers.chosen = static_cast<std::int32_t*>(memory.data());
    buffers.max_chosen = columns;
    plan.run(nullptr, data_.operands(), workspace.data(), buffers);
    device_.copy_to_host(indices.data(), memory.data(), memory.bytes());
    std::size_t kept = 0;
    for (const std::int32_t index : indices) kept += index >= 0;
    add(method, setting, static_cast<double>(kept) / static_cast<double>(indices.size()));
  }

  const std::vector<Point>& points() const { return points_; }

 private:
  bool wanted(const std::string& method) const { return method.find(filter_) != method.npos; }

  // Adds a line for the run on the default stream.
  void add(const std::string& method, const std::string& setting, double density) {
    const DeviceMemory workspace = device_.allocate(meter_.workspace_bytes());
    meter_.run(nullptr, data_.operands(), data_.recall(), workspace.data());
    device_.synchronize();
    const std::vector<float> output = data_.output();
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < output.size(); ++i) {
      difference += std::pow(static_cast<double>(output[i]) - static_cast<double>(dense_[i]), 2);
      norm += std::pow(static_cast<double>(dense_[i]), 2);
    }
    const std::vector<float> recall = data_.recalled();
    const RecallSummary summary = summarise_recall(recall);
    points_.push_back(
        {method, setting, density, std::sqrt(difference / norm), summary.mean, summary.least});
    std::fprintf(stderr, "%s %s\n", method.c_str(), setting.c_str());
  }

  Device device_;
  Activations data_;
  RecallMeter meter_;
  std::string filter_;
  std::vector<float> dense_;
  std::vector<Point> points_;
};

// ---- The picture

constexpr double kWidth = 340, kHeight = 240, kLeft = 52, kTop = 34;

struct Axis {
  const char* title;
  double Point::*value;
  double low, high;
  bool logarithmic;

  double place(double x) const {
    const double share =
        logarithmic ? std::log(x / low) / std::log(high / low) : (x - low) / (high - low);
    return std::min(std::max(share, 0.0), 1.0);
  }
};

const char* colour_of(std::size_t index) {
  static constexpr const char* kColours[] = {"#888888", "#c08020", "#2060c0", "#208040",
                                             "#b02060", "#60b8e0", "#e070a0"};
  return kColours[index % std::size(kColours)];
}

std::string panel(const std::vector<Point>& points, const std::vector<std::string>& methods,
                  const Axis& x, const Axis& y, double left) {
  std::string svg = fmt::format("<g transform=\"translate({},{})\">\n", left, kTop);
  svg += fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444\"/>\n", kWidth,
                     kHeight);
  svg += fmt::format("<text x=\"{}\" y=\"-10\" text-anchor=\"middle\">{}</text>\n", kWidth / 2,
                     y.title);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kWidth / 2,
                     kHeight + 34, x.title);
  for (const double tick : {0.05, 0.1, 0.2, 0.4, 0.8}) {
    const double at = x.place(tick) * kWidth;
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1}\" stroke=\"#ddd\"/>"
        "<text x=\"{0:.1f}\" y=\"{2}\" text-anchor=\"middle\" font-size=\"10\">{3}</text>\n",
        at, kHeight, kHeight + 14, tick);
  }
  for (int i = 0; i <= 4; ++i) {
    const double share = i / 4.0;
    const double value =
        y.logarithmic ? y.low * std::pow(y.high / y.low, share) : y.low + (y.high - y.low) * share;
    const double at = (1 - share) * kHeight;
    svg += fmt::format(
        "<line x1=\"0\" x2=\"{0}\" y1=\"{1:.1f}\" y2=\"{1:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"-4\" y=\"{2:.1f}\" text-anchor=\"end\" font-size=\"10\">{3:.3g}</text>\n",
        kWidth, at, at + 3, value);
  }
  for (std::size_t m = 0; m < methods.size(); ++m) {
    std::string line;
    for (const Point& point : points) {
      if (point.method != methods[m]) continue;
      const double px = x.place(point.*x.value) * kWidth;
      const double py = (1 - y.place(point.*y.value)) * kHeight;
      line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", px, py);
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n", px, py,
                         colour_of(m));
    }
    svg +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", line, colour_of(m));
  }
  return svg + "</g>\n";
}

std::string picture(const std::vector<Point>& points) {
  std::vector<std::string> methods;
  for (const Point& point : points) {
    if (methods.empty() || methods.back() != point.method) methods.push_back(point.method);
  }
  const double second = 2 * kLeft + kWidth;
  const double all = second + kWidth + 20;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n",
      all, kTop + kHeight + 86);
  const Axis density = {"blocks looked at", &Point::density, 0.04, 0.85, true};
  svg += panel(points, methods, density, {"relative error of O", &Point::error, 0.0625, 1, true},
               kLeft);
  svg += panel(points, methods, density,
               {"mean recall of attention", &Point::mean_recall, 0, 1, false}, second);
  for (std::size_t m = 0; m < methods.size(); ++m) {  // four entries per line of the legend
    const double left = kLeft + static_cast<double>(m % 4) * (all - kLeft) / 4;
    const double top = kTop + kHeight + 48 + static_cast<double>(m / 4) * 18;
    svg += fmt::format(
        "<rect x=\"{0:.0f}\" y=\"{1:.0f}\" width=\"10\" height=\"10\" fill=\"{2}\"/>"
        "<text x=\"{3:.0f}\" y=\"{4:.0f}\">{5}</text>\n",
        left, top, colour_of(m), left + 14, top + 9, methods[m]);
  }
  return svg + "</svg>\n";
}

void print(const std::vector<Point>& points) {
  std::printf(
      "| blocks | setting | blocks looked at | error of O | recall, mean | recall, least |\n"
      "|---|---|---|---|---|---|\n");
  for (const Point& p : points) {
    std::string setting;  // the setting with `|` escaped, because `|` would end the cell
    for (const char c : p.setting) setting += c == '|' ? "\\|" : std::string(1, c);
    std::printf("| %s | `%s` | %.3f | %.4f | %.4f | %.4f |\n", p.method.c_str(), setting.c_str(),
                p.density, p.error, p.mean_recall, p.least_recall);
  }
}

void measure(Study* study) {
  for (const int width : {8, 24, 48, 96, 160}) {
    study->pattern("window", fmt::format("window({0},{0})", width));
  }
  for (const int width : {8, 24, 48, 96, 144}) {
    study->pattern("BigBird", fmt::format("window({0},{0}) | global(16) | random({1}, 1, 16)",
                                          width, width / 24 + 1));
  }
  for (const auto& [name, pool] :
       {std::pair{"top-k, means", Pool::kMean}, std::pair{"top-k, maxima", Pool::kMax},
        std::pair{"top-k, antidiagonals", Pool::kAntidiagonal}}) {
    for (const int count : {2, 4, 6, 8, 12, 20}) {
      Selection selection;
      selection.pool = pool;
      selection.stride = 4;
      selection.max_blocks = count;
      study->chosen(name, fmt::format("{} of 32", count), selection);
    }
  }
  for (const auto& [name, pool] : {std::pair{"top-p, means", Pool::kMean},
                                   std::pair{"top-p, antidiagonals", Pool::kAntidiagonal}}) {
    for (const double mass : {0.3, 0.5, 0.7, 0.8, 0.9, 0.95}) {
      Selection selection;
      selection.pool = pool;
      selection.stride = 4;
      selection.rule = SelectionRule::kTopP;
      selection.mass = mass;
      study->chosen(name, fmt::format("{}", mass), selection);
    }
  }
}

int run(int argc, char** argv) {
  std::map<std::string, std::string> options = {
      {"--device", "sim:sm_80"},
      {"--input", "docs/examples/data/minilm_alice.safetensors"},
      {"--svg", ""},
      {"--filter", ""}};
  for (int i = 1; i < argc; i += 2) {
    if (!options.contains(argv[i]) || i + 1 == argc) {
      std::fprintf(stderr,
                   "usage: selection_bench [--device NAME] [--input FILE] [--svg FILE] "
                   "[--filter TEXT]\n");
      return 2;
    }
    options[argv[i]] = argv[i + 1];
  }
  DeviceOptions of_device;
  of_device.name = options["--device"];
  of_device.simulation.checked = false;
  Study study(Device::open(of_device), options["--input"], options["--filter"]);
  measure(&study);
  if (study.points().empty()) {
    std::fprintf(stderr, "selection_bench: no way to choose blocks has '%s' in its name\n",
                 options["--filter"].c_str());
    return 1;
  }
  print(study.points());
  if (options["--svg"].empty()) return 0;
  std::ofstream file(options["--svg"]);
  file << picture(study.points());
  return file.flush() ? 0 : 5;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "selection_bench: %s\n", error.what());
    return 1;
  }
}
