#include "gpu_peers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace annulus::bench {
namespace {

using Json = nlohmann::json;

// The blocks of a problem as a file of int32, which the destructor removes.
class IndexFile {
 public:
  explicit IndexFile(const GpuProblem& problem) {
    if (problem.indices.empty()) return;
    name_ = (std::filesystem::temp_directory_path() / "annulus-blocks-XXXXXX").string();
    const int file = mkstemp(name_.data());
    std::FILE* out = file < 0 ? nullptr : fdopen(file, "wb");
    if (out == nullptr) return;
    std::fwrite(problem.indices.data(), sizeof(std::int32_t), problem.indices.size(), out);
    std::fclose(out);
  }
  ~IndexFile() {
    std::error_code ignored;
    if (!name_.empty()) std::filesystem::remove(name_, ignored);
  }
  IndexFile(const IndexFile&) = delete;
  IndexFile& operator=(const IndexFile&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

}  // namespace

GpuPeers::GpuPeers(const std::string& command) {
  if (command.empty()) return;
  std::signal(SIGPIPE, SIG_IGN);
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) return;
  child_ = fork();
  if (child_ == 0) {
    dup2(down[0], STDIN_FILENO);
    dup2(up[1], STDOUT_FILENO);
    for (const int end : {down[0], down[1], up[0], up[1]}) close(end);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(down[0]);
  close(up[1]);
  to_ = fdopen(down[1], "w");
  from_ = fdopen(up[0], "r");
  const Json hello = Json::parse(read_line().value_or("{}"), nullptr, false);
  if (!hello.is_object()) {
    stop();
    return;
  }
  version_ = hello.value("version", "");
  backends_ = hello.value("backends", std::vector<std::string>());
}

GpuPeers::~GpuPeers() { stop(); }

void GpuPeers::stop() {
  if (to_ != nullptr) std::fclose(to_);
  if (from_ != nullptr) std::fclose(from_);
  to_ = from_ = nullptr;
  if (child_ > 0) waitpid(child_, nullptr, 0);
  child_ = -1;
  backends_.clear();
}

std::optional<std::string> GpuPeers::read_line() {
  std::string line;
  for (int c = std::fgetc(from_); c != EOF; c = std::fgetc(from_)) {
    if (c == '\n') return line;
    line += static_cast<char>(c);
  }
  return std::nullopt;
}

std::vector<double> GpuPeers::measure(const std::string& backend, const GpuProblem& problem,
                                      bool cold, int runs, std::string* why) {
  if (to_ == nullptr) {
    *why = "the peers' process has ended";
    return {};
  }
  const IndexFile indices(problem);
  const Problem& p = problem.problem;
  const Json request = {
      {"backend", backend},     {"name", problem.name},
      {"batch", p.batch},       {"heads", p.heads},
      {"kv_heads", p.kv_heads}, {"seq", p.seq_q},
      {"dim", p.dim_qk},        {"causal", problem.block == 0 && problem.density < 1},
      {"block", problem.block}, {"layouts", problem.layouts},
      {"kept", problem.kept},   {"indices", indices.name()},
      {"cold", cold},           {"runs", runs}};
  std::fprintf(to_, "%s\n", request.dump().c_str());
  std::fflush(to_);
  const auto line = read_line();
  const Json answer = Json::parse(line.value_or(""), nullptr, false);
  if (!line || !answer.is_object()) {
    stop();
    *why = "the peers' process has ended";
    return {};
  }
  *why = answer.value("error", "");
  return answer.value("ms", std::vector<double>());
}

}  // namespace annulus::bench
