#ifndef ANNULUS_JIT_COMPILER_H_
#define ANNULUS_JIT_COMPILER_H_

// Compiles a spec to an image with NVRTC.
//
//   Compiler compiler(nvrtc, TemplateSet::embedded(), ImageKind::kCubin);
//   const CompiledKernel kernel = compiler.compile(spec);   // 0.2 s; see KernelCache
//   kernel.usage.registers ...
//
// Nothing is read from the file system. The templates are passed in memory, with names below
// kVirtualRoot. The image depends neither on the working directory nor on the process.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/libraries.h"
#include "jit/compiled_kernel.h"
#include "jit/spec.h"
#include "jit/templates.h"

namespace annulus::jit {

// A part of every key. It must be raised if a change of this library makes old images wrong
// although the specialised source, the templates and the options are the same.
inline constexpr int kKernelSchema = 2;

// A spec with everything that is derived from it, so that another lookup of the kernel need not
// derive it again.
struct KernelRequest {
  KernelSpec spec;
  std::string source;
  std::string entry;  // qualified_entry(spec)
  KernelKey key;
};

class Compiler {
 public:
  // If NVRTC is not usable, the compiler can prepare specs but cannot compile them.
  Compiler(std::shared_ptr<const abi::NvrtcLibrary> nvrtc,
           std::shared_ptr<const TemplateSet> templates, ImageKind kind);

  // Returns a copy of this compiler with other templates.
  std::shared_ptr<const Compiler> with(std::shared_ptr<const TemplateSet> templates) const {
    return std::make_shared<const Compiler>(nvrtc_, std::move(templates), kind_);
  }

  ImageKind kind() const { return kind_; }
  const TemplateSet& templates() const { return *templates_; }
  // The reason why nothing can be compiled. Empty if kernels can be compiled.
  const std::string& problem() const { return nvrtc_->report.problem; }
  bool compiles() const { return problem().empty(); }
  // "13.0 (65be0db342ad51a06876e71e210bccc5aa8322cf)": version and build of the library. Empty if
  // nothing can be compiled.
  const std::string& identity() const { return identity_; }

  // The origin of kernels that it compiles for an architecture.
  KernelOrigin origin(Arch arch) const;

  int version() const { return nvrtc_->report.version; }  // 13000 is 13.0

  // Throws Error{kInvalidArgument} if the spec is malformed.
  KernelRequest prepare(KernelSpec spec) const;

  // Creates a request from the KernelKey::wanted of a kernel file that a device has stored, with
  // the kind of image that this compiler makes. So a kernel that ran on a simulated device can be
  // compiled for a GPU. In the request's spec only the family and the architecture are set. Returns
  // nothing if the kernel has other templates or another schema, or if the text is not a kernel's.
  std::optional<KernelRequest> adopt(std::string_view wanted) const;

  // Takes at least 0.1 s. Any number of threads may compile at once. Throws Error{kLibrary} with
  // problem() if nothing can be compiled, Error{kUnsupported} for an architecture that this NVRTC
  // does not support, Error{kCompile} with the compiler's log and the specialised source, and
  // Error{kOutOfMemory} if the host has no memory left.
  CompiledKernel compile(const KernelRequest& request) const;
  CompiledKernel compile(const KernelSpec& spec) const { return compile(prepare(spec)); }

 private:
  std::vector<std::string> options(Arch arch, bool newer) const;
  std::string key_head(Arch arch) const;
  std::string wanted_text(Arch arch, std::string_view entry, std::string_view source) const;

  std::shared_ptr<const abi::NvrtcLibrary> nvrtc_;
  std::shared_ptr<const TemplateSet> templates_;
  ImageKind kind_;
  std::string identity_;
  std::vector<int> archs_;
  // The templates in the form that NVRTC takes. The pointers point into the strings.
  std::vector<std::string> names_, texts_;
  std::vector<const char*> name_pointers_, text_pointers_;
  // Set after NVRTC has refused an option that older versions do not have.
  mutable std::atomic<bool> older_{false};
};

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_COMPILER_H_
