#include "base/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "base/fail.h"
#include "base/join.h"
#include "base/json.h"

namespace annulus::base {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are stored as they are used");

constexpr std::size_t kPrefix = 8;
constexpr JsonLimits kHeaderLimits{.bytes = std::size_t{16} << 20, .depth = 8};
constexpr std::size_t kMaxDimensions = 16;
constexpr const char* kMetadataName = "__metadata__";

struct TypeRow {
  TensorType type;
  const char* name;
  std::size_t bytes;
};
constexpr std::array kTypes = {
    TypeRow{TensorType::kF16, "F16", 2}, TypeRow{TensorType::kBF16, "BF16", 2},
    TypeRow{TensorType::kF32, "F32", 4}, TypeRow{TensorType::kF64, "F64", 8},
    TypeRow{TensorType::kI32, "I32", 4}, TypeRow{TensorType::kI64, "I64", 8},
    TypeRow{TensorType::kU8, "U8", 1}};

const TypeRow& row_of(TensorType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row;
  }
  fail(ErrorCode::kInternal, "tensor type {}", static_cast<int>(type));
}

// A name from a file in a form for messages: short, and without bytes that could affect a terminal.
std::string shown(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, 64)) text.push_back(c >= ' ' && c <= '~' ? c : '?');
  if (name.size() > 64) text += "...";
  return text;
}

// The bytes of a shape. No value if a dimension is negative or the product exceeds 2^63.
std::optional<std::int64_t> bytes_of(TensorType type, std::span<const std::int64_t> shape) {
  auto bytes = static_cast<std::int64_t>(row_of(type).bytes);
  bool overflow = false;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
    // Zeros are skipped, so that a zero does not hide other dimensions whose product overflows.
    if (extent > 0) overflow = __builtin_mul_overflow(bytes, extent, &bytes) || overflow;
  }
  if (overflow) return std::nullopt;
  return empty ? 0 : bytes;
}

// The value as a whole number in [0, 2^63). No value if it is not such a number.
std::optional<std::int64_t> count_of(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto number = value.get<std::uint64_t>();
  if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

Metadata parse_metadata(const Json& value, std::string_view what) {
  if (!value.is_object()) {
    fail(ErrorCode::kInvalidFile, "{}: __metadata__ is not a JSON object", what);
  }
  Metadata metadata;
  for (const auto& [key, word] : value.items()) {
    if (!word.is_string()) {
      fail(ErrorCode::kInvalidFile, "{}: metadata '{}' is not a string", what, shown(key));
    }
    metadata.emplace(key, word.get<std::string>());
  }
  return metadata;
}

// The place of a tensor in the data.
struct Placed {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string name;
};

// A file's header. Its tensors have no bytes yet.
struct Header {
  Safetensors file;
  std::vector<Placed> placed;
  std::size_t data_at = 0;     // the offset of the data
  std::size_t file_bytes = 0;  // 0 before the size is known
};

// Throws unless an entry of the header is an object with exactly the three keys of the format.
void check_keys(const std::string& tensor, const Json& value, std::string_view what) {
  if (!value.is_object()) {
    fail(ErrorCode::kInvalidFile, "{}: tensor '{}' is not a JSON object", what, tensor);
  }
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      fail(ErrorCode::kInvalidFile, "{}: tensor '{}' has an unknown key '{}'", what, tensor,
           shown(key));
    }
  }
  if (value.size() != 3) {
    fail(ErrorCode::kInvalidFile, "{}: tensor '{}' needs dtype, shape and data_offsets", what,
         tensor);
  }
}

const TypeRow& parse_type(const std::string& tensor, const Json& dtype, std::string_view what) {
  const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& candidate) {
    return dtype.is_string() && dtype.get_ref<const std::string&>() == candidate.name;
  });
  if (row == kTypes.end()) {
    fail(ErrorCode::kInvalidFile,
         "{}: the dtype of tensor '{}' is {}; known are F16, BF16, F32, F64, I32, I64 and U8", what,
         tensor, dtype.is_string() ? shown(dtype.get<std::string>()) : "not a string");
  }
  return *row;
}

std::vector<std::int64_t> parse_shape(const std::string& tensor, const Json& shape,
                                      std::string_view what) {
  if (!shape.is_array() || shape.size() > kMaxDimensions) {
    fail(ErrorCode::kInvalidFile,
         "{}: the shape of tensor '{}' is not a list of at most {} numbers", what, tensor,
         kMaxDimensions);
  }
  std::vector<std::int64_t> extents;
  for (const Json& extent : shape) {
    const std::optional<std::int64_t> count = count_of(extent);
    if (!count) {
      fail(ErrorCode::kInvalidFile, "{}: dimension {} of tensor '{}' is not a whole number >= 0",
           what, extents.size(), tensor);
    }
    extents.push_back(*count);
  }
  return extents;
}

