#include "base/env.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "support/faulty_files.h"
#include "support/sanitized.h"

namespace annulus::base {
namespace {

TEST_CASE("the cache folder is the variable, else the XDG folder, else below home, else none") {
  CHECK(default_cache_dir({.cache_dir = "/c", .home = "/h", .xdg_cache = "/x"}) == "/c");
  CHECK(default_cache_dir({.home = "/h", .xdg_cache = "/x"}) == "/x/annulus");
  CHECK(default_cache_dir({.home = "/h"}) == "/h/.cache/annulus");
  // Relative folders are ignored, because a cache must not depend on the working directory.
  CHECK(default_cache_dir({.home = "/h", .xdg_cache = "x"}) == "/h/.cache/annulus");
  CHECK(default_cache_dir({.home = "h"}).empty());
  CHECK(default_cache_dir({}).empty());
}

TEST_CASE("tuned results lie where the variable says, else beside the cache") {
  CHECK(default_tuned_path({.tuned = "/a:/b", .home = "/h", .xdg_cache = "/x"}) == "/a:/b");
  CHECK(default_tuned_path({.cache_dir = "/c", .xdg_cache = "/x"}) == "/x/annulus/tuned");
  CHECK(default_tuned_path({.home = "/h", .xdg_cache = "x"}) == "/h/.cache/annulus/tuned");
  CHECK(default_tuned_path({.home = "h"}).empty());
  // "none" is the program's word for no folder.
  CHECK(default_tuned_path({.tuned = "none", .home = "/h"}).empty());
  CHECK(default_cache_dir({.cache_dir = "none", .home = "/h"}).empty());
}

TEST_CASE("the environment is read by name") {
  setenv("ANNULUS_CACHE_DIR", "/somewhere", 1);
  setenv("ANNULUS_DEVICE", "sim:sm_80", 1);
  setenv("ANNULUS_KERNELS", "/opt/kernels:/srv/kernels", 1);
  setenv("ANNULUS_COMPILE", "never", 1);
  unsetenv("ANNULUS_LOG");
  const Environment environment = read_environment();
  CHECK(environment.kernels == "/opt/kernels:/srv/kernels");
  CHECK(environment.compile == "never");
  unsetenv("ANNULUS_KERNELS");
  unsetenv("ANNULUS_COMPILE");
  CHECK(environment.cache_dir == "/somewhere");
  CHECK(environment.device == "sim:sm_80");
  CHECK(environment.log.empty());
  unsetenv("ANNULUS_CACHE_DIR");
  unsetenv("ANNULUS_DEVICE");
}

// The next test runs only this test, in a program with another user's rights.
TEST_CASE("the environment is empty" * doctest::skip()) {
  const Environment read = read_environment();
  CHECK(read.library_path.empty());
  CHECK(read.cache_dir.empty());
  CHECK(read.home.empty());
}

// A sanitizer's search for leaks fails in a program with other rights.
TEST_CASE("a program with rights that its caller lacks reads nothing of the environment" *
          doctest::skip(test::kSanitized)) {
  constexpr uid_t kNobody = 65534;
  const test::ScratchFolder scratch;
  const std::string program = scratch / "program";
  std::filesystem::copy_file("/proc/self/exe", program);
  if (chown(program.c_str(), kNobody, kNobody) != 0) {
    MESSAGE("only root can make a file of another user");
    return;
  }
  REQUIRE(chmod(scratch.path().c_str(), 0755) == 0);
  const auto passes = [&](mode_t mode) {
    REQUIRE(chmod(program.c_str(), mode) == 0);
    const std::string command = "HOME=/h ANNULUS_LIBRARY_PATH=/l ANNULUS_CACHE_DIR=/c " + program +
                                " --no-skip --test-case='the environment is empty' > /dev/null";
    return std::system(command.c_str()) == 0;
  };
  CHECK_FALSE(passes(0755));
  CHECK(passes(04755));
}

}  // namespace
}  // namespace annulus::base
