#include "pattern/layout_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/math.h"
#include "pattern/node.h"

namespace annulus::pattern {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the file has the byte order of the arrays in memory");

constexpr char kMagic[8] = {'A', 'N', 'N', 'U', 'L', 'A', 'Y', 'T'};
constexpr std::uint64_t kAlignment = 64;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::int64_t block_rows, block_columns, seq_q, seq_k;
  std::int64_t heads;
  std::int64_t map;
  std::int64_t kept;
  std::int64_t flags;
  std::uint64_t file_bytes;
  std::array<std::uint8_t, 16> arrays_digest;
  std::uint64_t zero;
  std::array<std::uint8_t, 16> header_digest;
};
static_assert(sizeof(Header) == 128);
constexpr std::size_t kDigested = offsetof(Header, header_digest);

// The offsets of the arrays, computed from the header.
struct Places {
  std::uint64_t indptr = sizeof(Header);
  std::uint64_t map = 0;
  std::uint64_t indices = 0;
  std::uint64_t partial = 0;
  std::uint64_t end = 0;
  std::uint64_t lines = 0;  // entries of indptr
};

std::uint64_t aligned(std::uint64_t bytes) { return base::round_up(bytes, kAlignment); }

// Requires: the header's counts are far below 2^60.
Places places_of(const Header& header, std::uint64_t lines) {
  Places places;
  places.lines = lines;
  places.map = aligned(places.indptr + lines * sizeof(std::int64_t));
  places.indices =
      aligned(places.map + static_cast<std::uint64_t>(header.map) * sizeof(std::int32_t));
  places.partial =
      aligned(places.indices + static_cast<std::uint64_t>(header.kept) * sizeof(std::int32_t));
  places.end = aligned(places.partial + static_cast<std::uint64_t>(header.flags));
  return places;
}

base::Digest header_digest(const Header& header) {
  return base::digest(std::as_bytes(std::span(&header, 1)).first(kDigested));
}

template <typename T>
std::span<const T> array_at(std::span<const std::byte> bytes, std::uint64_t place,
                            std::uint64_t count) {
  if (count == 0) return {};
  return {reinterpret_cast<const T*>(bytes.data() + place), static_cast<std::size_t>(count)};
}

void check_header_fits(std::uint64_t file_bytes, const std::string& what) {
  if (file_bytes >= sizeof(Header)) return;
  base::fail(ErrorCode::kInvalidFile, "{}: {} bytes; the header of a block layout has {}", what,
             file_bytes, sizeof(Header));
}

Header read_header(std::span<const std::byte> bytes, const std::string& what) {
  check_header_fits(bytes.size(), what);
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    base::fail(ErrorCode::kInvalidFile,
               "{}: does not begin with ANNULAYT, so it is not a block layout of this library; "
               "import_layout reads other formats, as does annulus pattern import with --from",
               what);
  }
  if (header.version != kLayoutVersion) {
    base::fail(ErrorCode::kInvalidFile, "{}: block layout of version {}; this library reads {}",
               what, header.version, kLayoutVersion);
  }
  if (header_digest(header).bytes != header.header_digest) {
    base::fail(ErrorCode::kInvalidFile, "{}: the header is damaged: its digest differs", what);
  }
  return header;
}

// A header with the right digest may still have malicious numbers, so nothing here may overflow.
Places check_header(const Header& header, std::uint64_t file_bytes, const std::string& what) {
  const auto refuse = [&](const char* name, auto value, auto expected) {
    base::fail(ErrorCode::kInvalidFile, "{}: the header has {} of {}; it must be {}", what, value,
               name, expected);
  };
  if (header.header_bytes != sizeof(Header)) {
    refuse("bytes of header", header.header_bytes, sizeof(Header));
  }
  if (header.zero != 0) refuse("reserved bytes", header.zero, 0);
  if (header.file_bytes != file_bytes) {
    base::fail(ErrorCode::kInvalidFile, "{}: {} bytes, but the header states {}; it is {}", what,
               file_bytes, header.file_bytes,
               file_bytes < header.file_bytes ? "truncated" : "too long");
  }
  // Each count is compared with the bytes of the file first, so sums of counts cannot overflow.
  const auto most = static_cast<std::int64_t>(file_bytes);
  for (const auto& [name, count] : {std::pair{"entries of head_map", header.map},
                                    {"kept blocks", header.kept},
                                    {"flags", header.flags}}) {
    if (count < 0 || count > most) {
      base::fail(ErrorCode::kInvalidFile, "{}: {} {} do not fit {} bytes", what, count, name, most);
    }
  }
  LayoutView sizes;
  sizes.block_rows = header.block_rows;
  sizes.seq_q = header.seq_q;
  std::int64_t lines = 0;
  if (header.block_rows < 1 || header.seq_q < 0 || header.heads < 1 ||
      __builtin_mul_overflow(header.heads, sizes.rows(), &lines) || lines >= most) {
    base::fail(ErrorCode::kInvalidFile,
               "{}: {} heads of {} rows in blocks of {} do not fit {} bytes", what, header.heads,
               header.seq_q, header.block_rows, most);
  }
  if (header.flags != 0 && header.flags != header.kept) refuse("flags", header.flags, header.kept);
  const Places places = places_of(header, static_cast<std::uint64_t>(lines) + 1);
  if (places.end != file_bytes) refuse("bytes of arrays and header", file_bytes, places.end);
  return places;
}

}  // namespace

