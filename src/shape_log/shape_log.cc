#include "shape_log/shape_log.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <new>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "annulus/types.h"
#include "base/fail.h"
#include "base/file_lock.h"
#include "base/no_signals.h"

namespace annulus::shape_log {
namespace {

constexpr std::string_view kHead = "# annulus shapes 2";
// The head of logs from versions without batches.
constexpr std::string_view kEarlierHead = "# annulus shapes 1";
constexpr std::string_view kLeftOut = " plans are left out";
constexpr std::string_view kCount = "--count ";
constexpr std::int64_t kMaxCount = 1'000'000'000'000'000'000;
// Twice the size that is written, because users may add lines.
constexpr std::int64_t kMaxFileBytes = 2 * (kMaxShapeBytes + 64 * kMaxShapes);

// Removes a number from the front of a text and returns it. Returns nothing if the text does not
// begin with one.
std::optional<std::int64_t> take_number(std::string_view* text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return std::min(value, kMaxCount);
}

void add_to(std::int64_t* count, std::int64_t more) { *count = std::min(*count + more, kMaxCount); }

}  // namespace

std::optional<LoggedShapes> parse_shape_log(std::string_view text) {
  LoggedShapes shapes;
  if (text.empty()) return shapes;
  static_assert(kHead.size() == kEarlierHead.size());
  if (!text.starts_with(kHead) && !text.starts_with(kEarlierHead)) return std::nullopt;
  // A further digit would be another version.
  const std::string_view behind = text.substr(kHead.size());
  if (!behind.empty() && behind[0] != ':' && behind[0] != '\n') return std::nullopt;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("# ")) {
      line.remove_prefix(2);
      const auto number = take_number(&line);
      if (number && line.starts_with(kLeftOut)) add_to(&shapes.left_out, *number);
      continue;
    }
    std::int64_t count = 0;
    if (line.starts_with(kCount)) {
      line.remove_prefix(kCount.size());
      const auto number = take_number(&line);
      if (!number) continue;
      count = *number;
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with("--")) add_to(&shapes.counts[std::string(line)], count);
  }
  return shapes;
}

std::string print_shape_log(const LoggedShapes& shapes,
                            std::map<std::string, std::int64_t>* without_room) {
  using Shape = std::pair<const std::string, std::int64_t>;
  std::vector<const Shape*> order;
  for (const Shape& shape : shapes.counts) order.push_back(&shape);
  // The lines are sorted already.
  std::ranges::stable_sort(order,
                           [](const Shape* a, const Shape* b) { return a->second > b->second; });
  std::string lines;
  std::int64_t left_out = shapes.left_out;
  std::size_t kept = 0, bytes = 0;
  for (const Shape* shape : order) {
    const auto& [line, count] = *shape;
    if (kept == kMaxShapes || bytes + line.size() > kMaxShapeBytes) {
      add_to(&left_out, count);
      if (without_room != nullptr) without_room->emplace(line, count);
      continue;
    }
    ++kept;
    bytes += line.size();
    lines += fmt::format("{}{} {}\n", kCount, count, line);
  }
  std::string head = fmt::format("{}: what was planned, the most frequent first\n", kHead);
  if (left_out > 0) {
    head += fmt::format("# {}{}, which no line can state or for which there was no room\n",
                        left_out, kLeftOut);
  }
  return head + lines;
}

ShapeLog::ShapeLog(ShapeLogOptions options, std::shared_ptr<ShapeCounts> counts, base::Log log,
                   std::shared_ptr<base::Noted> noted, std::shared_ptr<base::FileSystem> files)
    : options_(std::move(options)),
      counts_(std::move(counts)),
      log_(std::move(log)),
      noted_(std::move(noted)),
      files_(files ? std::move(files) : std::make_shared<base::FileSystem>()) {
  const base::NoSignals none;
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    noted_->write_once(log_,
                       fmt::format("the shape log '{}' is written only when the device is closed, "
                                   "as the system refuses a thread: {}",
                                   options_.path, error.what()));
  }
}

ShapeLog::~ShapeLog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  write_or_note();
}

