#include "simulator/driver/objects/fatbin.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace annulus::simulator::driver {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint16_t kPtx = 1;
constexpr std::uint64_t kLz4 = 0x2000;
constexpr std::uint64_t kZstd = 0x8000;
constexpr std::uint64_t kMaxText = std::uint64_t{1} << 30;

template <typename T>
T read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

struct Entry {
  std::uint16_t kind;
  std::uint32_t header;
  std::uint64_t payload;
  std::uint32_t compressed;
  std::uint64_t flags;
  std::uint64_t text;  // bytes of the text, if it is not compressed
  static constexpr std::uint64_t kLeast = 48;
};

Entry read_entry(const char* at) {
  Entry entry{.kind = read<std::uint16_t>(at),
              .header = read<std::uint32_t>(at + 4),
              .payload = read<std::uint64_t>(at + 8),
              .compressed = read<std::uint32_t>(at + 16),
              .flags = read<std::uint64_t>(at + 40),
              .text = 0};
  if (entry.header >= 64) entry.text = read<std::uint64_t>(at + 56);
  return entry;
}

// Decompression is left to the libraries of the two formats. They are opened when a program needs
// them, because few programs do, and programs that link this library should not require them.
void* function_of(const char* library, const char* name) {
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return handle == nullptr ? nullptr : ::dlsym(handle, name);
}

template <typename Function>
Function* find(const char* library, const char* name) {
  return reinterpret_cast<Function*>(function_of(library, name));
}

// Fills `text`, which has the right size already. Returns an error message, or an empty text.
std::string expand(const Entry& entry, const char* from, std::string& text) {
  if ((entry.flags & kZstd) != 0) {
    const auto decompress = find<std::size_t(void*, std::size_t, const void*, std::size_t)>(
        "libzstd.so.1", "ZSTD_decompress");
    if (decompress == nullptr) {
      return "its PTX is compressed with zstd; install libzstd.so.1, or compile with nvcc "
             "--no-compress";
    }
    const std::size_t got = decompress(text.data(), text.size(), from, entry.compressed);
    return got == text.size() ? std::string() : "its PTX is damaged: zstd does not expand it";
  }
  const auto decompress =
      find<int(const char*, char*, int, int)>("liblz4.so.1", "LZ4_decompress_safe");
  if (decompress == nullptr) {
    return "its PTX is compressed with LZ4; install liblz4.so.1, or compile with nvcc "
           "--no-compress";
  }
  const int got = decompress(from, text.data(), static_cast<int>(entry.compressed),
                             static_cast<int>(text.size()));
  return got >= 0 && static_cast<std::size_t>(got) == text.size()
             ? std::string()
             : "its PTX is damaged: LZ4 does not expand it";
}

std::string take_ptx(const Entry& entry, const char* payload, std::string& text) {
  if ((entry.flags & (kZstd | kLz4)) == 0) {
    text.assign(payload, ::strnlen(payload, entry.payload));
    return {};
  }
  if (entry.compressed > entry.payload || entry.text == 0 || entry.text > kMaxText) {
    return fmt::format("its PTX is damaged: {} bytes of {}, {} when expanded", entry.compressed,
                       entry.payload, entry.text);
  }
  text.assign(entry.text, '\0');
  std::string wrong = expand(entry, payload, text);
  text.resize(::strnlen(text.data(), text.size()));
  return wrong;
}

// strncmp stops at the NUL of a short text; memcmp would read past it.
bool begins_with(const void* image, std::uint32_t magic) {
  char bytes[4];
  std::memcpy(bytes, &magic, 4);
  return std::strncmp(static_cast<const char*>(image), bytes, 4) == 0;
}

}  // namespace

bool is_fatbin(const void* image) {
  return begins_with(image, kMagic) || begins_with(image, kWrapperMagic);
}

FatbinTexts read_fatbin(const void* image) {
  FatbinTexts texts;
  const auto* at = static_cast<const char*>(image);
  if (begins_with(image, kWrapperMagic)) at = read<const char*>(at + 8);
  if (at == nullptr || read<std::uint32_t>(at) != kMagic) {
    texts.wrong = "its wrapper does not point to a fat binary";
    return texts;
  }
  const auto header = read<std::uint16_t>(at + 6);
  std::uint64_t left = read<std::uint64_t>(at + 8);
  at += header;
  while (left > 0) {
    const Entry entry = left < Entry::kLeast ? Entry{} : read_entry(at);
    if (entry.header < Entry::kLeast || entry.header > left ||
        entry.payload > left - entry.header) {
      texts.wrong = fmt::format("it is damaged: {} bytes are left for an entry of {} and {}", left,
                                entry.header, entry.payload);
      return texts;
    }
    if (entry.kind == kPtx) {
      std::string text;
      std::string wrong = take_ptx(entry, at + entry.header, text);
      if (wrong.empty()) {
        texts.ptx.push_back(std::move(text));
      } else {
        texts.wrong = std::move(wrong);
      }
    } else {
      ++texts.binaries;
    }
    at += entry.header + entry.payload;
    left -= entry.header + entry.payload;
  }
  return texts;
}

}  // namespace annulus::simulator::driver