base::Digest layout_digest(const LayoutView& layout) {
  // This is a digest of digests, so the arrays need not be copied into one array.
  const auto hex = [](const auto& array) { return base::digest(std::as_bytes(array)).hex(); };
  const std::string text = fmt::format(
      "annulus block layout 1: {} {} {} {} {} {} {} {} {}", layout.block_rows, layout.block_columns,
      layout.seq_q, layout.seq_k, layout.heads, hex(layout.indptr), hex(layout.indices),
      hex(layout.partial), hex(layout.head_map));
  return base::digest(text);
}

void add_layout_digests(const detail::PatternNode& node, std::string* text) {
  each_leaf(node, [&](const leaves::Leaf& leaf) {
    const BlockLayout* layout = leaves::structure_of(leaf).layout;
    if (layout != nullptr) *text += (text->empty() ? "" : " ") + layout_digest(*layout).hex();
  });
}

// Gaps between arrays stay zero. The digest of the arrays is computed before the digest of the
// header, because the header holds it.
std::vector<std::byte> format_layout(const LayoutView& layout) {
  layout.validate();
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kLayoutVersion;
  header.header_bytes = sizeof(Header);
  header.block_rows = layout.block_rows;
  header.block_columns = layout.block_columns;
  header.seq_q = layout.seq_q;
  header.seq_k = layout.seq_k;
  header.heads = layout.heads;
  header.map = static_cast<std::int64_t>(layout.head_map.size());
  header.kept = static_cast<std::int64_t>(layout.indices.size());
  header.flags = static_cast<std::int64_t>(layout.partial.size());
  const Places places = places_of(header, layout.indptr.size());
  header.file_bytes = places.end;
  std::vector<std::byte> bytes(static_cast<std::size_t>(places.end));
  const auto put = [&](std::uint64_t place, const auto& array) {
    if (!array.empty()) std::memcpy(bytes.data() + place, array.data(), array.size_bytes());
  };
  put(places.indptr, layout.indptr);
  put(places.map, layout.head_map);
  put(places.indices, layout.indices);
  put(places.partial, layout.partial);
  header.arrays_digest =
      base::digest(std::span<const std::byte>(bytes).subspan(sizeof(Header))).bytes;
  header.header_digest = header_digest(header).bytes;
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

LayoutView parse_layout(std::span<const std::byte> bytes, const std::string& what) {
  const Header header = read_header(bytes, what);
  const Places places = check_header(header, bytes.size(), what);
  if (base::digest(bytes.subspan(sizeof(Header))).bytes != header.arrays_digest) {
    base::fail(ErrorCode::kInvalidFile, "{}: the arrays are damaged: their digest differs", what);
  }
  LayoutView view;
  view.block_rows = header.block_rows;
  view.block_columns = header.block_columns;
  view.seq_q = header.seq_q;
  view.seq_k = header.seq_k;
  view.heads = header.heads;
  view.indptr = array_at<std::int64_t>(bytes, places.indptr, places.lines);
  view.head_map = array_at<std::int32_t>(bytes, places.map, static_cast<std::uint64_t>(header.map));
  view.indices =
      array_at<std::int32_t>(bytes, places.indices, static_cast<std::uint64_t>(header.kept));
  view.partial =
      array_at<std::uint8_t>(bytes, places.partial, static_cast<std::uint64_t>(header.flags));
  try {
    view.validate();
  } catch (const Error& error) {
    base::fail(ErrorCode::kInvalidFile, "{}: {}", what, error.what());
  }
  return view;
}

BlockLayout read_layout(base::FileSystem& files, const std::string& path, const CheckSizes& check) {
  const auto check_head = [&](std::span<const std::byte> head, std::int64_t file_bytes) {
    const auto stated = static_cast<std::uint64_t>(file_bytes);
    check_header_fits(stated, path);
    if (head.empty()) return sizeof(Header);
    const Header header = read_header(head, path);
    check_header(header, stated, path);
    if (check) {
      check({header.block_rows, header.block_columns, header.seq_q, header.seq_k,
             header.map != 0 ? header.map : header.heads});
    }
    return sizeof(Header);
  };
  // The file is read and not mapped, so a file that is shortened meanwhile causes an error and not
  // a signal.
  const std::vector<std::byte> bytes =
      base::read_checked_file(files, path, kMaxLayoutBytes, check_head);
  return copy(parse_layout(bytes, path));
}

void write_layout(base::FileSystem& files, const std::string& path, const LayoutView& layout) {
  base::write_file_atomically(files, path, format_layout(layout));
}

}  // namespace annulus::pattern

namespace annulus::inline v0 {

struct MappedLayout::Impl {
  explicit Impl(const std::string& path)
      : file(files, path, pattern::kMaxLayoutBytes),
        view(pattern::parse_layout(file.bytes(), path)) {}
  base::FileSystem files;
  base::MappedFile file;
  LayoutView view;
};

MappedLayout::MappedLayout(const std::string& path) : impl_(std::make_shared<const Impl>(path)) {}
const LayoutView& MappedLayout::view() const { return impl_->view; }

BlockLayout load_layout(const std::string& path) {
  base::FileSystem files;
  return pattern::read_layout(files, path);
}

void save_layout(const BlockLayout& layout, const std::string& path) {
  save_layout(LayoutView(layout), path);
}

void save_layout(const LayoutView& layout, const std::string& path) {
  base::FileSystem files;
  pattern::write_layout(files, path, layout);
}

}  // namespace annulus::inline v0
