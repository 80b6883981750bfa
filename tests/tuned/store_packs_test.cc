// Packs on a search path, and results of related chips and of other revisions.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/faulty_files.h"
#include "tuned/listing.h"
#include "tuned/sample_entry.h"
#include "tuned/store.h"

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

PackedEntry packed(int number, std::int64_t time = 1000,
                   const std::string& device = sample_device().identity) {
  PackedEntry made{device, sample_entry(number)};
  made.entry.time = time;
  return made;
}

// Writes a file that only its owner may write, like all files here.
void write_pack(const std::string& path, std::vector<PackedEntry> entries) {
  write(path, encode_pack(merged(std::move(entries))));
  REQUIRE(chmod(path.c_str(), 0644) == 0);
}

std::int64_t time_of(TunedStore& store, int number) {
  const auto found = store.find_exact(sample_entry(number).shape);
  return found ? found->entry.time : -1;
}

TEST_CASE("a pack is read where it lies, behind the single files of its folder") {
  ScratchFolder scratch;
  fs::create_directory(scratch / "user");
  fs::create_directory(scratch / "site");
  fs::permissions(scratch / "user", fs::perms::owner_all);
  fs::permissions(scratch / "site", fs::perms::owner_all);
  TunedStore(store_options({scratch / "user"})).store(sample_entry(1), false);
  write_pack(scratch / "user/a.pack", {packed(1), packed(2), packed(3)});
  write_pack(scratch / "user/b.pack", {packed(3, 2000)});
  write_pack(scratch / "site/c.pack", {packed(2, 3000), packed(4, 3000), packed(5, 3000, "x")});
  write_pack(scratch / "site/d.pack", {packed(4, 4000)});
  Notes notes;
  TunedStore store(store_options({scratch / "user", scratch / "site/c.pack"}), notes.log());
  CHECK(time_of(store, 1) == sample_entry(1).time);
  CHECK(time_of(store, 2) == 1000);
  CHECK(store.find_exact(sample_entry(2).shape)->path == scratch / "user/a.pack");
  CHECK(time_of(store, 3) > 0);
  CHECK(time_of(store, 4) == 3000);  // the path names one pack of that folder
  CHECK(time_of(store, 5) == -1);
  CHECK(notes.lines.empty());
  // Results are stored in the first folder, and a pack is not a folder.
  TunedStore behind(store_options({scratch / "site/c.pack", scratch / "user"}));
  CHECK(behind.store(sample_entry(6), false).path == path_of(scratch / "user", 6));
  CHECK(time_of(behind, 2) == 3000);
  std::string problem;
  TunedStore alone(store_options({scratch / "site/c.pack"}));
  CHECK_FALSE(alone.writable_folder(&problem));
  CHECK_FALSE(problem.empty());
  CHECK(alone.store(sample_entry(7), false).outcome == TunedStore::Outcome::kFailed);

  base::FileSystem files;
  const Listing listing = list_entries(files, {scratch / "user", scratch / "site/c.pack"});
  CHECK(listing.entries.size() == 8);
  CHECK(std::ranges::count_if(listing.entries, [](const auto& each) { return each.packed; }) == 6);
  CHECK(listing.ignored.size() == 1);
}

TEST_CASE("what was shipped comes last and is never written") {
  ScratchFolder scratch;
  fs::create_directory(scratch / "shipped");
  fs::permissions(scratch / "shipped", fs::perms::owner_all);
  write_pack(scratch / "shipped/x.pack", {packed(1), packed(2)});
  TunedStore(store_options({scratch / "user"})).store(sample_entry(1), false);
  StoreOptions options = store_options({scratch / "user"});
  options.shipped = {scratch / "shipped"};
  TunedStore store(options);
  CHECK(time_of(store, 1) == sample_entry(1).time);
  CHECK(time_of(store, 2) == 1000);
  options.folders.clear();
  TunedStore shipped_alone(options);
  CHECK(time_of(shipped_alone, 1) == 1000);
  CHECK(shipped_alone.store(sample_entry(3), false).path.empty());
  CHECK(std::distance(fs::directory_iterator(scratch / "shipped"), fs::directory_iterator()) == 1);
}

TEST_CASE("a pack that cannot be trusted or read is ignored with one line") {
  ScratchFolder scratch;
  const std::string above = scratch / "t";
  TunedStore(store_options({above})).store(sample_entry(2), false);
  const std::string path = above + "/a.pack";
  const auto ignored = [&](const std::string& part) {
    CAPTURE(part);
    Notes notes;
    TunedStore store(store_options({above}), notes.log());
    CHECK(time_of(store, 1) == -1);
    CHECK(time_of(store, 2) == sample_entry(2).time);
    REQUIRE(notes.lines.size() == 1);
    CHECK_MESSAGE(notes.lines[0].find(part) != std::string::npos, notes.lines[0]);
    base::FileSystem files;
    const Listing listing = list_entries(files, {above});
    CHECK(listing.entries.size() == 1);
    CHECK(listing.ignored.size() == 1);
  };
  write_pack(path, {packed(1)});
  CHECK_FALSE(TunedStore(store_options({above})).find_exact(sample_entry(1).shape) == std::nullopt);
  REQUIRE(chmod(path.c_str(), 0666) == 0);
  ignored("others may write");
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  const std::string whole = encode_pack({packed(1)});
  write(path, whole.substr(0, whole.size() - 1));
  ignored("digest");
  write(path, "annulus-tuned-pack 5 " + whole.substr(21));
  ignored("a newer library");
  write(path, "#!/bin/sh\n");
  ignored("not a pack");
  fs::remove(path);
  write_pack(scratch / "elsewhere", {packed(1)});
  fs::create_symlink(scratch / "elsewhere", path);
  ignored("a.pack");
  fs::remove(path);
  fs::create_directory(path);
  ignored("a.pack");
}

