#include "gpu/results.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace annulus::gpu {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxFileBytes = 15 << 20;
constexpr std::int64_t kMaxFailureBytes = 4 << 20;
constexpr std::size_t kMaxFiles = 8;
constexpr std::size_t kMaxWaiting = 10'000;
constexpr const char* kFailures = "failures.txt";

std::string text_of(const Json& json) {
  // Bytes that are not UTF-8 become a replacement character.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

LineFile::LineFile(std::string path, std::int64_t max_bytes)
    : path_(std::move(path)), max_bytes_(max_bytes) {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  struct stat status;
  if (file_ < 0 || fstat(file_, &status) != 0 || status.st_size == 0) return;
  bytes_ = status.st_size;
  char last = '\n';
  torn_ = pread(file_, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

LineFile::~LineFile() {
  if (file_ >= 0) close(file_);
}

bool LineFile::write(const std::string& line) {
  const std::string text = (torn_ ? "\n" : "") + line + "\n";
  if (bytes_ + static_cast<std::int64_t>(text.size()) > max_bytes_) return false;
  if (file_ < 0) file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const ssize_t written = file_ < 0 ? -1 : ::write(file_, text.data(), text.size());
  if (written > 0) bytes_ += written;
  if (written == static_cast<ssize_t>(text.size())) {
    torn_ = false;
    return true;
  }
  torn_ = torn_ || written > 0;
  return false;
}

bool LineFile::add(const std::string& line) {
  while (!waiting_.empty() && write(waiting_.front())) waiting_.erase(waiting_.begin());
  if (waiting_.empty() && write(line)) return true;
  if (bytes_ + static_cast<std::int64_t>(line.size()) + 2 > max_bytes_) return false;
  if (waiting_.size() < kMaxWaiting) waiting_.push_back(line);
  return false;
}

Results::Results(const std::string& folder, const std::string& call)
    : folder_(folder),
      lines_(((void)fs::create_directories(folder), folder + "/" + call + ".jsonl"), kMaxFileBytes),
      failures_(folder + "/" + kFailures, kMaxFailureBytes) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    names_.insert(entry.path().filename().string());
  }
  if (names_.size() > kMaxFiles) {
    throw std::runtime_error("the folder " + folder + " has " + std::to_string(names_.size()) +
                             " files, and results are at most " + std::to_string(kMaxFiles) +
                             "; name an empty folder");
  }
  std::ifstream earlier(lines_.path());
  for (std::string line; std::getline(earlier, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_string()) continue;
    if (json.value("outcome", "") != "out of time") ended_.insert(json["step"]);
  }
}

void Results::begin(const Json& head) { lines_.add(text_of(head)); }

void Results::say(const std::string& step, Json object) {
  Json line;
  line["of"] = step;
  line["says"] = std::move(object);
  const std::string text = text_of(line);
  if (!lines_.add(text)) std::printf("%s\n", text.c_str());
}

void Results::end(const Json& line, const std::string& tail) {
  const std::string text = text_of(line);
  if (!lines_.add(text)) std::printf("%s\n", text.c_str());
  ended_.insert(line["step"]);
  if (line["outcome"] != "pass" && !tail.empty()) {
    failures_.add("== " + line["step"].get<std::string>() + "\n" + tail);
  }
}

std::string Results::keep_file(const std::string& from, const std::string& name) {
  std::error_code error;
  const auto bytes = fs::file_size(from, error);
  if (error) return "there is no " + from;
  if (bytes > static_cast<std::uintmax_t>(kMaxFileBytes)) {
    return from + " has " + std::to_string(bytes) + " bytes, more than may come back";
  }
  if (!names_.contains(name) && names_.size() >= kMaxFiles) return "there are eight files already";
  // The copy has a temporary name, so that the final name never has an incomplete file.
  const std::string to = folder_ + "/" + name;
  if (!fs::copy_file(from, to + ".new", fs::copy_options::overwrite_existing, error) ||
      (fs::rename(to + ".new", to, error), error)) {
    std::error_code ignored;
    fs::remove(to + ".new", ignored);
    return "cannot write " + to + ": " + error.message();
  }
  names_.insert(name);
  return "";
}

}  // namespace annulus::gpu
