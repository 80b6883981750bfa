#include "program/cli/output.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace annulus::program {

void print_json(const base::Json& json) {
  const std::string text = json.dump(2, ' ', false, base::Json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

std::string without_control(std::string_view text, Lines lines) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : ' ');
    if (c == '\n') {
      shown += lines == Lines::kOne ? ' ' : '\n';
    } else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F in UTF-8
      shown += '?';
      ++i;
    } else {
      shown += (c < ' ' && c != '\t') || c == 0x7f ? '?' : text[i];
    }
  }
  return shown;
}

void print_log(std::string_view text) {
  std::fprintf(stderr, "annulus: %s\n", without_control(text, Lines::kMany).c_str());
}

void print_line(std::string_view name, std::string_view text) {
  std::printf("%-10.*s %.*s\n", static_cast<int>(name.size()), name.data(),
              static_cast<int>(text.size()), text.data());
}

base::Json number(double value) {
  return std::isfinite(value) ? base::Json(value) : base::Json(nullptr);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_counters(const DeviceInfo& device, const Counters& counters, base::Json* json) {
  base::Json counted = device.simulated ? base::Json::object() : base::Json(nullptr);
  std::uint64_t faults = 0;
  for (const auto& [name, value] : counters) {
    counted[name] = value;
    if (name == "faults") faults = value;
  }
  (*json)["counters"] = counted;
  (*json)["faults"] = faults;
}

std::string counters_text(const Counters& counters) {
  std::string text;
  for (const auto& [name, value] : counters) {
    if (value != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::string time_text(const DeviceInfo& device, const std::vector<double>& millis, int launches) {
  return fmt::format(
      "{:.3f} ms{}, {} launch{}", median(millis),
      device.simulated ? " of this machine to simulate it (not the speed of a GPU)" : "", launches,
      launches == 1 ? "" : "es");
}

const char* time_meaning(const DeviceInfo& device) {
  return device.simulated ? "host wall time of the simulation" : "time on the device";
}

std::string took_text(double plan, double run, const double* check) {
  std::string text = fmt::format("{:.1f} s to plan and compile, {:.1f} s to run", plan, run);
  if (check != nullptr) text += fmt::format(", {:.1f} s to check", *check);
  return text;
}

std::string device_text(const DeviceInfo& device) {
  return fmt::format("{} ({}{})", device.name, device.description,
                     device.simulated ? ", simulated" : "");
}

base::Json problem_json(const Problem& problem) {
  base::Json json;
  json["batch"] = problem.batch;
  json["heads"] = problem.heads;
  json["kv_heads"] = problem.kv_heads;
  json["seq_q"] = problem.seq_q;
  json["seq_k"] = problem.seq_k;
  json["q0"] = problem.q_position();
  json["k0"] = problem.k_position();
  json["dim_qk"] = problem.dim_qk;
  json["dim_v"] = problem.dim_v;
  json["dtype"] = to_string(problem.dtype);
  json["pattern"] = problem.pattern.to_string();
  json["scale"] = problem.effective_scale();
  json["softcap"] = problem.score.softcap;
  json["score"] = problem.score.to_string();
  json["lse_base"] = to_string(problem.lse_base);
  return json;
}

std::string dims_text(std::int64_t dim_qk, std::int64_t dim_v) {
  return dim_qk == dim_v ? std::to_string(dim_qk) : fmt::format("{}/{}", dim_qk, dim_v);
}

std::string problem_text(const Problem& problem) {
  const std::string score = problem.score.to_string();
  return fmt::format("B{} H{} Hkv{} Sq{} Sk{} D{} {}, {}{}", problem.batch, problem.heads,
                     problem.kv_heads, problem.seq_q, problem.seq_k,
                     dims_text(problem.dim_qk, problem.dim_v), to_string(problem.dtype),
                     problem.pattern.to_string(), score.empty() ? "" : ", score " + score);
}

Progress::Progress(std::string what)
    : what_(std::move(what)), start_(Clock::now()), shown_(start_), terminal_(isatty(2) != 0) {}

Progress::~Progress() {
  if (any_ && terminal_) std::fprintf(stderr, "\r\033[K");
}

bool Progress::due() {
  const Clock::time_point now = Clock::now();
  const double wait = any_ ? (terminal_ ? 0.2 : 10.0) : 1.0;
  if (std::chrono::duration<double>(now - shown_).count() < wait) return false;
  shown_ = now;
  any_ = true;
  return true;
}

// A line wider than the terminal would wrap, and each update would leave a line behind. So it is
// cut.
void Progress::show(std::string text) {
  struct winsize size = {};
  if (terminal_ && ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
      text.size() >= size.ws_col) {
    text.resize(size.ws_col - 1u);
  }
  std::fprintf(stderr, "%s%s%s", terminal_ ? "\r\033[K" : "", text.c_str(), terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void Progress::update(double share) {
  if (!due()) return;
  const double seconds = std::chrono::duration<double>(shown_ - start_).count();
  show(share < 0 ? fmt::format("{}: {:.0f} s", what_, seconds)
                 : fmt::format("{}: {:.0f} %, {:.0f} s", what_, 100 * share, seconds));
}

void Progress::say(const std::string& text) {
  if (due()) show(what_ + ": " + text);
}

Waiting::Waiting(std::string what) : progress_(std::move(what)), thread_([this] { work(); }) {}

Waiting::~Waiting() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Waiting::work() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(250), [&] { return stopping_; })) {
    progress_.update(-1);
  }
}

}  // namespace annulus::program
