#ifndef ANNULUS_TOOLS_BENCH_GPU_PEERS_H_
#define ANNULUS_TOOLS_BENCH_GPU_PEERS_H_

// The attention of other programs on the same device. They run in a process of their own that
// measures when it is asked, so that the runs of all can be interleaved. Each line either way is
// one JSON object:
//
//   it begins  {"version": "torch 2.9", "backends": ["flash", "cudnn", "flex"]}
//   we ask     {"backend": "flash", "name": ..., "batch": 1, "heads": 16, "kv_heads": 16,
//               "seq": 16384, "dim": 128, "causal": false, "block": 0, "layouts": 0, "kept": 0,
//               "indices": "FILE", "cold": false, "runs": 3}
//   it says    {"ms": [1.5, 1.4, 1.4]} or {"error": "why it has no such kernel"}
//
// tools/gpu_peers.py is such a program, for PyTorch.

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "gpu_problems.h"

namespace annulus::bench {

class GpuPeers {
 public:
  // Runs `command` in a shell; empty: there are no peers.
  explicit GpuPeers(const std::string& command);
  ~GpuPeers();
  GpuPeers(const GpuPeers&) = delete;
  GpuPeers& operator=(const GpuPeers&) = delete;

  const std::string& version() const { return version_; }
  const std::vector<std::string>& backends() const { return backends_; }

  // Milliseconds of each run; empty, with *why, where the backend has no such kernel or the process
  // has ended.
  std::vector<double> measure(const std::string& backend, const GpuProblem& problem, bool cold,
                              int runs, std::string* why);

 private:
  std::optional<std::string> read_line();
  void stop();

  int child_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string version_;
  std::vector<std::string> backends_;
};

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_PEERS_H_
