// Files whose size disagrees with their headers or with the request are rejected by their headers
// alone. A sparse file of many GiB costs its writer nothing, so it must cost its reader nothing
// either.

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "annulus/layout.h"
#include "base/safetensors.h"
#include "layout/exchange_file.h"
#include "layout/sample_layout.h"
#include "support/faulty_files.h"

namespace annulus {
namespace {

using layout::read_exchange_file;
using test::code_of;

constexpr std::int64_t kHuge = std::int64_t{40} << 30;
constexpr LayoutSizes kAsked = {8, 8, 64, 72, 2};

BlockLayout two_heads(base::Random* random) {
  BlockLayout like;
  like.block_rows = kAsked.block_rows;
  like.block_columns = kAsked.block_columns;
  like.seq_q = kAsked.seq_q;
  like.seq_k = kAsked.seq_k;
  like.heads = kAsked.heads;
  return test::random_blocks(random, like, 2);
}

class SparseFile {
 public:
  // Returns false if the file system does not support a file of this size.
  bool make(std::span<const std::byte> head, std::int64_t bytes = kHuge) {
    base::write_file_atomically(writer_, path, head);
    std::error_code refused;
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(bytes), refused);
    if (refused) MESSAGE("no sparse file of ", bytes, " bytes: ", refused.message());
    return !refused;
  }
  bool make(const std::string& head, std::int64_t bytes = kHuge) {
    return make(std::as_bytes(std::span(head)), bytes);
  }

  // Reads the file. It must be rejected with a message that has all `parts`, after at most `most`
  // bytes were read.
  void refused(LayoutFormat format, const LayoutSizes& sizes, std::int64_t most,
               const std::vector<std::string>& parts) {
    test::FaultyFiles files;
    std::string message;
    CHECK(code_of([&] { read_exchange_file(files, path, format, sizes); }, &message) ==
          ErrorCode::kInvalidFile);
    for (const std::string& part : parts) {
      CHECK_MESSAGE(message.find(part) != std::string::npos, message);
    }
    CHECK(files.bytes_read() <= most);
    CHECK(files.opened() == 0);
  }

 private:
  test::ScratchFolder folder_;
  test::FaultyFiles writer_;  // does not sync the disk

 public:
  const std::string path = folder_ / "x";
};

std::string npy(const std::string& shape, char version = 1, std::uint32_t claimed = 0) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + shape + "), }";
  if (claimed == 0) claimed = static_cast<std::uint32_t>(header.size());
  std::string text = std::string("\x93NUMPY") + version + '\0';
  text.append(reinterpret_cast<const char*>(&claimed), version == 1 ? 2 : 4);
  return text + header;
}

std::string safetensors(const std::string& header, std::uint64_t claimed = 0) {
  if (claimed == 0) claimed = header.size();
  return std::string(reinterpret_cast<const char*>(&claimed), 8) + header;
}

// The header of a tensor of bytes that fills the rest of the file.
std::string filling(const std::string& name, const std::string& metadata) {
  const std::string begin =
      "{\"__metadata__\":{" + metadata + "},\"" + name + "\":{\"dtype\":\"U8\",";
  constexpr std::int64_t kHeader = 512;
  const std::string bytes = std::to_string(kHuge - 8 - kHeader);
  std::string text = begin + "\"shape\":[" + bytes + "],\"data_offsets\":[0," + bytes + "]}}";
  text.resize(kHeader, ' ');
  return safetensors(text);
}

TEST_CASE("a raw mask of another size than asked for is refused unread") {
  SparseFile file;
  if (!file.make("")) return;
  file.refused(LayoutFormat::kRaw, kAsked, 0, {std::to_string(kHuge), "2 x 8 x 9"});
}

