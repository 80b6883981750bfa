// Measures the use of existing tuned results: look-ups among thousands of them, the time that the
// first plan of a process takes to read a pack, and merging packs. No device is opened here. A plan
// that uses a tuned result compiles no more than other plans, which tests/autotune/tune_test.cc
// checks.

#include <cstdint>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/files.h"
#include "base/random.h"
#include "harness.h"
#include "support/faulty_files.h"
#include "tuned/sample_entry.h"
#include "tuned/store.h"
#include "tuned/tuned_pack.h"

namespace {

using namespace annulus;
using tuned::Entry;
using tuned::ShapeKey;
using tuned::TunedStore;

// 100 kinds of problems, each with 50 pairs of lengths.
constexpr int kKinds = 100, kLengths = 50;
constexpr int kEntries = kKinds * kLengths;

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
  Entry entry = test::sample_entry(0);
  entry.shape = shape_of(kind, length);
  entry.time = 90'000 + kind;
  return entry;
}

// The file of a pack with all entries, in a folder of this process.
class PackFile {
 public:
  PackFile() {
    std::vector<tuned::PackedEntry> entries;
    for (int kind = 0; kind < kKinds; ++kind) {
      for (int length = 0; length < kLengths; ++length) {
        entries.push_back({test::sample_device().identity, entry_of(kind, length)});
      }
    }
    pack = tuned::merged(std::move(entries));
    base::FileSystem files;
    tuned::write_pack(files, path(), pack);
  }
  std::string path() const { return folder_ / "all.pack"; }

  tuned::Pack pack;

 private:
  test::ScratchFolder folder_;
};

// The microseconds of a look-up. `expected` is the distance of the result that must be found, or -1
// if nothing must be found.
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
  TunedStore store(test::store_options({file.path()}));
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
              if (TunedStore(test::store_options({file.path()})).empty())
                base::fail(ErrorCode::kInternal, "nothing is read");
              return (bench::thread_seconds() - start) * 1e3;
            });
  bench.add(
      {.name = "the same of 5000 results of another device", .unit = "ms", .lower_is_better = true},
      [&] {
        tuned::StoreOptions options = test::store_options({file.path()});
        options.device.identity = "another GPU, measured";
        const double start = bench::thread_seconds();
        if (!TunedStore(options).empty()) base::fail(ErrorCode::kInternal, "one is read");
        return (bench::thread_seconds() - start) * 1e3;
      });
  bench.add({.name = "merging two packs of 5000 results", .unit = "ms", .lower_is_better = true},
            [&] {
              std::vector<tuned::PackedEntry> both = file.pack;
              both.insert(both.end(), file.pack.begin(), file.pack.end());
              const double start = bench::thread_seconds();
              if (tuned::merged(std::move(both)) != file.pack) {
                base::fail(ErrorCode::kInternal, "another pack came out");
              }
              return (bench::thread_seconds() - start) * 1e3;
            });
  return bench.run();
}
