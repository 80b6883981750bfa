#ifndef ANNULUS_PROGRAM_CLI_OUTPUT_H_
#define ANNULUS_PROGRAM_CLI_OUTPUT_H_

// The output of verbs: results on stdout as aligned lines or as one JSON object, progress on
// stderr.

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

// Prints "name       text".
void print_line(std::string_view name, std::string_view text);

// A text or name from a file, made safe for a terminal.
std::string printable(std::string text);

// Prepares a message for a terminal. A message may quote a file, and a terminal would obey control
// characters, so each of them becomes '?'. Non-ASCII letters stay, since names of files may have
// them. Line breaks become blanks with kOne. With kMany they stay, as a compiler's message has
// several lines.
enum class Lines { kOne, kMany };
std::string without_control(std::string_view text, Lines lines);
// Writes a message of the library's log to stderr.
void print_log(std::string_view text);

// A number for JSON. JSON has no infinity, so a number that is not finite becomes null.
base::Json number(double value);

// The median. Requires: at least one value.
double median(std::vector<double> values);

// Adds "counters", which is null on a GPU, and "faults".
void add_counters(const DeviceInfo& device, const Counters& counters, base::Json* json);
// The counters that are not 0, as text.
std::string counters_text(const Counters& counters);

// The median of the times with its unit, and the meaning of the times on this device.
std::string time_text(const DeviceInfo& device, const std::vector<double>& millis, int launches);
const char* time_meaning(const DeviceInfo& device);
// The times of the steps, in seconds of host time. `check` is null if nothing was checked.
std::string took_text(double plan, double run, const double* check);
std::string device_text(const DeviceInfo& device);

base::Json problem_json(const Problem& problem);
std::string dims_text(std::int64_t dim_qk, std::int64_t dim_v);  // "128" or "192/128"
std::string problem_text(const Problem& problem);

// A line on stderr that is updated in place and first appears after one second. If stderr is not a
// terminal, a new line is printed every ten seconds instead.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(double share);          // negative: the share is unknown
  void say(const std::string& text);  // shows a text instead of a share

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

// A line on the terminal for a call that does not report its progress. A separate thread updates
// the line.
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
