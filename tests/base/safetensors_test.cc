#include "base/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "annulus/types.h"
#include "base/random.h"
#include "support/faulty_files.h"

namespace annulus::base {
namespace {

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes,
                               std::uint64_t header_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &header_bytes, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  for (std::size_t i = 0; i < data_bytes; ++i) {
    bytes[8 + header.size() + i] = static_cast<std::byte>(i);
  }
  return bytes;
}

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes) {
  return file_of(header, data_bytes, header.size());
}

void refused(std::vector<std::byte> bytes, const std::string& part) {
  try {
    parse_safetensors(std::move(bytes), "the file");
    FAIL("accepted; expected " << part);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidFile);
    CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
    CHECK_MESSAGE(std::string(error.what()).find("the file") != std::string::npos, error.what());
  }
}

// A file with one tensor "x" and this text as its entry must be refused.
void refused_entry(const std::string& entry, std::size_t data_bytes, const std::string& part) {
  refused(file_of("{\"x\":" + entry + "}", data_bytes), part);
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

TEST_CASE("tensors of every type survive writing and reading") {
  Random random(1);
  std::vector<std::vector<std::byte>> memory;
  std::vector<NamedTensor> tensors;
  const auto add = [&](const char* name, TensorType type, std::vector<std::int64_t> shape) {
    TensorView view{type, std::move(shape), {}};
    auto& bytes =
        memory.emplace_back(static_cast<std::size_t>(view.elements()) * size_in_bytes(type));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    tensors.push_back({name, view});
  };
  add("q", TensorType::kF16, {2, 3, 5});
  add("k", TensorType::kBF16, {7});
  add("scalar", TensorType::kF32, {});
  add("nothing", TensorType::kF64, {4, 0, 2});
  add("indices", TensorType::kI32, {9});
  add("indptr", TensorType::kI64, {3});
  add("a \"name\"\n\xc3\xa9", TensorType::kU8, {11});
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].tensor.bytes = memory[i];
  const Metadata metadata = {{"R", "64"}, {"who \\", "\"me\""}};

  test::ScratchFolder folder;
  FileSystem files;
  const std::string path = folder / "x.safetensors";
  write_safetensors(files, path, tensors, metadata);
  const Safetensors moved_from = read_safetensors(files, path);
  Safetensors file = read_safetensors(files, path);
  const Safetensors found = std::move(file);
  CHECK(found.metadata == metadata);
  REQUIRE(found.tensors.size() == tensors.size());
  for (const NamedTensor& tensor : tensors) {
    const TensorView& view = found.tensors.at(tensor.name);
    CHECK(view.type == tensor.tensor.type);
    CHECK(view.shape == tensor.tensor.shape);
    CHECK(std::equal(view.bytes.begin(), view.bytes.end(), tensor.tensor.bytes.begin(),
                     tensor.tensor.bytes.end()));
    const auto at = static_cast<std::size_t>(view.bytes.data() - found.storage.data());
    if (!view.bytes.empty()) CHECK(at % size_in_bytes(view.type) == 0);
  }
  const std::vector<std::byte> first = format_safetensors(tensors, metadata);
  std::swap(tensors[0], tensors[5]);
  CHECK(format_safetensors(tensors, metadata) == first);
  CHECK(format_safetensors({}, {}).size() == 16);
  CHECK(parse_safetensors(format_safetensors({}, {}), "empty").tensors.empty());
}

TEST_CASE("a writer refuses what no reader would take") {
  const std::byte byte{};
  const TensorView one{TensorType::kU8, {1}, {&byte, 1}};
  const auto refused_tensors = [](std::vector<NamedTensor> tensors) {
    try {
      format_safetensors(tensors, {});
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
    }
  };
  refused_tensors({{"x", one}, {"x", one}});
  refused_tensors({{"__metadata__", one}});
  refused_tensors({{"\xff\xfe", one}});
  refused_tensors({{"x", {TensorType::kU8, {2}, {&byte, 1}}}});
  refused_tensors({{"x", {TensorType::kU8, {-1}, {&byte, 1}}}});
  refused_tensors({{"x", {TensorType::kF64, {INT64_MAX, 0, INT64_MAX}, {}}}});
}

