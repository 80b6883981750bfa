// Folders of kernels that were compiled ahead: the kernels that are used, and those that never are.
#include "jit/kernel_folders.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/random.h"
#include "jit/sample_kernel.h"
#include "support/faulty_files.h"
#include "support/processes.h"

namespace annulus::jit {
namespace {

namespace fs = std::filesystem;
using test::sample_kernel;
using test::sample_key;
using test::ScratchFolder;

struct Lines {
  std::vector<std::string> lines;
  base::Log log() {
    return base::Log([this](base::LogLevel, std::string_view text) { lines.emplace_back(text); });
  }
};

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// Puts kernel `number` of a compiler into a folder, which is made. The image names the compiler.
void put(const std::string& folder, int number, const std::string& compiler) {
  fs::create_directories(folder);
  const KernelKey key = sample_key(number, compiler);
  CompiledKernel kernel = sample_kernel(number);
  kernel.symbol += compiler;
  write_bytes(folder + "/" + kernel_file_name(key), encode_kernel_file(key, kernel));
}

std::vector<std::string> compilers(const std::vector<FoundKernel>& found) {
  std::vector<std::string> all;
  for (const FoundKernel& each : found) all.push_back(each.key.compiler);
  return all;
}

TEST_CASE("a kernel of the very compiler comes from the first folder of the path that has it") {
  ScratchFolder scratch;
  const std::string first = scratch / "first", second = scratch / "second";
  put(second, 1, "13.0 (a)");
  put(second, 2, "13.0 (a)");
  put(first, 1, "13.0 (a)");
  put(first, 2, "12.8 (b)");
  KernelFolders folders({scratch / "none", first, second});
  CHECK(folders.find(sample_key(1, "13.0 (a)"))->path.starts_with(first));
  CHECK(folders.find(sample_key(2, "13.0 (a)"))->path.starts_with(second));
  CHECK_FALSE(folders.find(sample_key(3, "13.0 (a)")));
  // Without a compiler there is no kernel of exactly that compiler.
  CHECK_FALSE(folders.find(sample_key(1, "")));
}

TEST_CASE("of other compilers the newest comes first, and none that the driver does not take") {
  ScratchFolder scratch;
  const std::string first = scratch / "first", second = scratch / "second";
  for (const char* compiler : {"12.8 (a)", "13.1 (b)", "12.9 (c)", "14.0 (d)", "no version"}) {
    put(first, 1, compiler);
  }
  put(first, 2, "13.0 (other)");
  put(second, 1, "13.0 (e)");
  KernelFolders folders({first, second});
  using Names = std::vector<std::string>;
  CHECK(compilers(folders.of_others(sample_key(1, ""), 0)) ==
        Names{"14.0 (d)", "13.1 (b)", "12.9 (c)", "12.8 (a)", "no version", "13.0 (e)"});
  CHECK(compilers(folders.of_others(sample_key(1, "12.9 (c)"), 13000)) ==
        Names{"13.1 (b)", "12.8 (a)", "no version", "13.0 (e)"});
  CHECK(folders.of_others(sample_key(3, ""), 0).empty());
}

TEST_CASE("a folder is listed once, and again as soon as a file has come") {
  ScratchFolder scratch;
  const std::string folder = scratch / "kernels";
  put(folder, 1, "13.0 (a)");
  struct Counting : base::FileSystem {
    int listed = 0;
    std::int64_t age = 0;  // the time by which folders appear older
    int list(int file, std::vector<std::string>* names) override {
      ++listed;
      return FileSystem::list(file, names);
    }
    int status(int file, Status* status) override {
      const int code = FileSystem::status(file, status);
      status->modified -= age;
      return code;
    }
  };
  const auto files = std::make_shared<Counting>();
  KernelFolders folders({folder}, {}, files);
  // A change within the same second may not change the folder's time.
  for (int number : {1, 2, 3}) {
    put(folder, number, "13.0 (a)");
    CHECK(folders.of_others(sample_key(number, ""), 0).size() == 1);
  }
  files->age = 10;
  CHECK(folders.of_others(sample_key(1, ""), 0).size() == 1);
  files->listed = 0;
  for (int number : {1, 2, 3, 4, 5}) folders.of_others(sample_key(number, ""), 0);
  CHECK(files->listed == 0);
  put(folder, 4, "13.0 (a)");
  CHECK(folders.of_others(sample_key(4, ""), 0).size() == 1);
  CHECK(files->listed == 1);
  // A look-up by the exact name does not list the folder.
  files->listed = 0;
  CHECK(folders.find(sample_key(4, "13.0 (a)")));
  CHECK_FALSE(folders.find(sample_key(5, "13.0 (a)")));
  CHECK(files->listed == 0);
  // A folder that replaces another is still found by its name.
  put(scratch / "newer", 6, "13.0 (a)");
  fs::rename(folder, scratch / "older");
  fs::rename(scratch / "newer", folder);
  CHECK(folders.find(sample_key(6, "13.0 (a)")));
  CHECK(folders.of_others(sample_key(6, ""), 0).size() == 1);
  CHECK_FALSE(folders.find(sample_key(1, "13.0 (a)")));
}

TEST_CASE("a folder that others could fill is not used, and one of root's is") {
  ScratchFolder scratch;
  const std::string folder = scratch / "kernels";
  put(folder, 1, "13.0 (sample)");
  const auto taken = [&](const std::string& path, const std::string& reason,
                         std::shared_ptr<base::FileSystem> files = nullptr) {
    CAPTURE(path);
    Lines lines;
    KernelFolders folders({path}, lines.log(), std::move(files));
    bool any = false;
    for (int i = 0; i < 3; ++i) {
      any = any || folders.find(sample_key(1)) || !folders.of_others(sample_key(1, ""), 0).empty();
    }
    if (!reason.empty()) {
      REQUIRE(lines.lines.size() == 1);  // logged once, however often it is used
      CHECK(lines.lines[0].find(reason) != std::string::npos);
      CHECK(folders.describe()[0].problem.find(reason) != std::string::npos);
    } else {
      CHECK(lines.lines.empty());
    }
    return any;
  };
  CHECK(taken(folder, ""));
  CHECK(taken(folder, "", std::make_shared<test::OthersFiles>(0)));
  CHECK_FALSE(taken(folder, "belongs to user", std::make_shared<test::OthersFiles>(geteuid() + 1)));
  for (const unsigned mode : {0777u, 0775u, 01777u, 0702u}) {
    REQUIRE(chmod(folder.c_str(), mode) == 0);
    CHECK_FALSE(taken(folder, "others may write"));
  }
  REQUIRE(chmod(folder.c_str(), 0555) == 0);
  CHECK(taken(folder, ""));
  REQUIRE(chmod(folder.c_str(), 0755) == 0);
  fs::create_directory_symlink(folder, scratch / "link");
  CHECK_FALSE(taken(scratch / "link", "symbolic link"));
  CHECK_FALSE(taken(scratch / "link/", "symbolic link"));
  CHECK_FALSE(taken("relative/kernels", "absolute"));
  write_bytes(scratch / "file", {});
  CHECK_FALSE(taken(scratch / "file", "it is a file"));
  // The folder is never made.
  CHECK_FALSE(taken(scratch / "missing", ""));
  CHECK_FALSE(fs::exists(scratch / "missing"));
  // A file that belongs to another user, or that others may write, is not used either.
  Lines lines;
  KernelFolders others({folder}, lines.log(),
                       std::make_shared<test::OthersRegularFiles>(geteuid() + 1, 0644));
  CHECK_FALSE(others.find(sample_key(1)));
  KernelFolders open({folder}, lines.log(),
                     std::make_shared<test::OthersRegularFiles>(geteuid(), 0664));
  CHECK_FALSE(open.find(sample_key(1)));
  CHECK(lines.lines.size() == 2);
}

TEST_CASE("a file that is damaged in any byte, or cut anywhere, is never taken") {
  ScratchFolder scratch;
  const std::string folder = scratch / "kernels";
  put(folder, 1, "13.0 (sample)");
  const std::string path = folder + "/" + kernel_file_name(sample_key(1));
  base::FileSystem files;
  const auto whole = base::read_file(files, path, 1 << 20);
  Lines lines;
  KernelFolders folders({folder}, lines.log());
  std::size_t damages = 0, taken = 0;
  const auto try_damage = [&](std::span<const std::byte> bytes) {
    write_bytes(path, bytes);
    ++damages;
    taken += folders.find(sample_key(1)).has_value();
    taken += folders.of_others(sample_key(1, "13.1 (newer)"), 0).size();
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto damaged = whole;
    damaged[i] ^= std::byte{0x20};
    try_damage(damaged);
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try_damage(std::span(whole).first(size));
  }
  auto longer = whole;
  longer.push_back(std::byte{0});
  try_damage(longer);
  CHECK(damages > 1000);
  CHECK(taken == 0);
  CHECK(lines.lines.size() == 2 * damages);  // one line for each look-up
  write_bytes(path, whole);
  CHECK(folders.find(sample_key(1)));
}

TEST_CASE("a kernel under another one's name is never taken") {
  ScratchFolder scratch;
  const std::string folder = scratch / "kernels";
  fs::create_directories(folder);
  const auto file = encode_kernel_file(sample_key(2), sample_kernel(2));
  Lines lines;
  KernelFolders folders({folder}, lines.log());
  // The file contains another spec, and then this spec compiled by another compiler.
  write_bytes(folder + "/" + kernel_file_name(sample_key(1)), file);
  CHECK_FALSE(folders.find(sample_key(1)));
  CHECK(folders.of_others(sample_key(1, ""), 0).empty());
  write_bytes(folder + "/" + kernel_file_name(sample_key(2, "13.1 (other)")), file);
  CHECK_FALSE(folders.find(sample_key(2, "13.1 (other)")));
  CHECK(folders.of_others(sample_key(2, ""), 0).empty());
  REQUIRE(lines.lines.size() == 4);
  CHECK(lines.lines[0].find("another key") != std::string::npos);
  CHECK(lines.lines[3].find("does not match its compiler") != std::string::npos);
}

TEST_CASE("10,000 files of anything beside a kernel do not hide it, and none is taken") {
  ScratchFolder scratch;
  const std::string folder = scratch / "kernels";
  put(folder, 1, "13.0 (sample)");
  base::Random random(11);
  const std::string wanted = sample_key(2).digest.hex();
  for (int i = 0; i < 10'000; ++i) {
    std::string name;
    for (int c = 0; c < 32; ++c) name += "0123456789abcdef"[random.below(16)];
    // Some have the name of the wanted kernel.
    if (i % 100 == 0) name = wanted;
    name += "-" + std::to_string(i) + (i % 3 == 0 ? "" : ".kernel");
    std::vector<std::byte> bytes(random.below(200));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    write_bytes(folder + "/" + name, bytes);
  }
  REQUIRE(mkfifo((folder + "/" + wanted + "-0.kernel").c_str(), 0600) == 0);
  fs::create_directory(folder + "/" + wanted + "-00.kernel");
  Lines lines;
  KernelFolders folders({folder}, lines.log());
  CHECK(folders.find(sample_key(1)));
  CHECK(folders.of_others(sample_key(1, ""), 0).size() == 1);
  CHECK_FALSE(folders.find(sample_key(2)));
  CHECK(folders.of_others(sample_key(2, ""), 0).empty());
  CHECK(lines.lines.size() <= 16);  // at most this number of candidates is examined
  const auto described = folders.describe();
  REQUIRE(described.size() == 1);
  CHECK(described[0].kernels.size() > 6000);
  CHECK_FALSE(folders.any_of({"sm_80", "ptx", "", "0a", "2"}));
}

TEST_CASE("a fault at any call of files leaves a miss and no open descriptor") {
  ScratchFolder scratch;
  const std::string folder = scratch / "kernels";
  put(folder, 1, "13.0 (sample)");
  const auto look = [&](const std::shared_ptr<test::FaultyFiles>& files) {
    KernelFolders folders({folder}, {}, files);
    const auto exact = folders.find(sample_key(1));
    const auto others = folders.of_others(sample_key(1, ""), 0);
    CHECK((!exact || exact->kernel.image == sample_kernel(1).image));
    CHECK(others.size() <= 1);
    CHECK(files->opened() == 0);
    return exact.has_value() && others.size() == 1;
  };
  const auto counted = std::make_shared<test::FaultyFiles>();
  CHECK(look(counted));
  for (int call = 0; call < counted->calls(); ++call) {
    for (const int code : {EIO, ENOENT, EACCES}) {
      const auto faulty = std::make_shared<test::FaultyFiles>();
      faulty->fail_at = call;
      faulty->code = code;
      look(faulty);
    }
  }
}

TEST_CASE("processes that read a folder while it is replaced get whole kernels or none") {
  ScratchFolder scratch;
  const std::string folder = scratch / "kernels";
  for (const char* name : {"kernels", "a", "b"}) {
    for (int number = 0; number < 4; ++number) put(scratch / name, number, "13.0 (sample)");
  }
  std::vector<pid_t> readers;
  for (int r = 0; r < 4; ++r) {
    readers.push_back(test::start([&] {
      KernelFolders folders({folder});
      int found = 0;
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
      while (std::chrono::steady_clock::now() < end) {
        for (int number = 0; number < 4; ++number) {
          const auto exact = folders.find(sample_key(number));
          if (exact && exact->kernel.image != sample_kernel(number).image) _exit(2);
          for (const FoundKernel& other : folders.of_others(sample_key(number, ""), 0)) {
            if (other.kernel.image != sample_kernel(number).image) _exit(3);
            ++found;
          }
        }
      }
      _exit(found > 0 ? 0 : 4);
    }));
  }
  // Whole folders replace one another, and files are overwritten.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  for (int round = 0; std::chrono::steady_clock::now() < end; ++round) {
    const std::string next = scratch / (round % 2 == 0 ? "a" : "b");
    fs::rename(folder, scratch / "gone");
    fs::rename(next, folder);
    fs::rename(scratch / "gone", next);
    put(folder, round % 4, "13.0 (sample)");
  }
  for (const pid_t reader : readers) {
    int status = 0;
    REQUIRE(waitpid(reader, &status, 0) == reader);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("the path has the caller's folders, each once, then those of the library that exist") {
  ScratchFolder scratch;
  fs::create_directories(scratch / "lib/annulus/kernels");
  using Names = std::vector<std::string>;
  CHECK(kernel_path("", {}) == Names{});
  CHECK(kernel_path("/a/:/b::/a", {scratch / "lib", scratch / "bin"}) ==
        Names{"/a", "/b", scratch / "lib/annulus/kernels"});
}

}  // namespace
}  // namespace annulus::jit
