// A tuned result names a family's revision and not its sources. So a change of the sources that may
// change the speed must raise the revision. This test detects a forgotten change: it compiles a
// sample of each family's kernels, and compares NVRTC's output with the record for the revision
// (revisions.txt).

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "attention/kernels/family.h"
#include "attention/kernels/kernel_source.h"
#include "attention/score/score_code.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "batch/batch_config.h"
#include "jit/compiler.h"
#include "support/nvrtc.h"
#include "support/options.h"
#include "tuned/config_families.h"

namespace annulus::tuned {
namespace {

using attention::Dims;
using attention::KernelConfig;
using attention::KernelFeatures;
using batch::BatchFeatures;
using kernels::Pages;
using kernels::Score;
using kernels::TileOrder;

KernelFeatures causal() {
  return {.dims = {}, .tile_order = TileOrder::kBand, .mask = "m.causal(q, k)"};
}

KernelFeatures carried() {
  KernelFeatures features = causal();
  features.carry_in = features.carry_out = true;
  features.mask = "m.causal(q, k) & m.window(0, 1, q, k)";
  return features;
}

// A mask that reads memory, positions of two segments or by row, and scores with a cap.
KernelFeatures listed() {
  return {.dims = {},
          .score = Score::kSoftcap,
          .sink_logit = true,
          .tile_order = TileOrder::kRuns,
          .mask = "m.causal(q, k) & m.documents(0, 1, q, k) & m.blocks(q, k)"};
}

KernelFeatures modified(bool costly) {
  const auto [score, b, h, q, k] = score_variables();
  KernelFeatures features = causal();
  features.alibi = true;
  features.carry_in = true;
  features.score = Score::kAnyScale;
  features.score_mod = attention::score_code(costly ? tanh(exp(score) * tanh(score + 0.5 * (k - q)))
                                                    : score + 0.5 * (k - q))
                           .structure;
  return features;
}

// Requests in pages with an output of states, and requests that list blocks and have limits of
// rows.
BatchFeatures paged() { return {.attention = carried(), .pages = Pages::k16}; }
BatchFeatures chosen() {
  BatchFeatures features;
  features.attention = causal();
  features.attention.mask = "m.documents(0, 1, q, k) & m.dilated(2, q, k)";
  features.pages = Pages::kAny;
  features.runs = 2;
  features.row_limits = true;
  return features;
}

KernelConfig legal(const std::string& text, const Dims& dims, jit::Arch arch) {
  const std::optional<KernelConfig> config = parse_any_config(text);
  REQUIRE_MESSAGE(config.has_value(), text);
  const std::optional<std::string> why = config->family->why_illegal(*config, dims, arch);
  REQUIRE_MESSAGE(!why, text << ": " << why.value_or(""));
  return *config;
}

constexpr jit::Arch kAmpere{80, '\0'}, kHopper{90, 'a'};

jit::KernelSpec problem_kernel(std::int64_t dim, const char* text, KernelFeatures features) {
  const bool mma = std::string_view(text).starts_with("mma ");
  const jit::Arch arch = mma ? kAmpere : kHopper;
  features.dims = {dim, dim};
  const KernelConfig config = legal(text, features.dims, arch);
  if (config.family->element_bytes == 1) {
    features.dtype = Dtype::kFloat8E4M3;
    features.scale_block = 64;
  }
  return attention::kernel_spec(config, features, arch);
}

jit::KernelSpec batch_kernel(std::int64_t dim, const char* text, BatchFeatures features) {
  const bool wgmma = std::string_view(text).starts_with("chunk_wgmma ");
  const jit::Arch arch = wgmma ? kHopper : kAmpere;
  features.attention.dims = {dim, dim};
  return batch::rows_spec(legal(text, features.attention.dims, arch), features, arch);
}

// The samples by family. Together they have each form that a kernel can have.
std::map<std::string, std::vector<jit::KernelSpec>> samples() {
  return {{"mma",
           {problem_kernel(128, "mma m128 n64 w8 s2", causal()),
            problem_kernel(64, "mma m64 n64 w4 s2 q x3", carried()),
            problem_kernel(64, "mma m64 n64 w4 s2 q x3", listed()),
            problem_kernel(64, "mma m128 n64 w4 s2 x2", modified(false)),
            problem_kernel(32, "mma m64 n64 w4 s2 q x3", modified(true))}},
          {"wgmma",
           {problem_kernel(128, "wgmma m128 n128 w8 s2 c2", causal()),
            problem_kernel(128, "wgmma m64 n64 w8 s2 b2 h2", carried()),
            problem_kernel(64, "wgmma m64 n64 w4 s2 q b2", listed()),
            problem_kernel(64, "wgmma m128 n64 w8 s2 q b2", modified(false)),
            problem_kernel(64, "wgmma m64 n64 w4 s2 q x2", modified(true))}},
          {"wgmma8",
           {problem_kernel(128, "wgmma8 m128 n128 w8 s2", causal()),
            problem_kernel(128, "wgmma8 m128 n64 w8 s2 b2", carried()),
            problem_kernel(128, "wgmma8 m64 n64 w8 s2 b2 h2", listed()),
            problem_kernel(64, "wgmma8 m128 n128 w8 s2", modified(true))}},
          {"decode",
           {batch_kernel(128, "decode m16 n64 w4 s2 q x2", paged()),
            batch_kernel(64, "decode m16 n128 w4 s2 q x2", chosen())}},
          {"chunk",
           {batch_kernel(128, "chunk m128 n64 w8 s2", paged()),
            batch_kernel(64, "chunk m128 n64 w8 s2", chosen())}},
          {"chunk_wgmma",
           {batch_kernel(128, "chunk_wgmma m128 n64 w8 s2", paged()),
            batch_kernel(64, "chunk_wgmma m128 n64 w8 s2", chosen())}}};
}

// Returns the instructions of PTX, without comments, source lines and debug sections.
std::string normalised(const std::string& ptx) {
  std::istringstream lines(ptx);
  std::string text;
  bool debug = false;
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find("//"), line.size()));
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) continue;
    line.erase(0, begin);
    if (line.starts_with(".section")) debug = true;
    if (debug) {
      if (line == "}") debug = false;
      continue;
    }
    const bool position = line.starts_with(".loc") || line.starts_with(".file");
    const bool of_debugger =
        line.starts_with("$L__tmp") || line.starts_with("$L__func") || line.starts_with("$L__info");
    if (!position && !of_debugger) text += line + "\n";
  }
  return text;
}

