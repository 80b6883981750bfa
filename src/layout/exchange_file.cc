#include "layout/exchange_file.h"

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/files.h"
#include "base/math.h"
#include "base/safetensors.h"
#include "layout/entries.h"
#include "layout/mask_file.h"
#include "layout/npy.h"
#include "pattern/layout_file.h"

namespace annulus::layout {
namespace {

constexpr std::array<std::pair<LayoutFormat, const char*>, 9> kNames = {
    {{LayoutFormat::kLayout, "layout"},
     {LayoutFormat::kNpy, "npy"},
     {LayoutFormat::kRaw, "raw"},
     {LayoutFormat::kCsr, "csr"},
     {LayoutFormat::kCoo, "coo"},
     {LayoutFormat::kBitset, "bitset"},
     {LayoutFormat::kTopK, "topk"},
     {LayoutFormat::kFlex, "flex"},
     {LayoutFormat::kFlashInfer, "flashinfer"}}};

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 36;

// Throws if a tensor has more elements than a layout of these sizes can need. The lists of topk and
// flex may be wider than a row of blocks, so only their lines are counted.
void check_elements(const base::Safetensors& file, const std::string& path, LayoutFormat format,
                    const LayoutSizes& sizes) {
  const LayoutView like = checked(sizes);
  if (format == LayoutFormat::kTopK || format == LayoutFormat::kFlex) return;
  for (const auto& [name, tensor] : file.tensors) {
    const bool pairs = format == LayoutFormat::kFlashInfer && name == "mask";
    std::int64_t lines = 0;
    std::int64_t most = 0;
    bool any = __builtin_mul_overflow(like.heads, like.rows(), &lines) ||
               __builtin_mul_overflow(lines, like.columns(), &most);
    if (pairs) {
      any = any || __builtin_mul_overflow(most, like.block_rows, &most) ||
            __builtin_mul_overflow(most, like.block_columns, &most);
    }
    any = any || __builtin_add_overflow(most, lines + 1, &most);
    if (any || tensor.elements() <= most) continue;
    base::fail(ErrorCode::kInvalidFile,
               "{}: tensor '{}' has {} elements; a layout of {} x {} x {} blocks needs at most {}",
               path, name, tensor.elements(), like.heads, like.rows(), like.columns(), most);
  }
}

// A safetensors file whose tensors are being read.
class Tensors {
 public:
  // `sizes` has the sizes that the caller expects, and gets the sizes of the file. They are
  // compared before the tensors are read.
  Tensors(base::FileSystem& files, const std::string& path, LayoutFormat format, LayoutSizes* sizes)
      : path_(path) {
    file_ = base::read_safetensors(files, path, kMaxBytes, [&](const base::Safetensors& head) {
      take_sizes(head.metadata, sizes);
      check_elements(head, path, format, *sizes);
    });
  }

  bool has(const std::string& name) const { return file_.tensors.contains(name); }

