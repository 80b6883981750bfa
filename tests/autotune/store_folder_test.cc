// Folders that a store cannot trust, cannot write to, or that fail under it.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "autotune/sample_entry.h"
#include "autotune/store.h"
#include "support/faulty_files.h"

namespace annulus::autotune {
namespace {

namespace fs = std::filesystem;
using test::FaultyFiles;
using test::folder_of;
using test::has;
using test::Notes;
using test::sample_entry;
using test::ScratchFolder;
using test::store_options;
using test::write;

TEST_CASE("a folder that others could fill is not read and not written, with one warning") {
  ScratchFolder scratch;
  const auto refused = [&](const std::string& folder, const std::string& part,
                           std::shared_ptr<base::FileSystem> files = nullptr) {
    CAPTURE(folder);
    Notes notes;
    TunedStore store(store_options({folder}), notes.log(), files);
    CHECK_FALSE(store.find(sample_entry(1).shape));
    CHECK_FALSE(store.find(sample_entry(1).shape));
    CHECK(notes.lines.size() == 1);
    std::string problem;
    CHECK_FALSE(store.writable_folder(&problem));
    CHECK_MESSAGE(problem.find(part) != std::string::npos, problem);
    CHECK(store.store(sample_entry(1), false).outcome == TunedStore::Outcome::kFailed);
    CHECK(store.find_exact(sample_entry(1).shape));  // this process knows what it has found
  };
  TunedStore(store_options({scratch / "t"})).store(sample_entry(1), false);
  for (const unsigned mode : {0777u, 0770u, 0702u}) {
    REQUIRE(chmod((scratch / "t").c_str(), mode) == 0);
    refused(scratch / "t", "others may write");
  }
  REQUIRE(chmod((scratch / "t").c_str(), 0700) == 0);
  REQUIRE(chmod(folder_of(scratch / "t").c_str(), 0722) == 0);
  refused(scratch / "t", "others may write");
  REQUIRE(chmod(folder_of(scratch / "t").c_str(), 0700) == 0);
  fs::create_directory_symlink(scratch / "t", scratch / "link");
  refused(scratch / "link", "symbolic link");
  write(scratch / "file", "x");
  refused(scratch / "file", "it is a file");
  refused("relative/folder", "absolute");
  refused(scratch / "t", "belongs to user", std::make_shared<test::OthersFiles>(geteuid() + 1));
  CHECK(has(scratch / "t", 1));
}

TEST_CASE("root's folders are read by everybody and written by root alone") {
  ScratchFolder scratch;
  TunedStore(store_options({scratch / "t"})).store(sample_entry(1), false);
  Notes notes;
  TunedStore store(store_options({scratch / "t"}), notes.log(),
                   std::make_shared<test::OthersFiles>(0));
  CHECK(store.find_exact(sample_entry(1).shape));
  CHECK(notes.lines.empty());
  std::string problem;
  CHECK(store.writable_folder(&problem).has_value() == (geteuid() == 0));
}

TEST_CASE("without a folder results live in memory and nothing is asked of the disk") {
  const auto files = std::make_shared<FaultyFiles>();
  Notes notes;
  TunedStore store(store_options({}), notes.log(), files);
  CHECK(store.empty());
  const auto stored = store.store(sample_entry(1), false);
  CHECK(stored.path.empty());
  CHECK(store.find_exact(sample_entry(1).shape));
  CHECK(store.find_exact(sample_entry(1).shape)->path.empty());
  CHECK(files->calls() == 0);
  CHECK(notes.lines.empty());
}

TEST_CASE("a disk that is full or read-only costs the file and nothing else") {
  ScratchFolder scratch;
  TunedStore(store_options({scratch / "t"})).store(sample_entry(1), false);
  for (const int code : {ENOSPC, EROFS, EACCES, EDQUOT, EIO}) {
    CAPTURE(code);
    const auto files = std::make_shared<FaultyFiles>();
    files->refuse_writes = true;
    files->code = code;
    Notes notes;
    TunedStore store(store_options({scratch / "t"}), notes.log(), files);
    CHECK(store.find_exact(sample_entry(1).shape));
    const auto stored = store.store(sample_entry(2), false);
    CHECK(stored.outcome == TunedStore::Outcome::kFailed);
    CHECK(stored.problem.find(base::describe_errno(code)) != std::string::npos);
    CHECK(store.find_exact(sample_entry(2).shape));
    CHECK(notes.lines.size() == 1);
    CHECK_FALSE(has(scratch / "t", 2));
  }
}

// Read, store anew, read again: every system call in turn fails, once or from then on.
TEST_CASE("a fault at any system call leaves whole entries and no open file") {
  int faults = 0;
  for (const int code : {ENOSPC, EIO, EINTR, EACCES, ESTALE}) {
    for (const bool persistent : {false, true}) {
      if (code == EINTR && persistent) continue;  // no kernel interrupts without end
      for (int n = 0;; ++n) {
        ScratchFolder scratch;
        TunedStore(store_options({scratch / "t"})).store(sample_entry(1), false);
        const auto files = std::make_shared<FaultyFiles>();
        files->fail_at = n;
        files->code = code;
        files->persistent = persistent;
        files->cut_short = n % 2 == 1;
        {
          StoreOptions options = store_options({scratch / "t"});
          options.lock_wait = std::chrono::milliseconds(20);
          TunedStore store(options, {}, files);
          store.find(sample_entry(1).shape);
          store.store(sample_entry(2), false);
          CHECK(store.find_exact(sample_entry(2).shape)->entry == sample_entry(2));
        }
        CHECK(files->opened() == 0);
        Notes notes;
        TunedStore after(store_options({scratch / "t"}), notes.log());
        CHECK(after.find_exact(sample_entry(1).shape)->entry == sample_entry(1));
        CHECK(notes.lines.empty());
        ++faults;
        if (files->calls() <= n) break;  // n was beyond the last call
        if (n > 2000) FAIL("the calls do not end");
      }
    }
  }
  MESSAGE("faults injected: " << faults);
}

TEST_CASE("a folder with more files than any tuner makes is not read") {
  ScratchFolder scratch;
  TunedStore(store_options({scratch / "t"})).store(sample_entry(1), false);
  for (int i = 0; i < 10'001; ++i) {
    write(folder_of(scratch / "t") + "/" + std::to_string(i) + ".tuned", "");
  }
  Notes notes;
  TunedStore store(store_options({scratch / "t"}), notes.log());
  CHECK(store.empty());
  CHECK(notes.lines.size() == 1);
}

}  // namespace
}  // namespace annulus::autotune
