#ifndef ANNULUS_JIT_COMPILED_KERNEL_H_
#define ANNULUS_JIT_COMPILED_KERNEL_H_

// A compiled kernel: its image and what is known about it, as the compiler makes and the disk cache
// stores it, and the key by which it is found again.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "jit/resource_usage.h"

namespace annulus::jit {

enum class ImageKind : int {
  kPtx = 0,    // text for the simulator, with line information; it ends with a NUL
  kCubin = 1,  // machine code of one architecture
};
const char* to_string(ImageKind kind);  // "ptx", "cubin"

struct CompiledKernel {
  ImageKind kind = ImageKind::kPtx;
  std::string symbol;  // the kernel's mangled name in the image
  std::vector<std::byte> image;
  ResourceUsage usage;

  friend bool operator==(const CompiledKernel&, const CompiledKernel&) = default;
};

// Everything that the compiler's result depends on, as text, and the digest of that. The digest
// names files and hash buckets; keys are equal only where their texts are.
struct KernelKey {
  explicit KernelKey(std::string key_text)
      : text(std::move(key_text)), digest(base::digest(text)) {}

  std::string text;
  base::Digest digest;

  friend bool operator==(const KernelKey& a, const KernelKey& b) { return a.text == b.text; }
};

// The part of a key's text that is the same for all kernels of a device: "sm_90a, image cubin,
// nvrtc 13.0 (...), templates 0123..., schema 1". Kernels of another origin never serve it. Empty
// where the text is no key.
std::string kernel_origin(std::string_view key_text);

// The bytes of a cache file:
//
//    0   8  magic "ANNULUSK"
//    8   4  format version, little-endian as all numbers
//   12   4  ImageKind
//   16   8  bytes of the whole file
//   24   8  bytes of the key
//   32   8  bytes of the payload
//   40  16  XXH3-128 of the whole file with these 16 bytes zero
//   56   8  zero
//   64      the key, then the payload: symbol, usage and image
inline constexpr std::size_t kKernelFileHeader = 64;
inline constexpr std::uint32_t kKernelFileVersion = 1;
std::vector<std::byte> encode_kernel_file(const KernelKey& key, const CompiledKernel& kernel);

// The origin of the kernel whose file begins with these bytes, kOriginBytes of them or all that
// there are; empty where they are no kernel file.
inline constexpr std::size_t kOriginBytes = 4096;
std::string origin_of_file(std::span<const std::byte> beginning);

// Empty where the bytes are damaged, of another version or of another key; *why says which.
std::optional<CompiledKernel> decode_kernel_file(std::span<const std::byte> file,
                                                 const KernelKey& key, std::string* why);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_COMPILED_KERNEL_H_
