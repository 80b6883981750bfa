#ifndef ANNULUS_BASE_ENV_H_
#define ANNULUS_BASE_ENV_H_

// The environment variables that the library reads. Nine of them belong to the library. They are
// read once, when the library or a device is opened.

#include <string>

namespace annulus::base {

// An empty text means that the variable is not set.
struct Environment {
  std::string cache_dir{};  // ANNULUS_CACHE_DIR: folder of compiled kernels
  // ANNULUS_KERNELS: search path of kernels compiled ahead, separated by ':'
  std::string kernels{};
  std::string compile{};  // ANNULUS_COMPILE: "missing" or "never" states which kernels are compiled
  std::string tuned{};    // ANNULUS_TUNED: search path of tuned results, separated by ':'
  std::string device{};   // ANNULUS_DEVICE: "cuda:0", "sim:sm_80", ...
  std::string log{};      // ANNULUS_LOG: "error", "warning", "info" or "debug"
  // ANNULUS_LIBRARY_PATH: first folders for libcuda, libnvrtc and libnccl, separated by ':'
  std::string library_path{};
  std::string require_gpu{};  // ANNULUS_REQUIRE_GPU: "1" or "0"; "1" refuses simulated devices
  std::string simulator_options{};  // ANNULUS_SIMULATOR_OPTIONS: options of simulated devices
  std::string visible_devices{};    // CUDA_VISIBLE_DEVICES, for simulated devices
  std::string nccl_host_id{};  // NCCL_HOSTID: the host that ranks report, for simulated devices
  std::string temporary{};     // TMPDIR: folder for the sockets of the simulated NCCL
  std::string nvtx{};          // NVTX_INJECTION64_PATH: library of a profiler that accepts ranges
  std::string home{};          // HOME, for the defaults below
  std::string xdg_cache{};     // XDG_CACHE_HOME, for the defaults below
  std::string virtual_env{};   // VIRTUAL_ENV: the Python environment of the shell
};

Environment read_environment();

// ANNULUS_CACHE_DIR, else $XDG_CACHE_HOME/annulus, else $HOME/.cache/annulus, else empty. If it is
// empty, nothing is stored on disk.
std::string default_cache_dir(const Environment& environment);

// Converts the text of a search path: "none" means no folder, as an empty text does.
std::string search_path_of(const std::string& text);

// ANNULUS_TUNED, else $XDG_CACHE_HOME/annulus/tuned, else $HOME/.cache/annulus/tuned, else empty.
// If it is empty, tuned results are stored only in memory.
std::string default_tuned_path(const Environment& environment);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_ENV_H_
