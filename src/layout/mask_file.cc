#include "layout/mask_file.h"

#include <span>
#include <vector>

#include "base/fail.h"
#include "layout/entries.h"
#include "layout/exchange_file.h"
#include "layout/npy.h"

namespace annulus::layout {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 36;

BlockLayout read_raw(base::FileSystem& files, const std::string& path, LayoutSizes sizes) {
  if (sizes.heads == 0) sizes.heads = 1;
  // Nothing in the file states its size, so the check needs no bytes of it.
  const auto check = [&](std::span<const std::byte>, std::int64_t file_bytes) {
    const LayoutView like = checked(sizes);
    check_count("the mask", static_cast<std::size_t>(file_bytes),
                {sizes.heads, like.rows(), like.columns()});
    return std::size_t{0};
  };
  const std::vector<std::byte> bytes = base::read_checked_file(files, path, kMaxBytes, check);
  return from_mask(sizes, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

// A file states the numbers of blocks. Lengths that the caller does not state are then whole
// blocks. Stated lengths must give the same numbers.
void take_shape(const std::vector<std::int64_t>& shape, const std::string& path,
                LayoutSizes* sizes) {
  const std::size_t dims = shape.size();
  if (dims != 2 && dims != 3) {
    base::fail(ErrorCode::kInvalidFile,
               "{}: {} dimensions; a mask has rows and columns, and heads "
               "before them",
               path, dims);
  }
  agree("the number of heads", dims == 3 ? shape[0] : 1, path, &sizes->heads);
  if (sizes->heads == 0) base::fail(ErrorCode::kInvalidFile, "{}: a mask without a head", path);
  const auto take_length = [&](const char* name, std::int64_t blocks, std::int64_t block,
                               std::int64_t* length) {
    if (*length != 0) return;
    if (__builtin_mul_overflow(blocks, block, length)) {
      base::fail(ErrorCode::kInvalidFile, "{}: {} blocks are too many for {}", path, blocks, name);
    }
  };
  take_length("Sq", shape[dims - 2], sizes->block_rows, &sizes->seq_q);
  take_length("Sk", shape[dims - 1], sizes->block_columns, &sizes->seq_k);
  const LayoutView like = checked(*sizes);
  if (like.rows() != shape[dims - 2] || like.columns() != shape[dims - 1]) {
    base::fail(ErrorCode::kInvalidFile,
               "{}: a mask of {} x {} blocks; Sq {} x Sk {} in {} x {} needs "
               "{} x {}",
               path, shape[dims - 2], shape[dims - 1], sizes->seq_q, sizes->seq_k,
               sizes->block_rows, sizes->block_columns, like.rows(), like.columns());
  }
}

BlockLayout read_npy(base::FileSystem& files, const std::string& path, LayoutSizes sizes) {
  const auto check = [&](std::span<const std::byte> head, std::int64_t file_bytes) {
    const auto stated = static_cast<std::uint64_t>(file_bytes);
    const std::size_t end = npy_head_bytes(head, stated, path);
    if (head.size() == end) take_shape(parse_npy_head(head, stated, path).shape, path, &sizes);
    return end;
  };
  const std::vector<std::byte> bytes = base::read_checked_file(files, path, kMaxBytes, check);
  return from_mask(sizes, parse_npy(bytes, path).values);
}

}  // namespace

BlockLayout read_mask(base::FileSystem& files, const std::string& path, LayoutFormat format,
                      LayoutSizes sizes) {
  return format == LayoutFormat::kRaw ? read_raw(files, path, sizes) : read_npy(files, path, sizes);
}

}  // namespace annulus::layout
