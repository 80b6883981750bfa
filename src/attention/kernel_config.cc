#include "attention/kernel_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "attention/wgmma_config.h"

namespace annulus::attention {
namespace {

constexpr std::int64_t kKilobyte = 1024;
constexpr std::int64_t kElementBytes = 2;

// M, N, warps, stages, Q in registers, resident CTAs. With 32 rows to a warp every fragment of K
// and V that leaves shared memory feeds two products instead of one, and shared memory is what
// bounds these kernels; from head dim 192 on the output alone takes the registers that would need.
//
// wgmma: a product of a warpgroup has 64 rows, and two warpgroups hold the registers that one CTA
// has; a third fits up to head dim 128. They come first: where the architecture has them, the mma
// family is half as fast. Two heads to a CTA, and two tiles to a step, are for patterns of blocks
// smaller than the tile that keeps the tensor cores busy. Clusters are for what would wait for L2:
// 128 rows to a copy of K and V ask for more than it gives, where the tensor cores are kept busy. Q
// stays in registers where there are some left, so that products read less of shared memory.
//
// wgmma8: the same tiles in half the bytes. What that leaves of shared memory holds V turned round.
constexpr KernelConfig wgmma(int rows, int columns, int warps, int stages, int blocks = 1,
                             int heads = 1) {
  return {rows, columns, warps, stages, false, 1, Family::kWgmma, blocks, heads};
}

constexpr KernelConfig wgmma8(int rows, int columns, int warps, int stages, int blocks = 1,
                              int heads = 1) {
  return {rows, columns, warps, stages, false, 1, Family::kWgmma8, blocks, heads};
}

// Two CTAs that copy K and V once for both.
constexpr KernelConfig in_twos(KernelConfig config) {
  config.cluster = 2;
  return config;
}

// Q in registers, which leaves shared memory to K and V.
constexpr KernelConfig with_query(KernelConfig config) {
  config.query_in_registers = true;
  return config;
}

constexpr ShippedConfig kShipped[] = {
    {{64, 64}, with_query(wgmma(64, 64, 8, 2, 2, 2)), Reach::kHopper},
    {{64, 64}, with_query(wgmma(128, 64, 8, 2, 2)), Reach::kHopper},
    {{64, 64}, wgmma(192, 128, 12, 2), Reach::kHopper},
    {{64, 64}, with_query(wgmma(128, 128, 8, 2)), Reach::kHopper},
    {{64, 64}, with_query(wgmma(64, 64, 4, 2, 2)), Reach::kHopper},
    {{96, 96}, with_query(wgmma(64, 64, 8, 2, 2, 2)), Reach::kHopper},
    {{96, 96}, with_query(wgmma(128, 64, 8, 2, 2)), Reach::kHopper},
    {{96, 96}, wgmma(192, 96, 12, 2), Reach::kHopper},
    {{96, 96}, wgmma(128, 128, 8, 2), Reach::kHopper},
    {{128, 128}, in_twos(wgmma(64, 64, 8, 2, 2, 2)), Reach::kHopper},
    {{128, 128}, wgmma(64, 64, 8, 2, 2, 2), Reach::kHopper},
    {{128, 128}, in_twos(wgmma(128, 64, 8, 2, 2)), Reach::kHopper},
    {{128, 128}, wgmma(128, 64, 8, 2, 2), Reach::kHopper},
    {{128, 128}, in_twos(wgmma(128, 128, 8, 2)), Reach::kHopper},
    {{128, 128}, wgmma(192, 80, 12, 2), Reach::kHopper},
    {{128, 128}, wgmma(128, 128, 8, 2), Reach::kHopper},
    {{128, 128}, wgmma(64, 64, 4, 2, 2), Reach::kHopper},
    {{128, 128}, in_twos(wgmma(128, 176, 8, 2)), Reach::kHopper},
    {{192, 128}, in_twos(wgmma(128, 128, 8, 2)), Reach::kHopper},
    {{192, 128}, wgmma(128, 128, 8, 2), Reach::kHopper},
    {{192, 192}, wgmma(128, 96, 8, 2), Reach::kHopper},
    {{192, 192}, wgmma(128, 64, 8, 2), Reach::kHopper},
    {{256, 256}, in_twos(wgmma(128, 64, 8, 2)), Reach::kHopper},
    {{256, 256}, wgmma(128, 64, 8, 2), Reach::kHopper},
    {{64, 64}, wgmma8(64, 64, 8, 2, 2, 2), Reach::kHopper},
    {{64, 64}, wgmma8(128, 64, 8, 2, 2), Reach::kHopper},
    {{64, 64}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{96, 96}, wgmma8(128, 64, 8, 2, 2), Reach::kHopper},
    {{96, 96}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{128, 128}, wgmma8(64, 64, 8, 2, 2, 2), Reach::kHopper},
    {{128, 128}, wgmma8(128, 64, 8, 2, 2), Reach::kHopper},
    {{128, 128}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{192, 128}, wgmma8(128, 128, 8, 2), Reach::kHopper},
    {{192, 192}, wgmma8(128, 64, 8, 2), Reach::kHopper},
    {{256, 256}, wgmma8(128, 64, 8, 2), Reach::kHopper},
    {{32, 32}, {128, 64, 4, 2, false, 2}, Reach::kEvery},
    {{32, 32}, {64, 64, 4, 2, false, 4}, Reach::kEvery},
    {{32, 32}, {128, 128, 8, 2, false, 1}, Reach::kEvery},
    {{64, 64}, {128, 64, 4, 2, false, 2}, Reach::kEvery},
    {{64, 64}, {64, 64, 4, 2, false, 3}, Reach::kEvery},
    {{64, 64}, {128, 128, 8, 2, false, 1}, Reach::kEvery},
    {{96, 96}, {128, 32, 4, 2, false, 2}, Reach::kEvery},
    {{96, 96}, {64, 64, 4, 2, false, 2}, Reach::kEvery},
    {{96, 96}, {128, 64, 8, 2, false, 1}, Reach::kEvery},
    {{128, 128}, {128, 32, 4, 2, false, 2}, Reach::kEvery},
    {{128, 128}, {64, 64, 4, 2, false, 2}, Reach::kEvery},
    {{128, 128}, {128, 64, 8, 2, false, 1}, Reach::kEvery},
    {{192, 128}, {128, 64, 8, 2, false, 1}, Reach::kLarge},
    {{192, 128}, {128, 64, 8, 1, false, 1}, Reach::kEvery},
    {{192, 128}, {64, 64, 4, 1, false, 2}, Reach::kEvery},
    {{192, 192}, {128, 64, 8, 2, false, 1}, Reach::kLarge},
    {{192, 192}, {128, 64, 8, 1, false, 1}, Reach::kEvery},
    {{192, 192}, {64, 32, 4, 2, false, 2}, Reach::kEvery},
    {{256, 256}, {128, 64, 8, 1, false, 1}, Reach::kLarge},
    {{256, 256}, {128, 32, 8, 1, false, 1}, Reach::kEvery},
    {{256, 256}, {64, 32, 4, 2, false, 2}, Reach::kEvery},
};

std::int64_t query_bytes(const KernelConfig& config, const Dims& dims) {
  return config.tile_rows * dims.qk * kElementBytes;
}

// Beyond this many ptxas spills in some combination of features; up to it, it never did.
std::int64_t most_fragment_registers(jit::Arch arch) { return arch.number >= 120 ? 152 : 160; }

// Rows that one pass of all threads of tile::TileCopier covers.
std::int64_t rows_per_pass(const KernelConfig& config, std::int64_t dim) {
  return threads(config) / (dim % 64 == 0 ? 8 : 4);
}

bool supported(const Dims& dims) {
  return std::ranges::any_of(kShipped, [&](const ShippedConfig& shipped) {
    return shipped.dims.qk == dims.qk && shipped.dims.v == dims.v;
  });
}

std::string unsupported_dims(const Dims& dims) {
  return fmt::format("head dims {}/{} are none of {}", dims.qk, dims.v, supported_dims_text());
}

// Takes "<letter><number>" off the front.
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

// Takes " <letter><number>" off the front, if the letter is there.
bool take_option(std::string_view* text, char letter, int* value) {
  if (text->size() < 2 || (*text)[0] != ' ' || (*text)[1] != letter) return true;
  text->remove_prefix(1);
  return take(text, letter, value);
}

}  // namespace

const char* to_string(Family family) {
  return family == Family::kMma ? "mma" : family == Family::kWgmma ? "wgmma" : "wgmma8";
}

std::string to_string(const KernelConfig& config) {
  std::string text = fmt::format("{} m{} n{} w{} s{}", to_string(config.family), config.tile_rows,
                                 config.tile_columns, config.warps, config.stages);
  if (config.query_in_registers) text += " q";
  if (config.resident != 1) text += fmt::format(" x{}", config.resident);
  if (config.blocks != 1) text += fmt::format(" b{}", config.blocks);
  if (config.heads != 1) text += fmt::format(" h{}", config.heads);
  if (config.cluster != 1) text += fmt::format(" c{}", config.cluster);
  return text;
}

std::optional<KernelConfig> parse_config(std::string_view text) {
  KernelConfig config;
  if (take(&text, "wgmma ")) {
    config.family = Family::kWgmma;
  } else if (take(&text, "wgmma8 ")) {
    config.family = Family::kWgmma8;
  } else if (!take(&text, "mma ")) {
    return std::nullopt;
  }
  const bool complete = take(&text, 'm', &config.tile_rows) && take(&text, " ") &&
                        take(&text, 'n', &config.tile_columns) && take(&text, " ") &&
                        take(&text, 'w', &config.warps) && take(&text, " ") &&
                        take(&text, 's', &config.stages);
  if (!complete) return std::nullopt;
  config.query_in_registers = take(&text, " q");
  if (config.family == Family::kMma) {
    if (!take_option(&text, 'x', &config.resident)) return std::nullopt;
  } else {
    const bool legible = take_option(&text, 'b', &config.blocks) &&
                         take_option(&text, 'h', &config.heads) &&
                         take_option(&text, 'c', &config.cluster);
    if (!legible) return std::nullopt;
  }
  if (!text.empty()) return std::nullopt;
  return config;
}

std::span<const ShippedConfig> shipped_configs() { return kShipped; }

int threads(const KernelConfig& config) {
  constexpr int kCopyingThreads = 128;
  return config.warps * 32 + (is_wgmma(config.family) ? kCopyingThreads : 0);
}

std::int64_t shared_bytes(const KernelConfig& config, const Dims& dims) {
  if (is_wgmma(config.family)) return wgmma_shared_bytes(config, dims);
  return query_bytes(config, dims) +
         config.stages * config.tile_columns * (dims.qk + dims.v) * kElementBytes;
}

std::int64_t fragment_registers(const KernelConfig& config, const Dims& dims) {
  if (is_wgmma(config.family)) return wgmma_fragment_registers(config, dims);
  const std::int64_t row_tiles = config.tile_rows / (config.warps * 16);
  const std::int64_t query = config.query_in_registers ? dims.qk / 4 : 0;
  return row_tiles * (config.tile_columns / 2 + dims.v / 2 + query);
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
    default:  // 86, 89, 120, 121 and what is not known yet
      return 99 * kKilobyte;
  }
}