// Reads one entry of the header, and checks everything that does not depend on other entries.
TensorView parse_tensor(const std::string& name, const Json& value, std::size_t data_bytes,
                        std::string_view what, Placed* placed) {
  const std::string tensor = shown(name);
  check_keys(tensor, value, what);
  const TypeRow& row = parse_type(tensor, value.at("dtype"), what);
  TensorView view{
      .type = row.type, .shape = parse_shape(tensor, value.at("shape"), what), .bytes = {}};
  const std::optional<std::int64_t> bytes = bytes_of(view.type, view.shape);
  if (!bytes) {
    fail(ErrorCode::kInvalidFile, "{}: tensor '{}' has more elements than can be counted: [{}]",
         what, tensor, base::join(view.shape, ", "));
  }
  const Json& offsets = value.at("data_offsets");
  const bool pair = offsets.is_array() && offsets.size() == 2;
  const std::optional<std::int64_t> begin = pair ? count_of(offsets[0]) : std::nullopt;
  const std::optional<std::int64_t> end = pair ? count_of(offsets[1]) : std::nullopt;
  if (!begin || !end || *begin > *end) {
    fail(ErrorCode::kInvalidFile,
         "{}: data_offsets of tensor '{}' are not [begin, end], 0 <= begin <= end", what, tensor);
  }
  if (*end > static_cast<std::int64_t>(data_bytes)) {
    fail(
        ErrorCode::kInvalidFile,
        "{}: tensor '{}' ends at byte {} of the data, but only {} are there; the file is cut short",
        what, tensor, *end, data_bytes);
  }
  if (*end - *begin != *bytes) {
    fail(ErrorCode::kInvalidFile, "{}: tensor '{}' holds {} bytes; {} [{}] needs {}", what, tensor,
         *end - *begin, row.name, base::join(view.shape, ", "), *bytes);
  }
  *placed = {.begin = *begin, .end = *end, .name = name};
  return view;
}

// Throws unless every byte of the data belongs to exactly one tensor.
void check_cover(std::vector<Placed>* placed, std::size_t data_bytes, std::string_view what) {
  std::sort(placed->begin(), placed->end(), [](const Placed& a, const Placed& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::int64_t covered = 0;
  for (const Placed& tensor : *placed) {
    if (tensor.begin != covered) {
      fail(ErrorCode::kInvalidFile, "{}: tensor '{}' begins at byte {}, {} {} of the data", what,
           shown(tensor.name), tensor.begin,
           tensor.begin < covered ? "over another that ends at" : "leaving a hole from", covered);
    }
    covered = tensor.end;
  }
  if (static_cast<std::uint64_t>(covered) != data_bytes) {
    fail(ErrorCode::kInvalidFile, "{}: {} bytes of data after the last tensor belong to no tensor",
         what, data_bytes - static_cast<std::size_t>(covered));
  }
}

// The end of the header, from the first bytes of a file with this size.
std::size_t header_end(std::span<const std::byte> head, std::size_t file_bytes,
                       std::string_view what) {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, head.data(), kPrefix);
  if (header_bytes > file_bytes - kPrefix) {
    fail(ErrorCode::kInvalidFile,
         "{}: the header claims {} bytes, but only {} follow; not a safetensors file, or cut short",
         what, header_bytes, file_bytes - kPrefix);
  }
  if (header_bytes > kHeaderLimits.bytes) {
    fail(ErrorCode::kInvalidFile, "{}: the header claims {} bytes; {} are read at most", what,
         header_bytes, kHeaderLimits.bytes);
  }
  return kPrefix + static_cast<std::size_t>(header_bytes);
}

// Reads a header whose bytes are complete. First each entry is checked, then the entries are
// checked against each other and against the size of the file.
Header parse_header(std::span<const std::byte> head, std::size_t file_bytes,
                    std::string_view what) {
  Header header;
  header.data_at = head.size();
  header.file_bytes = file_bytes;
  const std::size_t data_bytes = file_bytes - header.data_at;
  const char* text = reinterpret_cast<const char*>(head.data()) + kPrefix;
  const Json json = parse_json({text, head.size() - kPrefix}, what, kHeaderLimits);
  if (!json.is_object()) {
    fail(ErrorCode::kInvalidFile, "{}: the header is not a JSON object", what);
  }
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    if (entry.key() == kMetadataName) {
      header.file.metadata = parse_metadata(entry.value(), what);
    } else {
      header.file.tensors.emplace(entry.key(), parse_tensor(entry.key(), entry.value(), data_bytes,
                                                            what, &header.placed.emplace_back()));
    }
  }
  check_cover(&header.placed, data_bytes, what);
  return header;
}

