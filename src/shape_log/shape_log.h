#ifndef ANNULUS_SHAPE_LOG_SHAPE_LOG_H_
#define ANNULUS_SHAPE_LOG_SHAPE_LOG_H_

// A file of the shapes that devices have planned, with counts:
//
//   # annulus shapes 2: what was planned, the most frequent first
//   # 12 plans are left out, which no line can state or for which there was no room
//   --count 2048 --heads 32 --kv-heads 8 --seq 1 --seq-k 4096 --dim 128 --pattern "causal"
//   --count 31 --heads 32 --kv-heads 8 --seq 4096 --dim 128 --pattern "causal"
//
// Any number of devices and processes add to one file. Each adds its counts since its last write,
// under the lock of a file next to the log, and replaces the file by renaming a new one. So the
// file is complete even if a writer is killed; then only the counts that it had not added are lost.

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

// The contents of a file.
struct LoggedShapes {
  std::map<std::string, std::int64_t> counts;  // [line without its count]
  std::int64_t left_out = 0;
};
// Parses a file. Lines without a count, as a user may write them, have the count 0. Returns nothing
// if the text does not begin as a file of this or an earlier version does. An empty text has no
// shapes.
std::optional<LoggedShapes> parse_shape_log(std::string_view text);
// The text of a file with these shapes, sorted by count, then by line. If there are more than a log
// may have, it has the most frequent ones; the counts of the others are added to the plans left
// out, and are stored in *without_room.
std::string print_shape_log(const LoggedShapes& shapes,
                            std::map<std::string, std::int64_t>* without_room = nullptr);

struct ShapeLogOptions {
  std::string path;
  // The time between two writes. It starts with first_wait and doubles each time, up to
  // longest_wait.
  std::chrono::milliseconds first_wait{1'000};
  std::chrono::milliseconds longest_wait{60'000};
  // The time that a write waits for another process that holds the lock.
  std::chrono::milliseconds lock_wait{1'000};
  std::function<void()> on_failure;  // called for each write that failed, if it is set
};

class ShapeLog {
 public:
  // Starts the thread that writes. Devices that share a log share one object with
  // base::share_in_process(). If `files` is null, the real file system is used.
  ShapeLog(ShapeLogOptions options, std::shared_ptr<ShapeCounts> counts, base::Log log,
           std::shared_ptr<base::Noted> noted, std::shared_ptr<base::FileSystem> files = nullptr);
  // Writes the remaining counts.
  ~ShapeLog();
  ShapeLog(const ShapeLog&) = delete;
  ShapeLog& operator=(const ShapeLog&) = delete;

  // Adds the counts to the file. Throws Error{kFile, kInvalidFile}; then the counts are kept for
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
  // The plans that this log counted as left out because the file had no room for their line. They
  // are added to the next count of the line. Otherwise a new line could never become more frequent
  // than the others, because its plans between two writes are too few.
  std::map<std::string_view, std::int64_t> without_room_;
  std::mutex mutex_;  // guards ending_
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace annulus::shape_log

#endif  // ANNULUS_SHAPE_LOG_SHAPE_LOG_H_
