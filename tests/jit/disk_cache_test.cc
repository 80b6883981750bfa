#include "jit/disk_cache.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "jit/kernel_cache.h"
#include "jit/sample_kernel.h"
#include "support/faulty_files.h"

namespace annulus::jit {
namespace {

namespace fs = std::filesystem;
using test::FaultyFiles;
using test::sample_kernel;
using test::sample_key;
using test::ScratchFolder;

// Collects the log.
struct Notes {
  std::vector<std::string> lines;
  base::Log log() {
    return base::Log([this](base::LogLevel, std::string_view text) { lines.emplace_back(text); });
  }
};

std::string path_of(const ScratchFolder& folder, int number) {
  return folder / kernel_file_name(sample_key(number));
}

// Gets kernel `number` through the cache. Returns true if it had to be built.
bool built(DiskCache& disk, int number, CompiledKernel* result = nullptr) {
  bool called = false;
  const ObtainedKernel obtained = obtain_kernel(disk, sample_key(number), [&] {
    called = true;
    return sample_kernel(number);
  });
  CHECK(obtained.kernel == sample_kernel(number));
  CHECK((obtained.origin == Origin::kCompiled) == called);
  if (result) *result = obtained.kernel;
  return called;
}

std::int64_t bytes_of(DiskCache& disk) {
  std::int64_t bytes = 0;
  for (const ListedKernel& kernel : disk.list()) bytes += kernel.bytes;
  return bytes;
}

std::size_t temporaries(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    count += entry.path().filename().string().starts_with(".annulus-");
  }
  return count;
}

TEST_CASE("a kernel is built once and then found, also by another cache on the folder") {
  ScratchFolder scratch;
  const std::string folder = scratch / "deep/er/cache";
  DiskCache disk({.folder = folder});
  REQUIRE(disk.usable());
  CHECK(built(disk, 1));
  CHECK_FALSE(built(disk, 1));
  CHECK(built(disk, 2));
  DiskCache other({.folder = folder + "/"});
  CHECK_FALSE(built(other, 1));
  CHECK_FALSE(built(other, 2));
  CHECK(other.list().size() == 2);
  CHECK(bytes_of(other) > 600);
  struct stat found;
  REQUIRE(stat(folder.c_str(), &found) == 0);
  CHECK((found.st_mode & 07777u) == 0700);
}

TEST_CASE("a file that is damaged in any byte or cut anywhere is built anew and replaced") {
  ScratchFolder scratch;
  fs::permissions(scratch.path(), fs::perms::owner_all);
  Notes notes;
  DiskCache disk({.folder = scratch.path()}, notes.log(), std::make_shared<FaultyFiles>());
  CHECK(built(disk, 1));
  const std::string path = path_of(scratch, 1);
  base::FileSystem files;
  const auto whole = base::read_file(files, path, 1 << 20);
  std::size_t damages = 0;
  const auto try_damage = [&](const std::vector<std::byte>& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    CHECK(built(disk, 1));
    ++damages;
    CHECK(base::read_file(files, path, 1 << 20) == whole);
  };
  for (std::size_t i = 0; i < whole.size(); i += i < 200 ? 1 : 17) {
    auto damaged = whole;
    damaged[i] ^= std::byte{0x10};
    try_damage(damaged);
  }
  for (std::size_t size : {0ul, 1ul, 63ul, 64ul, 65ul, whole.size() - 1}) {
    try_damage({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
  }
  auto longer = whole;
  longer.resize(longer.size() + 4096);
  try_damage(longer);
  try_damage(encode_kernel_file(sample_key(2), sample_kernel(1)));
  CHECK(notes.lines.size() == damages);  // one line each
  CHECK_FALSE(built(disk, 1));
}

TEST_CASE("something else in the place of a kernel file costs a build and nothing more") {
  ScratchFolder scratch;
  DiskCache disk({.folder = scratch / "cache"});
  const ScratchFolder elsewhere;
  const std::string path = scratch / ("cache/" + kernel_file_name(sample_key(1)));
  const auto whole = encode_kernel_file(sample_key(1), sample_kernel(1));
  base::FileSystem files;
  base::write_file_atomically(files, elsewhere / "kernel", whole);
  fs::create_symlink(elsewhere / "kernel", path);
  CHECK(built(disk, 1));  // a link is not followed, but replaced
  CHECK_FALSE(fs::is_symlink(path));
  CHECK_FALSE(built(disk, 1));
  fs::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(built(disk, 1));
  CHECK_FALSE(built(disk, 1));
  fs::remove(path);
  fs::create_directories(path + "/x");
  CHECK(built(disk, 1));
  CHECK(built(disk, 1));  // a folder cannot be replaced by a file
  CHECK(fs::is_directory(path));
}

TEST_CASE("a folder that others could fill is not used, with one warning") {
  ScratchFolder scratch;
  const auto refused = [&](const std::string& folder, const std::string& reason,
                           std::shared_ptr<base::FileSystem> files = nullptr) {
    CAPTURE(folder);
    Notes notes;
    DiskCache disk({.folder = folder}, notes.log(), std::move(files));
    CHECK_FALSE(disk.usable());
    CHECK(disk.problem().find(reason) != std::string::npos);
    CHECK(built(disk, 1));
    CHECK(built(disk, 1));
    CHECK(notes.lines.size() == 1);
  };
  for (unsigned mode : {0777u, 0770u, 0720u, 0702u, 01777u}) {
    const std::string folder = scratch / std::to_string(mode);
    fs::create_directory(folder);
    REQUIRE(chmod(folder.c_str(), mode) == 0);
    refused(folder, "others may write");
    CHECK(fs::is_empty(folder));
  }
  fs::create_directory(scratch / "real");
  REQUIRE(chmod((scratch / "real").c_str(), 0700) == 0);
  fs::create_directory_symlink(scratch / "real", scratch / "link");
  refused(scratch / "link", "symbolic link");
  refused(scratch / "link/", "symbolic link");
  CHECK(fs::is_empty(scratch / "real"));
  std::ofstream(scratch / "file") << "x";
  refused(scratch / "file", "it is a file");
  refused(scratch / "file/cache", "cannot open");
  refused("relative/folder", "absolute");
  refused(scratch / "real", "belongs to user", std::make_shared<test::OthersFiles>(geteuid() + 1));
  {
    DiskCache readable({.folder = scratch / "real"});
    CHECK(readable.usable());
  }
  // Other users may read it, because it is not secret.
  REQUIRE(chmod((scratch / "real").c_str(), 0755) == 0);
  DiskCache readable({.folder = scratch / "real"});
  CHECK(readable.usable());
}

TEST_CASE("without a folder nothing is kept and nothing is said") {
  DiskCache disk({});
  CHECK_FALSE(disk.usable());
  CHECK(built(disk, 1));
  CHECK(built(disk, 1));
  CHECK(disk.list().empty());
}

TEST_CASE("a folder that can only be read serves what it holds and takes nothing") {
  ScratchFolder scratch;
  {
    DiskCache disk({.folder = scratch / "cache"});
    CHECK(built(disk, 1));
  }
  for (int code : {EROFS, EACCES, ENOSPC, EDQUOT}) {
    const auto files = std::make_shared<FaultyFiles>();
    files->refuse_writes = true;
    files->code = code;
    Notes notes;
    DiskCache disk({.folder = scratch / "cache"}, notes.log(), files);
    CHECK(disk.usable());
    CHECK_FALSE(built(disk, 1));
    CHECK(built(disk, 2));
    CHECK(built(disk, 2));
    CHECK(built(disk, 3));
    CHECK(notes.lines.size() == 1);  // it is logged once, and not for every kernel
  }
  if (geteuid() != 0) {
    REQUIRE(chmod((scratch / "cache").c_str(), 0500) == 0);
    DiskCache disk({.folder = scratch / "cache"});
    CHECK_FALSE(built(disk, 1));
    CHECK(built(disk, 2));
    REQUIRE(chmod((scratch / "cache").c_str(), 0700) == 0);
  }
}

// A call without the file, a call with it, and a damaged file. Every system call in turn fails,
// once or together with all later calls.
TEST_CASE("a fault at any system call never changes the result and leaves no half file") {
  int faults = 0;
  for (int code : {ENOSPC, EIO, EINTR, EACCES, ESTALE, EBUSY}) {
    for (bool persistent : {false, true}) {
      if (code == EINTR && persistent) continue;  // the kernel does not interrupt endlessly
      for (int n = 0;; ++n) {
        ScratchFolder scratch;
        const auto files = std::make_shared<FaultyFiles>();
        files->fail_at = n;
        files->code = code;
        files->persistent = persistent;
        files->cut_short = n % 2 == 1;
        {
          DiskCache disk({.folder = scratch / "cache", .lock_wait = std::chrono::milliseconds(50)},
                         {}, files);
          built(disk, 1);
          built(disk, 1);
          if (fs::exists(scratch / ("cache/" + kernel_file_name(sample_key(1))))) {
            std::ofstream(scratch / ("cache/" + kernel_file_name(sample_key(1)))) << "x";
          }
          built(disk, 1);
        }
        CHECK(files->opened() == 0);
        // The files afterwards are complete, and no temporary file stays unless removing it failed
        // too.
        if (fs::exists(scratch / "cache")) {
          Notes notes;
          DiskCache after({.folder = scratch / "cache"}, notes.log());
          if (after.usable() && !persistent) built(after, 1);
          if (!persistent) CHECK(temporaries(scratch / "cache") == 0);
        }
        ++faults;
        if (files->calls() <= n) break;  // there are fewer than n calls
        if (n > 2000) FAIL("the calls do not end");
      }
    }
  }
  MESSAGE("faults injected: " << faults);
}

TEST_CASE("locks that do not work cost nothing but the work they would have spared") {
  class NoLocks : public base::FileSystem {
    int lock(int) override { return -ENOLCK; }
  };
  ScratchFolder scratch;
  DiskCache disk({.folder = scratch / "cache"}, {}, std::make_shared<NoLocks>());
  CHECK(built(disk, 1));
  CHECK_FALSE(built(disk, 1));
}

TEST_CASE("a lock that is never given up delays by the time limit and no more") {
  ScratchFolder scratch;
  DiskCache holder({.folder = scratch / "cache"});
  const DiskCache::Lock lock = holder.lock(sample_key(1));
  Notes notes;
  DiskCache disk({.folder = scratch / "cache", .lock_wait = std::chrono::milliseconds(60)},
                 notes.log());
  const auto start = std::chrono::steady_clock::now();
  CHECK(built(disk, 1));
  const auto waited = std::chrono::steady_clock::now() - start;
  CHECK(waited >= std::chrono::milliseconds(60));
  CHECK(waited < std::chrono::seconds(20));
  CHECK(notes.lines.size() == 1);
  CHECK_FALSE(built(disk, 1));
}

TEST_CASE("beyond its size the oldest kernels go; what killed writers left goes after an hour") {
  ScratchFolder scratch;
  const std::string folder = scratch / "cache";
  {
    DiskCache disk({.folder = folder});
    for (int number = 0; number < 40; ++number) CHECK(built(disk, number));
  }
  const auto aged = [&](const std::string& name, int seconds) {
    const timespec time{::time(nullptr) - seconds, 0};
    const timespec times[2] = {time, time};
    REQUIRE(utimensat(AT_FDCWD, (folder + "/" + name).c_str(), times, 0) == 0);
  };
  for (int number = 0; number < 40; ++number) {
    aged(kernel_file_name(sample_key(number)), 1000 - number);
  }
  std::ofstream(folder + "/.annulus-old.tmp") << "x";
  std::ofstream(folder + "/.annulus-new.tmp") << "x";
  std::ofstream(folder + "/somebody's.txt") << "x";
  aged(".annulus-old.tmp", 4000);
  aged("somebody's.txt", 4000);
  DiskCache small({.folder = folder, .max_bytes = 10000});
  CHECK(built(small, 100));  // the first stored file starts a sweep
  CHECK(bytes_of(small) <= 10000);
  CHECK(small.list().size() > 5);
  CHECK_FALSE(built(small, 100));
  CHECK_FALSE(built(small, 39));
  CHECK(fs::exists(folder + "/.annulus-new.tmp"));
  CHECK_FALSE(fs::exists(folder + "/.annulus-old.tmp"));
  CHECK(fs::exists(folder + "/somebody's.txt"));
  CHECK(built(small, 0));
}

TEST_CASE("what build throws passes through, and nothing is stored") {
  ScratchFolder scratch;
  DiskCache disk({.folder = scratch / "cache"});
  CHECK_THROWS_AS(obtain_kernel(disk, sample_key(1),
                                []() -> CompiledKernel { throw std::runtime_error("no"); }),
                  std::runtime_error);
  CHECK(disk.list().empty());
  CHECK(built(disk, 1));
}

// The folder is private now, but it was not always.
TEST_CASE("a kernel file that somebody else put into the folder is not believed, but replaced") {
  struct Case {
    unsigned owner;
    unsigned mode;
    bool believed;
  };
  const unsigned me = geteuid();
  for (const auto& [owner, mode, believed] :
       {Case{me, 0600, true}, Case{me, 0644, true}, Case{me + 1, 0600, false},
        Case{me, 0660, false}, Case{me, 0602, false}}) {
    CAPTURE(owner);
    CAPTURE(mode);
    ScratchFolder scratch;
    {
      DiskCache disk({.folder = scratch / "cache"});
      CHECK(built(disk, 1));
    }
    Notes notes;
    DiskCache disk({.folder = scratch / "cache"}, notes.log(),
                   std::make_shared<test::OthersRegularFiles>(owner, mode));
    CHECK(built(disk, 1) == !believed);
    CHECK(notes.lines.size() == (believed ? 0 : 1));
  }
  ScratchFolder scratch;
  DiskCache disk({.folder = scratch / "cache"});
  CHECK(built(disk, 1));
  const std::string path = scratch / ("cache/" + kernel_file_name(sample_key(1)));
  REQUIRE(chmod(path.c_str(), 0666) == 0);
  CHECK(built(disk, 1));
  CHECK_FALSE(built(disk, 1));  // the file that replaced it belongs to the caller
}

// The folder's server sets the times of its files, and this machine's clock is hours ahead.
TEST_CASE("a clock that is ahead removes no temporary that another process writes") {
  class EarlierFiles : public base::FileSystem {
    int status(int file, Status* status) override {
      const int code = FileSystem::status(file, status);
      status->modified -= 7200;
      return code;
    }
  };
  ScratchFolder scratch;
  DiskCache disk({.folder = scratch / "cache"}, {}, std::make_shared<EarlierFiles>());
  std::ofstream(scratch / "cache/.annulus-live.tmp") << "x";
  CHECK(built(disk, 1));
  CHECK(fs::exists(scratch / "cache/.annulus-live.tmp"));
}

}  // namespace
}  // namespace annulus::jit
