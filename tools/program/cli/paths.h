#ifndef ANNULUS_PROGRAM_CLI_PATHS_H_
#define ANNULUS_PROGRAM_CLI_PATHS_H_

// Paths on the command line.

#include <string>
#include <string_view>
#include <vector>

namespace annulus::program {

// Throws Error{kInvalidArgument} if `output` is one of the files that are read, under any name or
// through a link. An empty path is not a file, and "@file" is the file.
void check_is_new(std::string_view option, const std::string& output,
                  const std::vector<std::string>& read);

// The text of an option, or the text of the file if the option is "@file". Throws Error{kFile,
// kInvalidFile}.
std::string text_or_file(const std::string& text);

// The files that the text of a pattern or of a score names. They are "@file" itself, and the names
// in quotes of the text or of that file, as in blocks("x.layout").
std::vector<std::string> files_named_in(const std::string& text);

// Throws Error{kInvalidArgument} if a path for an SVG ends like a file of another picture format.
void check_is_svg(std::string_view option, const std::string& path);

// The absolute path of a folder, or of several folders with ':' between them.
std::string absolute_paths(const std::string& paths);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_PATHS_H_
