#include "published.h"

#include <algorithm>

#include "attention/kernels/mma/config.h"
#include "attention/kernels/wgmma/config.h"
#include "gpu_problems.h"

namespace annulus::bench {
namespace {

using attention::Deal;
using attention::Family;
using attention::KernelConfig;
using attention::MmaConfig;
using attention::Pace;
using attention::WgmmaConfig;

device::DeviceInfo usual(int major, int minor, int multiprocessors) {
  device::DeviceInfo info;
  info.major = major;
  info.minor = minor;
  info.multiprocessors = multiprocessors;
  info.max_threads_per_multiprocessor = 2048;
  info.max_blocks_per_multiprocessor = 32;
  info.registers_per_multiprocessor = 65536;
  info.shared_bytes_reserved_per_block = 1024;
  return info;
}

// Kernels of other programs, described as families of this library. They have the same steps on the
// same pipes, with the differences stated here.

// The work of a tile in a kernel that never skips rescaling, as if each step were the first of its
// row. In this library's 16-bit kernels, the machine code has 5.8 instructions for a product and 60
// for the rest of a step. Other programs have another compiler's code. So for them the model keeps
// the rounder numbers 3 and 100, with which the constants were fitted.
attention::KernelWork rescaled_tile(const KernelConfig& config,
                                    const attention::KernelFeatures& features,
                                    const attention::TileContext& context) {
  attention::TileContext first = context;
  first.row_steps = 1;
  attention::KernelWork work = attention::wgmma_tile_work(config, features, first);
  if (config.family->element_bytes == 2) {
    const double products = static_cast<double>(features.dims.qk + config.tile_columns) / 16;
    work.warp_instructions += attention::wgmma_config(config).warps * (40 - 2.8 * products);
  }
  return work;
}

// The pace of FlashAttention-3. It stores O from the memory of V, so the copies of the next row
// wait for the store. Hence a row takes as many latencies as in a kernel with one row.
Pace fa3_pace(const KernelConfig& config) {
  Pace pace = attention::wgmma_pace(config);
  pace.frame_latencies = Pace{}.frame_latencies;
  pace.deal = Deal::kFree;
  return pace;
}

// FlashAttention-3 at the time of its plot (commits 7f67966 and 7ef2484 of 2024-07-11). With a
// causal mask, CTAs draw works from a counter, head by head, with the shortest rows first
// (hopper/tile_scheduler.hpp).
const Family& fa3_first() {
  static const Family family = [] {
    Family made = attention::wgmma_family;
    made.tile_work = rescaled_tile;
    made.persistent = false;
    made.pace = [](const KernelConfig& config) {
      Pace pace = fa3_pace(config);
      pace.longest_first = false;
      return pace;
    };
    return made;
  }();
  return family;
}

// FlashAttention-3 today: the longest rows come first, in sets of heads that fit L2.
const Family& fa3_now() {
  static const Family family = [] {
    Family made = attention::wgmma_family;
    made.tile_work = rescaled_tile;
    made.pace = fa3_pace;
    return made;
  }();
  return family;
}

// FlashAttention-3 with 8-bit elements, where V is transposed in place.
const Family& fa3_8bit() {
  static const Family family = [] {
    Family made = attention::wgmma8_family;
    made.tile_work = rescaled_tile;
    made.pace = fa3_pace;
    made.footprint = [](const KernelConfig& config, const attention::Dims& dims) {
      attention::Footprint taken = attention::wgmma_footprint(config, dims);
      taken.shared_bytes = std::min<std::int64_t>(taken.shared_bytes, 227 << 10);
      return taken;
    };
    return made;
  }();
  return family;
}

// ThunderKittens' kernel for block-sparse video attention. A CTA is one warpgroup that copies and
// computes 64 rows, and a multiprocessor has four CTAs. Within a warp, nothing runs at the same
// time as a product.
const Family& kittens() {
  static const Family family = [] {
    Family made = attention::wgmma_family;
    made.tile_work = rescaled_tile;
    made.persistent = false;
    made.cta = [](const KernelConfig& config) {
      attention::CtaShape cta = attention::wgmma_cta(config);
      cta.threads = 128;
      cta.resident = 4;
      return cta;
    };
    made.footprint = [](const KernelConfig&, const attention::Dims&) {
      return attention::Footprint{
          .shared_bytes = 56 << 10, .max_registers = 128, .predicted_registers = 128};
    };
    made.pace = [](const KernelConfig&) {
      return Pace{.products = Pace::Products::kWarpgroup,
                  .barriers = 1,
                  .overlap = 1,
                  .frame_latencies = 4,
                  .deal = Deal::kFree};
    };
    return made;
  }();
  return family;
}

KernelConfig tile(const Family& family, int rows, int columns, int cluster = 1) {
  return WgmmaConfig{
      .tile_rows = rows, .tile_columns = columns, .warps = rows / 16, .cluster = cluster}
      .of(family);
}

Problem problem(std::int64_t heads, std::int64_t seq, std::int64_t dim, bool causal_mask = false) {
  Problem made;
  made.batch = std::int64_t{16384} / seq;  // FlashAttention's benchmark keeps the number of tokens
  made.heads = made.kv_heads = heads;
  made.seq_q = made.seq_k = seq;
  made.dim_qk = made.dim_v = dim;
  if (causal_mask) made.pattern = causal();
  return made;
}

// The convention of FlashAttention's benchmark: 4 D for each pair, and half the pairs with a mask.
double pairs_flop(const Problem& problem, double density) {
  return 4.0 * static_cast<double>(problem.dim_qk * problem.heads * problem.batch) *
         static_cast<double>(problem.seq_q) * static_cast<double>(problem.seq_k) * density;
}

Published dense(std::string name, Use use, device::DeviceInfo device, const Problem& of,
                const KernelConfig& config, double least, double most, int source) {
  const bool masked = of.pattern.to_string() != "dense";
  return {std::move(name),
          use,
          std::move(device),
          of,
          config,
          pairs_flop(of, masked ? 0.5 : 1),
          least,
          most,
          source,
          ""};
}

enum Source { kPlot3 = 1, kMagi, kPaper2, kAbi, kA5000, kVideo, kTiles, kMit, kInfer };

}  // namespace

device::DeviceInfo a100() {
  device::DeviceInfo info = usual(8, 0, 108);
  info.shared_bytes_per_multiprocessor = 167936;
  info.clock_kilohertz = 1410000;
  info.memory_clock_kilohertz = 1593000;
  info.memory_bus_bits = 5120;
  return info;
}

device::DeviceInfo a5000() {
  device::DeviceInfo info = usual(8, 6, 64);
  info.max_threads_per_multiprocessor = 1536;
  info.shared_bytes_per_multiprocessor = 102400;
  info.clock_kilohertz = 1695000;
  info.memory_clock_kilohertz = 8001000;
  info.memory_bus_bits = 384;
  return info;
}

device::DeviceInfo h100() {
  device::DeviceInfo info = usual(9, 0, 132);
  info.shared_bytes_per_multiprocessor = 233472;
  info.clock_kilohertz = 1980000;
  info.memory_clock_kilohertz = 2619000;
  info.memory_bus_bits = 5120;
  return info;
}

device::DeviceInfo h200() {
  device::DeviceInfo info = h100();
  info.memory_clock_kilohertz = 3201000;
  info.memory_bus_bits = 6144;
  return info;
}

std::span<const char* const> published_sources() {
  static constexpr const char* kSources[] = {
      "FlashAttention-3, plot of the forward pass in its repository (assets/flash3_fp16_fwd.png)",
      "MagiAttention's measurement of FlashAttention-3, read off a plot (bf16, 64 heads)",
      "FlashAttention-2, arXiv 2307.08691, figure 5 and section 4.1",
      "flash-attention pull request 2688: benchmark_flash_attention.py on an H100",
      "gpu-mode/ring-attention issue 10: benchmark_flash_attention.py on an RTX A5000",
      "FastVideo issue 1034: block-sparse video attention of ThunderKittens on an H100",
      "TileOPs pull request 2136: decoding on an H200 with a cold L2",
      "Block-Sparse-Attention of MIT on an A100, time relative to FlashAttention-2",
      "flashinfer pull request 5326",
  };
  return kSources;
}

std::vector<Published> published_times() {
  const KernelConfig fa2_128 = MmaConfig{128, 64, 4, 1, false, 2};
  const KernelConfig fa2_64 = MmaConfig{128, 128, 4, 1, false, 2};
  const KernelConfig fa2_256 = MmaConfig{64, 64, 4, 1, false, 2};
  std::vector<Published> all;
  const auto add = [&](auto&&... of) { all.push_back(dense(of...)); };

  add("FA3 D128 16k", Use::kSets, h100(), problem(16, 16384, 128), tile(fa3_first(), 128, 176, 2),
      648, 686, kPlot3);
  add("FA2 D128 16k on A100", Use::kSets, a100(), problem(16, 16384, 128), fa2_128, 222, 227,
      kPaper2);

  {
    Problem video;
    video.heads = video.kv_heads = 16;
    video.seq_q = video.seq_k = 40768;
    video.dim_qk = video.dim_v = 128;
    const GpuProblem sparse = sparse_problem("video", video, 64, 16, 64, 0);
    const KernelConfig config = {
        &kittens(), 64, 64,
        WgmmaConfig{.tile_rows = 64, .tile_columns = 64, .warps = 4}.of(kittens()).own};
    all.push_back({"FlashInfer D128, block 64, its kernel for sm_80, on H200", Use::kHeldOut,
                   h200(), sparse.problem, MmaConfig{64, 64, 4, 1, false, 2}, sparse.flop, 272, 280,
                   kInfer, "the source names no shape; that of [6] is assumed"});
    Published made{"ThunderKittens D128 40k, block 64, 90 % sparse",
                   Use::kSets,
                   h100(),
                   sparse.problem,
                   config,
                   sparse.flop,
                   524,
                   524,
                   kVideo,
                   ""};
    all.push_back(std::move(made));
  }
  {
    // The four heads of a group are rows of one tile.
    Problem decode;
    decode.batch = 32;
    decode.heads = decode.kv_heads = 8;
    decode.seq_q = 4;
    decode.seq_k = 4096;
    decode.dim_qk = decode.dim_v = 128;
    const double flop = pairs_flop(decode, 1);
    all.push_back({"decoding, batch 32, 32/8 heads, 4k, on H200", Use::kHeldOut, h200(), decode,
                   tile(fa3_now(), 64, 128), flop, flop / 135e6, flop / 135e6, kTiles, ""});
  }

  add("FA3 D64 16k", Use::kHeldOut, h100(), problem(32, 16384, 64), tile(fa3_first(), 192, 128),
      497, 497, kPlot3);
  add("FA3 D256 16k", Use::kHeldOut, h100(), problem(8, 16384, 256), tile(fa3_first(), 128, 80, 2),
      756, 756, kPlot3);
  add("FA3 D128 16k causal", Use::kHeldOut, h100(), problem(16, 16384, 128, true),
      tile(fa3_first(), 128, 128), 616, 616, kPlot3);
  add("FA3 D64 16k causal", Use::kHeldOut, h100(), problem(32, 16384, 64, true),
      tile(fa3_first(), 192, 128), 473, 473, kPlot3);
  add("FA3 D256 16k causal", Use::kHeldOut, h100(), problem(8, 16384, 256, true),
      tile(fa3_first(), 128, 80), 642, 642, kPlot3);
  add("FA3 D128 2k", Use::kHeldOut, h100(), problem(16, 2048, 128), tile(fa3_first(), 128, 176, 2),
      625, 625, kPlot3);
  add("FA3 D128 2k causal", Use::kHeldOut, h100(), problem(16, 2048, 128, true),
      tile(fa3_first(), 128, 128), 521, 521, kPlot3);
  add("FA3 D128 512", Use::kHeldOut, h100(), problem(16, 512, 128), tile(fa3_first(), 128, 176, 2),
      467, 467, kPlot3);
  add("FA3 e4m3 D256 16k", Use::kHeldOut, h100(), problem(8, 16384, 256),
      tile(fa3_8bit(), 128, 128), 1171, 1171, kPlot3);
  all.back().problem.dtype = Dtype::kFloat8E4M3;
  {
    Problem magi = problem(64, 16384, 128);
    magi.kv_heads = 8;
    magi.pattern = causal();
    add("FA3 of 2025, D128 16k causal, 64/8 heads", Use::kHeldOut, h100(), magi,
        tile(fa3_now(), 128, 128), 672, 672, kMagi);
    magi = problem(64, 2048, 128);
    magi.batch = 1;
    magi.kv_heads = 8;
    magi.pattern = causal();
    add("FA3 of 2025, D128 2k causal, 64/8 heads", Use::kHeldOut, h100(), magi,
        tile(fa3_now(), 128, 128), 584, 584, kMagi);
  }
  add("FA2 D64 16k on A100", Use::kHeldOut, a100(), problem(32, 16384, 64), fa2_64, 187, 193,
      kPaper2);
  add("FA2 D128 16k on H100", Use::kHeldOut, h100(), problem(16, 16384, 128), fa2_128, 370, 376,
      kPlot3);
  add("FA2 D64 8k on H100", Use::kHeldOut, h100(), problem(32, 8192, 64), fa2_64, 310, 322, kAbi);
  add("FA2 D256 16k on H100", Use::kHeldOut, h100(), problem(8, 16384, 256), fa2_256, 326, 326,
      kPlot3);
  add("FA2 D64 8k on RTX A5000", Use::kHeldOut, a5000(), problem(32, 8192, 64), fa2_64, 82, 82,
      kA5000);
  all.back().remark = "a chip of 230 W, whose clock under load the model does not know";
  {
    Problem mit;
    mit.heads = mit.kv_heads = 32;
    mit.seq_q = mit.seq_k = 65536;
    mit.dim_qk = mit.dim_v = 128;
    const GpuProblem sparse = sparse_problem("mit", mit, 128, 32, 49, 0);
    // The figure is 0.13 of the time of FlashAttention-2, whose rate is in the source kPaper2.
    const double rate = 225 * sparse.density / 0.13;
    all.push_back(
        {"MIT D128 64k on A100, block 128, 90 % sparse", Use::kHeldOut, a100(), sparse.problem,
         fa2_128, sparse.flop, rate, rate, kMit,
         "with nothing left out it takes 1.15 to 1.2 times as long as FlashAttention-2, by "
         "the same source; the model knows its tiles alone"});
  }
  return all;
}

}  // namespace annulus::bench
