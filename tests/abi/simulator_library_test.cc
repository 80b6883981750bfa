// The simulator's library: where it is searched, and the errors for wrong libraries.

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "abi/libraries.h"
#include "abi/own_folders.h"
#include "annulus/simulator.h"
#include "annulus/types.h"
#include "support/faulty_files.h"

namespace annulus::abi {
namespace {

std::string fake(const std::string& folder) { return ANNULUS_FAKE_DRIVERS "/" + folder; }

LibrarySearch only(const std::string& folder) {
  LibrarySearch search;
  search.beside = {folder};
  search.loader = false;
  return search;
}

std::string refusal(const LibrarySearch& search) {
  const CudaLibrary found = find_simulator(search);
  CHECK(!found.report.usable());
  CHECK((found.table.init == nullptr));
  try {
    open_simulator(search);
    FAIL("opened");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kLibrary);
    return error.what();
  }
  return {};
}

bool holds(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK(text.find(part) != text.npos);
  return true;
}

TEST_CASE("a simulator of another version is refused with both versions") {
  const std::string text = refusal(only(fake("simulator_newer")));
  holds(text, fake("simulator_newer") + "/libannulus_simulator.so.0");
  holds(text, "version 99");
  holds(text, "version " + std::to_string(ANNULUS_SIMULATOR_VERSION));
  holds(text, ANNULUS_VERSION_TEXT);
}

TEST_CASE("a simulator that lacks what a driver needs is refused with the symbol") {
  holds(refusal(only(fake("simulator_empty"))), "lacks the required symbol cuInit");
  holds(refusal(only(fake("simulator_none"))), "lacks the required symbol annulusSimulatorVersion");
}

TEST_CASE("where there is none, the error says what to install and where it was looked for") {
  LibrarySearch search = only(fake("whole"));
  search.first = {"/nonexistent/folder"};
  const std::string text = refusal(search);
  holds(text, "libannulus_simulator.so.0");
  holds(text, "ANNULUS_SIMULATOR=ON");
  holds(text, "ANNULUS_LIBRARY_PATH");
  holds(text, fake("whole") + ": has no libannulus_simulator.so.0");
  holds(text, "/nonexistent/folder: has no libannulus_simulator.so.0");
}

TEST_CASE("what lies beside the library comes before ANNULUS_LIBRARY_PATH") {
  LibrarySearch search = only(fake("simulator_newer"));
  search.first = {fake("simulator_none")};
  holds(refusal(search), fake("simulator_newer"));
  search.beside = {fake("whole")};  // it has no version
  holds(refusal(search), fake("simulator_none"));
}

TEST_CASE("a program that holds the rooms looks beside itself and in the folder above") {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::vector<std::string> folders = own_folders();
  REQUIRE(folders.size() >= 2);
  CHECK(folders.front() == self.parent_path());
  CHECK(folders.back() == self.parent_path().parent_path());
}

TEST_CASE("of the folders around, one that everybody may write into is not looked in") {
  namespace fs = std::filesystem;
  const test::ScratchFolder scratch;
  const fs::path open = fs::path(scratch.path()) / "open";
  fs::create_directories(open / "bin");
  fs::create_directories(open / "lib");
  const std::string file = open / "bin" / "program";
  using Folders = std::vector<std::string>;
  CHECK(folders_around(file) == Folders{open / "bin", open / "lib", open});
  fs::permissions(open, fs::perms::others_write, fs::perm_options::add);
  CHECK(folders_around(file) == Folders{open / "bin", open / "lib"});
  fs::permissions(open / "bin", fs::perms::others_write, fs::perm_options::add);
  CHECK(folders_around(file) == Folders{open / "bin", open / "lib"});
}

}  // namespace
}  // namespace annulus::abi
