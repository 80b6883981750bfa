#include "harness.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

namespace annulus::bench {
namespace {

using Json = nlohmann::ordered_json;

double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The value after "key :" on the first line of a /proc file that has the key.
std::string proc_value(const char* file, std::string_view key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) return {};
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::string first_line(const char* file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string now_utc() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Json environment() {
  utsname name{};
  uname(&name);
  Json json;
  json["processor"] = proc_value("/proc/cpuinfo", "model name");
  json["cores"] = std::thread::hardware_concurrency();
  json["memory"] = proc_value("/proc/meminfo", "MemTotal");
  json["load_average"] = first_line("/proc/loadavg");
  json["system"] = std::string(name.sysname) + " " + name.release + " " + name.machine;
#if defined(__clang__)
  json["compiler"] = std::string("clang ") + __clang_version__;
#else
  json["compiler"] = std::string("gcc ") + __VERSION__;
#endif
#ifdef NDEBUG
  json["assertions"] = false;
#else
  json["assertions"] = true;
#endif
  return json;
}

bool met(const Figure& figure, double value) {
  return figure.lower_is_better ? value <= figure.bar : value >= figure.bar;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double wall_seconds() { return clock_seconds(CLOCK_MONOTONIC); }
double process_seconds() { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }
double thread_seconds() { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }

double calibrate() {
  constexpr int kSteps = 40'000'000;
  std::uint64_t state = 88172645463325252u;
  const double begin = wall_seconds();
  for (int step = 0; step < kSteps; ++step) {
    // This is xorshift64. Each step needs the result of the step before, so a compiler cannot
    // shorten the loop.
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
  }
  const double seconds = wall_seconds() - begin;
  return state == 0 ? 0 : kSteps * 1e-6 / seconds;
}

Bench::Bench(std::string program, int argc, char** argv) : program_(std::move(program)) {
  for (int i = 0; i < argc; ++i) command_ += (i ? " " : "") + std::string(argv[i]);
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value && option == "--output") {
      output_ = value;
    } else if (value && option == "--filter") {
      filter_ = value;
    } else if (value && option == "--commit") {
      commit_ = value;
    } else if (value && option == "--rounds" && std::isdigit(value[0]) != 0) {
      rounds_ = std::atoi(value);
    } else {
      std::fprintf(stderr, "usage: %s [--output FILE] [--rounds N] [--filter TEXT] [--commit ID]\n",
                   argv[0]);
      std::exit(2);
    }
  }
}

void Bench::add(Figure figure, std::function<double()> measure) {
  if (figure.name.find(filter_) == std::string::npos) return;
  entries_.push_back({std::move(figure), std::move(measure), {}, {}, {}});
}

void Bench::add_ratio(Figure figure, std::string first, std::string second) {
  entries_.push_back({std::move(figure), {}, std::move(first), std::move(second), {}});
}

void Bench::measure_round(bool keep) {
  if (keep) calibration_.push_back(calibrate());
  for (Entry& entry : entries_) {
    if (!entry.measure) continue;
    if (isatty(STDERR_FILENO)) {
      std::fprintf(stderr, "\r\033[K%s: %s", program_.c_str(), entry.figure.name.c_str());
    }
    const double value = entry.measure();
    if (keep) entry.values.push_back(value);
  }
  if (!keep) return;
  const auto last = [&](const std::string& name) {
    for (const Entry& other : entries_) {
      if (other.figure.name == name && !other.values.empty()) return other.values.back();
    }
    return 0.0;
  };
  for (Entry& entry : entries_) {
    if (entry.measure) continue;
    const double below = last(entry.second);
    if (below != 0) entry.values.push_back(last(entry.first) / below);
  }
}

int Bench::run() {
  const auto measured =
      std::ranges::count_if(entries_, [](const Entry& entry) { return entry.measure != nullptr; });
  if (measured == 0) {
    std::fprintf(stderr, "%s: no measurement has '%s' in its name\n", program_.c_str(),
                 filter_.c_str());
    return 1;
  }
  try {
    measure_round(false);
    for (int round = 0; round < rounds_; ++round) measure_round(true);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "\n%s: %s\n", program_.c_str(), error.what());
    return 1;
  }
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\033[K");
  if (rounds_ == 0) {
    std::printf("%s: each of %td measurements ran once\n", program_.c_str(), measured);
    return 0;
  }
  print();
  if (!output_.empty()) write();
  return 0;
}

void Bench::print() const {
  std::printf("%-44s %12s %12s %12s  %-12s %s\n", program_.c_str(), "median", "least", "most",
              "unit", "bar");
  for (const Entry& entry : entries_) {
    if (entry.values.empty()) continue;
    const double middle = median(entry.values);
    const auto [least, most] = std::minmax_element(entry.values.begin(), entry.values.end());
    std::printf("%-44s %12.4g %12.4g %12.4g  %-12s", entry.figure.name.c_str(), middle, *least,
                *most, entry.figure.unit.c_str());
    if (entry.figure.bar != 0) {
      std::printf(" %s %g%s", entry.figure.lower_is_better ? "<=" : ">=", entry.figure.bar,
                  met(entry.figure, middle) ? "" : " (missed)");
    }
    std::printf("\n");
  }
  std::printf("%-44s %12.4g %12s %12s  %-12s\n", "calibration loop", median(calibration_), "", "",
              "M steps/s");
}

void Bench::write() const {
  Json json;
  json["schema"] = 1;
  json["program"] = program_;
  json["command"] = command_;
  json["commit"] = commit_;
  json["date"] = now_utc();
  json["environment"] = environment();
  json["rounds"] = rounds_;
  json["calibration"] = {
      {"unit", "M steps/s"}, {"median", median(calibration_)}, {"values", calibration_}};
  json["figures"] = Json::array();
  for (const Entry& entry : entries_) {
    if (entry.values.empty()) continue;
    const double middle = median(entry.values);
    Json figure;
    figure["name"] = entry.figure.name;
    figure["unit"] = entry.figure.unit;
    figure["median"] = middle;
    figure["values"] = entry.values;
    if (entry.figure.bar != 0) {
      figure["bar"] = entry.figure.bar;
      figure["lower_is_better"] = entry.figure.lower_is_better;
      figure["met"] = met(entry.figure, middle);
    }
    json["figures"].push_back(figure);
  }
  std::ofstream stream(output_);
  stream << json.dump(2) << "\n";
  if (!stream.flush()) {
    std::fprintf(stderr, "%s: cannot write %s\n", program_.c_str(), output_.c_str());
    std::exit(1);
  }
}

}  // namespace annulus::bench
