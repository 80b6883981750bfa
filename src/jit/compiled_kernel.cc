#include "jit/compiled_kernel.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace annulus::jit {
namespace {

constexpr char kMagic[8] = {'A', 'N', 'N', 'U', 'L', 'U', 'S', 'K'};
constexpr std::size_t kDigestAt = 40;
constexpr std::string_view kCompilerLine = "compiler ";
// The number of digits for the compiler's identity in a file's name. They need not be unique for
// certain, because there are few compilers and the file states the identity in full.
constexpr std::size_t kCompilerDigits = 16;

// Writes byte by byte, so that a file has the same meaning on every machine.
void put(std::vector<std::byte>& bytes, std::unsigned_integral auto value) {
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
}
void put(std::vector<std::byte>& bytes, std::span<const std::byte> data) {
  put(bytes, static_cast<std::uint64_t>(data.size()));
  bytes.insert(bytes.end(), data.begin(), data.end());
}
void put(std::vector<std::byte>& bytes, std::string_view text) {
  put(bytes, std::as_bytes(std::span(text)));
}

// Reads from the front. If too few bytes are left, all values are zero or empty.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::unsigned_integral Number>
  Number number() {
    Number value = 0;
    const std::span<const std::byte> data = take(sizeof(Number));
    for (std::size_t i = 0; i < data.size(); ++i) {
      value |= static_cast<Number>(static_cast<Number>(data[i]) << (8 * i));
    }
    return value;
  }
  std::span<const std::byte> data() { return take(number<std::uint64_t>()); }
  std::string text() {
    const std::span<const std::byte> bytes = data();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool whole() const { return whole_; }
  bool at_end() const { return whole_ && rest_.empty(); }

 private:
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > rest_.size()) {
      whole_ = false;
      rest_ = {};
      return {};
    }
    const std::span<const std::byte> front = rest_.first(count);
    rest_ = rest_.subspan(count);
    return front;
  }

  std::span<const std::byte> rest_;
  bool whole_ = true;
};

constexpr int ResourceUsage::*kNumbers[] = {
    &ResourceUsage::registers, &ResourceUsage::spill_store_bytes, &ResourceUsage::spill_load_bytes,
    &ResourceUsage::local_bytes, &ResourceUsage::static_shared_bytes};

std::vector<std::byte> encode_payload(const CompiledKernel& kernel) {
  std::vector<std::byte> bytes;
  put(bytes, kernel.symbol);
  put(bytes, std::uint32_t{kernel.usage.known});
  for (int ResourceUsage::*number : kNumbers) {
    put(bytes, static_cast<std::uint32_t>(kernel.usage.*number));
  }
  put(bytes, static_cast<std::uint32_t>(kernel.usage.notes.size()));
  for (const std::string& note : kernel.usage.notes) put(bytes, note);
  put(bytes, std::span<const std::byte>(kernel.image));
  return bytes;
}

bool decode_payload(std::span<const std::byte> payload, CompiledKernel* kernel) {
  Reader reader(payload);
  kernel->symbol = reader.text();
  kernel->usage.known = reader.number<std::uint32_t>() != 0;
  for (int ResourceUsage::*number : kNumbers) {
    kernel->usage.*number = static_cast<int>(reader.number<std::uint32_t>());
  }
  const auto notes = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < notes && reader.whole(); ++i) {
    kernel->usage.notes.push_back(reader.text());
  }
  const std::span<const std::byte> image = reader.data();
  kernel->image.assign(image.begin(), image.end());
  if (!reader.at_end() || kernel->symbol.empty() || kernel->image.empty()) return false;
  // The driver reads PTX up to the NUL byte, so it must exist.
  return kernel->kind != ImageKind::kPtx || kernel->image.back() == std::byte{0};
}

base::Digest digest_without_itself(std::span<const std::byte> file) {
  std::vector<std::byte> copy(file.begin(), file.end());
  std::fill_n(copy.begin() + kDigestAt, sizeof(base::Digest::bytes), std::byte{0});
  return base::digest(copy);
}

}  // namespace

const char* to_string(ImageKind kind) { return kind == ImageKind::kPtx ? "ptx" : "cubin"; }

std::string kernel_file_name(const KernelKey& key) {
  return fmt::format("{}-{}{}", key.digest.hex(),
                     base::digest(key.compiler).hex().substr(0, kCompilerDigits), kKernelSuffix);
}

