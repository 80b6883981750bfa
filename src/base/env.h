#ifndef ANNULUS_BASE_ENV_H_
#define ANNULUS_BASE_ENV_H_

// The environment variables that the library looks at, nine of which are its own, read once when
// the library or a device is opened.

#include <string>

namespace annulus::base {

// Empty means not set.
struct Environment {
  std::string cache_dir{};  // ANNULUS_CACHE_DIR: folder of compiled kernels
  std::string kernels{};    // ANNULUS_KERNELS: search path of kernels compiled ahead, ':' between
  std::string compile{};    // ANNULUS_COMPILE: "missing" or "never": which kernels are compiled
  std::string tuned{};      // ANNULUS_TUNED: search path of tuned results, ':' between folders
  std::string device{};     // ANNULUS_DEVICE: "cuda:0", "sim:sm_80", ...
  std::string log{};        // ANNULUS_LOG: "error", "warning", "info" or "debug"
  std::string library_path{};  // ANNULUS_LIBRARY_PATH: where to look first for libcuda, libnvrtc,
                               // libnccl, ':' between folders
  std::string require_gpu{};   // ANNULUS_REQUIRE_GPU: "1" or "0"; a simulated device is refused
  std::string simulator_options{};  // ANNULUS_SIMULATOR_OPTIONS: options of simulated devices
  std::string visible_devices{};    // CUDA_VISIBLE_DEVICES, for simulated devices
  std::string nccl_host_id{};       // NCCL_HOSTID: the host that ranks say they are on, likewise
  std::string temporary{};          // TMPDIR: folder of sockets of the simulated NCCL
  std::string nvtx{};         // NVTX_INJECTION64_PATH: library of a profiler that takes ranges
  std::string home{};         // HOME, for the defaults below
  std::string xdg_cache{};    // XDG_CACHE_HOME, likewise
  std::string virtual_env{};  // VIRTUAL_ENV: the Python environment in which a shell is
};

Environment read_environment();

// ANNULUS_CACHE_DIR, else $XDG_CACHE_HOME/annulus, else $HOME/.cache/annulus, else empty: then
// nothing is kept on disk.
std::string default_cache_dir(const Environment& environment);

// The path that a text of a search path means: "none" is no folder, like an empty text.
std::string search_path_of(const std::string& text);

// ANNULUS_TUNED, else $XDG_CACHE_HOME/annulus/tuned, else $HOME/.cache/annulus/tuned, else empty:
// then tuned results live in memory.
std::string default_tuned_path(const Environment& environment);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_ENV_H_
