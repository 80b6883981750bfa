// Files from outside. An input is a letter that names the format, a byte of flags, sizes that the
// caller requests, and the rest. The rest is the file's bytes, or choices from which a valid file
// is made and then damaged. Afterwards digests are repaired, unless a flag prevents it. So damaged
// files also reach parsers that require a right digest.
//
// Results of reading must be valid. If they are written again, the written file must give the same
// results.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "annulus/layout.h"
#include "autotune/replay.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/safetensors.h"
#include "fuzz/fuzz.h"
#include "jit/compiled_kernel.h"
#include "jit/resource_usage.h"
#include "layout/exchange_file.h"
#include "pattern/layout_file.h"
#include "shape_log/shape_log.h"
#include "tuned/config_families.h"
#include "tuned/entry.h"
#include "tuned/entry_problem.h"
#include "tuned/journal.h"
#include "tuned/tuned_pack.h"

namespace annulus::fuzz {
namespace {

using File = std::vector<std::byte>;

File bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string_view text_of(const File& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

// One file in memory. Every name refers to it.
class OneFile final : public base::FileSystem {
 public:
  explicit OneFile(File file = {}) : file_(std::move(file)) {}
  const File& contents() const { return file_; }

  int open(int, const std::string&, int, unsigned) override {
    at_ = 0;
    return 100;
  }
  std::int64_t read(int, void* data, std::size_t bytes) override {
    const std::size_t count = std::min(bytes, file_.size() - at_);
    if (count > 0) std::memcpy(data, file_.data() + at_, count);
    at_ += count;
    return static_cast<std::int64_t>(count);
  }
  std::int64_t write(int, const void* data, std::size_t bytes) override {
    if (at_ == 0) file_.clear();
    const auto* begin = static_cast<const std::byte*>(data);
    file_.insert(file_.end(), begin, begin + bytes);
    at_ += bytes;
    return static_cast<std::int64_t>(bytes);
  }
  int sync(int) override { return 0; }
  int close(int) override { return 0; }
  int rename(int, const std::string&, const std::string&) override { return 0; }
  int unlink(int, const std::string&) override { return 0; }
  int status(int, Status* status) override {
    *status = {};
    status->regular = true;
    status->bytes = static_cast<std::int64_t>(file_.size());
    return 0;
  }

 private:
  File file_;
  std::size_t at_ = 0;
};

// A name that is not a path on this machine.
const std::string kName = "fuzzed";

// Overwrites, inserts and removes bytes at random places.
void damage(Bytes& bytes, File* file) {
  for (std::int64_t i = bytes.below(5); i > 0; --i) {
    if (file->empty()) return;
    const std::size_t at =
        (static_cast<std::size_t>(bytes.byte()) << 8 | bytes.byte()) % file->size();
    const auto place = file->begin() + static_cast<std::ptrdiff_t>(at);
    switch (bytes.below(6)) {
      case 0:
        file->erase(place, place + std::min<std::ptrdiff_t>(bytes.byte(), file->end() - place));
        break;
      case 1:
        file->insert(place, static_cast<std::size_t>(bytes.below(16)), std::byte{bytes.byte()});
        break;
      case 2: {
        const std::int64_t number = bytes.number();
        const std::size_t count = std::min<std::size_t>(8, file->size() - at);
        std::memcpy(file->data() + at, &number, count);
        break;
      }
      default:
        *place = std::byte{bytes.byte()};
    }
  }
}

BlockLayout layout_from(Bytes& bytes) {
  LayoutSizes sizes;
  sizes.block_rows = bytes.between(1, 9);
  sizes.block_columns = bytes.between(1, 9);
  sizes.seq_q = bytes.between(0, 40);
  sizes.seq_k = bytes.between(0, 40);
  sizes.heads = bytes.between(1, 3);
  const auto blocks = [](std::int64_t length, std::int64_t block) {
    return (length + block - 1) / block;
  };
  std::vector<std::uint8_t> mask(
      static_cast<std::size_t>(sizes.heads * blocks(sizes.seq_q, sizes.block_rows) *
                               blocks(sizes.seq_k, sizes.block_columns)));
  for (std::uint8_t& block : mask) block = static_cast<std::uint8_t>(bytes.below(3));
  BlockLayout layout = from_mask(sizes, mask);
  return bytes.below(2) == 0 ? layout : share_heads(layout);
}

// Checks that each query head has the same blocks and flags in both.
void require_same(const BlockLayout& a, const BlockLayout& b, const char* what) {
  BlockLayout left = part_heads(a), right = part_heads(b);
  for (BlockLayout* layout : {&left, &right}) {
    if (std::none_of(layout->partial.begin(), layout->partial.end(), [](auto f) { return f; })) {
      layout->partial.clear();
    }
  }
  if (!(left == right)) wrong("{}: another layout came back", what);
}

void write_and_read(const BlockLayout& layout, LayoutFormat format) {
  OneFile file;
  const auto refused =
      refusal_of([&] { layout::write_exchange_file(file, layout, kName, format); });
  if (refused == ErrorCode::kUnsupported) return;
  if (refused) wrong("{}: a valid layout is not written", to_string(format));
  LayoutSizes sizes = {0, 0, 0, 0, 0};
  const bool stated = format != LayoutFormat::kNpy && format != LayoutFormat::kRaw;
  if (!stated) sizes = sizes_of(layout);
  require_same(layout::read_exchange_file(file, kName, format, sizes), layout, to_string(format));
}

// Layouts in foreign formats and in the library's own.
void check_exchange(Bytes& bytes, LayoutFormat format) {
  const std::uint8_t flags = bytes.byte();
  LayoutSizes sizes = {0, 0, 0, 0, 0};
  if ((flags & 2) != 0) {
    sizes.block_rows = bytes.number();
    sizes.block_columns = bytes.number();
  }
  if ((flags & 4) != 0) {
    sizes.seq_q = bytes.number();
    sizes.seq_k = bytes.number();
    sizes.heads = bytes.number();
  }
  OneFile made;
  if ((flags & 1) != 0) {
    const BlockLayout layout = layout_from(bytes);
    write_and_read(layout, format);
    if (refusal_of([&] { layout::write_exchange_file(made, layout, kName, format); })) return;
    if ((flags & 8) != 0) sizes = sizes_of(layout);
  }
  File file = (flags & 1) != 0 ? made.contents() : bytes_of(bytes.rest());
  if ((flags & 1) != 0) damage(bytes, &file);
  if (format == LayoutFormat::kLayout && (flags & 16) == 0 && file.size() >= 128) {
    const std::uint64_t size = file.size();
    if ((flags & 32) == 0) std::memcpy(file.data() + 80, &size, sizeof size);
    const base::Digest arrays = base::digest(std::span<const std::byte>(file).subspan(128));
    std::memcpy(file.data() + 88, arrays.bytes.data(), 16);
    const base::Digest header = base::digest(std::span<const std::byte>(file).first(112));
    std::memcpy(file.data() + 112, header.bytes.data(), 16);
  }
  OneFile files(file);
  const BlockLayout read = layout::read_exchange_file(files, kName, format, sizes);
  read.validate();
  write_and_read(read, format);
  write_and_read(read, LayoutFormat::kLayout);
}

void check_safetensors(Bytes& bytes) {
  const std::uint8_t flags = bytes.byte();
  File file;
  std::vector<base::NamedTensor> tensors;
  base::Metadata metadata;
  if ((flags & 1) != 0) {
    static constexpr std::byte kData[64] = {};
    for (std::int64_t i = bytes.below(4); i > 0; --i) {
      base::TensorView view{static_cast<base::TensorType>(bytes.below(7)), {}, {}};
      for (std::int64_t d = bytes.below(4); d > 0; --d) view.shape.push_back(bytes.below(3));
      const auto size = static_cast<std::size_t>(view.elements()) * size_in_bytes(view.type);
      view.bytes = std::span(kData).first(std::min(size, std::size(kData)));
      tensors.push_back({std::string(1, static_cast<char>(bytes.byte())), view});
    }
    for (std::int64_t i = bytes.below(3); i > 0; --i) {
      metadata[std::string(1, static_cast<char>(bytes.byte()))] = std::to_string(bytes.number());
    }
    file = base::format_safetensors(tensors, metadata);
    damage(bytes, &file);
  } else {
    file = bytes_of(bytes.rest());
    if ((flags & 2) != 0) {  // the length of a header that ends with the file's last brace
      const std::uint64_t length = text_of(file).rfind('}') + 1;
      const auto* first = reinterpret_cast<const std::byte*>(&length);
      file.insert(file.begin(), first, first + sizeof length);
    }
  }
  OneFile files(file);
  const base::Safetensors read = base::read_safetensors(files, kName);
  if (base::parse_safetensors(file, kName).tensors.size() != read.tensors.size()) {
    wrong("safetensors: a file and its bytes are read differently");
  }
  tensors.clear();
  for (const auto& [name, tensor] : read.tensors) tensors.push_back({name, tensor});
  // Names that are not UTF-8 cannot come from JSON, so everything that was read can be written.
  const base::Safetensors again =
      base::parse_safetensors(base::format_safetensors(tensors, read.metadata), kName);
  bool same = again.metadata == read.metadata && again.tensors.size() == read.tensors.size();
  for (const auto& [name, tensor] : read.tensors) {
    const auto found = again.tensors.find(name);
    same = same && found != again.tensors.end() && found->second.type == tensor.type &&
           found->second.shape == tensor.shape &&
           std::ranges::equal(found->second.bytes, tensor.bytes);
  }
  if (!same) wrong("safetensors: other tensors came back");
}

tuned::Entry entry_from(Bytes& bytes) {
  tuned::Entry entry;
  entry.shape.dim_qk = static_cast<int>(bytes.between(1, 256));
  entry.shape.dim_v = static_cast<int>(bytes.between(1, 256));
  entry.shape.group = static_cast<int>(bytes.between(1, 8));
  entry.shape.queries = static_cast<int>(bytes.below(127));
  entry.shape.keys = static_cast<int>(bytes.below(127));
  entry.config =
      attention::parse_config(bytes.below(2) == 0 ? "mma m64 n64 w4 s2" : "wgmma m64 n64 w4 s2")
          .value();
  entry.default_config = attention::parse_config("mma m64 n64 w4 s2").value();
  entry.revision = static_cast<int>(bytes.between(1, 3));
  entry.default_revision = static_cast<int>(bytes.between(1, 3));
  entry.predicted = bytes.below(2) != 0;
  entry.complete = bytes.below(2) != 0;
  entry.time = 1 + bytes.byte();
  entry.default_time = 1 + bytes.byte();
  entry.rounds = entry.candidates = 1 + bytes.byte();
  if (bytes.below(2) != 0) entry.runner_up = entry.config;
  if (bytes.below(2) != 0) entry.origin.pattern = "causal";
  const auto number = [&] { return static_cast<std::int64_t>(bytes.byte()) - 1; };
  if (bytes.below(4) == 0) {
    entry.origin.selection = {.block_rows = number(), .block_columns = number(), .rule = number()};
  }
  if (bytes.below(4) == 0) {
    entry.shape.requests = tuned::Requests::kFewQueries;
    entry.origin.requests = {.requests = number(), .rows = number(), .keys_of_one = number()};
    entry.origin.requests->step = {1 + bytes.byte(), 1 + bytes.byte(), 1 + bytes.byte()};
  }
  return entry;
}

// A tuned entry for one of the kernels of batches.
tuned::Entry batch_entry_from(Bytes& bytes) {
  tuned::Entry entry = entry_from(bytes);
  const bool few = bytes.below(2) == 0;
  entry.shape.requests = few ? tuned::Requests::kFewQueries : tuned::Requests::kManyQueries;
  static constexpr kernels::Pages kPages[] = {kernels::Pages::kNone, kernels::Pages::kAny,
                                              kernels::Pages::k16, kernels::Pages::k64};
  entry.shape.pages = kPages[bytes.below(4)];
  entry.shape.block_columns = static_cast<int>(32 * bytes.below(3));
  entry.config = entry.default_config =
      tuned::parse_any_config(few ? "decode m16 n64 w4 s2 q" : "chunk m128 n64 w8 s2").value();
  entry.runner_up.reset();
  return entry;
}

// Sets the digest over the text after the first line, which begins with `magic`.
File with_digest(const File& file, bool has_line, std::string_view magic) {
  const std::string_view text = text_of(file);
  const std::size_t line = has_line ? text.find('\n') : std::string_view::npos;
  const std::string body(line == std::string_view::npos ? text : text.substr(line + 1));
  return bytes_of(
      fmt::format("{} {} {}\n{}", magic, tuned::kEntrySchema, base::digest(body).hex(), body));
}

void check_tuned(Bytes& bytes, tuned::Entry (*made)(Bytes&)) {
  const std::uint8_t flags = bytes.byte();
  File file = bytes_of(bytes.rest());
  if ((flags & 1) != 0) {
    file = tuned::encode_entry(made(bytes), "a device");
    damage(bytes, &file);
  }
  if ((flags & 2) == 0) file = with_digest(file, (flags & 1) != 0, "annulus-tuned");
  std::string device, why;
  const auto entry = tuned::decode_entry(file, &device, &why);
  if (!entry && why.empty()) wrong("a tuned entry is refused without a word");
  if (!entry) return;
  const File again = tuned::encode_entry(*entry, device);
  std::string other;
  if (tuned::decode_entry(again, &other, &why) != entry || other != device) {
    wrong("another tuned entry came back");
  }
  if (tuned::better(*entry, *entry)) wrong("a tuned entry is better than itself");
  // Anyone may write the description of the problem in an entry, so it may be wrong.
  refusal_of([&] { tuned::problem_of(*entry); });
  refusal_of([&] { tuned::selected_of(*entry); });
  refusal_of([&] { tuned::batch_of(*entry); });
}

void check_pack(Bytes& bytes) {
  const std::uint8_t flags = bytes.byte();
  File file = bytes_of(bytes.rest());
  if ((flags & 1) != 0) {
    std::vector<tuned::PackedEntry> entries;
    for (std::int64_t i = bytes.below(4); i > 0; --i) {
      const tuned::Entry entry = entry_from(bytes);
      entries.push_back({entry.predicted ? "a, simulated" : "a, measured", entry});
    }
    file = bytes_of(tuned::encode_pack(tuned::merged(std::move(entries))));
    damage(bytes, &file);
  }
  if ((flags & 2) == 0) file = with_digest(file, (flags & 1) != 0, "annulus-tuned-pack");
  std::vector<std::string> left_out;
  const tuned::Pack pack = tuned::decode_pack(file, &left_out);
  const File again = bytes_of(tuned::encode_pack(pack));
  if (tuned::decode_pack(again, &left_out) != pack) wrong("another pack came back");
  tuned::Pack twice = pack;
  twice.insert(twice.end(), pack.begin(), pack.end());
  if (tuned::merged(twice) != pack) wrong("a pack merged with itself is another one");
  for (const tuned::PackedEntry& packed : pack) {
    const std::string name = tuned::entry_name(packed.entry);
    if (name.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz-") != name.npos) {
      wrong("an entry's name is no file name: {}", name);
    }
  }
}

// Sets the digest in a line over the text after the digest itself and after `magic`.
std::string with_line_digest(std::string_view line, std::string_view magic) {
  constexpr std::size_t kDigits = 32;
  if (!line.starts_with(magic)) magic = {};
  line.remove_prefix(std::min(line.size(), magic.size() + kDigits + 1));
  return fmt::format("{}{} {}\n", magic, base::digest(line).hex(), line);
}

// A workbench that gives the same answer to everything.
class SteadyBench final : public autotune::Workbench {
 public:
  explicit SteadyBench(bool exact) : exact_(exact) {}
  std::optional<autotune::Dropped> prepare(const attention::KernelConfig&) override { return {}; }
  std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                           int rounds, tuned::CacheState) override {
    return std::vector(configs.size(), std::vector<double>(static_cast<std::size_t>(rounds), 1));
  }
  bool exact() const override { return exact_; }

 private:
  bool exact_;
};

std::string journal_from(Bytes& bytes) {
  std::vector<tuned::Trial> trials;
  for (const char* config : {"mma m64 n64 w4 s2", "mma m64 n32 w4 s2", "mma m128 n64 w8 s2"}) {
    trials.push_back({.config = attention::parse_config(config).value(),
                      .predicted = static_cast<double>(1 + bytes.byte())});
  }
  const auto drawn = [&] {
    return to_string(trials[static_cast<std::size_t>(bytes.below(3))].config);
  };
  const bool predicted = bytes.below(2) != 0;
  tuned::SearchOptions options;
  options.exhaustive = bytes.below(2) != 0;
  options.nominated = {trials.back().config};
  std::string text =
      tuned::first_line(tuned::subject_of({{"device", "a"}}, trials, 0, predicted, options));
  for (std::int64_t i = bytes.below(6); i > 0; --i) {
    tuned::Finding finding{.configs = {drawn()}, .dropped = {}, .times = {}};
    if (bytes.below(4) == 0) {
      finding.dropped = std::string(1, static_cast<char>(bytes.byte()));
    } else {
      if (bytes.below(2) != 0) finding.configs.push_back(drawn());
      const std::vector<double> times(static_cast<std::size_t>(bytes.between(1, 9)),
                                      1.0 + bytes.byte());
      finding.times.assign(finding.configs.size(), times);
      if (times.front() > 200) finding.l2 = tuned::CacheState::kCold;
    }
    text += tuned::line_of(finding);
  }
  return bytes.below(2) != 0 ? text + tuned::last_line() : text;
}

void check_journal(Bytes& bytes) {
  const std::uint8_t flags = bytes.byte();
  File file = bytes_of(bytes.rest());
  if ((flags & 1) != 0) {
    file = bytes_of(journal_from(bytes));
    damage(bytes, &file);
  }
  std::string text(text_of(file));
  if ((flags & 2) == 0) {
    const std::string magic = fmt::format("annulus-journal {} ", tuned::kJournalSchema);
    std::string repaired;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      repaired += with_line_digest(rest.substr(0, end), repaired.empty() ? magic : "");
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    text = repaired;
  }
  std::string why;
  const auto journal = tuned::decode_journal(text, &why);
  if (!journal && why.empty()) wrong("a journal is refused without a word");
  if (!journal) return;
  std::string again = tuned::first_line(journal->subject);
  for (const tuned::Finding& finding : journal->findings) again += tuned::line_of(finding);
  const auto other = tuned::decode_journal(again, &why);
  if (!other || other->findings.size() != journal->findings.size()) {
    wrong("another journal came back");
  }
  refusal_of([&] { autotune::replay(*journal); });
  SteadyBench bench(journal->predicted);
  autotune::JournalWorkbench resumed(&bench, *journal);
  if (!autotune::search(journal->trials, journal->default_at, resumed, {}).complete) {
    wrong("a search that goes on from a journal does not end");
  }
}

// A log of planned shapes, to which users may add lines.
void check_shape_log(Bytes& bytes) {
  const std::uint8_t flags = bytes.byte();
  File file;
  if ((flags & 1) != 0) {
    shape_log::LoggedShapes shapes;
    shapes.left_out = bytes.byte();
    for (std::int64_t i = bytes.below(5); i > 0; --i) {
      shapes.counts[fmt::format("--heads {} --pattern \"causal\"", bytes.number())] = bytes.byte();
    }
    file = bytes_of(shape_log::print_shape_log(shapes));
    damage(bytes, &file);
  } else {
    file =
        bytes_of(fmt::format("{}{}", (flags & 2) == 0 ? "# annulus shapes 1\n" : "", bytes.rest()));
  }
  const auto shapes = shape_log::parse_shape_log(text_of(file));
  if (!shapes) return;
  std::map<std::string, std::int64_t> without_room;
  const std::string text = shape_log::print_shape_log(*shapes, &without_room);
  if (!without_room.empty()) wrong("a short log of shapes has no room for its lines");
  const auto again = shape_log::parse_shape_log(text);
  if (!again || again->counts != shapes->counts || again->left_out != shapes->left_out) {
    wrong("another log of shapes came back");
  }
}

void check_kernel(Bytes& bytes) {
  constexpr std::size_t kHeader = jit::kKernelFileHeader;
  const std::uint8_t flags = bytes.byte();
  File file = bytes_of(bytes.rest());
  if ((flags & 1) != 0) {
    jit::CompiledKernel kernel;
    kernel.kind = bytes.below(2) == 0 ? jit::ImageKind::kPtx : jit::ImageKind::kCubin;
    kernel.symbol = std::string(1 + static_cast<std::size_t>(bytes.below(4)), 'k');
    kernel.usage.known = bytes.below(2) != 0;
    kernel.usage.registers = bytes.byte();
    for (std::int64_t i = bytes.below(3); i > 0; --i) kernel.usage.notes.emplace_back("note");
    kernel.image.assign(1 + static_cast<std::size_t>(bytes.below(20)), std::byte{0});
    file = jit::encode_kernel_file(
        jit::KernelKey("annulus kernel\nschema 1\ntemplates 0\nimage ptx\noptions "
                       "--gpu-architecture=sm_80 -x\n",
                       "13.0"),
        kernel);
    damage(bytes, &file);
  }
  std::uint64_t key_bytes = 0;
  if (file.size() >= kHeader) {
    const std::uint64_t all = file.size();
    std::memcpy(&key_bytes, file.data() + 24, sizeof key_bytes);
    key_bytes = std::min<std::uint64_t>(key_bytes, file.size() - kHeader);
    if ((flags & 2) == 0) {
      const std::uint64_t payload = all - kHeader - key_bytes;
      std::memcpy(file.data(), "ANNULUSK\2\0\0\0", 12);
      std::memcpy(file.data() + 16, &all, sizeof all);
      std::memcpy(file.data() + 24, &key_bytes, sizeof key_bytes);
      std::memcpy(file.data() + 32, &payload, sizeof payload);
    }
    if ((flags & 4) == 0) {
      std::memset(file.data() + 40, 0, 16);
      const base::Digest digest = base::digest(file);
      std::memcpy(file.data() + 40, digest.bytes.data(), 16);
    }
  }
  jit::origin_of_file(file);
  jit::parse_compile_log(text_of(file));
  jit::read_cubin(file, "k");
  std::string why;
  const auto read = jit::decode_kernel_file(file, &why);
  if (!read && why.empty()) wrong("a kernel file is refused without a word");
  if (!read) return;
  const auto again =
      jit::decode_kernel_file(jit::encode_kernel_file(read->key, read->kernel), read->key, &why);
  if (!again || !(again->key == read->key) || again->kernel != read->kernel) {
    wrong("another kernel came back");
  }
}

// A cubin. Only its sections are read.
void check_cubin(Bytes& bytes) {
  const File file = bytes_of(bytes.rest());
  jit::resource_usage(file, "kernel", text_of(file));
}

void check(Bytes& bytes) {
  switch (bytes.byte()) {
    case 'L':
      return check_exchange(bytes, LayoutFormat::kLayout);
    case 'N':
      return check_exchange(bytes, LayoutFormat::kNpy);
    case 'R':
      return check_exchange(bytes, LayoutFormat::kRaw);
    case 'C':
      return check_exchange(bytes, LayoutFormat::kCsr);
    case 'O':
      return check_exchange(bytes, LayoutFormat::kCoo);
    case 'B':
      return check_exchange(bytes, LayoutFormat::kBitset);
    case 'T':
      return check_exchange(bytes, LayoutFormat::kTopK);
    case 'F':
      return check_exchange(bytes, LayoutFormat::kFlex);
    case 'I':
      return check_exchange(bytes, LayoutFormat::kFlashInfer);
    case 'S':
      return check_safetensors(bytes);
    case 'E':
      return check_tuned(bytes, entry_from);
    case 'Q':
      return check_tuned(bytes, batch_entry_from);
    case 'P':
      return check_pack(bytes);
    case 'J':
      return check_journal(bytes);
    case 'G':
      return check_shape_log(bytes);
    case 'K':
      return check_kernel(bytes);
    default:
      return check_cubin(bytes);
  }
}

}  // namespace
}  // namespace annulus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  annulus::fuzz::Bytes bytes(data, size);
  annulus::fuzz::refusal_of([&] { annulus::fuzz::check(bytes); });
  return 0;
}