int compiler_version(std::string_view identity) {
  int major = 0;
  int minor = 0;
  const char* const end = identity.data() + identity.size();
  const auto [dot, error] = std::from_chars(identity.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.' || major < 0 || major > 999) return 0;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc() || minor < 0 || minor > 99) return 0;
  return 1000 * major + 10 * minor;
}

std::vector<std::byte> encode_kernel_file(const KernelKey& key, const CompiledKernel& kernel) {
  const std::string text = fmt::format("{}{}\n{}", kCompilerLine, key.compiler, key.wanted);
  const std::vector<std::byte> payload = encode_payload(kernel);
  std::vector<std::byte> file;
  for (char c : kMagic) file.push_back(static_cast<std::byte>(c));
  put(file, kKernelFileVersion);
  put(file, static_cast<std::uint32_t>(kernel.kind));
  put(file, std::uint64_t{kKernelFileHeader + text.size() + payload.size()});
  put(file, std::uint64_t{text.size()});
  put(file, std::uint64_t{payload.size()});
  file.resize(kKernelFileHeader);
  const auto key_bytes = std::as_bytes(std::span(text));
  file.insert(file.end(), key_bytes.begin(), key_bytes.end());
  file.insert(file.end(), payload.begin(), payload.end());
  const base::Digest digest = base::digest(file);
  std::memcpy(file.data() + kDigestAt, digest.bytes.data(), digest.bytes.size());
  return file;
}

bool serves(KernelOrigin kernel, const KernelOrigin& device) {
  kernel.compiler = device.compiler;
  return kernel == device;
}

std::string to_string(const KernelOrigin& origin) {
  return fmt::format("{}, image {}, {}, templates {}, schema {}", origin.architecture, origin.image,
                     origin.compiler.empty() ? "any nvrtc" : "nvrtc " + origin.compiler,
                     origin.templates, origin.schema);
}

std::optional<KernelOrigin> kernel_origin(std::string_view wanted, std::string_view compiler) {
  constexpr std::string_view kTitle = "annulus kernel\n";
  if (!wanted.starts_with(kTitle)) return std::nullopt;
  wanted.remove_prefix(kTitle.size());
  KernelOrigin origin;
  origin.compiler = compiler;
  const std::pair<std::string_view, std::string*> lines[] = {
      {"schema ", &origin.schema},
      {"templates ", &origin.templates},
      {"image ", &origin.image},
      {"options --gpu-architecture=", &origin.architecture}};
  for (const auto& [begin, value] : lines) {
    const std::size_t end = wanted.find('\n');
    if (!wanted.starts_with(begin) || end == wanted.npos) return std::nullopt;
    *value = wanted.substr(begin.size(), end - begin.size());
    wanted.remove_prefix(end + 1);
  }
  origin.architecture.resize(std::min(origin.architecture.find(' '), origin.architecture.size()));
  return origin;
}

namespace {

// Splits a file's key into its two parts. Returns false if the text is not a key. If the text is
// only the beginning of the key, the second part is incomplete.
bool split_key(std::string_view text, std::string_view* compiler, std::string_view* wanted) {
  const std::size_t end = text.find('\n');
  if (!text.starts_with(kCompilerLine) || end == text.npos) return false;
  *compiler = text.substr(kCompilerLine.size(), end - kCompilerLine.size());
  *wanted = text.substr(end + 1);
  return true;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::optional<KernelOrigin> origin_of_file(std::span<const std::byte> beginning) {
  if (beginning.size() < kKernelFileHeader ||
      std::memcmp(beginning.data(), kMagic, sizeof(kMagic)) != 0) {
    return std::nullopt;
  }
  Reader header(beginning.subspan(sizeof(kMagic)));
  if (header.number<std::uint32_t>() != kKernelFileVersion) return std::nullopt;
  std::string_view compiler, wanted;
  if (!split_key(as_text(beginning.subspan(kKernelFileHeader)), &compiler, &wanted)) {
    return std::nullopt;
  }
  return kernel_origin(wanted, compiler);
}

// Sizes are checked before they are used, and the digest is checked before the key, so that a
// damaged file is distinguished from a file with another key.
std::optional<KernelFile> decode_kernel_file(std::span<const std::byte> file, std::string* why) {
  const auto refuse = [&](const char* reason) {
    *why = reason;
    return std::nullopt;
  };
  if (file.size() < kKernelFileHeader || std::memcmp(file.data(), kMagic, sizeof(kMagic)) != 0) {
    return refuse("it is not a kernel file");
  }
  Reader header(file.subspan(sizeof(kMagic)));
  if (header.number<std::uint32_t>() != kKernelFileVersion)
    return refuse("it has another format version");
  const auto kind = header.number<std::uint32_t>();
  const auto file_bytes = header.number<std::uint64_t>();
  const auto key_bytes = header.number<std::uint64_t>();
  const auto payload_bytes = header.number<std::uint64_t>();
  const std::uint64_t rest = file.size() - kKernelFileHeader;
  if (file_bytes != file.size() || key_bytes > rest || payload_bytes != rest - key_bytes ||
      kind > static_cast<std::uint32_t>(ImageKind::kCubin)) {
    return refuse("its sizes do not fit together");
  }
  base::Digest stated;
  std::memcpy(stated.bytes.data(), file.data() + kDigestAt, stated.bytes.size());
  if (digest_without_itself(file) != stated) return refuse("its digest is wrong");
  std::string_view compiler, wanted;
  if (!split_key(as_text(file.subspan(kKernelFileHeader, key_bytes)), &compiler, &wanted)) {
    return refuse("its key is invalid");
  }
  CompiledKernel kernel;
  kernel.kind = static_cast<ImageKind>(kind);
  if (!decode_payload(file.subspan(kKernelFileHeader + key_bytes), &kernel)) {
    return refuse("its payload is incomplete");
  }
  return KernelFile{KernelKey(std::string(wanted), std::string(compiler)), std::move(kernel)};
}

std::optional<KernelFile> decode_kernel_file(std::span<const std::byte> file, const KernelKey& key,
                                             std::string* why) {
  std::optional<KernelFile> found = decode_kernel_file(file, why);
  if (!found) return std::nullopt;
  const bool compiled_by = key.compiler.empty() || found->key.compiler == key.compiler;
  if (found->key.wanted != key.wanted || !compiled_by) {
    *why = "it was made for another key";
    return std::nullopt;
  }
  return found;
}

}  // namespace annulus::jit
