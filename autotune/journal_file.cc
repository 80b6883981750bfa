#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "autotune/journal_file.h"
#include "base/fail.h"
#include "base/private_folder.h"
#include "tuned/opened.h"

namespace annulus::autotune {
namespace {

// There are more journals of one shape than this only if they do not belong to running searches.
constexpr int kMaxJournals = 1000;

}  // namespace

// Journals are chosen and created under the lock of the folder, so that no other process takes a
// file between its creation and its lock.
JournalFile::JournalFile(base::FileSystem& files, base::Log log, const std::string& folder,
                         const tuned::ShapeKey& shape, const base::Json& subject)
    : files_(files), log_(std::move(log)), folder_(folder) {
  std::string why;
  // A new journal has no findings, only the subject of its first line.
  std::optional<tuned::Journal> begun = tuned::decode_journal(tuned::first_line(subject), &why);
  if (!begun) {
    base::fail(ErrorCode::kInternal, "the journal of a search could not be read: {}", why);
  }
  before_ = std::move(*begun);
  const tuned::Opened opened{
      files_,
      base::open_private_folder(files_, folder, base::FolderUse::kOwn, tuned::kFolderRemedy, &why)};
  if (opened.file < 0) {
    log_.write(base::LogLevel::kWarning, "no journal of the search is kept: {}", why);
    return;
  }
  const tuned::Opened locked{files_, tuned::open_lock(files_, opened.file)};
  if (locked.file >= 0) wait_for_lock(files_, locked.file, tuned::kLockWait);
  const std::string stem = digest(shape).hex() + '-';
  std::vector<std::string> names;
  files_.list(opened.file, &names);
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (!name.starts_with(stem) || !name.ends_with(tuned::kJournalSuffix)) continue;
    if (go_on(opened.file, name, subject)) return;
  }
  begin(opened.file, stem, subject);
}

JournalFile::~JournalFile() { tuned::Opened::close_locked(files_, file_); }

// Whether the search can continue from the journal with this name. If it can, the file is then open
// and locked.
bool JournalFile::go_on(int folder, const std::string& name, const base::Json& subject) {
  const std::string path = folder_ + "/" + name;
  const int file = files_.open(folder, name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0);
  if (file < 0) return false;
  file_ = file;
  const auto pass_over = [&] {
    tuned::Opened::close_locked(files_, file_);
    file_ = -1;
    return false;
  };
  if (files_.lock(file) < 0) return pass_over();  // another search writes to it
  std::vector<std::byte> bytes;
  const base::FileResult read = base::try_read_private_file(files_, folder, base::FolderUse::kOwn,
                                                            name, tuned::kMaxJournalBytes, &bytes);
  if (!read.ok()) {
    log_.write(base::LogLevel::kWarning, "the journal '{}' is skipped: cannot {} it: {}", path,
               read.step, base::describe_private(read));
    return pass_over();
  }
  // Its writer was killed before it had written the first line.
  if (std::ranges::find(bytes, std::byte{'\n'}) == bytes.end()) {
    if (files_.truncate(file, 0) < 0) return pass_over();
    name_ = name;
    path_ = path;
    write(tuned::first_line(subject));
    return true;
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string why;
  std::optional<tuned::Journal> found = tuned::decode_journal(text, &why);
  if (found && found->ended) return pass_over();
  if (found) why = tuned::why_other_subject(found->subject, subject);
  if (!why.empty()) {
    // It may belong to another driver or build, so the user need not do anything.
    log_.write(base::LogLevel::kInfo, "the journal '{}' is skipped: {}", path, why);
    return pass_over();
  }
  if (found->whole_bytes < bytes.size()) {
    const int cut = files_.truncate(file, static_cast<std::int64_t>(found->whole_bytes));
    // A line without an end was being written when its writer was killed.
    const bool is_damaged = text.find('\n', found->whole_bytes) != text.npos;
    log_.write(is_damaged ? base::LogLevel::kWarning : base::LogLevel::kInfo,
               "the journal '{}' is {} from line {} on; {} bytes of it are not used", path,
               is_damaged ? "damaged" : "cut", found->lines + 1, bytes.size() - found->whole_bytes);
    if (cut < 0) return pass_over();
  }
  before_ = std::move(*found);
  whole_ = static_cast<std::int64_t>(before_.whole_bytes);
  name_ = name;
  path_ = path;
  return true;
}

void JournalFile::begin(int folder, const std::string& stem, const base::Json& subject) {
  int file = -EEXIST;
  for (int i = 0; file == -EEXIST && i < kMaxJournals; ++i) {
    name_ = fmt::format("{}{}{}", stem, i, tuned::kJournalSuffix);
    file = files_.open(folder, name_, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  }
  if (file < 0) {
    log_.write(base::LogLevel::kWarning,
               "no journal of the search is kept: cannot make '{}/{}': {}", folder_, name_,
               base::describe_errno(file));
    return;
  }
  file_ = file;
  path_ = folder_ + "/" + name_;
  files_.lock(file_);  // if locks do not work, no other search continues from the file
  write(tuned::first_line(subject));
}

// The file is not synchronised to the disk. Lines of a killed process stay in the file. After a
// crash of the machine, an incomplete line is detected by its digest.
void JournalFile::write(const std::string& line) {
  if (file_ < 0 || stopped_) return;
  for (std::size_t done = 0; done < line.size();) {
    const std::int64_t count = files_.write(file_, line.data() + done, line.size() - done);
    if (count == -EINTR) continue;
    if (count <= 0) return stop_writing(count);
    done += static_cast<std::size_t>(count);
  }
  whole_ += std::ssize(line);
}

// The lock stays until the search ends, so that no other search continues from the file meanwhile.
void JournalFile::stop_writing(std::int64_t code) {
  stopped_ = true;
  log_.write(base::LogLevel::kWarning,
             "the journal '{}' is not written to any more, and the search continues: {}", path_,
             code == 0 ? "nothing could be written" : base::describe_errno(code));
  files_.truncate(file_, whole_);  // if this fails, the next search cuts the incomplete line off
  if (whole_ == 0) remove();
}

void JournalFile::add(const tuned::Finding& finding) { write(tuned::line_of(finding)); }

void JournalFile::end(bool keep) {
  if (!keep) return remove();
  write(tuned::last_line());
  if (file_ < 0 || is_there()) return;
  log_.write(base::LogLevel::kWarning,
             "the journal '{}' is not kept: a user removed it while the search ran", path_);
}

void JournalFile::give_up() {
  if (is_there()) {
    log_.write(base::LogLevel::kWarning,
               "the journal '{}' is removed, as the disk has no room for the result otherwise",
               path_);
  }
  remove();
}

bool JournalFile::is_there() const {
  if (file_ < 0) return false;
  const tuned::Opened named{files_,
                            files_.open(base::kHere, path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)};
  base::FileSystem::Status own, other;
  // If it cannot be checked, the existing name counts as this file.
  if (named.file < 0) return named.file != -ENOENT;
  if (files_.status(file_, &own) < 0 || files_.status(named.file, &other) < 0) return true;
  return own.identity == other.identity;
}

void JournalFile::remove() {
  if (is_there()) {
    const int code = files_.unlink(base::kHere, path_);
    if (code < 0 && code != -ENOENT) {
      log_.write(base::LogLevel::kWarning, "cannot remove the journal '{}': {}", path_,
                 base::describe_errno(code));
    }
  }
  tuned::Opened::close_locked(files_, file_);
  file_ = -1;
}

}  // namespace annulus::autotune
