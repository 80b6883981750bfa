#include "exchange/gather.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "device/buffer.h"
#include "device/stream.h"

namespace annulus::exchange {
namespace {

// Exchanges rows of equal length between all ranks. `all` is device memory [ranks][bytes] that
// contains this rank's own row.
void gather_rows(Rank& rank, const device::Buffer& all, std::size_t bytes,
                 const device::Stream& stream) {
  auto* const base = reinterpret_cast<std::byte*>(all.address());
  const auto row = [&](int number) { return base + static_cast<std::size_t>(number) * bytes; };
  std::vector<SentBytes> sends;
  std::vector<ReceivedBytes> receives;
  for (int peer = 0; peer < rank.info().ranks; ++peer) {
    if (peer == rank.info().rank) continue;
    sends.push_back({peer, row(rank.info().rank), bytes});
    receives.push_back({peer, row(peer), bytes});
  }
  rank.exchange_within(stream.handle(), sends, receives, rank.planning());
  rank.wait(stream, "the other ranks to send the sizes that they bring", rank.planning());
}

std::vector<std::byte> gather_bytes(Rank& rank, const std::vector<std::byte>& own) {
  const auto ranks = static_cast<std::size_t>(rank.info().ranks);
  const auto number = static_cast<std::size_t>(rank.info().rank);
  const device::Buffer all(rank.context(), ranks * own.size());
  const device::Stream stream(rank.context());
  device::copy_to_device(*rank.context(), all.address() + number * own.size(), own.data(),
                         own.size());
  gather_rows(rank, all, own.size(), stream);
  std::vector<std::byte> bytes(all.bytes());
  device::copy_to_host(*rank.context(), bytes.data(), all.address(), bytes.size());
  return bytes;
}

// Uses the control channel. The number of calls depends on the longest text.
std::vector<std::string> gather_over_control(Rank& rank, const std::string& own) {
  constexpr std::size_t kPiece = Rendezvous::kMaxBytes - 1;
  std::vector<std::string> texts(static_cast<std::size_t>(rank.info().ranks));
  bool more = true;
  for (std::size_t at = 0; more; at += kPiece) {
    // A byte that states whether more follows, then the piece.
    std::vector<std::byte> bytes = {std::byte{at + kPiece < own.size()}};
    if (at < own.size()) {
      const auto piece = std::as_bytes(std::span(own)).subspan(at);
      const auto taken = piece.first(std::min(piece.size(), kPiece));
      bytes.insert(bytes.end(), taken.begin(), taken.end());
    }
    more = false;
    const std::vector<std::vector<std::byte>> all = rank.all_gather(bytes);
    for (std::size_t one = 0; one < all.size(); ++one) {
      if (all[one].empty()) continue;
      more = more || all[one][0] != std::byte{0};
      texts[one].append(reinterpret_cast<const char*>(all[one].data()) + 1, all[one].size() - 1);
    }
  }
  return texts;
}

}  // namespace

std::vector<std::string> all_gather(Rank& rank, const std::string& own) {
  if (rank.info().ranks == 1) return {own};
  if (rank.control() != nullptr) return gather_over_control(rank, own);
  const auto ranks = static_cast<std::size_t>(rank.info().ranks);
  std::vector<std::byte> row(sizeof(std::uint64_t));
  const std::uint64_t length = own.size();
  std::memcpy(row.data(), &length, sizeof(length));
  const std::vector<std::byte> all_lengths = gather_bytes(rank, row);
  std::vector<std::uint64_t> lengths(ranks);
  std::memcpy(lengths.data(), all_lengths.data(), all_lengths.size());
  const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::string> texts(ranks);
  if (longest == 0) return texts;
  row.assign(longest, std::byte{0});
  if (!own.empty()) std::memcpy(row.data(), own.data(), own.size());
  const std::vector<std::byte> all = gather_bytes(rank, row);
  for (std::size_t one = 0; one < ranks; ++one) {
    texts[one].assign(reinterpret_cast<const char*>(all.data()) + one * longest, lengths[one]);
  }
  return texts;
}

void connect(Rank& rank, std::span<const int> peers) {
  if (peers.empty()) return;
  constexpr std::size_t kBytes = 16;
  const device::Buffer memory(rank.context(), 2 * kBytes * peers.size());
  const device::Stream stream(rank.context());
  auto* next = reinterpret_cast<std::byte*>(memory.address());
  const auto take = [&] { return std::exchange(next, next + kBytes); };
  std::vector<SentBytes> sends;
  std::vector<ReceivedBytes> receives;
  for (const int peer : peers) {
    sends.push_back({peer, take(), kBytes});
    receives.push_back({peer, take(), kBytes});
  }
  rank.exchange_within(stream.handle(), sends, receives, rank.planning());
  rank.wait(stream, "the other ranks to connect", rank.planning());
}

}  // namespace annulus::exchange
