// Measures tuned results once they are there: look-ups among thousands of them, what the first plan
// of a process pays for reading a pack, and merging packs. Nothing here opens a device; a plan that
// uses a tuned result compiles no more than any other, which tests/autotune/tune_test.cc counts.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "attention/kernels/family.h"
#include "autotune/store.h"
#include "autotune/tuned_pack.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/random.h"
#include "harness.h"

namespace {

using namespace annulus;
using autotune::Entry;
using autotune::ShapeKey;
using autotune::TunedStore;

// 100 kinds of problems with 50 pairs of lengths each.
constexpr int kKinds = 100, kLengths = 50;
constexpr int kEntries = kKinds * kLengths;

autotune::DeviceKey a_device() {
  device::DeviceInfo info;
  info.name = "a GPU";
  info.multiprocessors = 132;
  info.memory_bytes = std::int64_t{80} << 30;
  return autotune::device_key(info, "sm_80");
}

ShapeKey shape_of(int kind, int length) {
  ShapeKey shape;
  shape.dim_qk = shape.dim_v = kind % 2 == 0 ? 64 : 128;
  shape.group = 1 + kind % 5;
  shape.density = kind / 10 % 5;
  shape.heads = kind / 10;
  shape.queries = 4 + 2 * (length % 10);
  shape.keys = 4 + 5 * (length / 10);
  return shape;
}

Entry entry_of(int kind, int length) {
  Entry entry;
  entry.shape = shape_of(kind, length);
  entry.config = entry.default_config = attention::parse_config("mma m64 n64 w4 s2").value();
  entry.revision = entry.default_revision = entry.config.family->revision;
  entry.complete = true;
  entry.time = 90'000 + kind;
  entry.default_time = 100'000;
  entry.ratio_low_ppm = 890'000;
  entry.ratio_high_ppm = 910'000;
  entry.rounds = 25;
  entry.candidates = 40;
  entry.origin.pattern = "causal";
  return entry;
}

// The file of a pack with all entries, in a folder of this run.
class PackFile {
 public:
  PackFile() {
    char name[] = "/tmp/annulus_tuned_bench_XXXXXX";
    if (mkdtemp(name) == nullptr) base::fail(ErrorCode::kFile, "cannot make a folder in /tmp");
    folder_ = name;
    std::vector<autotune::PackedEntry> entries;
    for (int kind = 0; kind < kKinds; ++kind) {
      for (int length = 0; length < kLengths; ++length) {
        entries.push_back({a_device().identity, entry_of(kind, length)});
      }
    }
    pack = autotune::merged(std::move(entries));
    base::FileSystem files;
    const std::string text = autotune::encode_pack(pack);
    base::write_file_atomically(files, path(), std::as_bytes(std::span(text)), 0600);
  }
  ~PackFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  PackFile(const PackFile&) = delete;
  PackFile& operator=(const PackFile&) = delete;
  std::string path() const { return folder_ + "/all.pack"; }

  autotune::Pack pack;

 private:
  std::string folder_;
};

TunedStore open(const std::string& path) {
  autotune::StoreOptions options;
  options.folders = {path};
  options.device = a_device();
  options.limits = {{80, '\0'}, 132, 166912};
  return TunedStore(options);
}

// Microseconds of a look-up. `expected`: the distance of what must be found; -1: nothing.
double look_up(TunedStore& store, const std::vector<ShapeKey>& shapes, int expected) {
  constexpr int kTimes = 20'000;
  const double start = bench::thread_seconds();
  int wrong = 0;
  for (int i = 0; i < kTimes; ++i) {
    const auto found = store.find(shapes[static_cast<std::size_t>(i) % shapes.size()]);
    wrong += (found ? found->distance : -1) != expected;
  }
  const double micros = (bench::thread_seconds() - start) * 1e6 / kTimes;
  if (wrong != 0) base::fail(ErrorCode::kInternal, "{} look-ups are wrong", wrong);
  return micros;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("tuned_bench", argc, argv);
  const PackFile file;
  TunedStore store = open(file.path());
  if (store.empty()) base::fail(ErrorCode::kInternal, "the pack is not read");
  base::Random random(1);
  std::vector<ShapeKey> hits, near, missed, other;
  for (int i = 0; i < 1000; ++i) {
    hits.push_back(
        shape_of(static_cast<int>(random.below(kKinds)), static_cast<int>(random.below(kLengths))));
    near.push_back(hits.back());
    near.back().queries += 1;
    missed.push_back(hits.back());
    missed.back().queries += 60;
    other.push_back(hits.back());
    other.back().carry_in = true;
  }
  const auto add = [&](const char* name, const std::vector<ShapeKey>& shapes, int expected) {
    bench.add({.name = name, .unit = "us", .bar = 1, .lower_is_better = true},
              [&store, shapes, expected] { return look_up(store, shapes, expected); });
  };
  add("look-up among 5000 results: the same kind and lengths", hits, 0);
  add("look-up among 5000 results: the nearest lengths", near, 1);
  add("look-up among 5000 results: no such lengths", missed, -1);
  add("look-up among 5000 results: no such kind", other, -1);
  bench.add({.name = "reading a pack of 5000 results, once for a device",
             .unit = "ms",
             .lower_is_better = true},
            [&] {
              const double start = bench::thread_seconds();
              if (open(file.path()).empty()) base::fail(ErrorCode::kInternal, "nothing is read");
              return (bench::thread_seconds() - start) * 1e3;
            });
  bench.add(
      {.name = "the same of 5000 results of another device", .unit = "ms", .lower_is_better = true},
      [&] {
        autotune::StoreOptions options;
        options.folders = {file.path()};
        options.device = a_device();
        options.device.identity = "another GPU, measured";
        const double start = bench::thread_seconds();
        if (!TunedStore(options).empty()) base::fail(ErrorCode::kInternal, "one is read");
        return (bench::thread_seconds() - start) * 1e3;
      });
  bench.add({.name = "merging two packs of 5000 results", .unit = "ms", .lower_is_better = true},
            [&] {
              std::vector<autotune::PackedEntry> both = file.pack;
              both.insert(both.end(), file.pack.begin(), file.pack.end());
              const double start = bench::thread_seconds();
              if (autotune::merged(std::move(both)) != file.pack) {
                base::fail(ErrorCode::kInternal, "another pack came out");
              }
              return (bench::thread_seconds() - start) * 1e3;
            });
  return bench.run();
}
