#include "abi/libraries.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "abi/check.h"
#include "annulus/types.h"
#include "support/faulty_files.h"
#include "support/replaced_new.h"

namespace annulus::abi {
namespace {

namespace fs = std::filesystem;

// A search in `folder` only.
LibrarySearch only(const std::string& folder) {
  LibrarySearch search;
  search.first = {folder};
  search.loader = false;
  return search;
}

std::string fake(const char* which) { return std::string(ANNULUS_FAKE_DRIVERS) + "/" + which; }

std::string message_of(const LibrarySearch& search) {
  try {
    open_cuda(search);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kLibrary);
    return error.what();
  }
  FAIL("a driver was opened");
  return {};
}

TEST_CASE("a driver with every symbol is opened and its optional symbols may be absent") {
  const CudaLibrary cuda = open_cuda(only(fake("whole")));
  CHECK(cuda.report.usable());
  CHECK(cuda.report.version == 13000);
  CHECK(cuda.report.version_text == "13.0");
  CHECK(cuda.report.path == fake("whole") + "/libcuda.so.1");
  CHECK_FALSE(cuda.report.simulated);
  CHECK((cuda.table.launch_kernel != nullptr));
  CHECK((cuda.table.graph_launch == nullptr));
  CHECK((cuda.table.simulator_version == nullptr));
  // Capture and graphs, tensor maps and an event are absent, but not the simulator's own functions.
  CHECK(cuda.report.absent.size() == 10);
}

TEST_CASE("a driver that lacks a required symbol is refused by that symbol's name") {
  const std::string message = message_of(only(fake("lacking")));
  CHECK(message.find("cuLaunchKernel") != message.npos);
  CHECK(message.find(fake("lacking") + "/libcuda.so.1") != message.npos);
  const CudaLibrary found = find_cuda(only(fake("lacking")));
  CHECK_FALSE(found.report.usable());
  CHECK((found.table.init == nullptr));  // the table is not filled partially
}

TEST_CASE("a driver that is too old is refused with both versions") {
  const std::string message = message_of(only(fake("old")));
  CHECK(message.find("version 10.2") != message.npos);
  CHECK(message.find("11.0 or newer") != message.npos);
}

TEST_CASE("a file that is no library, and a folder that is none, are told as such") {
  const fs::path folder = fs::temp_directory_path() / "annulus_libraries_test";
  fs::create_directories(folder);
  fs::remove(folder / "libcuda.so.1");
  fs::create_symlink("/dev/null", folder / "libcuda.so.1");
  LibrarySearch search = only(folder.string());
  search.first.push_back("/nonexistent/folder");
  const std::string message = message_of(search);
  CHECK(message.find("ANNULUS_LIBRARY_PATH") != message.npos);
  CHECK(message.find("/nonexistent/folder: has no libcuda.so.1") != message.npos);
  const CudaLibrary found = find_cuda(search);
  REQUIRE(found.report.tried.size() == 2);
  CHECK(found.report.tried[0].outcome.find("libcuda.so.1") != std::string::npos);
  CHECK(found.report.path.empty());
  CHECK(found.report.problem.find("exists but cannot be opened") != std::string::npos);
  CHECK(found.report.problem.find((folder / "libcuda.so.1").string()) != std::string::npos);
  CHECK(find_cuda(only("/nonexistent/folder")).report.problem.find("was not found") !=
        std::string::npos);
  fs::remove_all(folder);
}

TEST_CASE("the first folder wins over the later ones") {
  LibrarySearch search = only(fake("old"));
  search.first.push_back(fake("whole"));
  CHECK(find_cuda(search).report.version == 10020);
}

TEST_CASE("toolkits and wheels are searched after the named folders") {
  LibrarySearch search;
  search.loader = false;
  search.toolkits = {std::string(ANNULUS_FAKE_DRIVERS) + "/toolkit"};
  const NvrtcLibrary nvrtc = find_nvrtc(search);
  CHECK(nvrtc.report.version == 12080);
  CHECK(nvrtc.report.path.find("toolkit/lib64/libnvrtc.so.12") != std::string::npos);
  CHECK(nvrtc.report.problem.find("nvrtcGetErrorString") != std::string::npos);

  search.toolkits.clear();
  search.site_packages = {std::string(ANNULUS_FAKE_DRIVERS) + "/site-packages"};
  const NvrtcLibrary wheel = find_nvrtc(search);
  CHECK(wheel.report.path.find("nvidia/cuda_nvrtc/lib/libnvrtc.so.12") != std::string::npos);
  // The second library can be opened by its bare name now, as NVRTC does, although no path leads
  // there.
  void* builtins = dlopen("libnvrtc-builtins.so.12.8", RTLD_NOW | RTLD_NOLOAD);
  CHECK(builtins != nullptr);
  if (builtins) dlclose(builtins);
}

TEST_CASE("an NVRTC that is not newer than the driver comes before those that are") {
  LibrarySearch search = only(fake("newer"));
  search.toolkits = {fake("toolkit")};
  CHECK(find_nvrtc(search).report.version == 13080);
  CHECK(find_nvrtc(search, 13000).report.version == 13080);
  CHECK(find_nvrtc(search, 12040).report.version == 12080);
  search.toolkits.clear();  // if there is no other, a newer one is better than none
  CHECK(find_nvrtc(search, 12040).report.version == 13080);
  CHECK(find_nvrtc(search, 9000).report.version == 13080);
}

TEST_CASE("versions in words") {
  CHECK(cuda_version_text(12080) == "12.8");
  CHECK(cuda_version_text(13000) == "13.0");
  CHECK(nccl_version_text(22809) == "2.28.9");
  CHECK(nccl_version_text(2708) == "2.7.8");
}

TEST_CASE("the search path comes from the environment's value") {
  base::Environment environment;
  environment.library_path = "/a:/b/c::";
  const LibrarySearch search = default_search(environment);
  REQUIRE(search.first.size() == 2);
  CHECK(search.first[0] == "/a");
  CHECK(search.first[1] == "/b/c");
}

TEST_CASE("what this machine has is reported without throwing") {
  const LibraryReports report = report_libraries(default_search({}));
  CHECK(report.cuda.name == "the CUDA driver");
  for (const LibraryReport* one : {&report.cuda, &report.nvrtc, &report.nccl}) {
    CHECK_FALSE(one->tried.empty());
    CHECK(one->usable() == (one->version > 0));
  }
}

TEST_CASE("of the wheels of several Pythons those of the newest come first") {
  const test::ScratchFolder home;
  for (const char* version : {"python3.9", "python3.11", "python3.10"}) {
    fs::create_directories(home / (std::string(".local/lib/") + version + "/site-packages/nvidia"));
  }
  const LibrarySearch search = default_search({.home = home.path()});
  REQUIRE(search.site_packages.size() >= 3);
  CHECK(search.site_packages[0] == home / ".local/lib/python3.11/site-packages");
  CHECK(search.site_packages[1] == home / ".local/lib/python3.10/site-packages");
  CHECK(search.site_packages[2] == home / ".local/lib/python3.9/site-packages");
  // The folders of a virtual environment come first.
  const test::ScratchFolder environment;
  fs::create_directories(environment / "lib/python3.12/site-packages/nvidia");
  const LibrarySearch inside =
      default_search({.home = home.path(), .virtual_env = environment.path()});
  REQUIRE(inside.site_packages.size() == search.site_packages.size() + 1);
  CHECK(inside.site_packages[0] == environment / "lib/python3.12/site-packages");
}

// The search runs while a device is opened, and there a failed allocation must be an error.
TEST_CASE("an allocation that fails while folders are listed is bad_alloc") {
  int failures = 0;
  for (int n = 0;; ++n) {
    REQUIRE(n < 10'000);
    bool thrown = false;
    const bool failed = test::with_failing_new(n, [&] {
      try {
        default_search({.home = "/root"});
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
    });
    CHECK(thrown == failed);
    if (!failed) break;
    ++failures;
  }
  CHECK(failures > 20);
}

}  // namespace
}  // namespace annulus::abi