void ShapeLog::work() {
  std::chrono::milliseconds wait = options_.first_wait;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, wait, [&] { return ending_; })) {
    lock.unlock();
    write_or_note();
    wait = std::min(2 * wait, options_.longest_wait);
    lock.lock();
  }
}

void ShapeLog::write_or_note() {
  try {
    write();
  } catch (const std::exception& error) {
    try {
      noted_->write_once(log_, fmt::format("the shape log is not written: {}", error.what()));
    } catch (const std::bad_alloc&) {  // there is no memory for this line either
    }
  }
}

void ShapeLog::write() {
  const std::lock_guard lock(writing_);
  const ShapeCounts::Taken taken = counts_->take();
  if (taken.empty()) return;
  try {
    add_to_file(taken);
  } catch (...) {
    counts_->put_back(taken);
    if (options_.on_failure) options_.on_failure();
    throw;
  }
}

void ShapeLog::add_to_file(const ShapeCounts::Taken& taken) {
  const std::string& path = options_.path;
  const std::string lock_path = path + ".lock";
  const base::Opened lock(*files_, files_->open(base::kHere, lock_path,
                                                O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (lock.file < 0) {
    base::fail(ErrorCode::kFile, "cannot open '{}': {}", lock_path,
               base::describe_errno(lock.file));
  }
  // If the file system has no locks, the last of two writers wins.
  if (base::wait_for_lock(*files_, lock.file, options_.lock_wait) == base::LockOutcome::kBusy) {
    base::fail(ErrorCode::kFile, "another process has held '{}' for {} ms", lock_path,
               options_.lock_wait.count());
  }
  std::vector<std::byte> bytes;
  const base::FileResult read =
      base::try_read_file(*files_, base::kHere, path, kMaxFileBytes, &bytes);
  if (read.code == -EINVAL) {
    base::fail(ErrorCode::kInvalidFile,
               "'{}' is not a log of shapes, as it is not a regular file; name another", path);
  }
  if (!read.ok() && read.code != -ENOENT) {
    base::fail(ErrorCode::kFile, "cannot {} '{}': {}", read.step, path,
               base::describe_errno(read.code));
  }
  std::optional<LoggedShapes> shapes =
      parse_shape_log({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!shapes) {
    base::fail(ErrorCode::kInvalidFile, "'{}' is not a log of shapes, and is left as it is", path);
  }
  offer(taken, &*shapes);
  std::map<std::string, std::int64_t> without_room;
  const std::string text = print_shape_log(*shapes, &without_room);
  base::write_file_atomically(*files_, path, std::as_bytes(std::span(text)), 0600);
  sweep_once();
  for (const auto& [line, count] : taken.lines) without_room_.find(*line)->second = 0;
  for (const auto& [line, count] : without_room) {
    const auto known = without_room_.find(line);
    if (known != without_room_.end()) add_to(&known->second, count);
  }
}

// Done once for each log, because the folder belongs to the user and may be large.
void ShapeLog::sweep_once() {
  if (std::exchange(swept_, true)) return;
  const std::size_t slash = options_.path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : options_.path.substr(0, slash + 1);
  const base::Opened opened(*files_, files_->open(base::kHere, folder, O_RDONLY | O_DIRECTORY, 0));
  if (opened.file < 0) return;
  base::sweep_temporaries(*files_, opened.file, options_.path.substr(slash + 1));
}

// Adds the counts that were taken, and earlier counts of their lines that were left out. It
// subtracts no more than the file still states as left out, because a user may have started the
// file again.
void ShapeLog::offer(const ShapeCounts::Taken& taken, LoggedShapes* shapes) {
  for (const auto& [line, count] : taken.lines) {
    std::int64_t& all = shapes->counts[*line];
    add_to(&all, count);
    const std::int64_t before = without_room_.try_emplace(*line, 0).first->second;
    const std::int64_t again = std::min(before, shapes->left_out);
    shapes->left_out -= again;
    add_to(&all, again);
  }
  add_to(&shapes->left_out, taken.left_out);
}

}  // namespace annulus::shape_log
