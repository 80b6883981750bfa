#include "tuned/tuned_pack.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "annulus/types.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/json.h"
#include "tuned/device_key.h"

namespace annulus::tuned {
namespace {

constexpr std::string_view kMagicOfPacks = "annulus-tuned-pack ";
constexpr std::size_t kMaxTold = 100;  // the most lines left out that are reported one by one

// Checks the first line and returns the text after it.
std::string_view body_of(std::string_view text) {
  if (!text.starts_with(kMagicOfPacks)) {
    base::fail(ErrorCode::kInvalidFile, "it is not a pack of tuned results");
  }
  const std::size_t line = std::min(text.find('\n'), text.size());
  const std::string_view stated = text.substr(kMagicOfPacks.size(), line - kMagicOfPacks.size());
  if (const std::string why = why_other_schema(stated); !why.empty()) {
    base::fail(ErrorCode::kUnsupported, "{}", why);
  }
  const std::string_view digest = stated.substr(stated.find(' ') + 1);
  if (line == text.size() || digest.size() != kDigestDigits ||
      digest != base::digest(text.substr(line + 1)).hex()) {
    base::fail(ErrorCode::kInvalidFile,
               "its digest does not agree: it was cut, changed or edited by hand");
  }
  return text.substr(line + 1);
}

// Throws if no folder can be named after the device. Also throws for a prediction of a real device
// and for a measurement of a simulated one, because neither may replace the other.
void check_kind(const PackedEntry& packed) {
  if (folder_for(packed.device).empty()) {
    base::fail(ErrorCode::kInvalidFile, "its device is invalid");
  }
  const bool simulated = packed.device.ends_with(", simulated");
  if (simulated == packed.entry.predicted) return;
  base::fail(ErrorCode::kInvalidFile, "{}",
             simulated ? "it is a measurement of a simulated device"
                       : "it is a prediction for a real device");
}

// The device of a line that encode_pack() wrote, if it can be found without parsing the line.
std::optional<std::string_view> device_at(std::string_view line) {
  constexpr std::string_view kBegin = "{\"device\":\"";
  if (!line.starts_with(kBegin)) return std::nullopt;
  line.remove_prefix(kBegin.size());
  const std::size_t end = line.find_first_of("\"\\");
  if (end == line.npos || line[end] != '"') return std::nullopt;
  return line.substr(0, end);
}

}  // namespace

std::strong_ordering compare_keys(const PackedEntry& a, const PackedEntry& b) {
  if (const auto order = a.device <=> b.device; order != 0) return order;
  if (const auto order = a.entry.shape <=> b.entry.shape; order != 0) return order;
  return kernels_text(a.entry) <=> kernels_text(b.entry);
}

std::string entry_name(const Entry& entry) {
  return fmt::format("{}-{}", digest(entry.shape).hex(), kernels_text(entry));
}

Pack merged(std::vector<PackedEntry> entries) {
  std::ranges::sort(entries, [](const PackedEntry& a, const PackedEntry& b) {
    const std::strong_ordering order = compare_keys(a, b);
    return order != 0 ? order < 0 : better(a.entry, b.entry);
  });
  const auto repeated = std::ranges::unique(
      entries, [](const PackedEntry& a, const auto& b) { return compare_keys(a, b) == 0; });
  entries.erase(repeated.begin(), repeated.end());
  return entries;
}

std::string encode_pack(const Pack& pack) {
  std::string body;
  for (const PackedEntry& packed : pack) {
    body += json_of(packed.entry, packed.device).dump(-1, ' ', true) + "\n";
  }
  return fmt::format("{}{} {}\n{}", kMagicOfPacks, kEntrySchema, base::digest(body).hex(), body);
}

void write_pack(base::FileSystem& files, const std::string& path, const Pack& pack) {
  const std::string text = encode_pack(pack);
  if (std::ssize(text) > kMaxPackBytes) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "the pack '{}' of {} tuned results would have {} bytes, more than the {} of one that "
        "is read; write some of them to another pack",
        path, pack.size(), text.size(), kMaxPackBytes);
  }
  base::write_file_atomically(files, path, std::as_bytes(std::span(text)), 0644);
}

Pack decode_pack(std::span<const std::byte> file, std::vector<std::string>* left_out,
                 const WantDevice& want) {
  std::string_view body = body_of({reinterpret_cast<const char*>(file.data()), file.size()});
  std::vector<PackedEntry> entries;
  std::size_t wrong = 0;
  for (std::size_t number = 2; !body.empty(); ++number) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    const auto device = want ? device_at(line) : std::nullopt;
    if (device && !want(*device)) continue;
    try {
      PackedEntry packed;
      packed.entry = entry_of(base::parse_json(line, "its JSON", entry_limits()), &packed.device);
      check_kind(packed);
      if (!want || want(packed.device)) entries.push_back(std::move(packed));
    } catch (const Error& error) {
      if (++wrong > kMaxTold) continue;
      left_out->push_back(fmt::format("line {}: {}", number, error.what()));
    }
  }
  if (wrong > kMaxTold) left_out->push_back(fmt::format("{} more lines", wrong - kMaxTold));
  return merged(std::move(entries));
}

}  // namespace annulus::tuned
