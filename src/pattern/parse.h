#ifndef ANNULUS_PATTERN_PARSE_H_
#define ANNULUS_PATTERN_PARSE_H_

// Parses text to an expression. The grammar is in docs/patterns.md; Pattern::parse calls it with
// the real file system.

#include <functional>
#include <string>
#include <string_view>

#include "annulus/pattern.h"

namespace annulus::pattern {

// Reads the layout of blocks("file"). An empty path stands for blocks(), the layout that the caller
// gave with the text.
using LoadBlocks = std::function<Pattern(const std::string& path)>;

constexpr std::size_t kMaxText = std::size_t{16} << 20;

// Throws Error{kParse} "column N: ..." (counted in bytes from 1), Error{kUnsupported} with the
// column for words that a later version will support, and the errors of load_blocks with the column
// in front.
Pattern parse(std::string_view text, const LoadBlocks& load_blocks);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_PARSE_H_
