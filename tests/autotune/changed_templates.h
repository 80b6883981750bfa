#ifndef ANNULUS_TESTS_AUTOTUNE_CHANGED_TEMPLATES_H_
#define ANNULUS_TESTS_AUTOTUNE_CHANGED_TEMPLATES_H_

// Kernel templates with a planted error, for tests of how the tuner handles such candidates.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace annulus::test {

// Writes the templates to `folder`. In `file`, one piece of text is replaced.
inline void write_templates(const std::string& folder, const std::string& file,
                            const std::string& from, const std::string& to) {
  std::filesystem::copy(ANNULUS_TEMPLATES, folder, std::filesystem::copy_options::recursive);
  const std::string path = folder + "/" + file;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::string source = text.str();
  const std::size_t at = source.find(from);
  REQUIRE(at != std::string::npos);
  source.replace(at, from.size(), to);
  std::ofstream(path) << source;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_AUTOTUNE_CHANGED_TEMPLATES_H_
