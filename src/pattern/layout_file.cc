#include "pattern/layout_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "base/safetensors.h"

namespace annulus::pattern {
namespace {

using base::TensorType;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
std::vector<T> values_of(const base::Safetensors& file, const std::string& name, TensorType type,
                         const std::string& path) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) {
    base::fail(ErrorCode::kInvalidFile, "{}: no tensor '{}'; not a block layout", path, name);
  }
  const base::TensorView& view = found->second;
  if (view.type != type || view.shape.size() != 1) {
    base::fail(ErrorCode::kInvalidFile,
               "{}: tensor '{}' is {} with {} dimensions; it must be {} with 1", path, name,
               base::to_string(view.type), view.shape.size(), base::to_string(type));
  }
  std::vector<T> values(view.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
  return values;
}

std::int64_t number_of(const base::Metadata& metadata, const std::string& key,
                       const std::string& path) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) {
    base::fail(ErrorCode::kInvalidFile, "{}: no metadata '{}'; not a block layout", path, key);
  }
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    base::fail(ErrorCode::kInvalidFile, "{}: metadata '{}' is not a number of 64 bits", path, key);
  }
  return value;
}

}  // namespace

base::Digest layout_digest(const BlockLayout& layout) {
  // A digest of digests: the arrays need no second copy.
  const std::string text = fmt::format(
      "annulus block layout 1: {} {} {} {} {} {} {} {}", layout.block_rows, layout.block_columns,
      layout.seq_q, layout.seq_k, layout.heads, base::digest(bytes_of(layout.indptr)).hex(),
      base::digest(bytes_of(layout.indices)).hex(), base::digest(bytes_of(layout.partial)).hex());
  return base::digest(text);
}

BlockLayout read_layout(base::FileSystem& files, const std::string& path) {
  const base::Safetensors file = base::read_safetensors(files, path);
  const std::int64_t version = number_of(file.metadata, "version", path);
  if (version != kLayoutVersion) {
    base::fail(ErrorCode::kInvalidFile, "{}: block layout of version {}; this library reads {}",
               path, version, kLayoutVersion);
  }
  BlockLayout layout;
  layout.block_rows = number_of(file.metadata, "R", path);
  layout.block_columns = number_of(file.metadata, "C", path);
  layout.seq_q = number_of(file.metadata, "Sq", path);
  layout.seq_k = number_of(file.metadata, "Sk", path);
  layout.heads = file.metadata.contains("heads") ? number_of(file.metadata, "heads", path) : 1;
  layout.indptr = values_of<std::int64_t>(file, "indptr", TensorType::kI64, path);
  layout.indices = values_of<std::int32_t>(file, "indices", TensorType::kI32, path);
  if (file.tensors.contains("partial")) {
    layout.partial = values_of<std::uint8_t>(file, "partial", TensorType::kU8, path);
  }
  for (const auto& [name, unused] : file.tensors) {
    if (name != "indptr" && name != "indices" && name != "partial") {
      base::fail(ErrorCode::kInvalidFile,
                 "{}: a tensor that no block layout has; it may hold indptr, indices and partial",
                 path);
    }
  }
  try {
    layout.validate();
  } catch (const Error& error) {
    base::fail(ErrorCode::kInvalidFile, "{}: {}", path, error.what());
  }
  const auto digest = file.metadata.find("digest");
  if (digest != file.metadata.end() && digest->second != layout_digest(layout).hex()) {
    base::fail(ErrorCode::kInvalidFile, "{}: the digest does not match; the file is damaged", path);
  }
  return layout;
}

void write_layout(base::FileSystem& files, const std::string& path, const BlockLayout& layout) {
  layout.validate();
  std::vector<base::NamedTensor> tensors;
  const auto add = [&](const char* name, TensorType type, std::span<const std::byte> bytes) {
    const auto length = static_cast<std::int64_t>(bytes.size() / base::size_in_bytes(type));
    tensors.push_back({name, {.type = type, .shape = {length}, .bytes = bytes}});
  };
  add("indptr", TensorType::kI64, bytes_of(layout.indptr));
  add("indices", TensorType::kI32, bytes_of(layout.indices));
  if (!layout.partial.empty()) add("partial", TensorType::kU8, bytes_of(layout.partial));
  const base::Metadata metadata = {
      {"version", std::to_string(kLayoutVersion)}, {"R", std::to_string(layout.block_rows)},
      {"C", std::to_string(layout.block_columns)}, {"Sq", std::to_string(layout.seq_q)},
      {"Sk", std::to_string(layout.seq_k)},        {"heads", std::to_string(layout.heads)},
      {"digest", layout_digest(layout).hex()}};
  base::write_safetensors(files, path, tensors, metadata);
}

}  // namespace annulus::pattern

namespace annulus::inline v0 {

BlockLayout load_layout(const std::string& path) {
  base::FileSystem files;
  return pattern::read_layout(files, path);
}

void save_layout(const BlockLayout& layout, const std::string& path) {
  base::FileSystem files;
  pattern::write_layout(files, path, layout);
}

}  // namespace annulus::inline v0
