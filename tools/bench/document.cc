#include "document.h"

#include <fstream>
#include <sstream>

#include "base/fail.h"

namespace annulus::bench {

Document read_document(const std::string& path, const std::string& program) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream stream;
  stream << in.rdbuf();
  const std::string text = stream.str();
  const std::string begin_mark = "<!-- made by tools/bench/" + program + " -->\n";
  const std::size_t begin = text.find(begin_mark);
  const std::size_t end = text.find("<!-- end of " + program + " -->\n");
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    base::fail(ErrorCode::kInvalidFile, "{} has no place for the table of {}", path, program);
  }
  const std::size_t inside = begin + begin_mark.size();
  return {text.substr(0, inside), text.substr(inside, end - inside), text.substr(end)};
}

void write_document(const std::string& path, const Document& document, const std::string& table) {
  std::ofstream out(path, std::ios::binary);
  out << document.before << table << document.after;
  out.close();
  if (!out) base::fail(ErrorCode::kInvalidFile, "{} could not be written", path);
}

}  // namespace annulus::bench