std::optional<std::string> why_illegal(const KernelConfig& config, const Dims& dims,
                                       jit::Arch arch) {
  if (is_wgmma(config.family)) {
    if (!supported(dims)) return unsupported_dims(dims);
    return why_illegal_wgmma(config, dims, arch);
  }
  if (config.blocks != 1 || config.heads != 1 || config.cluster != 1) {
    return fmt::format(
        "{} tiles to a step, {} heads to a CTA and {} CTAs to a cluster: the mma family has one of "
        "each",
        config.blocks, config.heads, config.cluster);
  }
  if (arch.number < 80) {
    return fmt::format("{} has no cp.async and no bf16 tensor cores; the mma family needs sm_80",
                       jit::to_string(arch));
  }
  if (!supported(dims)) return unsupported_dims(dims);
  if (config.warps != 4 && config.warps != 8) {
    return fmt::format("{} warps: a CTA has 4 or 8", config.warps);
  }
  if (config.tile_rows != config.warps * 16 && config.tile_rows != config.warps * 32) {
    return fmt::format("{} rows for {} warps: each warp owns 16 or 32 rows", config.tile_rows,
                       config.warps);
  }
  if (config.tile_columns < 16 || config.tile_columns > 128 || config.tile_columns % 16 != 0) {
    return fmt::format("{} columns: a tile has a multiple of 16 from 16 to 128",
                       config.tile_columns);
  }
  if (config.stages < 1 || config.stages > 4) {
    return fmt::format("{} stages: the pipeline has 1 to 4", config.stages);
  }
  if (config.resident < 1 || config.resident > 8) {
    return fmt::format("{} resident CTAs: 1 to 8 can be asked for", config.resident);
  }
  for (const std::int64_t dim : {dims.qk, dims.v}) {
    const std::int64_t pass = rows_per_pass(config, dim);
    if (config.tile_columns % pass != 0 || config.tile_rows % pass != 0) {
      return fmt::format("{} rows and {} columns: {} threads copy {} rows of head dim {} at a time",
                         config.tile_rows, config.tile_columns, threads(config), pass, dim);
    }
  }
  const std::int64_t bytes = shared_bytes(config, dims);
  if (bytes > shared_limit(arch)) {
    return fmt::format("{} bytes of shared memory, but {} gives a CTA at most {}", bytes,
                       jit::to_string(arch), shared_limit(arch));
  }
  const std::int64_t registers = fragment_registers(config, dims);
  if (registers > most_fragment_registers(arch)) {
    return fmt::format("scores and output take {} registers of a thread, and beyond {} {} spills",
                       registers, most_fragment_registers(arch), jit::to_string(arch));
  }
  return std::nullopt;
}

}  // namespace annulus::attention
