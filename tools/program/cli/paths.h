#ifndef ANNULUS_PROGRAM_CLI_PATHS_H_
#define ANNULUS_PROGRAM_CLI_PATHS_H_

// Paths of the command line.

#include <string>
#include <string_view>
#include <vector>

namespace annulus::program {

// Throws Error{kInvalidArgument} where `output` is one of the files that are read, by whatever name
// or link. Empty paths are no files, and "@file" is the file.
void check_is_new(std::string_view option, const std::string& output,
                  const std::vector<std::string>& read);

// The text of an option, or the text of the file if the option is "@file". Throws Error{kFile,
// kInvalidFile}.
std::string text_or_file(const std::string& text);

// The files that the text of a pattern or a score names: "@file" itself, and those in quotes, as in
// blocks("x.layout"), of the text or of that file.
std::vector<std::string> files_named_in(const std::string& text);

// Throws Error{kInvalidArgument} where a path for an SVG ends as another format of pictures does.
void check_is_svg(std::string_view option, const std::string& path);

// A folder, or several with ':' between them, from the working directory on.
std::string absolute_paths(const std::string& paths);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_PATHS_H_
