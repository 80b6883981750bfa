#ifndef ANNULUS_TESTS_TUNED_SAMPLE_ENTRY_H_
#define ANNULUS_TESTS_TUNED_SAMPLE_ENTRY_H_

// Entries and a device for tests of the store. The entries were not measured.

#include <fstream>
#include <string>
#include <vector>

#include "attention/kernels/family.h"
#include "attention/kernels/mma/config.h"
#include "tuned/store.h"
#include "tuned/tuned_pack.h"

namespace annulus::test {

inline tuned::DeviceKey sample_device(const std::string& name = "a GPU", bool simulated = false) {
  device::DeviceInfo info;
  info.name = name;
  info.multiprocessors = 108;
  info.memory_bytes = std::int64_t{80} << 30;
  info.l2_bytes = std::int64_t{40} << 20;
  info.simulated = simulated;
  return tuned::device_key(info, "sm_80");
}

// An entry. Each number below 50 has a different shape.
inline tuned::Entry sample_entry(int number) {
  tuned::Entry entry;
  entry.shape.dim_qk = entry.shape.dim_v = 64;
  entry.shape.group = 1 + number % 4;
  entry.shape.queries = 10 + 2 * number;
  entry.shape.keys = 20;
  entry.config = attention::MmaConfig{128, 64, 4, 2, false, 2};
  entry.default_config = attention::MmaConfig{64, 64, 4, 2, false, 2};
  entry.revision = entry.default_revision = entry.config.family->revision;
  entry.complete = true;
  entry.time = 90'000 + number;
  entry.default_time = 100'000;
  entry.ratio_low_ppm = 890'000;
  entry.ratio_high_ppm = 910'000;
  entry.other_ratio_ppm = 950'000;
  entry.rounds = 25;
  entry.repeated_rounds = 3;
  entry.candidates = 40;
  entry.runner_up = attention::MmaConfig{64, 64, 4, 2, true, 3};
  entry.origin = {.library_version = 100,
                  .driver_version = 13000,
                  .nvrtc_version = 13000,
                  .clock_mhz = 1410,
                  .memory_clock_mhz = 1593,
                  .when = 1'700'000'000,
                  .batch = 1,
                  .heads = 8,
                  .kv_heads = 8,
                  .seq_q = 4096,
                  .seq_k = 4096,
                  .pattern = "dense",
                  .score = ""};
  return entry;
}

inline tuned::StoreOptions store_options(const std::vector<std::string>& folders,
                                         const tuned::DeviceKey& device = sample_device()) {
  tuned::StoreOptions options;
  options.folders = folders;
  options.device = device;
  options.driver_version = 13000;
  options.limits = {{80, '\0'}, 108, 166912};
  return options;
}

// Collects the log.
struct Notes {
  std::vector<std::string> lines;
  base::Log log() {
    return base::Log([this](base::LogLevel, std::string_view text) { lines.emplace_back(text); });
  }
};

// The folder below `above` where a store keeps the entries of a device. path_of() is the file of an
// entry.
inline std::string folder_of(const std::string& above,
                             const tuned::DeviceKey& device = sample_device()) {
  return above + "/" + device.folder;
}

inline std::string path_of(const std::string& above, int number) {
  return folder_of(above) + "/" + tuned::entry_name(sample_entry(number)) + ".tuned";
}

// Writes a file.
inline void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// The text of an entry's file.
inline std::string text_of(const tuned::Entry& entry,
                           const std::string& device = sample_device().identity) {
  const auto bytes = tuned::encode_entry(entry, device);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whether a new store finds that entry.
inline bool has(const std::string& above, int number) {
  tuned::TunedStore store(store_options({above}));
  const auto found = store.find_exact(sample_entry(number).shape);
  return found && found->entry == sample_entry(number);
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_TUNED_SAMPLE_ENTRY_H_
