#include "tuned/store.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/faulty_files.h"
#include "tuned/listing.h"
#include "tuned/sample_entry.h"

namespace annulus::tuned {
namespace {

namespace fs = std::filesystem;
using test::folder_of;
using test::has;
using test::Notes;
using test::path_of;
using test::sample_device;
using test::sample_entry;
using test::ScratchFolder;
using test::store_options;
using test::text_of;
using test::write;

TEST_CASE("a search path is split at colons, once each") {
  CHECK(split_path("").empty());
  CHECK(split_path(":::").empty());
  CHECK(split_path("/a:/b/:/a::/") == std::vector<std::string>{"/a", "/b", "/"});
}

TEST_CASE("the chip is in the folder's name, and no driver, clock or NVRTC is") {
  const DeviceKey key = sample_device();
  CHECK(key.folder.starts_with("sm_80-108-"));
  CHECK(key.identity == "a GPU, sm_80, 108 multiprocessors, 80 GB, L2 40 MB, measured");
  CHECK(folder_stem(key) == "sm_80-108-");
  CHECK(name_in(key.identity) == "a GPU");
  CHECK(sample_device("another GPU").folder != key.folder);
  CHECK(sample_device("a GPU", true).folder.starts_with("sim-sm_80-108-"));
  CHECK(sample_device("x\n\x1b[31m/../y").identity.starts_with("x??[31m/../y, sm_80"));
  CHECK(sample_device("x\n\x1b[31m/../y").folder.find("..") == std::string::npos);
  device::DeviceInfo info;
  info.memory_bytes = std::int64_t{80} << 30;
  const std::string whole = device_key(info, "sm_80").folder;
  info.clock_kilohertz = info.memory_clock_kilohertz = 1000;
  CHECK(device_key(info, "sm_80").folder == whole);
  info.memory_bytes -= 900 << 20;  // another driver may reserve memory
  CHECK(device_key(info, "sm_80").folder == whole);
  CHECK(device_key(info, "sm_80", base::digest("own")).folder != whole);
  CHECK(device_key(info, "sm_80", base::digest("own"))
            .identity.ends_with(", templates " + base::digest("own").hex() + ", measured"));
  info.memory_bytes /= 2;
  CHECK(device_key(info, "sm_80").folder != whole);
}

TEST_CASE("why a result is of another device names what differs") {
  const std::string here = sample_device().identity;
  CHECK(why_other(here, here).empty());
  device::DeviceInfo info;
  info.name = "a GPU";
  info.multiprocessors = 108;
  info.memory_bytes = std::int64_t{40} << 30;
  info.l2_bytes = std::int64_t{50} << 20;
  CHECK(why_other(device_key(info, "sm_80").identity, here) ==
        "it is of another device: 40 GB, not 80 GB; L2 50 MB, not L2 40 MB");
  // One of the two states no memory size.
  CHECK(why_other(sample_device("a GPU", true).identity, here)
            .starts_with("it is of another device"));
}

TEST_CASE("chips that differ in memory alone are relatives, and nothing else is") {
  const auto identity = [](const char* name, int gigabytes, int l2, int multiprocessors,
                           const char* arch, bool simulated = false) {
    device::DeviceInfo info;
    info.name = name;
    info.multiprocessors = multiprocessors;
    info.memory_bytes = std::int64_t{gigabytes} << 30;
    info.l2_bytes = std::int64_t{l2} << 20;
    info.simulated = simulated;
    return device_key(info, arch).identity;
  };
  const std::string h100 = identity("NVIDIA H100 80GB HBM3", 80, 50, 132, "sm_90a");
  const std::string h200 = identity("NVIDIA H200", 140, 60, 132, "sm_90a");
  CHECK(are_relatives(h100, h200));
  CHECK(are_relatives(h200, h100));
  CHECK_FALSE(are_relatives(h200, h200));
  CHECK_FALSE(are_relatives(identity("NVIDIA H100 80GB HBM3", 80, 50, 66, "sm_90a"), h200));
  CHECK_FALSE(are_relatives(identity("NVIDIA H100 80GB HBM3", 80, 50, 132, "sm_90"), h200));
  CHECK_FALSE(are_relatives(identity("NVIDIA H100 PCIe", 80, 50, 132, "sm_90a"), h200));
  CHECK(are_relatives(identity("NVIDIA A100-SXM4-40GB", 40, 40, 108, "sm_80"),
                      identity("NVIDIA A100-SXM4-80GB", 80, 40, 108, "sm_80")));
  CHECK_FALSE(are_relatives("", h200));
  CHECK_FALSE(are_relatives(identity("NVIDIA H200", 140, 60, 132, "sm_90a", true), h100));
}

TEST_CASE("what is stored is found, also by another store, and others are not") {
  ScratchFolder scratch;
  const std::string above = scratch / "deep/er/tuned";
  TunedStore store(store_options({above}));
  CHECK(store.empty());
  const auto stored = store.store(sample_entry(1), false);
  CHECK(stored.outcome == TunedStore::Outcome::kStored);
  CHECK(stored.path == path_of(above, 1));
  CHECK_FALSE(store.empty());
  CHECK(store.find_exact(sample_entry(1).shape)->entry == sample_entry(1));
  CHECK(store.find_exact(sample_entry(1).shape)->path == stored.path);
  CHECK_FALSE(store.find_exact(sample_entry(2).shape));
  CHECK(has(above, 1));
  struct stat found;
  REQUIRE(stat(folder_of(above).c_str(), &found) == 0);
  CHECK((found.st_mode & 07777u) == 0700);
  REQUIRE(stat(stored.path.c_str(), &found) == 0);
  CHECK((found.st_mode & 07777u) == 0600);
  TunedStore other(store_options({above}, sample_device("another GPU")));
  CHECK(other.empty());
}

TEST_CASE("the nearest length serves where there is no exact one, and nothing else does") {
  ScratchFolder scratch;
  TunedStore store(store_options({scratch / "t"}));
  const auto put = [&](int queries, int keys) {
    Entry entry = sample_entry(0);
    entry.shape.queries = queries;
    entry.shape.keys = keys;
    store.store(entry, false);
  };
  const auto nearest = [&](int queries, int keys) -> std::pair<int, int> {
    ShapeKey shape = sample_entry(0).shape;
    shape.queries = queries;
    shape.keys = keys;
    const auto found = store.find(shape);
    if (!found) return {-1, -1};
    CHECK(found->distance == length_distance(shape, found->entry.shape));
    return {found->entry.shape.queries, found->entry.shape.keys};
  };
  put(10, 20);
  put(16, 20);
  put(10, 26);
  CHECK(nearest(10, 20) == std::pair(10, 20));
  CHECK(nearest(12, 20) == std::pair(10, 20));
  CHECK(nearest(14, 20) == std::pair(16, 20));
  CHECK(nearest(13, 20) == std::pair(16, 20));  // 16 and 10 are equally far, so the longer one
  CHECK(nearest(10, 23) == std::pair(10, 26));  // the same in the other dimension
  CHECK(nearest(12, 22) == std::pair(10, 20));
  CHECK(nearest(11, 24) == std::pair(10, 26));
  CHECK(nearest(20, 20) == std::pair(16, 20));
  CHECK(nearest(21, 20) == std::pair(-1, -1));
  ShapeKey other = sample_entry(0).shape;
  other.heads = 1;
  CHECK_FALSE(store.find(other));
}

TEST_CASE(
    "earlier folders of the path go before later ones, and the first writable one is written") {
  ScratchFolder scratch;
  Entry site = sample_entry(1), user = sample_entry(1);
  site.time = 1;
  user.time = 2;
  TunedStore(store_options({scratch / "site"})).store(site, false);
  TunedStore(store_options({scratch / "site"})).store(sample_entry(2), false);
  TunedStore(store_options({scratch / "user"})).store(user, false);
  TunedStore both(store_options({scratch / "user", scratch / "site"}));
  CHECK(both.find_exact(user.shape)->entry.time == 2);
  CHECK(both.find_exact(sample_entry(2).shape));
  CHECK(both.store(sample_entry(3), false).path == path_of(scratch / "user", 3));

  // A folder in which nothing can be made is passed over.
  class NothingHere : public base::FileSystem {
   public:
    explicit NothingHere(std::string path) : path_(std::move(path)) {}
    int make_folder(const std::string& path, unsigned mode) override {
      return path.starts_with(path_) ? -EROFS : FileSystem::make_folder(path, mode);
    }

   private:
    std::string path_;
  };
  Notes notes;
  TunedStore second(store_options({scratch / "readonly", scratch / "user"}), notes.log(),
                    std::make_shared<NothingHere>(scratch / "readonly"));
  CHECK(second.store(sample_entry(4), false).path == path_of(scratch / "user", 4));
  CHECK(notes.lines.empty());
  std::string problem;
  TunedStore none(store_options({scratch / "readonly"}), notes.log(),
                  std::make_shared<NothingHere>(scratch / "readonly"));
  CHECK_FALSE(none.writable_folder(&problem));
  CHECK(problem.find("Read-only file system") != std::string::npos);
}

TEST_CASE("of one shape the better entry stays, unless it is to be replaced") {
  ScratchFolder scratch;
  TunedStore first(store_options({scratch / "t"}));
  TunedStore second(store_options({scratch / "t"}));
  Entry good = sample_entry(1), poor = sample_entry(1);
  poor.ratio_low_ppm = poor.ratio_high_ppm = 990'000;
  CHECK(second.empty());  // it has read the folder before anything was there
  CHECK(first.store(good, false).outcome == TunedStore::Outcome::kStored);
  CHECK(second.store(poor, false).outcome == TunedStore::Outcome::kKept);
  CHECK(second.find_exact(good.shape)->entry == good);
  CHECK(first.store(poor, true).outcome == TunedStore::Outcome::kStored);
  CHECK(first.find_exact(good.shape)->entry == poor);
  CHECK(second.store(good, false).outcome == TunedStore::Outcome::kStored);
  TunedStore after(store_options({scratch / "t"}));
  CHECK(after.find_exact(good.shape)->entry == good);
}

// A folder has one wrong entry. Lookups leave it out, and report this in one line. The other
// entries are used, and storing the shape anew repairs the wrong one.
void ignored_once(const std::string& above, int number, const std::string& part) {
  CAPTURE(part);
  Notes notes;
  TunedStore store(store_options({above}), notes.log());
  CHECK_FALSE(store.find_exact(sample_entry(number).shape));
  CHECK_FALSE(store.find_exact(sample_entry(number).shape));
  CHECK(store.find_exact(sample_entry(2).shape));
  CHECK_FALSE(store.empty());
  REQUIRE(notes.lines.size() == 1);
  CHECK_MESSAGE(notes.lines[0].find(part) != std::string::npos, notes.lines[0]);
}

TEST_CASE("an entry that is damaged, foreign, old or outside the space is ignored with one line") {
  ScratchFolder scratch;
  const std::string above = scratch / "t";
  {
    TunedStore store(store_options({above}));
    store.store(sample_entry(1), false);
    store.store(sample_entry(2), false);
  }
  const std::string path = path_of(above, 1);
  const std::string whole = text_of(sample_entry(1));
  base::FileSystem files;
  for (std::size_t i = 0; i < whole.size(); i += i < 60 ? 1 : 13) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    write(path, damaged);
    ignored_once(above, 1, i < 14 ? "not a tuned entry" : i < 16 ? "schema" : "digest");
  }
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{15}, whole.size() / 2, whole.size() - 1}) {
    write(path, whole.substr(0, size));
    ignored_once(above, 1, "it");
  }
  write(path, whole + std::string(70'000, ' '));
  ignored_once(above, 1, "File too large");
  write(path, text_of(sample_entry(1), sample_device("another GPU").identity));
  ignored_once(above, 1, "another device");
  write(path, text_of(sample_entry(3)));
  ignored_once(above, 1, "name does not match its shape");
  Entry wrong = sample_entry(1);
  wrong.predicted = true;
  write(path, text_of(wrong));
  ignored_once(above, 1, "a prediction, and this device is real");
  for (const auto& [config, part] : std::vector<std::pair<attention::MmaConfig, std::string>>{
           {{64, 64, 4, 4, false, 9}, "9 resident"},
           {{64, 128, 4, 4, false, 8}, "leave each thread"},
           {{1024, 64, 4, 2, false, 1}, "1024 rows"},
           {{64, 1000, 4, 2, false, 1}, "1000 columns"},
           {{512, 64, 16, 2, false, 1}, "16 warps"},
           {{256, 128, 8, 16, false, 1}, "16 stages"}}) {
    wrong = sample_entry(1);
    wrong.config = config;
    write(path, text_of(wrong));
    ignored_once(above, 1, part);
  }
  wrong = sample_entry(1);
  // No kernels have this head dim; only that is wrong, because the file's name fits.
  wrong.shape.dim_qk = 80;
  const std::string odd = folder_of(above) + "/" + entry_name(wrong) + ".tuned";
  write(path, whole);
  write(odd, text_of(wrong));
  Notes notes;
  TunedStore store(store_options({above}), notes.log());
  CHECK_FALSE(store.find_exact(wrong.shape));
  CHECK(store.find_exact(sample_entry(1).shape));
  REQUIRE(notes.lines.size() == 1);
  CHECK(notes.lines[0].find("head dims 80/64") != std::string::npos);
}

TEST_CASE("something else in the place of an entry is ignored, and repaired where it can be") {
  ScratchFolder scratch;
  const ScratchFolder elsewhere;
  const std::string above = scratch / "t";
  {
    TunedStore store(store_options({above}));
    store.store(sample_entry(2), false);
  }
  const std::string path = path_of(above, 1);
  const auto repaired = [&](bool expected) {
    ignored_once(above, 1, "cannot");
    Notes notes;
    TunedStore store(store_options({above}), notes.log());
    const auto stored = store.store(sample_entry(1), false);
    CHECK((stored.outcome == TunedStore::Outcome::kStored) == expected);
    CHECK(store.find_exact(sample_entry(1).shape));  // memory keeps it in any case
    CHECK(has(above, 1) == expected);
    if (expected) fs::remove(path);
  };
  write(elsewhere / "entry", text_of(sample_entry(1)));
  fs::create_symlink(elsewhere / "entry", path);
  repaired(true);
  CHECK(fs::exists(elsewhere / "entry"));
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  repaired(true);
  fs::create_directories(path + "/x");
  repaired(false);
  CHECK(fs::is_directory(path));
}

TEST_CASE("the listing shows every device's entries and names what is not used") {
  ScratchFolder scratch;
  const std::string above = scratch / "t";
  TunedStore(store_options({above})).store(sample_entry(1), false);
  TunedStore(store_options({above})).store(sample_entry(2), false);
  TunedStore(store_options({above}, sample_device("another GPU"))).store(sample_entry(3), false);
  write(path_of(above, 4), "annulus-tuned 7 later\n");
  write(above + "/stray", "x");
  base::FileSystem files;
  const Listing listing = list_entries(files, {above, scratch / "nowhere"});
  REQUIRE(listing.entries.size() == 3);
  int foreign = 0;
  for (const ListedEntry& each : listing.entries) {
    foreign += each.device != sample_device().identity;
    CHECK(fs::exists(each.path));
  }
  CHECK(foreign == 1);
  CHECK(listing.ignored.size() == 2);
}

}  // namespace
}  // namespace annulus::tuned