// The device of a related chip, and a store of the other chip.
struct Relatives {
  Relatives() {
    info.name = "NVIDIA A100-SXM4-40GB";
    info.multiprocessors = 108;
    info.memory_bytes = std::int64_t{40} << 30;
    info.l2_bytes = std::int64_t{40} << 20;
    first = device_key(info, "sm_80");
    info.name = "NVIDIA A100-SXM4-80GB";
    info.memory_bytes *= 2;
    second = device_key(info, "sm_80");
    info.name = "NVIDIA A100 80GB PCIe";
    other = device_key(info, "sm_80");
  }
  device::DeviceInfo info;
  DeviceKey first, second, other;
};

TEST_CASE("a relative's results stand in where the device has none of its own") {
  const Relatives of;
  for (const bool in_pack : {false, true}) {
    CAPTURE(in_pack);
    ScratchFolder scratch;
    const std::string above = scratch / "t";
    Entry exact = sample_entry(10), longer = sample_entry(10), foreign = sample_entry(12);
    longer.shape.queries += 2;
    longer.time = 7;
    TunedStore(store_options({above}, of.other)).store(foreign, false);
    if (in_pack) {
      write_pack(above + "/a.pack", {{of.first.identity, exact}, {of.other.identity, foreign}});
    } else {
      TunedStore(store_options({above}, of.first)).store(exact, false);
    }
    Notes notes;
    TunedStore store(store_options({above}, of.second), notes.log());
    CHECK_FALSE(store.empty());
    const auto found = store.find(exact.shape);
    REQUIRE(found);
    CHECK(found->relative == "NVIDIA A100-SXM4-40GB");
    CHECK(found->entry == exact);
    CHECK(found->distance == 0);
    CHECK_FALSE(store.find_exact(exact.shape));  // none of its own
    CHECK_FALSE(store.find(foreign.shape));      // PCIe has another clock rate under load
    CHECK(store.find(longer.shape)->distance == 2);
    // A chip's own result is preferred, even if the related chip's result is nearer.
    store.store(longer, false);
    CHECK(store.find(longer.shape)->relative.empty());
    CHECK(store.find(exact.shape)->entry == longer);
    store.forget(*store.find(exact.shape));
    CHECK(store.find(exact.shape)->entry == exact);
    store.forget(*store.find(exact.shape));
    CHECK_FALSE(store.find(exact.shape));
    CHECK(notes.lines.empty());
  }
}

TEST_CASE("results of other revisions are left alone, and none of them is overwritten") {
  ScratchFolder scratch;
  const std::string above = scratch / "t";
  Entry before = sample_entry(1);
  before.revision -= 1;
  before.default_revision -= 1;
  TunedStore(store_options({above})).store(sample_entry(2), false);
  const std::string of_before = folder_of(above) + "/" + entry_name(before) + ".tuned";
  write(of_before, text_of(before));
  Notes notes;
  TunedStore store(store_options({above}), notes.log());
  CHECK_FALSE(store.find_exact(before.shape));
  CHECK(notes.lines.empty());
  CHECK_FALSE(is_of_newer_kernels(before));
  Entry later = sample_entry(1);
  later.revision += 1;
  CHECK(is_of_newer_kernels(later));
  CHECK_FALSE(why_outdated(later).empty());
  CHECK(store.store(sample_entry(1), false).outcome == TunedStore::Outcome::kStored);
  CHECK(fs::exists(of_before));
  CHECK(has(above, 1));
  // An entry that was compared with the choice of another family, whose revision has changed.
  Entry of_two = sample_entry(3);
  of_two.default_config = *attention::parse_config("wgmma m64 n64 w4 s2 q b2");
  of_two.default_revision = 1;
  CHECK(why_outdated(of_two).find("revision 1 of the wgmma kernels") != std::string::npos);
}

TEST_CASE("a result of another family's kernels has a file of its own, and the better one serves") {
  ScratchFolder scratch;
  const std::string above = scratch / "t";
  Entry first = sample_entry(1), second = sample_entry(1);
  second.default_config = *attention::parse_config("wgmma m64 n64 w4 s2 q b2");
  second.default_revision = second.default_config.family->revision;
  second.ratio_high_ppm = second.ratio_low_ppm = 990'000;
  CHECK(entry_name(first) != entry_name(second));
  TunedStore store(store_options({above}));
  store.store(first, false);
  CHECK(store.store(second, false).outcome == TunedStore::Outcome::kKept);
  CHECK(store.find_exact(first.shape)->entry == first);
  const auto forced = store.store(second, true);
  CHECK(forced.outcome == TunedStore::Outcome::kStored);
  CHECK_FALSE(fs::exists(path_of(above, 1)));
  TunedStore after(store_options({above}));
  CHECK(after.find_exact(first.shape)->entry == second);
  CHECK(after.store(first, false).outcome == TunedStore::Outcome::kStored);
  TunedStore both(store_options({above}));
  CHECK(both.find_exact(first.shape)->entry == first);
}

}  // namespace
}  // namespace annulus::tuned
