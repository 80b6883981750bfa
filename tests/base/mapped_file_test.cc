#include "base/mapped_file.h"

#include <doctest/doctest.h>

#include <cstring>

#include "annulus/types.h"
#include "support/faulty_files.h"

namespace annulus::base {
namespace {

ErrorCode code_of_mapping(FileSystem& files, const std::string& path, std::int64_t most = 1 << 20) {
  try {
    const MappedFile file(files, path, most);
    return ErrorCode{0};
  } catch (const Error& error) {
    return error.code();
  }
}

TEST_CASE("a mapped file has the bytes of the file") {
  test::ScratchFolder folder;
  test::FaultyFiles files;
  const std::string text = "twelve bytes";
  write_file_atomically(files, folder / "x", std::as_bytes(std::span(text)));
  {
    const MappedFile file(files, folder / "x", 12);
    REQUIRE(file.bytes().size() == 12);
    CHECK(std::memcmp(file.bytes().data(), text.data(), 12) == 0);
    // A file that replaces this file has separate pages.
    write_file_atomically(files, folder / "x", {});
    CHECK(std::memcmp(file.bytes().data(), text.data(), 12) == 0);
    CHECK(files.mapped() == 1);
  }
  CHECK(files.mapped() == 0);
  CHECK(MappedFile(files, folder / "x", 0).bytes().empty());
  write_file_atomically(files, folder / "x", std::as_bytes(std::span(text)));
  CHECK(code_of_mapping(files, folder / "x", 11) == ErrorCode::kInvalidFile);
  CHECK(code_of_mapping(files, folder.path()) == ErrorCode::kInvalidFile);
  CHECK(code_of_mapping(files, "/dev/zero") == ErrorCode::kInvalidFile);
  CHECK(code_of_mapping(files, folder / "missing") == ErrorCode::kFile);
}

TEST_CASE("every call of a mapping may fail, and nothing stays open") {
  test::ScratchFolder folder;
  FileSystem good;
  const std::string text = "some text";
  write_file_atomically(good, folder / "x", std::as_bytes(std::span(text)));
  int failed = 0;
  for (int call = 0; call < 10; ++call) {
    test::FaultyFiles files;
    files.fail_at = call;
    const ErrorCode code = code_of_mapping(files, folder / "x");
    CHECK((code == ErrorCode{0} || code == ErrorCode::kFile));
    failed += code == ErrorCode::kFile;
    CHECK(files.opened() == 0);
    CHECK(files.mapped() == 0);
  }
  CHECK(failed == 3);  // open, examine, map; an error of closing the mapped file may go unnoticed
}

}  // namespace
}  // namespace annulus::base
