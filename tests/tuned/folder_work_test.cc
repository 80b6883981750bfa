// Work with folders of entries: listing them, importing packs, and removing single files.

#include "tuned/folder_work.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "annulus/types.h"
#include "support/faulty_files.h"
#include "tuned/listing.h"
#include "tuned/opened.h"
#include "tuned/sample_entry.h"

namespace annulus::tuned {
namespace {

using test::folder_of;
using test::path_of;
using test::sample_device;
using test::sample_entry;
using test::ScratchFolder;
using test::store_options;
using test::text_of;

void store(const std::string& above, int number) {
  TunedStore(store_options({above})).store(sample_entry(number), false);
}

// The text of an error of this code that the call throws.
template <typename Call>
std::string refusal(ErrorCode code, Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("nothing is thrown");
  return {};
}

// A file of this schema with a right digest, in which `from` is replaced in the JSON.
std::string changed(const Entry& entry, const std::string& from, const std::string& to) {
  const std::string text = text_of(entry);
  const std::size_t line = text.find('\n') + 1;
  std::string body = text.substr(line);
  REQUIRE(body.find(from) != std::string::npos);
  body.replace(body.find(from), from.size(), to);
  return "annulus-tuned " + std::to_string(kEntrySchema) + " " + base::digest(body).hex() + "\n" +
         body;
}

TEST_CASE("a file is useless where it was read and no newer build reads it either") {
  const std::string whole = text_of(sample_entry(2));
  const struct {
    std::string text;
    bool useless;
  } cases[] = {
      {changed(sample_entry(2), "\"family\": \"mma\"", "\"family\": \"later\""), false},
      {changed(sample_entry(2), "\"tile_rows\": 128", "\"tile_rows\": \"many\""), false},
      {"annulus-tuned 99 later\n", false},
      {"annulus-tuned 3 old\n", true},
      {whole.substr(0, whole.size() - 1), true},
      {whole.substr(1), true},
      {"", true},
      {whole, true},  // its name belongs to another entry
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    const ScratchFolder scratch;
    store(scratch / "t", 1);
    test::write(folder_of(scratch / "t") + "/0.tuned", each.text);
    base::FileSystem files;
    const Listing listing = list_entries(files, {scratch / "t"});
    CHECK(listing.entries.size() == 1);
    REQUIRE(listing.strays.size() == 1);
    CHECK(listing.strays[0].path == folder_of(scratch / "t") + "/0.tuned");
    CHECK(listing.strays[0].useless == each.useless);
  }
}

TEST_CASE("a file that could not be read is not useless, whichever call fails") {
  const ScratchFolder scratch;
  store(scratch / "t", 1);
  store(scratch / "t", 2);
  int strays = 0;
  for (const int code : {EIO, EMFILE, EACCES}) {
    for (const bool persistent : {false, true}) {
      bool reached = true;
      for (int at = 0; reached; ++at) {
        test::FaultyFiles files;
        files.fail_at = at;
        files.code = code;
        files.persistent = persistent;
        for (const Stray& stray : list_entries(files, {scratch / "t"}).strays) {
          CHECK_FALSE(stray.useless);
          ++strays;
        }
        CHECK(files.opened() == 0);
        reached = files.calls() > at;
      }
    }
  }
  CHECK(strays > 0);
  test::OthersRegularFiles others(12345, 0600);
  const Listing listing = list_entries(others, {scratch / "t"});
  REQUIRE(listing.strays.size() == 2);
  for (const Stray& stray : listing.strays) CHECK_FALSE(stray.useless);
}

TEST_CASE("a file that was stored anew since it was looked at is not removed") {
  const ScratchFolder scratch;
  const std::string path = path_of(scratch / "t", 1);
  store(scratch / "t", 1);
  base::FileSystem files;
  const Listing listing = list_entries(files, {scratch / "t"});
  REQUIRE(listing.entries.size() == 1);
  const base::Digest seen = listing.entries[0].contents;
  Entry better = sample_entry(1);
  better.ratio_high_ppm -= 100'000;
  better.ratio_low_ppm -= 100'000;
  TunedStore(store_options({scratch / "t"})).store(better, false);
  CHECK(refusal(ErrorCode::kFile, [&] { remove_file(files, path, seen); }).find("has changed") !=
        std::string::npos);
  const Listing after = list_entries(files, {scratch / "t"});
  REQUIRE(after.entries.size() == 1);
  CHECK(after.entries[0].entry == better);
  remove_file(files, path, after.entries[0].contents);
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(refusal(ErrorCode::kFile, [&] { remove_file(files, path, seen); }).find(path) !=
        std::string::npos);
}

TEST_CASE("a file is removed under its folder's lock") {
  const ScratchFolder scratch;
  const std::string path = path_of(scratch / "t", 1);
  store(scratch / "t", 1);
  base::FileSystem files;
  const base::Digest contents = list_entries(files, {scratch / "t"}).entries.at(0).contents;
  std::thread remover;
  {
    std::string problem;
    const Opened folder(files,
                        open_device_folder(files, scratch / "t", sample_device().folder, &problem));
    const Opened locked(files, open_lock(files, folder.file));
    REQUIRE(files.lock(locked.file) == 0);
    remover = std::thread([&] { remove_file(files, path, contents); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(std::filesystem::exists(path));
  }
  remover.join();
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a folder gets no more entries than are read from it, and none of a pack too many") {
  const ScratchFolder scratch;
  const DeviceKey full = sample_device("b"), other = sample_device("a");
  base::FileSystem files;
  const auto bring = [&](const std::vector<int>& numbers) {
    std::vector<PackedEntry> entries = {{other.identity, sample_entry(1)}};
    for (const int number : numbers) entries.push_back({full.identity, sample_entry(number)});
    return bring_in(files, scratch / "t", merged(std::move(entries)));
  };
  CHECK(bring({1}).size() == 2);
  std::filesystem::remove(folder_of(scratch / "t", other) + "/" + entry_name(sample_entry(1)) +
                          ".tuned");
  for (std::size_t i = 2; i < kMaxEntries; ++i) {
    test::write(folder_of(scratch / "t", full) + "/" + std::to_string(i) + ".tuned", "");
  }
  const std::string why = refusal(ErrorCode::kFile, [&] { bring({1, 2, 3}); });
  CHECK(why.find("10001 tuned results, more than the 10000") != std::string::npos);
  CHECK(why.find("use the pack itself") != std::string::npos);
  CHECK(list_entries(files, {scratch / "t"}).entries.size() == 1);  // nothing of the first device
  // The limit of entries is reached. An entry that already exists does not count again.
  CHECK(bring({1, 2}).size() == 3);
  CHECK(list_entries(files, {scratch / "t"}).entries.size() == 3);
  // With one entry more, nothing in the folder is used. But it can still be listed, so that it can
  // be pruned.
  test::write(folder_of(scratch / "t", full) + "/1.tuned", "");
  CHECK(list_entries(files, {scratch / "t"}).entries.size() == 1);
  const Listing crowded = list_entries(files, {scratch / "t"}, Crowded::kListed);
  CHECK(crowded.entries.size() == 3);
  CHECK(crowded.strays.size() == kMaxEntries - 1);
}

TEST_CASE("folders in which journals are, are named") {
  const ScratchFolder scratch;
  store(scratch / "t", 1);
  base::FileSystem files;
  CHECK(list_entries(files, {scratch / "t"}).journaled.empty());
  test::write(folder_of(scratch / "t") + "/0.journal", "");
  CHECK(list_entries(files, {scratch / "t"}).journaled ==
        std::vector<std::string>{folder_of(scratch / "t")});
}

}  // namespace
}  // namespace annulus::tuned
