#ifndef ANNULUS_JIT_TEMPLATES_H_
#define ANNULUS_JIT_TEMPLATES_H_

// The kernel templates: the files below templates/, embedded in the library without comments and
// indentation. A folder can replace them during development.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace annulus::jit {

// Static text. `name` is the path below templates/, such as "tile/mask.cuh".
struct EmbeddedFile {
  const char* name;
  std::string_view text;
};

// Defined by a file that tools/cmake/embed.cmake generates.
std::span<const EmbeddedFile> embedded_templates();

// A set of files that include each other by these names, and the digest of the set. Immutable;
// shared between threads.
class TemplateSet {
 public:
  static std::shared_ptr<const TemplateSet> embedded();

  // Reads all .cuh, .cu and .h files below a folder, to use them instead of the embedded ones.
  // Comments and indentation are removed from files that have no block comments and no raw strings.
  // Throws Error{kFile} or Error{kInvalidFile}.
  static std::shared_ptr<const TemplateSet> from_folder(const std::string& folder);

  // Throws Error{kInvalidArgument} if a name has characters other than letters, digits and "_-./",
  // or refers to a place outside the set.
  explicit TemplateSet(std::map<std::string, std::string> files);

  // These files and further ones, whose names are placed below `folder`: "micro/boxes.cu" for
  // "micro" and "boxes.cu". A file with the same name is replaced. Throws as the constructor does.
  std::shared_ptr<const TemplateSet> with(const std::string& folder,
                                          std::span<const EmbeddedFile> files) const;

  // Sorted by name, so that equal sets have equal digests.
  const std::map<std::string, std::string>& files() const { return files_; }
  bool contains(const std::string& name) const { return files_.contains(name); }
  const base::Digest& digest() const { return digest_; }

 private:
  std::map<std::string, std::string> files_;
  base::Digest digest_;
};

// The folder in which NVRTC finds the files: "/annulus/tile/mask.cuh". It is an absolute name that
// does not exist, so that the working directory does not occur in line information and error
// messages.
inline constexpr char kVirtualRoot[] = "/annulus/";

// Replaces #include "name" by #include "/annulus/name" for each name of the set. Line numbers do
// not change.
std::string with_virtual_includes(std::string_view text, const TemplateSet& set);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_TEMPLATES_H_
