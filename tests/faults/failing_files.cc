#include "faults/failing_files.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>

namespace annulus::test {
namespace {

std::atomic<int> calls{0}, failing{-1}, code{0};
std::atomic<bool> for_good{false}, on{false};
std::atomic<const char*> first{nullptr};
std::uintptr_t library_begin = 0, library_end = 0;

int find_library(dl_phdr_info* info, std::size_t, void*) {
  if (std::strstr(info->dlpi_name, "/libannulus.so") == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    library_begin = info->dlpi_addr + part.p_vaddr;
    library_end = library_begin + part.p_memsz;
  }
  return 1;
}

enum class Fate { kPass, kFail, kShort };

// The fate of a call of `function` that returns to `caller`.
Fate fate(const char* function, const void* caller, bool moves_bytes = false) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  if (!on || at < library_begin || at >= library_end) return Fate::kPass;
  const int index = calls++;
  if (failing < 0 || index < failing || (index > failing && !for_good)) return Fate::kPass;
  if (code == 0 && !moves_bytes) return Fate::kPass;
  const char* none = nullptr;
  first.compare_exchange_strong(none, function);
  if (code == 0) return Fate::kShort;
  errno = code;
  return Fate::kFail;
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void begin_file_fault(const FileFault& fault) {
  dl_iterate_phdr(find_library, nullptr);
  calls = 0;
  failing = fault.call;
  code = fault.code;
  for_good = fault.for_good;
  first = nullptr;
  on = true;
}

int end_file_fault() {
  on = false;
  return calls;
}

const char* failed_file_call() { return first; }

}  // namespace annulus::test

using annulus::test::fate;
using annulus::test::Fate;
using annulus::test::real;

#define FAILS(name) fate(name, __builtin_return_address(0)) == Fate::kFail

// The library finds these functions instead of the C library's.
#pragma GCC visibility push(default)
extern "C" {

int openat(int folder, const char* path, int flags, ...) {
  if (FAILS("openat")) return -1;
  std::va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
  va_end(arguments);
  static const auto next = real<int (*)(int, const char*, int, ...)>("openat");
  return next(folder, path, flags, mode);
}
ssize_t read(int file, void* data, std::size_t bytes) {
  const Fate of = fate("read", __builtin_return_address(0), true);
  if (of == Fate::kFail) return -1;
  static const auto next = real<ssize_t (*)(int, void*, std::size_t)>("read");
  return next(file, data, of == Fate::kShort ? std::min<std::size_t>(bytes, 7) : bytes);
}
ssize_t write(int file, const void* data, std::size_t bytes) {
  const Fate of = fate("write", __builtin_return_address(0), true);
  if (of == Fate::kFail) return -1;
  static const auto next = real<ssize_t (*)(int, const void*, std::size_t)>("write");
  return next(file, data, of == Fate::kShort ? std::min<std::size_t>(bytes, 7) : bytes);
}
int fsync(int file) {
  if (FAILS("fsync")) return -1;
  // It does not sync the disk, because no test could notice that.
  return fcntl(file, F_GETFD) < 0 ? -1 : 0;
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  if (FAILS("renameat")) return -1;
  static const auto next = real<int (*)(int, const char*, int, const char*)>("renameat");
  return next(from_folder, from, to_folder, to);
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  if (FAILS("unlinkat")) return -1;
  static const auto next = real<int (*)(int, const char*, int)>("unlinkat");
  return next(folder, path, flags);
}
int mkdir(const char* path, mode_t mode) noexcept {
  if (FAILS("mkdir")) return -1;
  static const auto next = real<int (*)(const char*, mode_t)>("mkdir");
  return next(path, mode);
}
int flock(int file, int operation) noexcept {
  if (FAILS("flock")) return -1;
  static const auto next = real<int (*)(int, int)>("flock");
  return next(file, operation);
}
int fstat(int file, struct stat* status) noexcept {
  if (FAILS("fstat")) return -1;
  static const auto next = real<int (*)(int, struct stat*)>("fstat");
  return next(file, status);
}
void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  if (FAILS("mmap")) return MAP_FAILED;
  static const auto next = real<void* (*)(void*, std::size_t, int, int, int, off_t)>("mmap");
  return next(address, bytes, protection, flags, file, offset);
}
DIR* fdopendir(int file) {
  if (FAILS("fdopendir")) return nullptr;
  static const auto next = real<DIR* (*)(int)>("fdopendir");
  return next(file);
}
// Linux closes the descriptor even if close reports an error.
int close(int file) {
  const int saved = errno;
  const bool fails = FAILS("close");
  const int code = errno;
  errno = saved;
  static const auto next = real<int (*)(int)>("close");
  const int result = next(file);
  if (fails) errno = code;
  return fails ? -1 : result;
}
}
#pragma GCC visibility pop
