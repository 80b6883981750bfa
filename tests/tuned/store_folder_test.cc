// Folders that a store cannot trust or write to, or whose calls fail.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/faulty_files.h"
#include "tuned/listing.h"
#include "tuned/opened.h"
#include "tuned/sample_entry.h"
#include "tuned/store.h"

namespace annulus::tuned {
namespace {

namespace fs = std::filesystem;
using test::FaultyFiles;
using test::folder_of;
using test::has;
using test::Notes;
using test::path_of;
using test::sample_entry;
using test::ScratchFolder;
using test::store_options;
using test::text_of;
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
    CHECK(store.find_exact(sample_entry(1).shape));  // the result is still known in this process
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

TEST_CASE("a full disk is tried once more after its owner has made room") {
  for (const int code : {ENOSPC, EDQUOT, EROFS}) {
    for (const bool has_room : {true, false}) {
      CAPTURE(code);
      CAPTURE(has_room);
      ScratchFolder scratch;
      const auto files = std::make_shared<FaultyFiles>();
      Notes notes;
      TunedStore store(store_options({scratch / "t"}), notes.log(), files);
      REQUIRE(store.store(sample_entry(1), false).outcome == TunedStore::Outcome::kStored);
      files->refuse_writes = true;
      files->code = code;
      int asked = 0;
      const auto stored = store.store(sample_entry(2), false, [&] {
        ++asked;
        files->refuse_writes = !has_room;
      });
      const bool is_full = code != EROFS;
      CHECK(asked == (is_full ? 1 : 0));
      CHECK((stored.outcome == TunedStore::Outcome::kStored) == (is_full && has_room));
      CHECK(has(scratch / "t", 2) == (is_full && has_room));
      // Nothing is logged about a result that is on the disk.
      CHECK(notes.lines.size() == (is_full && has_room ? 0 : 1));
    }
  }
}

// A folder with too many results is not read at all, so one further result would make all the
// others useless.
TEST_CASE("a folder gets no more results than are read from it") {
  ScratchFolder scratch;
  const auto stored = [&](int number) {
    TunedStore store(store_options({scratch / "t", scratch / "second"}));
    return store.store(sample_entry(number), true);
  };
  CHECK(stored(1).path.starts_with(scratch / "t"));
  for (std::size_t i = 2; i < kMaxEntries; ++i) {
    write(folder_of(scratch / "t") + "/" + std::to_string(i) + ".tuned", "");
  }
  CHECK(stored(2).path.starts_with(scratch / "t"));
  CHECK(stored(1).path.starts_with(scratch / "t"));  // at its old place
  CHECK(stored(3).path.starts_with(scratch / "second"));
  TunedStore store(store_options({scratch / "t"}));
  CHECK(store.find_exact(sample_entry(1).shape));
  CHECK(store.find_exact(sample_entry(2).shape));
  const auto kept = store.store(sample_entry(3), false);
  CHECK(kept.outcome == TunedStore::Outcome::kFailed);
  CHECK(kept.problem.find("more than the 10000 tuned results") != std::string::npos);
  CHECK_FALSE(kept.file.empty());
}

// Reads, stores and reads again. Every system call in turn fails, once or together with all later
// calls.
TEST_CASE("a fault at any system call leaves whole entries and no open file") {
  int faults = 0;
  for (const int code : {ENOSPC, EIO, EINTR, EACCES, ESTALE}) {
    for (const bool persistent : {false, true}) {
      if (code == EINTR && persistent) continue;  // the kernel does not interrupt endlessly
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
        if (files->calls() <= n) break;  // there are fewer than n calls
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

TEST_CASE("an entry that somebody else put into the folder is not believed") {
  ScratchFolder scratch;
  TunedStore(store_options({scratch / "t"})).store(sample_entry(1), false);
  const unsigned me = geteuid();
  const auto believed = [&](unsigned owner, unsigned mode) {
    const auto files = std::make_shared<test::OthersRegularFiles>(owner, mode);
    const bool listed = !list_entries(*files, {scratch / "t"}).entries.empty();
    const bool found = TunedStore(store_options({scratch / "t"}), {}, files)
                           .find_exact(sample_entry(1).shape)
                           .has_value();
    CHECK(listed == found);
    return found;
  };
  CHECK(believed(me, 0600));
  CHECK(believed(0, 0644));  // a file of an administrator
  CHECK_FALSE(believed(me + 1, 0600));
  CHECK_FALSE(believed(me, 0620));
  CHECK_FALSE(believed(me, 0666));
}

TEST_CASE("one failing call loses no result, as what failed is tried again") {
  for (const int code : {EIO, ENOSPC, ESTALE}) {
    for (int n = 0;; ++n) {
      CAPTURE(code);
      CAPTURE(n);
      ScratchFolder scratch;
      const auto files = std::make_shared<FaultyFiles>();
      files->fail_at = n;
      files->code = code;
      TunedStore store(store_options({scratch / "t"}), {}, files);
      CHECK(store.store(sample_entry(1), false).outcome == TunedStore::Outcome::kStored);
      CHECK(has(scratch / "t", 1));
      if (files->calls() <= n) break;
    }
  }
}

TEST_CASE("a folder that takes nothing leaves the result to the next one of the path") {
  ScratchFolder scratch;
  for (const char* name : {"a", "b"}) {
    TunedStore(store_options({scratch / name})).store(sample_entry(1), false);
  }
  // Writes fail only below the first folder, which can still be opened and locked.
  class FullFolder : public base::FileSystem {
   public:
    explicit FullFolder(std::string path) : path_(std::move(path)) {}
    int open(int folder, const std::string& path, int flags, unsigned mode) override {
      const int file = FileSystem::open(folder, path, flags, mode);
      std::error_code ignored;
      const auto where = fs::read_symlink("/proc/self/fd/" + std::to_string(file), ignored);
      if (file >= 0 && where.string().starts_with(path_))
        full_ = file;
      else if (full_ == file)
        full_ = -1;
      return file;
    }
    std::int64_t write(int file, const void* data, std::size_t bytes) override {
      return file == full_ ? -ENOSPC : FileSystem::write(file, data, bytes);
    }

   private:
    std::string path_;
    int full_ = -1;
  };
  Notes notes;
  TunedStore store(store_options({scratch / "a", scratch / "b"}), notes.log(),
                   std::make_shared<FullFolder>(scratch / "a"));
  const auto stored = store.store(sample_entry(2), false);
  CHECK(stored.outcome == TunedStore::Outcome::kStored);
  CHECK(stored.path == path_of(scratch / "b", 2));
  CHECK_FALSE(has(scratch / "a", 2));
  CHECK(has(scratch / "b", 2));
  CHECK(notes.lines.empty());
}

TEST_CASE("where no folder takes a result, its file is handed out and can be put there by hand") {
  ScratchFolder scratch;
  TunedStore(store_options({scratch / "t"})).store(sample_entry(1), false);
  const auto files = std::make_shared<FaultyFiles>();
  files->refuse_writes = true;
  TunedStore store(store_options({scratch / "t"}), {}, files);
  const auto stored = store.store(sample_entry(2), false);
  CHECK(stored.outcome == TunedStore::Outcome::kFailed);
  CHECK(stored.file == text_of(sample_entry(2)));
  write(scratch / ("t/" + stored.file_name), stored.file);
  REQUIRE(chmod((scratch / ("t/" + stored.file_name)).c_str(), 0600) == 0);
  CHECK(has(scratch / "t", 2));
}

TEST_CASE("a lock that another process holds keeps nobody from looking results up") {
  ScratchFolder scratch;
  TunedStore(store_options({scratch / "t"})).store(sample_entry(1), false);
  base::FileSystem files;
  const int held = files.open(base::kHere, folder_of(scratch / "t") + "/tuned.lock", O_RDWR, 0);
  REQUIRE(held >= 0);
  REQUIRE(files.lock(held) == 0);
  StoreOptions options = store_options({scratch / "t"});
  options.lock_wait = std::chrono::milliseconds(2000);
  TunedStore store(options);
  std::atomic<bool> stored{false};
  std::thread writer([&] {
    store.store(sample_entry(2), false);
    stored = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(store.find(sample_entry(1).shape));
  CHECK_FALSE(stored);
  writer.join();
  files.close(held);
  CHECK(has(scratch / "t", 2));
}

TEST_CASE("a clock that is ahead removes no temporary that another process writes") {
  class EarlierFiles : public base::FileSystem {
    int status(int file, Status* status) override {
      const int code = FileSystem::status(file, status);
      status->modified -= 7200;
      return code;
    }
  };
  ScratchFolder scratch;
  TunedStore(store_options({scratch / "t"})).store(sample_entry(1), false);
  write(folder_of(scratch / "t") + "/.annulus-live.tmp", "x");
  TunedStore(store_options({scratch / "t"}), {}, std::make_shared<EarlierFiles>())
      .store(sample_entry(2), false);
  CHECK(fs::exists(folder_of(scratch / "t") + "/.annulus-live.tmp"));
}

}  // namespace
}  // namespace annulus::tuned
