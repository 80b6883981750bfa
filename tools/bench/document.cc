#include "document.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>

#include "base/fail.h"

namespace annulus::bench {

Document read_document(const std::string& path, const std::string& program) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream stream;
  stream << in.rdbuf();
  const std::string text = stream.str();
  const std::string begin_mark = "<!-- made by tools/bench/model " + program + " -->\n";
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

int make_table(int argc, char** argv, const std::string& program,
               const std::function<MadeTable()>& make) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode.empty() ? argc != 1 : argc != 3 || (mode != "--write" && mode != "--check")) {
    std::fprintf(stderr, "usage: %s [--write FILE | --check FILE]\n", argv[0]);
    return 2;
  }
  try {
    const MadeTable made = make();
    for (const std::string& broken : made.broken) std::printf("%s\n", broken.c_str());
    const int status = made.broken.empty() ? 0 : 1;
    if (mode.empty()) {
      std::fputs(made.text.c_str(), stdout);
      return status;
    }
    const std::string path = argv[2];
    const Document document = read_document(path, program);
    if (mode == "--write") {
      write_document(path, document, made.text);
      return status;
    }
    if (document.table == made.text) return status;
    std::printf("%s has another table; model %s --write makes this one:\n%s", path.c_str(),
                program.c_str(), made.text.c_str());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
    return 1;
  }
}

}  // namespace annulus::bench
