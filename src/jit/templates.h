#ifndef ANNULUS_JIT_TEMPLATES_H_
#define ANNULUS_JIT_TEMPLATES_H_

// The kernel templates: the files below templates/, embedded in the library without comments and
// indentation. A folder may replace them while they are being worked on.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace annulus::jit {

// Static text; name is the path below templates/, "tile/mask.cuh".
struct EmbeddedFile {
  const char* name;
  std::string_view text;
};

// Defined by a file that tools/cmake/embed.cmake generates.
std::span<const EmbeddedFile> embedded_templates();

// A set of files that include one another by these names, and their digest. Immutable; shared
// between threads.
class TemplateSet {
 public:
  static std::shared_ptr<const TemplateSet> embedded();

  // Reads all .cuh, .cu and .h files below a folder, to be used instead of the embedded ones. A
  // file without block comments and raw strings loses its comments and its indentation. Throws
  // Error{kFile} or Error{kInvalidFile}.
  static std::shared_ptr<const TemplateSet> from_folder(const std::string& folder);

  // Throws Error{kInvalidArgument} where a name is not made of letters, digits and "_-./" or tries
  // to leave the set.
  explicit TemplateSet(std::map<std::string, std::string> files);

  // These files and others, whose names go below `folder`: "micro/boxes.cu" for "micro" and
  // "boxes.cu". A file of the same name is replaced. Throws as the constructor does.
  std::shared_ptr<const TemplateSet> with(const std::string& folder,
                                          std::span<const EmbeddedFile> files) const;

  // Ordered by name, so that equal sets have equal digests.
  const std::map<std::string, std::string>& files() const { return files_; }
  bool contains(const std::string& name) const { return files_.contains(name); }
  const base::Digest& digest() const { return digest_; }

 private:
  std::map<std::string, std::string> files_;
  base::Digest digest_;
};

// The folder under which NVRTC sees the files: "/annulus/tile/mask.cuh". An absolute name that
// exists nowhere keeps the working directory out of line information and error messages.
inline constexpr char kVirtualRoot[] = "/annulus/";

// Replaces #include "name" by #include "/annulus/name" for each name of the set. Line numbers stay.
std::string with_virtual_includes(std::string_view text, const TemplateSet& set);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_TEMPLATES_H_
