#include "layout/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "base/join.h"

namespace annulus::layout {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kPrefix = 12;  // bytes that hold the length of the header in any version
// The largest header of version 1. The header of a mask has about a hundred bytes.
constexpr std::size_t kMaxHeader = 65535;

// Requires: kPrefix bytes. In version 1 the length has 2 bytes; in later versions it has 4.
std::size_t header_begin(std::span<const std::byte> head) {
  return head[6] == std::byte{1} ? 10 : 12;
}

// Reads the header, a Python dictionary, in the form that NumPy writes and in no other.
class Header {
 public:
  Header(std::string_view text, const std::string& what) : rest_(text), what_(what) {}

  void read() {
    take("{");
    while (!try_take("}")) {
      const std::string_view key = quoted();
      take(":");
      if (key == "descr" && descr.empty()) {
        descr = quoted();
      } else if (key == "fortran_order" && !order_known_) {
        order_known_ = true;
        fortran = try_take("True");
        if (!fortran) take("False");
      } else if (key == "shape" && !shape_known_) {
        shape_known_ = true;
        read_shape();
      } else {
        refuse("an unknown or repeated key");
      }
      if (!try_take(",")) {
        take("}");
        break;
      }
    }
    skip();
    if (!rest_.empty()) refuse("text after its end");
    if (descr.empty() || !order_known_ || !shape_known_) refuse("a missing key");
  }

  std::string_view descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;

 private:
  [[noreturn]] void refuse(const char* reason) {
    base::fail(ErrorCode::kInvalidFile, "{}: the header of the npy file has {}", what_, reason);
  }
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool try_take(std::string_view word) {
    skip();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void take(std::string_view word) {
    if (!try_take(word)) refuse("words that NumPy does not write there");
  }
  std::string_view quoted() {
    take("'");
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) refuse("a word without an end");
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return word;
  }
  void read_shape() {
    take("(");
    while (!try_take(")")) {
      skip();
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0) refuse("a size that is not a whole number");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      shape.push_back(size);
      if (shape.size() > 8) refuse("more than 8 dimensions");
      if (!try_take(",")) {
        take(")");
        break;
      }
    }
  }

  std::string_view rest_;
  const std::string& what_;
  bool order_known_ = false;
  bool shape_known_ = false;
};

}  // namespace

std::size_t npy_head_bytes(std::span<const std::byte> head, std::uint64_t file_bytes,
                           const std::string& what) {
  const auto refuse = [&](const char* reason) {
    base::fail(ErrorCode::kInvalidFile, "{}: {}", what, reason);
  };
  if (file_bytes < kPrefix) refuse("does not begin like an npy file");
  if (head.size() < kPrefix) return kPrefix;
  if (std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    refuse("does not begin like an npy file");
  }
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint32_t>(head[at]); };
  const std::uint32_t version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0) refuse("an npy file of an unknown version");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= std::size_t{byte(10) | byte(11) << 8} << 16;
  const std::size_t begin = header_begin(head);
  if (length > file_bytes - begin) {
    base::fail(
        ErrorCode::kInvalidFile,
        "{}: the header of the npy file is truncated: it claims {} bytes, but only {} follow", what,
        length, file_bytes - begin);
  }
  if (length > kMaxHeader) {
    base::fail(ErrorCode::kInvalidFile,
               "{}: the header of the npy file claims {} bytes; {} are read at most", what, length,
               kMaxHeader);
  }
  return std::max(kPrefix, begin + length);
}

NpyHead parse_npy_head(std::span<const std::byte> head, std::uint64_t file_bytes,
                       const std::string& what) {
  const std::size_t end = npy_head_bytes(head, file_bytes, what);
  const std::size_t begin = header_begin(head);
  Header header(std::string_view(reinterpret_cast<const char*>(head.data()) + begin, end - begin),
                what);
  header.read();
  if (header.descr != "|b1" && header.descr != "|u1") {
    base::fail(ErrorCode::kInvalidFile,
               "{}: an array of '{}'; it must be bool ('|b1') or uint8 ('|u1')", what,
               header.descr.substr(0, 16));
  }
  if (header.fortran) {
    base::fail(ErrorCode::kInvalidFile, "{}: the array is column-major; write it in C order", what);
  }
  const std::uint64_t data_bytes = file_bytes - end;
  std::int64_t count = 1;
  bool fits = true;
  for (const std::int64_t size : header.shape) {
    fits = fits && !__builtin_mul_overflow(count, size, &count);
  }
  if (!fits || static_cast<std::uint64_t>(count) != data_bytes) {
    base::fail(ErrorCode::kInvalidFile, "{}: {} bytes of data; the shape ({}) needs {}", what,
               data_bytes, base::join(header.shape, ", "),
               fits ? std::to_string(count) : "more than 2^63");
  }
  return {std::move(header.shape), end};
}

NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& what) {
  NpyHead head = parse_npy_head(bytes, bytes.size(), what);
  const std::span<const std::byte> data = bytes.subspan(head.data_at);
  return {std::move(head.shape), {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()}};
}

std::vector<std::byte> format_npy(std::span<const std::int64_t> shape,
                                  std::span<const std::uint8_t> values, bool is_bool) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}, ", size);
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 is_bool ? "|b1" : "|u1", sizes);
  constexpr std::size_t kBefore = 10;
  while ((kBefore + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::vector<std::byte> bytes(kBefore + text.size() + values.size());
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  bytes[6] = std::byte{1};
  bytes[8] = static_cast<std::byte>(text.size() & 255);
  bytes[9] = static_cast<std::byte>(text.size() >> 8);
  std::memcpy(bytes.data() + kBefore, text.data(), text.size());
  if (!values.empty()) {
    std::memcpy(bytes.data() + kBefore + text.size(), values.data(), values.size());
  }
  return bytes;
}

}  // namespace annulus::layout