  // The values of a tensor of any shape. Empty if the tensor may be missing and is.
  template <typename T>
  std::vector<T> values(const std::string& name, bool may_be_missing = false) const {
    const auto found = file_.tensors.find(name);
    if (found == file_.tensors.end()) {
      if (may_be_missing) return {};
      base::fail(ErrorCode::kInvalidFile, "{}: no tensor '{}'", path_, name);
    }
    const base::TensorView& view = found->second;
    constexpr base::TensorType type = sizeof(T) == 8   ? base::TensorType::kI64
                                      : sizeof(T) == 4 ? base::TensorType::kI32
                                                       : base::TensorType::kU8;
    if (view.type != type) {
      base::fail(ErrorCode::kInvalidFile, "{}: tensor '{}' is {}; it must be {}", path_, name,
                 base::to_string(view.type), base::to_string(type));
    }
    std::vector<T> values(view.bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
    return values;
  }

  // indptr has the dtype I64 or I32.
  std::vector<std::int64_t> offsets() const {
    const auto found = file_.tensors.find("indptr");
    if (found == file_.tensors.end() || found->second.type != base::TensorType::kI32) {
      return values<std::int64_t>("indptr");
    }
    const std::vector<std::int32_t> narrow = values<std::int32_t>("indptr");
    return {narrow.begin(), narrow.end()};
  }

  std::int64_t last_dimension(const std::string& name) const {
    const auto found = file_.tensors.find(name);
    if (found == file_.tensors.end() || found->second.shape.empty()) return 0;
    return found->second.shape.back();
  }

 private:
  void take_sizes(const base::Metadata& metadata, LayoutSizes* sizes) const {
    const auto number = [&](const char* key) { return number_of(metadata, key); };
    agree("R", number("R"), path_, &sizes->block_rows);
    agree("C", number("C"), path_, &sizes->block_columns);
    // Sq and Sk, unlike the other sizes, may be 0, so a size of 0 in the file counts too.
    if (metadata.contains("Sq")) agree_length("Sq", number("Sq"), &sizes->seq_q);
    if (metadata.contains("Sk")) agree_length("Sk", number("Sk"), &sizes->seq_k);
    agree("heads", number("heads"), path_, &sizes->heads);
    if (sizes->heads == 0) sizes->heads = 1;
  }
  void agree_length(const char* name, std::int64_t of_file, std::int64_t* size) const {
    agree(name, of_file, path_, size);
    if (of_file == 0 && *size != 0) {
      base::fail(ErrorCode::kInvalidFile, "{}: {} is 0, but the caller expects {}", path_, name,
                 *size);
    }
  }
  std::int64_t number_of(const base::Metadata& metadata, const std::string& key) const {
    const auto found = metadata.find(key);
    if (found == metadata.end()) return 0;
    const std::string& text = found->second;
    std::int64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      base::fail(ErrorCode::kInvalidFile, "{}: metadata '{}' is not a number of 64 bits", path_,
                 key);
    }
    return value;
  }

  const std::string& path_;
  base::Safetensors file_;
};

// Formats without a case are bitsets. read_exchange_file reads kLayout itself, and calls read_mask
// for kNpy and kRaw.
BlockLayout read_tensors(base::FileSystem& files, const std::string& path, LayoutFormat format,
                         LayoutSizes sizes) {
  const Tensors in(files, path, format, &sizes);
  const auto flags = in.values<std::uint8_t>("partial", true);
  switch (format) {
    case LayoutFormat::kCsr:
      return from_csr(sizes, in.offsets(), in.values<std::int32_t>("indices"), flags);
    case LayoutFormat::kCoo:
      return from_coo(sizes, in.values<std::int32_t>("heads", true),
                      in.values<std::int32_t>("rows"), in.values<std::int32_t>("columns"), flags);
    case LayoutFormat::kTopK:
      return from_topk(sizes, in.last_dimension("indices"), in.values<std::int32_t>("indices"),
                       flags);
    case LayoutFormat::kFlex:
      return from_flex(sizes, in.values<std::int32_t>("kv_num_blocks"),
                       in.values<std::int32_t>("kv_indices"),
                       in.values<std::int32_t>("full_kv_num_blocks", true),
                       in.values<std::int32_t>("full_kv_indices", true));
    case LayoutFormat::kFlashInfer: {
      const MaskedBlocks found = from_flashinfer(sizes, in.values<std::int32_t>("indptr"),
                                                 in.values<std::int32_t>("indices"),
                                                 in.values<std::uint8_t>("mask", true));
      return found.mask.empty() ? found.layout : exact_layout(found.layout, found.mask);
    }
    default:
      break;
  }
  const auto words = [](const std::vector<std::int32_t>& values) {
    return std::vector<std::uint32_t>(values.begin(), values.end());
  };
  return from_bitset(sizes, words(in.values<std::int32_t>("kept")),
                     words(in.values<std::int32_t>("partial_bits", true)));
}

// Collects the tensors of a safetensors file. The arrays must not change or move until write(). A
// uint32 is written as I32, because base/safetensors.h has no type for it.
class TensorWriter {
 public:
  template <typename T>
  void add(const char* name, std::vector<std::int64_t> shape, const std::vector<T>& values) {
    constexpr base::TensorType type = sizeof(T) == 8   ? base::TensorType::kI64
                                      : sizeof(T) == 4 ? base::TensorType::kI32
                                                       : base::TensorType::kU8;
    tensors_.push_back({name, {type, std::move(shape), std::as_bytes(std::span(values))}});
  }
  template <typename T>
  void add_unless_empty(const char* name, std::vector<std::int64_t> shape,
                        const std::vector<T>& values) {
    if (!values.empty()) add(name, std::move(shape), values);
  }
  void write(base::FileSystem& files, const std::string& path, LayoutFormat format,
             const LayoutSizes& sizes) const {
    base::write_safetensors(files, path, tensors_,
                            {{"format", to_string(format)},
                             {"R", std::to_string(sizes.block_rows)},
                             {"C", std::to_string(sizes.block_columns)},
                             {"Sq", std::to_string(sizes.seq_q)},
                             {"Sk", std::to_string(sizes.seq_k)},
                             {"heads", std::to_string(sizes.heads)}});
  }

