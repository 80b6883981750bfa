#ifndef ANNULUS_JIT_COMPILED_KERNEL_H_
#define ANNULUS_JIT_COMPILED_KERNEL_H_

// A compiled kernel: its image and its properties, as the compiler creates them and the disk cache
// stores them. Also the key to find the kernel again.

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
  kPtx = 0,    // text for the simulator, with line information; it ends with a NUL byte
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

// Everything that the compiler's result depends on, in two parts. `wanted` is what is compiled
// (schema, templates, kind of image, options, entry, source), which is known without a compiler.
// `compiler` identifies the compiler. A file is found by the first part, and the second part
// distinguishes it from files of other compilers.
struct KernelKey {
  KernelKey(std::string wanted_text, std::string compiler_text)
      : wanted(std::move(wanted_text)),
        compiler(std::move(compiler_text)),
        digest(base::digest(wanted)) {}

  std::string wanted;
  std::string compiler;  // Compiler::identity(), "13.0 (65be...)"; empty if there is no compiler
  base::Digest digest;   // the digest of `wanted`

  friend bool operator==(const KernelKey& a, const KernelKey& b) {
    return a.wanted == b.wanted && a.compiler == b.compiler;
  }
};

// "<32 digits of the digest of `wanted`>-<16 digits for the compiler>.kernel".
inline constexpr std::string_view kKernelSuffix = ".kernel";
std::string kernel_file_name(const KernelKey& key);

// The version at the begin of a compiler's identity, 13000 for "13.0 (...)". 0 if there is none.
int compiler_version(std::string_view identity);

// The properties that all kernels of a device have in common. A kernel serves a device only if no
// property except the compiler differs.
struct KernelOrigin {
  std::string architecture;  // "sm_90a", or "compute_90a" for PTX
  std::string image;         // "cubin", "ptx"
  std::string compiler;
  std::string templates;  // the digest of the templates
  std::string schema;

  friend bool operator==(const KernelOrigin&, const KernelOrigin&) = default;
};
// Whether nothing differs except the compiler.
bool serves(KernelOrigin kernel, const KernelOrigin& device);
// "sm_90a, image cubin, nvrtc 13.0 (...), templates 0123..., schema 2". It has "any nvrtc" if no
// compiler is stated.
std::string to_string(const KernelOrigin& origin);
// Returns nothing if `wanted` is not a valid KernelKey::wanted.
std::optional<KernelOrigin> kernel_origin(std::string_view wanted, std::string_view compiler);

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
//
// The key is a line with "compiler " and the compiler's identity, followed by KernelKey::wanted.
inline constexpr std::size_t kKernelFileHeader = 64;
inline constexpr std::uint32_t kKernelFileVersion = 2;
std::vector<std::byte> encode_kernel_file(const KernelKey& key, const CompiledKernel& kernel);

// The origin of a kernel, from the beginning of its file: kOriginBytes bytes, or the whole file if
// it is shorter. Returns nothing if this is not a kernel file of this version.
inline constexpr std::size_t kOriginBytes = 4096;
std::optional<KernelOrigin> origin_of_file(std::span<const std::byte> beginning);

// The contents of an undamaged file that matches its own key. decode_kernel_file() returns nothing
// if the bytes are damaged or have another version; *why has the reason.
struct KernelFile {
  KernelKey key;
  CompiledKernel kernel;
};
std::optional<KernelFile> decode_kernel_file(std::span<const std::byte> file, std::string* why);

// Decodes a file that was looked up by a key. Also returns nothing if the file has another key. If
// `key` states no compiler, the file's compiler may be any.
std::optional<KernelFile> decode_kernel_file(std::span<const std::byte> file, const KernelKey& key,
                                             std::string* why);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_COMPILED_KERNEL_H_
