#ifndef ANNULUS_AUTOTUNE_JOURNAL_FILE_H_
#define ANNULUS_AUTOTUNE_JOURNAL_FILE_H_

#include <string>

#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "tuned/journal.h"
#include "tuned/shape_key.h"

namespace annulus::autotune {

// The journal of a search that runs, as a file of a device's folder. Each search writes to a
// journal of its own, which it holds locked, so that of two searches for one shape neither goes on
// from the other's. Whatever happens to the file, the search goes on: the log says once that it is
// not kept.
class JournalFile {
 public:
  // Goes on from a journal of the shape in `folder` that has the same subject and that nobody
  // writes to, or begins one. Others of the shape are passed over with a line in the log that says
  // what differs; a journal of a search that ended is passed over in silence. A damaged end is cut
  // off, with a line in the log. `files` must outlive it.
  JournalFile(base::FileSystem& files, base::Log log, const std::string& folder,
              const tuned::ShapeKey& shape, const base::Json& subject);
  ~JournalFile();
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;

  // Returns what was found before this search began.
  const tuned::Journal& before() const { return before_; }
  // Returns where the file is; empty where there is none, or where somebody has removed it.
  std::string path() const { return is_there() ? path_ : std::string(); }

  void add(const tuned::Finding& finding);
  // The search ended by itself: the file is removed, or gets its last line. A file of that name
  // that another search has begun since somebody removed this one's stays.
  void end(bool keep);
  // Removes the file, with a line in the log: the disk is full and has no room for the result.
  void give_up();

 private:
  bool go_on(int folder, const std::string& name, const base::Json& subject);
  void begin(int folder, const std::string& stem, const base::Json& subject);
  void write(const std::string& line);
  // Goes back to the last whole line, so that a disk that is full has the rest of the space again.
  void stop_writing(std::int64_t code);
  bool is_there() const;
  void remove();

  base::FileSystem& files_;
  base::Log log_;
  std::string folder_, name_, path_;
  int file_ = -1;           // negative: there is none
  bool stopped_ = false;    // nothing more is written
  std::int64_t whole_ = 0;  // bytes of whole lines
  tuned::Journal before_;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_JOURNAL_FILE_H_
