#include "base/env.h"

#include <stdlib.h>

namespace annulus::base {
namespace {

// In a program with more privileges than its caller (setuid, setgid, file capabilities), no
// variable is read. These variables, including HOME, name folders of code that would be loaded.
std::string read(const char* name) {
  const char* value = ::secure_getenv(name);
  return value ? value : "";
}

// The user's folder for files that can be regenerated. The XDG specification requires that relative
// paths in these variables are ignored.
std::string user_cache(const Environment& environment) {
  if (environment.xdg_cache.starts_with('/')) return environment.xdg_cache + "/annulus";
  if (environment.home.starts_with('/')) return environment.home + "/.cache/annulus";
  return "";
}

}  // namespace

Environment read_environment() {
  return {.cache_dir = read("ANNULUS_CACHE_DIR"),
          .kernels = read("ANNULUS_KERNELS"),
          .compile = read("ANNULUS_COMPILE"),
          .tuned = read("ANNULUS_TUNED"),
          .device = read("ANNULUS_DEVICE"),
          .log = read("ANNULUS_LOG"),
          .library_path = read("ANNULUS_LIBRARY_PATH"),
          .require_gpu = read("ANNULUS_REQUIRE_GPU"),
          .simulator_options = read("ANNULUS_SIMULATOR_OPTIONS"),
          .visible_devices = read("CUDA_VISIBLE_DEVICES"),
          .nccl_host_id = read("NCCL_HOSTID"),
          .temporary = read("TMPDIR"),
          .nvtx = read("NVTX_INJECTION64_PATH"),
          .home = read("HOME"),
          .xdg_cache = read("XDG_CACHE_HOME"),
          .virtual_env = read("VIRTUAL_ENV")};
}

std::string default_cache_dir(const Environment& environment) {
  if (environment.cache_dir == "none") return "";
  return environment.cache_dir.empty() ? user_cache(environment) : environment.cache_dir;
}

std::string search_path_of(const std::string& text) { return text == "none" ? "" : text; }

std::string default_tuned_path(const Environment& environment) {
  if (!environment.tuned.empty()) return search_path_of(environment.tuned);
  const std::string folder = user_cache(environment);
  return folder.empty() ? "" : folder + "/tuned";
}

}  // namespace annulus::base
