#ifndef ANNULUS_PROGRAM_CLI_OUTPUT_H_
#define ANNULUS_PROGRAM_CLI_OUTPUT_H_

// How verbs speak: results as aligned lines or as one JSON object on stdout, progress on stderr.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "annulus/device.h"
#include "base/json.h"

namespace annulus::program {

void print_json(const base::Json& json);

// "name       text"
void print_line(std::string_view name, std::string_view text);

// What a file states about itself, or is called, for a terminal.
std::string printable(std::string text);

// A message that may quote what a file holds, for a terminal, which would obey control characters:
// '?' stands for each. Other letters stay, as in the names of files. Ends of lines become blanks,
// or stay where a message has many, as a compiler's does.
enum class Lines { kOne, kMany };
std::string without_control(std::string_view text, Lines lines);
// Writes a message of the library's log to stderr.
void print_log(std::string_view text);

// Numbers for JSON, which has no infinity: those become null.
base::Json number(double value);

// Of at least one value.
double median(std::vector<double> values);

// "counters", null on a GPU, and "faults".
void add_counters(const DeviceInfo& device, const Counters& counters, base::Json* json);
// Those that are not 0.
std::string counters_text(const Counters& counters);

// The median of times, and what they are times of.
std::string time_text(const DeviceInfo& device, const std::vector<double>& millis, int launches);
const char* time_meaning(const DeviceInfo& device);
// Seconds of this machine. `check` is null where nothing was checked.
std::string took_text(double plan, double run, const double* check);
std::string device_text(const DeviceInfo& device);

base::Json problem_json(const Problem& problem);
std::string dims_text(std::int64_t dim_qk, std::int64_t dim_v);  // "128", or "192/128"
std::string problem_text(const Problem& problem);

// A line on stderr that is renewed in place, from the first second on. A pipe or a file gets one
// line every ten seconds instead.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(double share);          // negative: not known
  void say(const std::string& text);  // how far it is, in words

 private:
  using Clock = std::chrono::steady_clock;
  bool due();
  void show(std::string text);
  std::string what_;
  Clock::time_point start_;
  Clock::time_point shown_;
  bool terminal_ = false;
  bool any_ = false;
};

// A line on the terminal that a thread of its own keeps up to date, for a call that does not report
// how far it is.
class Waiting {
 public:
  explicit Waiting(std::string what);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void work();

  Progress progress_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_OUTPUT_H_
