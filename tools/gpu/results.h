#ifndef ANNULUS_TOOLS_GPU_RESULTS_H_
#define ANNULUS_TOOLS_GPU_RESULTS_H_

// The folder for the results of a call. Results are lines of JSON. Each line is written by one
// system call as soon as it is known, so earlier lines stay readable however the process ends.
//
//   CALL.jsonl     {"kind": "gpu_check", ...}                     at the beginning of each process
//                  {"of": STEP, "says": {...}}                    for each JSON object of a step
//                  {"step": STEP, "group": ..., "outcome": ...}   when a step has ended
//   failures.txt   the end of the standard error of the steps that did not pass
//
// The folder also has whole files that steps make (keep_file). It never has more than eight files,
// with less than 16 MiB each. A line that cannot be written because the disk is full is printed on
// standard output, and is written as soon as there is room.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace annulus::gpu {

using Json = nlohmann::ordered_json;

// A file of lines that only grows. If its limit of bytes would be exceeded, a line is refused.
class LineFile {
 public:
  LineFile(std::string path, std::int64_t max_bytes);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Returns whether the line is in the file now.
  bool add(const std::string& line);
  const std::string& path() const { return path_; }

 private:
  bool write(const std::string& line);

  std::string path_;
  std::int64_t max_bytes_;
  std::int64_t bytes_ = 0;
  int file_ = -1;
  bool torn_ = false;  // the file ends in the middle of a line
  std::vector<std::string> waiting_;
};

class Results {
 public:
  // Makes the folder if it is missing, and reads which steps of the call have ended there. Throws
  // std::runtime_error if the folder cannot be made or contains other files.
  Results(const std::string& folder, const std::string& call);

  bool has_ended(const std::string& step) const { return ended_.contains(step); }

  void begin(const Json& head);
  void say(const std::string& step, Json object);
  // `line` has the members "step" and "outcome". A step that ran out of time counts as not ended.
  void end(const Json& line, const std::string& tail);
  // Copies a file that a step has made, under the given name. Returns why it could not, or "".
  std::string keep_file(const std::string& from, const std::string& name);

 private:
  std::string folder_;
  std::set<std::string> ended_;
  std::set<std::string> names_;  // the names of the existing files
  LineFile lines_;
  LineFile failures_;
};

}  // namespace annulus::gpu

#endif  // ANNULUS_TOOLS_GPU_RESULTS_H_