// The digest of a family's sample, compiled with these templates.
std::string digest_of(const std::vector<jit::KernelSpec>& sample,
                      const std::shared_ptr<const abi::NvrtcLibrary>& nvrtc,
                      std::shared_ptr<const jit::TemplateSet> templates) {
  const jit::Compiler compiler(nvrtc, std::move(templates), jit::ImageKind::kPtx);
  std::vector<std::string> texts(sample.size());
  base::ThreadPool pool;
  pool.parallel_for(static_cast<std::int64_t>(sample.size()), [&](std::int64_t index, int) {
    const auto at = static_cast<std::size_t>(index);
    const jit::CompiledKernel kernel = compiler.compile(sample[at]);
    texts[at] =
        normalised({reinterpret_cast<const char*>(kernel.image.data()), kernel.image.size()});
  });
  std::string all;
  for (const std::string& text : texts) {
    REQUIRE(text.size() > 1000);
    all += text;
  }
  return base::digest(all).hex();
}

// A line of the record: "mma 2 13.0 (65be0db3) <digest>", with the NVRTC in the middle.
std::string line_of(const attention::ConfigFamily& family, const std::string& nvrtc,
                    const std::string& digest) {
  return std::string(family.name) + " " + std::to_string(family.revision) + " " + nvrtc + " " +
         digest;
}

std::vector<std::string> recorded() {
  std::ifstream file(ANNULUS_REVISIONS);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

// Replaces the lines of this NVRTC, and keeps the lines of others.
void record(const std::string& nvrtc, const std::vector<std::string>& now) {
  std::vector<std::string> lines = recorded();
  std::erase_if(lines,
                [&](const std::string& line) { return line.find(" " + nvrtc + " ") != line.npos; });
  lines.insert(lines.end(), now.begin(), now.end());
  std::ranges::sort(lines);
  std::ofstream file(ANNULUS_REVISIONS);
  file << "# What NVRTC makes of a sample of each family's kernels, by revision and NVRTC: written "
          "by\n# test_revisions --record yes, compared by tests/tuned/revision_test.cc.\n";
  for (const std::string& line : lines) file << line << "\n";
  REQUIRE(file.good());
}

TEST_CASE("a family's kernels are those of its revision") {
  const auto library = test::nvrtc();
  if (!library) return;
  const std::string nvrtc =
      jit::Compiler(library, jit::TemplateSet::embedded(), jit::ImageKind::kPtx).identity();
  std::vector<std::string> now;
  const auto all = samples();
  for (const attention::ConfigFamily* family : config_families()) {
    const auto sample = all.find(family->name);
    REQUIRE_MESSAGE(sample != all.end(),
                    "the family " << family->name << " has no sample here; add one");
    now.push_back(
        line_of(*family, nvrtc, digest_of(sample->second, library, jit::TemplateSet::embedded())));
  }
  if (test::options().record) return record(nvrtc, now);
  const std::vector<std::string> lines = recorded();
  const bool known = std::ranges::any_of(
      lines, [&](const std::string& line) { return line.find(" " + nvrtc + " ") != line.npos; });
  if (!known) {
    MESSAGE("skipped: nothing is recorded for NVRTC " << nvrtc);
    return;
  }
  for (const std::string& line : now) {
    const bool same = std::ranges::find(lines, line) != lines.end();
    CHECK_MESSAGE(
        same,
        line << " is not what tests/tuned/revisions.txt records. If the change may "
                "make kernels of the family faster or slower, raise its revision in "
                "src/attention/kernels or src/batch, so that results which were tuned "
                "before it are not used; then record it: build/tests/test_revisions --record yes");
  }
}

// The templates with one piece of text replaced.
std::shared_ptr<const jit::TemplateSet> edited(const std::string& name, const std::string& from,
                                               const std::string& to) {
  auto files = jit::TemplateSet::embedded()->files();
  std::string& text = files.at(name);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return std::make_shared<const jit::TemplateSet>(std::move(files));
}

TEST_CASE("comments and other families change nothing of a sample, and what matters does") {
  const auto library = test::nvrtc();
  if (!library) return;
  const std::vector<jit::KernelSpec> sample = {samples().at("mma")[1]};
  const auto digest = [&](std::shared_ptr<const jit::TemplateSet> templates) {
    return digest_of(sample, library, std::move(templates));
  };
  const std::string before = digest(jit::TemplateSet::embedded());
  const std::string own = attention::find_family("mma")->source;
  const std::string line = "constexpr unsigned kKeyBytes = kColumns * ";
  CHECK(digest(edited(own, line, "  // One more line,\n  // or two.\n\n" + line)) == before);
  CHECK(digest(edited("kernels/wgmma/wgmma_forward.cu", "constexpr int kReaders = 4 * ",
                      "constexpr int kReaders = 8 * ")) == before);
  CHECK(digest(edited(own, line, line + "2 * ")) != before);
}

}  // namespace
}  // namespace annulus::tuned