TEST_CASE("an npy file is refused by its header") {
  SparseFile file;
  const std::string good = npy("2, 8, 9");
  if (!file.make(good)) return;
  const auto size = static_cast<std::int64_t>(good.size());
  file.refused(LayoutFormat::kNpy, kAsked, size, {std::to_string(kHuge - size), "needs 144"});
  // The claimed data exist, but were not requested.
  const std::string wide = npy("1, 65536, 655360");
  REQUIRE(file.make(wide, kHuge + static_cast<std::int64_t>(wide.size())));
  file.refused(LayoutFormat::kNpy, {8, 8, 64, 72, 1}, static_cast<std::int64_t>(wide.size()),
               {"65536 x 655360", "8 x 9"});
  REQUIRE(file.make(npy("2, 8, 9", 2, 0xfffffff0u)));
  file.refused(LayoutFormat::kNpy, kAsked, 12, {"4294967280", "65535"});
  REQUIRE(file.make(npy("2, 8, 9", 2, 0xfffffff0u), 100));
  file.refused(LayoutFormat::kNpy, kAsked, 12, {"4294967280", "88"});
  REQUIRE(file.make("no such file"));
  file.refused(LayoutFormat::kNpy, kAsked, 12, {"does not begin"});
}

TEST_CASE("a layout is refused by its header") {
  base::Random random(71);
  const BlockLayout layout = two_heads(&random);
  SparseFile file;
  export_layout(layout, file.path, LayoutFormat::kLayout);
  base::FileSystem files;
  const std::vector<std::byte> good = base::read_file(files, file.path, 1 << 20);
  file.refused(LayoutFormat::kLayout, {8, 8, 64, 72, 3}, 128,
               {"heads is 2, but the caller expects 3"});
  file.refused(LayoutFormat::kLayout, {8, 4, 64, 72, 2}, 128, {"C is 8, but the caller expects 4"});
  if (!file.make(good)) return;
  file.refused(LayoutFormat::kLayout, kAsked, 128,
               {std::to_string(kHuge), std::to_string(good.size())});
}

TEST_CASE("files of tensors are refused by their headers") {
  SparseFile file;
  const std::string sizes = R"("R":"8","C":"8","Sq":"64","Sk":"72","heads":"2")";
  // The file ends after its only tensor.
  if (!file.make(safetensors(R"({"kept":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})"))) {
    return;
  }
  file.refused(LayoutFormat::kBitset, kAsked, 128, {"belong to no tensor"});
  REQUIRE(file.make(safetensors("{}", 1u << 30)));
  file.refused(LayoutFormat::kCsr, kAsked, 8, {std::to_string(1u << 30), "16777216"});
  REQUIRE(file.make(safetensors("{}", std::uint64_t{1} << 50)));
  file.refused(LayoutFormat::kCsr, kAsked, 8,
               {std::to_string(std::uint64_t{1} << 50), std::to_string(kHuge - 8)});
  // The file agrees with its header, but not with the request.
  REQUIRE(file.make(filling("kept", sizes)));
  file.refused(LayoutFormat::kBitset, {8, 16, 64, 72, 2}, 520,
               {"C is 8, but the caller expects 16"});
  for (const LayoutFormat format :
       {LayoutFormat::kBitset, LayoutFormat::kCsr, LayoutFormat::kCoo, LayoutFormat::kFlashInfer}) {
    file.refused(format, kAsked, 520, {std::to_string(kHuge - 520), "at most 161"});
  }
  REQUIRE(file.make(filling("mask", sizes)));
  file.refused(LayoutFormat::kFlashInfer, kAsked, 520, {std::to_string(kHuge - 520), "9233"});
}

TEST_CASE("a fault anywhere in an import is an error of the file and closes it") {
  base::Random random(72);
  const BlockLayout layout = two_heads(&random);
  test::ScratchFolder folder;
  const std::string path = folder / "x";
  for (const LayoutFormat format :
       {LayoutFormat::kLayout, LayoutFormat::kNpy, LayoutFormat::kRaw, LayoutFormat::kCsr}) {
    export_layout(layout, path, format);
    test::FaultyFiles whole;
    whole.cut_short = true;
    CHECK(read_exchange_file(whole, path, format, kAsked) == layout);
    CHECK(whole.bytes_read() == static_cast<std::int64_t>(std::filesystem::file_size(path)));
    for (int i = 0; i < whole.calls() - 1; ++i) {  // the last call closes the file
      test::FaultyFiles files;
      files.cut_short = true;
      files.fail_at = i;
      CHECK(code_of([&] { read_exchange_file(files, path, format, kAsked); }) == ErrorCode::kFile);
      CHECK(files.opened() == 0);
    }
  }
}

}  // namespace
}  // namespace annulus