// Sets the bytes of a header's tensors. The views point into `storage`, which is moved into the
// result before the views are made.
Safetensors with_bytes(Header header, std::vector<std::byte> bytes, std::string_view what) {
  if (header.file_bytes == 0 || bytes.size() != header.file_bytes) {
    fail(ErrorCode::kInvalidFile, "{}: changed while it was read: {} bytes, not {}", what,
         bytes.size(), header.file_bytes);
  }
  Safetensors file = std::move(header.file);
  file.storage = std::move(bytes);
  const auto data = std::span<const std::byte>(file.storage).subspan(header.data_at);
  for (const Placed& placed : header.placed) {
    file.tensors.at(placed.name).bytes =
        data.subspan(static_cast<std::size_t>(placed.begin),
                     static_cast<std::size_t>(placed.end - placed.begin));
  }
  return file;
}

void check_prefix(std::size_t file_bytes, std::string_view what) {
  if (file_bytes < kPrefix) {
    fail(ErrorCode::kInvalidFile, "{}: {} bytes are not a safetensors file", what, file_bytes);
  }
}

}  // namespace

std::size_t size_in_bytes(TensorType type) { return row_of(type).bytes; }
const char* to_string(TensorType type) { return row_of(type).name; }

std::int64_t TensorView::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

Safetensors parse_safetensors(std::vector<std::byte> bytes, std::string_view what) {
  check_prefix(bytes.size(), what);
  const std::size_t end = header_end(bytes, bytes.size(), what);
  Header header = parse_header(std::span<const std::byte>(bytes).first(end), bytes.size(), what);
  return with_bytes(std::move(header), std::move(bytes), what);
}

Safetensors read_safetensors(FileSystem& files, const std::string& path, std::int64_t max_bytes,
                             const CheckTensors& check) {
  Header header;
  const auto check_head = [&](std::span<const std::byte> head, std::int64_t stated) {
    const auto file_bytes = static_cast<std::size_t>(stated);
    check_prefix(file_bytes, path);
    if (head.empty()) return kPrefix;
    const std::size_t end = header_end(head, file_bytes, path);
    if (head.size() == end) {
      header = parse_header(head, file_bytes, path);
      if (check) check(header.file);
    }
    return end;
  };
  std::vector<std::byte> bytes = read_checked_file(files, path, max_bytes, check_head);
  return with_bytes(std::move(header), std::move(bytes), path);
}

std::vector<std::byte> format_safetensors(std::span<const NamedTensor> tensors,
                                          const Metadata& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  // Tensors with larger elements come first, so that each tensor is aligned to its element size
  // without padding. Sorting by name makes the order, and so the bytes, unique.
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const std::size_t size_a = size_in_bytes(a->tensor.type);
    const std::size_t size_b = size_in_bytes(b->tensor.type);
    return size_a != size_b ? size_a > size_b : a->name < b->name;
  });
  Json header = Json::object();
  if (!metadata.empty()) {
    Json words = Json::object();
    for (const auto& [key, word] : metadata) words[key] = word;
    header[kMetadataName] = std::move(words);
  }
  std::size_t data_bytes = 0;
  for (const NamedTensor* tensor : order) {
    const TensorView& view = tensor->tensor;
    if (tensor->name == kMetadataName || header.contains(tensor->name)) {
      fail(ErrorCode::kInvalidArgument, "tensor name '{}' is {}", tensor->name,
           tensor->name == kMetadataName ? "reserved" : "there twice");
    }
    const std::optional<std::int64_t> bytes = bytes_of(view.type, view.shape);
    if (!bytes || static_cast<std::uint64_t>(*bytes) != view.bytes.size()) {
      fail(ErrorCode::kInvalidArgument, "tensor '{}' of {} [{}] has {} bytes", tensor->name,
           to_string(view.type), base::join(view.shape, ", "), view.bytes.size());
    }
    header[tensor->name] = {{"dtype", to_string(view.type)},
                            {"shape", view.shape},
                            {"data_offsets", {data_bytes, data_bytes + view.bytes.size()}}};
    data_bytes += view.bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception& error) {
    fail(ErrorCode::kInvalidArgument, "a tensor's name or metadata is not UTF-8: {}", error.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of 8

  std::vector<std::byte> bytes(kPrefix + text.size() + data_bytes);
  const std::uint64_t header_bytes = text.size();
  std::memcpy(bytes.data(), &header_bytes, kPrefix);
  std::memcpy(bytes.data() + kPrefix, text.data(), text.size());
  std::size_t at = kPrefix + text.size();
  for (const NamedTensor* tensor : order) {
    if (tensor->tensor.bytes.empty()) continue;
    std::memcpy(bytes.data() + at, tensor->tensor.bytes.data(), tensor->tensor.bytes.size());
    at += tensor->tensor.bytes.size();
  }
  return bytes;
}

void write_safetensors(FileSystem& files, const std::string& path,
                       std::span<const NamedTensor> tensors, const Metadata& metadata) {
  write_file_atomically(files, path, format_safetensors(tensors, metadata));
}

}  // namespace annulus::base