 private:
  std::vector<base::NamedTensor> tensors_;
};

template <typename T>
std::vector<std::int64_t> length_of(const std::vector<T>& values) {
  return {static_cast<std::int64_t>(values.size())};
}

void write_tensors(base::FileSystem& files, const std::string& path, LayoutFormat format,
                   const LayoutView& view) {
  const LayoutSizes sizes = sizes_of(view);
  const std::int64_t rows = view.rows();
  TensorWriter out;
  const auto write = [&] { out.write(files, path, format, sizes); };
  switch (format) {
    case LayoutFormat::kCsr: {
      const CsrArrays arrays = to_csr(view);
      out.add("indptr", length_of(arrays.indptr), arrays.indptr);
      out.add("indices", length_of(arrays.indices), arrays.indices);
      out.add_unless_empty("partial", length_of(arrays.partial), arrays.partial);
      return write();
    }
    case LayoutFormat::kCoo: {
      const CooArrays arrays = to_coo(view);
      out.add("heads", length_of(arrays.heads), arrays.heads);
      out.add("rows", length_of(arrays.rows), arrays.rows);
      out.add("columns", length_of(arrays.columns), arrays.columns);
      out.add_unless_empty("partial", length_of(arrays.partial), arrays.partial);
      return write();
    }
    case LayoutFormat::kTopK: {
      const TopKArrays arrays = to_topk(view);
      out.add("indices", {sizes.heads, rows, arrays.k}, arrays.indices);
      out.add_unless_empty("partial", {sizes.heads, rows, arrays.k}, arrays.partial);
      return write();
    }
    case LayoutFormat::kFlex: {
      const FlexArrays arrays = to_flex(view);
      // A BlockMask has batches as its first dimension; the file holds the mask of one batch.
      out.add("kv_num_blocks", {1, sizes.heads, rows}, arrays.kv_num_blocks);
      out.add("kv_indices", {1, sizes.heads, rows, view.columns()}, arrays.kv_indices);
      out.add("full_kv_num_blocks", {1, sizes.heads, rows}, arrays.full_kv_num_blocks);
      out.add("full_kv_indices", {1, sizes.heads, rows, view.columns()}, arrays.full_kv_indices);
      return write();
    }
    case LayoutFormat::kFlashInfer: {
      const FlashInferArrays arrays = to_flashinfer(view);
      out.add("indptr", length_of(arrays.indptr), arrays.indptr);
      out.add("indices", length_of(arrays.indices), arrays.indices);
      return write();
    }
    case LayoutFormat::kBitset: {
      const BitsetArrays arrays = to_bitset(view);
      const std::int64_t words = base::ceil_div(view.columns(), 32);
      out.add("kept", {sizes.heads, rows, words}, arrays.kept);
      // The name is not "partial", because read_tensors() reads a tensor of that name as bytes.
      out.add_unless_empty("partial_bits", {sizes.heads, rows, words}, arrays.partial);
      return write();
    }
    case LayoutFormat::kLayout:  // export_layout writes these itself
    case LayoutFormat::kNpy:
    case LayoutFormat::kRaw:
      break;
  }
  base::fail(ErrorCode::kInternal, "{} is not written as tensors", to_string(format));
}

void write_mask(base::FileSystem& files, const std::string& path, LayoutFormat format,
                const LayoutView& view) {
  const std::vector<std::uint8_t> mask = to_mask(view);
  if (format == LayoutFormat::kRaw) {
    return base::write_file_atomically(files, path, std::as_bytes(std::span(mask)));
  }
  const std::int64_t shape[] = {view.query_heads(), view.rows(), view.columns()};
  base::write_file_atomically(files, path, format_npy(shape, mask, view.partial.empty()));
}

}  // namespace

void agree(const char* name, std::int64_t of_file, const std::string& path, std::int64_t* size) {
  if (of_file == 0) return;
  if (*size != 0 && *size != of_file) {
    base::fail(ErrorCode::kInvalidFile, "{}: {} is {}, but the caller expects {}", path, name,
               of_file, *size);
  }
  *size = of_file;
}

BlockLayout read_exchange_file(base::FileSystem& files, const std::string& path,
                               LayoutFormat format, LayoutSizes sizes) {
  if (format == LayoutFormat::kLayout) {
    return pattern::read_layout(files, path, [&](const LayoutSizes& of_file) {
      agree("R", of_file.block_rows, path, &sizes.block_rows);
      agree("C", of_file.block_columns, path, &sizes.block_columns);
      agree("Sq", of_file.seq_q, path, &sizes.seq_q);
      agree("Sk", of_file.seq_k, path, &sizes.seq_k);
      agree("heads", of_file.heads, path, &sizes.heads);
    });
  }
  const bool is_mask = format == LayoutFormat::kNpy || format == LayoutFormat::kRaw;
  try {
    return is_mask ? read_mask(files, path, format, sizes)
                   : read_tensors(files, path, format, sizes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    base::fail(ErrorCode::kInvalidFile, "{}: {}", path, error.what());
  }
}

void write_exchange_file(base::FileSystem& files, const LayoutView& view, const std::string& path,
                         LayoutFormat format) {
  if (format == LayoutFormat::kLayout) return pattern::write_layout(files, path, view);
  view.validate();
  const bool is_mask = format == LayoutFormat::kNpy || format == LayoutFormat::kRaw;
  is_mask ? write_mask(files, path, format, view) : write_tensors(files, path, format, view);
}

}  // namespace annulus::layout

namespace annulus::inline v0 {

const char* to_string(LayoutFormat format) {
  for (const auto& [known, name] : layout::kNames) {
    if (known == format) return name;
  }
  return "unknown";
}

LayoutFormat layout_format(std::string_view name) {
  std::string names;
  for (const auto& [format, known] : layout::kNames) {
    if (name == known) return format;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known);
  }
  base::fail(ErrorCode::kInvalidArgument, "'{}' is not a format of layouts; give one of {}", name,
             names);
}

BlockLayout import_layout(const std::string& path, LayoutFormat format, const LayoutSizes& sizes) {
  base::FileSystem files;
  return layout::read_exchange_file(files, path, format, sizes);
}

void export_layout(const LayoutView& view, const std::string& path, LayoutFormat format) {
  base::FileSystem files;
  layout::write_exchange_file(files, view, path, format);
}

}  // namespace annulus::inline v0