TEST_CASE("tensors may stand in any order in the header") {
  const Safetensors file = parse_safetensors(
      file_of("{\"b\":" + entry("U8", "[2]", "[4,6]") + ",\"a\":" + entry("I32", "[1]", "[0,4]") +
                  ",\"none\":" + entry("F16", "[0]", "[4,4]") + "}  ",
              6),
      "x");
  CHECK(file.tensors.at("b").bytes[0] == std::byte{4});
  CHECK(file.tensors.at("a").bytes.size() == 4);
  CHECK(file.tensors.at("none").elements() == 0);
}

TEST_CASE("hostile headers") {
  refused({}, "not a safetensors");
  refused(std::vector<std::byte>(7), "not a safetensors");
  refused(file_of("{}", 0, 3), "claims 3 bytes");
  refused(file_of("{}", 0, UINT64_MAX), "claims");
  refused(file_of("{}", 0, UINT64_MAX - 7), "claims");
  refused(file_of("", 0), "JSON");
  refused(file_of("[]", 0), "not a JSON object");
  refused(file_of("{", 0), "JSON");
  refused(file_of("{}x", 0), "JSON");
  refused(file_of(std::string("{\0}", 3), 0), "JSON");
  refused(file_of("{\"x\":" + std::string(1 << 20, '['), 0), "deeper");
  refused(file_of(std::string(1 << 20, '{'), 0), "JSON");
  std::string keys = "{\"a\":0";
  for (int i = 0; i < 100000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  refused(file_of(keys + "}", 0), "keys");
  refused(file_of(std::string((16u << 20) + 1, ' '), 0), "at most");
  refused(file_of("{\"x\":" + entry("U8", "[0]", "[0,0]") +
                      ",\"x\":" + entry("U8", "[0]", "[0,0]") + "}",
                  0),
          "occurs twice");
  refused(file_of("{\"__metadata__\":[]}", 0), "__metadata__");
  refused(file_of("{\"__metadata__\":{\"a\":1}}", 0), "metadata 'a'");
  refused(file_of("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0), "occurs twice");
}

TEST_CASE("hostile tensors") {
  CHECK_NOTHROW(parse_safetensors(file_of("{\"x\":" + entry("U8", "[3]", "[0,3]") + "}", 3), "x"));
  refused_entry("7", 0, "not a JSON object");
  refused_entry("{}", 0, "needs dtype");
  refused_entry("{\"dtype\":\"U8\",\"shape\":[0]}", 0, "needs dtype");
  refused_entry("{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"more\":1}", 0, "'more'");
  refused_entry(entry("F8_E4M3", "[1]", "[0,1]"), 1, "F8_E4M3");
  refused_entry("{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}", 1, "is not a string");
  refused_entry(entry("U8", "3", "[0,3]"), 3, "shape");
  refused_entry(entry("U8", "[-3]", "[0,3]"), 3, "dimension 0");
  refused_entry(entry("U8", "[1,3.0]", "[0,3]"), 3, "dimension 1");
  refused_entry(entry("U8", "[18446744073709551615]", "[0,3]"), 3, "dimension 0");
  refused_entry(entry("U8", "[99999999999999999999999]", "[0,3]"), 3, "dimension 0");
  refused_entry(entry("U8", "[\"3\"]", "[0,3]"), 3, "dimension 0");
  refused_entry(entry("F32", "[4294967296,4294967296]", "[0,0]"), 0, "can be counted");
  refused_entry(entry("F32", "[0,4294967296,4294967296]", "[0,0]"), 0, "can be counted");
  refused_entry(entry("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "at most 16");
  refused_entry(entry("U8", "[3]", "[0]"), 3, "data_offsets");
  refused_entry(entry("U8", "[3]", "[0,3,3]"), 3, "data_offsets");
  refused_entry(entry("U8", "[3]", "[-3,0]"), 3, "data_offsets");
  refused_entry(entry("U8", "[3]", "[3,0]"), 3, "data_offsets");
  refused_entry(entry("U8", "[3]", "[0,3e0]"), 3, "data_offsets");
  refused_entry(entry("U8", "[3]", "[0,4]"), 3, "cut short");
  refused_entry(entry("U8", "[9223372036854775807]", "[0,9223372036854775807]"), 3, "cut short");
  refused_entry(entry("U8", "[2]", "[0,3]"), 3, "needs 2");
  refused_entry(entry("F32", "[3]", "[0,3]"), 3, "needs 12");
  refused_entry(entry("U8", "[3]", "[1,4]"), 4, "hole");
  refused_entry(entry("U8", "[3]", "[0,3]"), 4, "belong to no tensor");
  refused(file_of("{\"x\":" + entry("U8", "[3]", "[0,3]") +
                      ",\"y\":" + entry("U8", "[3]", "[2,5]") + "}",
                  5),
          "over another");
  refused(file_of("{\"x\":" + entry("U8", "[3]", "[0,3]") +
                      ",\"y\":" + entry("U8", "[3]", "[0,3]") + "}",
                  3),
          "over another");
  refused(file_of("{\"x\":" + entry("U8", "[3]", "[0,3]") +
                      ",\"y\":" + entry("U8", "[0]", "[1,1]") + "}",
                  3),
          "over another");
}

TEST_CASE("mutated files never do more than throw an error") {
  Random random(9);
  std::vector<float> values(64, 1.5f);
  const std::vector<NamedTensor> tensors = {
      {"q", {TensorType::kF32, {4, 8}, std::as_bytes(std::span(values)).first(128)}},
      {"k", {TensorType::kF32, {8, 2}, std::as_bytes(std::span(values)).first(64)}},
      {"n", {TensorType::kU8, {3}, std::as_bytes(std::span(values)).first(3)}}};
  const std::vector<std::byte> good = format_safetensors(tensors, {{"a", "b"}});
  const std::string alphabet = "{}[]:,\"0123456789-eE. \\u\x80";
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes = good;
    for (std::uint32_t change = 1 + random.below(3); change > 0; --change) {
      const auto size = static_cast<std::uint32_t>(bytes.size());
      if (size < 16) break;
      const std::uint32_t at = random.below(random.below(4) == 0 ? 16 : std::min(size, 260u));
      switch (random.below(5)) {
        case 0:
          bytes[at] = static_cast<std::byte>(random.below(256));
          break;
        case 1:
        case 2:
          bytes[at] = static_cast<std::byte>(
              alphabet[random.below(static_cast<std::uint32_t>(alphabet.size()))]);
          break;
        case 3:
          bytes.resize(random.below(size));
          break;
        default:
          bytes.insert(bytes.begin() + at, static_cast<std::byte>('0' + random.below(10)));
      }
    }
    try {
      const Safetensors file = parse_safetensors(std::move(bytes), "x");
      for (const auto& [name, view] : file.tensors) {
        REQUIRE(static_cast<std::size_t>(view.elements()) * size_in_bytes(view.type) ==
                view.bytes.size());
        std::size_t sum = 0;
        for (const std::byte byte : view.bytes) sum += static_cast<std::size_t>(byte);
        CHECK(sum < 1u << 20);
      }
      ++accepted;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidFile);
    }
  }
  CHECK(accepted < 10000);
}

TEST_CASE("files that cannot be read or are too large") {
  test::ScratchFolder folder;
  FileSystem files;
  const std::string path = folder / "x.safetensors";
  write_safetensors(files, path, {}, {});
  const auto code_of_read = [&](const std::string& name, std::int64_t most) {
    try {
      read_safetensors(files, name, most);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode{0};
  };
  CHECK(code_of_read(path, 1 << 20) == ErrorCode{0});
  CHECK(code_of_read(path, 8) == ErrorCode::kInvalidFile);
  CHECK(code_of_read(folder / "missing", 1 << 20) == ErrorCode::kFile);
  CHECK(code_of_read("/dev", 1 << 20) != ErrorCode{0});
  // The file is one hole, so its size costs the writer nothing.
  std::error_code refused_size;
  std::filesystem::resize_file(path, std::uintmax_t{1} << 42, refused_size);
  if (!refused_size) CHECK(code_of_read(path, INT64_MAX) == ErrorCode::kInvalidFile);
}

}  // namespace
}  // namespace annulus::base
