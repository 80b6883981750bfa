#include "attention/kernels/kernel_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "attention/kernels/family.h"

namespace annulus::attention {
namespace {

constexpr std::int64_t kKilobyte = 1024;

// Removes "<letter><number>" from the front of a text. Returns false if the text begins with
// anything else.
bool take(std::string_view* text, char letter, int* value) {
  if (!text->starts_with(letter)) return false;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data() + 1, end, *value);
  if (error != std::errc() || stop == text->data() + 1) return false;
  text->remove_prefix(static_cast<std::size_t>(stop - text->data()));
  return true;
}

bool take(std::string_view* text, std::string_view word) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

// Removes a field from the front of a text. An absent option has the value 1, and an absent flag 0.
// A field of kind kNumber must be present.
bool take_field(std::string_view* text, const ConfigField& field, int* value) {
  using Form = ConfigField::Form;
  const bool there = text->size() >= 2 && (*text)[0] == ' ' && (*text)[1] == field.letter;
  if (!there) {
    *value = field.form == Form::kOption ? 1 : 0;
    return field.form != Form::kNumber;
  }
  text->remove_prefix(1);
  if (field.form != Form::kFlag) return take(text, field.letter, value);
  text->remove_prefix(1);
  *value = 1;
  return true;
}

// The first word of a text, and the rest after the blank.
std::pair<std::string_view, std::string_view> cut_word(std::string_view text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}

}  // namespace

std::string to_string(const KernelConfig& config) {
  using Form = ConfigField::Form;
  if (config.family == nullptr) return "none";
  std::string text =
      fmt::format("{} m{} n{}", config.family->name, config.tile_rows, config.tile_columns);
  for (std::size_t i = 0; i < config.family->fields.size(); ++i) {
    const ConfigField& field = config.family->fields[i];
    const int value = config.own[i];
    if (field.form == Form::kFlag) {
      if (value != 0) text += fmt::format(" {}", field.letter);
    } else if (field.form == Form::kNumber || value != 1) {
      text += fmt::format(" {}{}", field.letter, value);
    }
  }
  return text;
}

std::optional<KernelConfig> parse_config(std::string_view text) {
  const Family* family = find_family(family_name(text));
  return family == nullptr ? std::nullopt : parse_config(text, *family);
}

std::optional<KernelConfig> parse_config(std::string_view text, const ConfigFamily& family) {
  KernelConfig config{.family = &family};
  const auto [word, rest] = cut_word(text);
  if (word != family.name) return std::nullopt;
  text = rest;
  bool legible = take(&text, 'm', &config.tile_rows) && take(&text, " ") &&
                 take(&text, 'n', &config.tile_columns);
  for (std::size_t i = 0; legible && i < family.fields.size(); ++i) {
    legible = take_field(&text, family.fields[i], &config.own[i]);
  }
  if (!legible || !text.empty()) return std::nullopt;
  return config;
}

std::string_view family_name(std::string_view text) { return cut_word(text).first; }

std::optional<std::string> unknown_family(std::string_view text) {
  const std::string_view word = family_name(text);
  if (word.empty() || find_family(word) != nullptr) return std::nullopt;
  return std::string(word);
}

std::span<const ShippedConfig> shipped_configs() {
  static const std::vector<ShippedConfig> all = [] {
    std::vector<ShippedConfig> configs;
    for (const Family* family : families()) {
      configs.insert(configs.end(), family->shipped.begin(), family->shipped.end());
    }
    return configs;
  }();
  return all;
}

CtaShape cta_shape(const KernelConfig& config) { return config.family->cta(config); }

Footprint footprint(const KernelConfig& config, const Dims& dims) {
  return config.family->footprint(config, dims);
}

int threads(const KernelConfig& config) { return cta_shape(config).threads; }

std::int64_t shared_bytes(const KernelConfig& config, const Dims& dims) {
  return footprint(config, dims).shared_bytes;
}

std::int64_t shared_limit(jit::Arch arch) {
  switch (arch.number) {
    case 80:
    case 87:
      return 163 * kKilobyte;
    case 90:
    case 100:
    case 101:
    case 103:
    case 110:
      return 227 * kKilobyte;
    default:  // 86, 89, 120, 121, and unknown architectures
      return 99 * kKilobyte;
  }
}

bool supports_kv_splits(const KernelConfig& config) {
  return family_of(config).supports_kv_splits(config);
}

std::optional<std::string> why_illegal(const KernelConfig& config, const Dims& dims,
                                       jit::Arch arch) {
  return config.family->why_illegal(config, dims, arch);
}

std::optional<std::string> why_spills(const KernelConfig& config, const Dims& dims,
                                      jit::Arch arch) {
  const auto why = config.family->why_spills;
  return why == nullptr ? std::nullopt : why(config, dims, arch);
}

std::optional<std::string> why_unsupported(const Dims& dims) {
  const bool supported = std::ranges::any_of(shipped_configs(), [&](const ShippedConfig& shipped) {
    return shipped.dims.qk == dims.qk && shipped.dims.v == dims.v;
  });
  if (supported) return std::nullopt;
  return fmt::format("head dims {}/{} are not one of {}", dims.qk, dims.v, supported_dims_text());
}

}  // namespace annulus::attention
