#ifndef ANNULUS_SHAPE_LOG_SHAPE_LOG_H_
#define ANNULUS_SHAPE_LOG_SHAPE_LOG_H_

// A file of the shapes that devices have planned, with counts:
//
//   # annulus shapes 2: what was planned, the most frequent first
//   # 12 plans are left out, which no line can state or for which there was no room
//   --count 2048 --heads 32 --kv-heads 8 --seq 1 --seq-k 4096 --dim 128 --pattern "causal"
//   --count 31 --heads 32 --kv-heads 8 --seq 4096 --dim 128 --pattern "causal"
//
// Any number of devices and processes add to one file: each adds what it has counted since it last
// did, under a lock beside the file, and renames a new file over the old one. So the file is whole
// whenever a writer is killed, and what that one has not added is all that is lost.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/files.h"
#include "base/log.h"
#include "base/noted.h"
#include "shape_log/shape_counts.h"

namespace annulus::shape_log {

// The content of a file.
struct LoggedShapes {
  std::map<std::string, std::int64_t> counts;  // by the line without its count
  std::int64_t left_out = 0;
};
// Lines that have no count, as people write them, count 0. Empty where the text does not begin as
// such a file of this version or an earlier one does; an empty text is one without shapes.
std::optional<LoggedShapes> parse_shape_log(std::string_view text);
// Writes the shapes in the order of counts, then of lines. Where there are more than a log may
// have, it writes the most frequent; the counts of the others are left out, and go to
// *without_room.
std::string print_shape_log(const LoggedShapes& shapes,
                            std::map<std::string, std::int64_t>* without_room = nullptr);

struct ShapeLogOptions {
  std::string path;
  // Between two writes: at first the shorter, then twice as long each time, up to the longer.
  std::chrono::milliseconds first_wait{1'000};
  std::chrono::milliseconds longest_wait{60'000};
  // How long a write waits for another process that holds the lock.
  std::chrono::milliseconds lock_wait{1'000};
  std::function<void()> on_failure;  // called for each write that failed, where it is given
};

class ShapeLog {
 public:
  // Starts the thread that writes; base::share_in_process() is for such objects. `files` null: the
  // real file system.
  ShapeLog(ShapeLogOptions options, std::shared_ptr<ShapeCounts> counts, base::Log log,
           std::shared_ptr<base::Noted> noted, std::shared_ptr<base::FileSystem> files = nullptr);
  // Writes what is left.
  ~ShapeLog();
  ShapeLog(const ShapeLog&) = delete;
  ShapeLog& operator=(const ShapeLog&) = delete;

  // Adds what was counted to the file. Throws Error{kFile, kInvalidFile}; the counts then wait for
  // the next call.
  void write();

 private:
  void work();
  void write_or_note();
  void add_to_file(const ShapeCounts::Taken& taken);
  void sweep_once();
  void offer(const ShapeCounts::Taken& taken, LoggedShapes* shapes);

  const ShapeLogOptions options_;
  const std::shared_ptr<ShapeCounts> counts_;
  const base::Log log_;
  const std::shared_ptr<base::Noted> noted_;
  const std::shared_ptr<base::FileSystem> files_;
  std::mutex writing_;  // held by the one thread that writes; guards without_room_ and swept_
  bool swept_ = false;
  // By the lines that were taken so far: the plans which this log counted as left out, as the file
  // had no room for the line. They are offered again with the next plan of it: what a new line is
  // planned between two writes would never be more than others in all.
  std::map<std::string_view, std::int64_t> without_room_;
  std::mutex mutex_;  // guards ending_
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace annulus::shape_log

#endif  // ANNULUS_SHAPE_LOG_SHAPE_LOG_H_
