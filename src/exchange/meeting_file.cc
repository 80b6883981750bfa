#include "exchange/meeting_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <vector>

#include "base/fail.h"

namespace annulus::exchange {
namespace {

bool is_trusted(const base::FileSystem::Status& status) {
  return status.owner == geteuid() && (status.mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

std::optional<MeetingFile> read_meeting_file(base::FileSystem& files, const std::string& path,
                                             Problem* problem) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  std::vector<std::byte> bytes;
  // The file is opened relative to its folder, so a link is not followed.
  const int held = files.open(base::kHere, folder, O_PATH | O_DIRECTORY, 0);
  base::FileResult result = {held, "open"};
  if (held >= 0) {
    result = base::try_read_file(files, held, name, kMaxFileBytes, &bytes, is_trusted);
    files.close(held);
  }
  if (result.ok()) {
    std::string text;
    std::optional<MeetingFile> file = parse_file(bytes, &text);
    if (!file) *problem = {ErrorCode::kFile, fmt::format("the file '{}' {}", path, text)};
    return file;
  }
  struct Reason {
    int code;
    ErrorCode error;
    const char* text;
  };
  static constexpr Reason kReasons[] = {
      {-ENOENT, ErrorCode::kCommunication, "there is no file '{}'"},
      {-ELOOP, ErrorCode::kFile, "'{}' is a link, which is not followed"},
      {-EINVAL, ErrorCode::kFile, "'{}' is not a regular file"},
      {-EFBIG, ErrorCode::kFile, "the file '{}' is too large to be rank 0's"},
      {-EPERM, ErrorCode::kFile,
       "the file '{}' belongs to another user, or others may write to it"},
  };
  for (const Reason& reason : kReasons) {
    if (reason.code != result.code) continue;
    *problem = {reason.error, fmt::format(fmt::runtime(reason.text), path)};
    return std::nullopt;
  }
  *problem = {ErrorCode::kFile, fmt::format("cannot {} '{}': {}", result.step, path,
                                            base::describe_errno(result.code))};
  return std::nullopt;
}

PublishedFile::PublishedFile(base::FileSystem& files, const std::string& path,
                             const MeetingFile& file)
    : files_(files), path_(path), nonce_(file.nonce) {
  const std::string text = file_text(file);
  const base::FileResult result = base::try_write_file(
      files, base::kHere, path, std::as_bytes(std::span(text.data(), text.size())), 0600);
  if (!result.ok()) {
    base::fail(ErrorCode::kFile, "cannot {} '{}' or the temporary file next to it: {}", result.step,
               path, base::describe_errno(result.code));
  }
}

PublishedFile::~PublishedFile() {
  try {
    Problem problem;
    const auto now = read_meeting_file(files_, path_, &problem);
    if (now && now->nonce == nonce_) files_.unlink(base::kHere, path_);
  } catch (...) {  // Out of memory: the file stays, and later ranks treat it as an old file.
  }
}

}  // namespace annulus::exchange
