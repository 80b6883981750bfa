#ifndef ANNULUS_PATTERN_LAYOUT_FILE_H_
#define ANNULUS_PATTERN_LAYOUT_FILE_H_

// A BlockLayout as safetensors. Tensors: `indptr` I64, `indices` I32, optionally `partial` U8.
// Metadata, decimal: version, R, C, Sq, Sk, heads (1 where missing), and optionally `digest`, the
// layout_digest in hexadecimal, which is checked where it is there: a file written by a few lines
// of Python may lack it.

#include <string>

#include "annulus/pattern.h"
#include "base/files.h"
#include "base/hash.h"

namespace annulus::pattern {

constexpr int kLayoutVersion = 1;

// Of the sizes and every entry, partial flags included; the same on every machine.
base::Digest layout_digest(const BlockLayout& layout);

// Throws Error{kFile}, or Error{kInvalidFile} that says which tensor or entry is wrong.
BlockLayout read_layout(base::FileSystem& files, const std::string& path);

// Throws Error{kInvalidArgument} for an invalid layout and Error{kFile}; then path is untouched.
void write_layout(base::FileSystem& files, const std::string& path, const BlockLayout& layout);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_LAYOUT_FILE_H_
