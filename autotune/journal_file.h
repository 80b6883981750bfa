#ifndef ANNULUS_AUTOTUNE_JOURNAL_FILE_H_
#define ANNULUS_AUTOTUNE_JOURNAL_FILE_H_

#include <string>

#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "tuned/journal.h"
#include "tuned/shape_key.h"

namespace annulus::autotune {

// The journal of a running search, as a file in a device's folder. Each search writes its own
// journal and keeps it locked, so that no other search for the shape continues from it meanwhile.
// If writing the file fails, the search continues, and the log states once that the journal is not
// kept.
class JournalFile {
 public:
  // Continues a journal in `folder` that has the same shape and subject and that no other search
  // writes, or begins a new one. Other journals of the shape are skipped, with a line in the log
  // that states the difference. The journal of a search that ended is skipped without a message. A
  // damaged end is cut off, with a line in the log. `files` must outlive this object.
  JournalFile(base::FileSystem& files, base::Log log, const std::string& folder,
              const tuned::ShapeKey& shape, const base::Json& subject);
  ~JournalFile();
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;

  // The findings from before this search began.
  const tuned::Journal& before() const { return before_; }
  // The path of the file. Empty if there is no file, or if a user has removed it.
  std::string path() const { return is_there() ? path_ : std::string(); }

  void add(const tuned::Finding& finding);
  // Called after the search completed. Removes the file, or adds its last line if `keep` is true.
  // If this file was removed and another search has begun one with the same name, that one stays.
  void end(bool keep);
  // Removes the file, with a line in the log. Called if the disk is too full for the result.
  void give_up();

 private:
  bool go_on(int folder, const std::string& name, const base::Json& subject);
  void begin(int folder, const std::string& stem, const base::Json& subject);
  void write(const std::string& line);
  // Truncates the file to its last complete line, so that a full disk gets the remaining space
  // back.
  void stop_writing(std::int64_t code);
  bool is_there() const;
  void remove();

  base::FileSystem& files_;
  base::Log log_;
  std::string folder_, name_, path_;
  int file_ = -1;           // negative: there is no file
  bool stopped_ = false;    // nothing more is written
  std::int64_t whole_ = 0;  // bytes of complete lines
  tuned::Journal before_;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_JOURNAL_FILE_H_
