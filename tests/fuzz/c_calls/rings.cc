// Calls on rings of one process.

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

void Program::create_ring() {
  annulus_device* devices[3] = {};
  for (annulus_device*& device : devices) device = setting().device;
  const std::size_t ranks = bytes_.below(8) == 0 ? count(4) : 2;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    devices[rank] = pick<annulus_device>(Kind::kDevice);
  }
  auto described = problem(true);
  if (bytes_.below(2) == 0) described->seq_k = described->seq_q;
  auto plans = plan_options();
  Sized<annulus_ring_options> options(ANNULUS_RING_OPTIONS_INIT, bytes_);
  options->sharding = tiny(2);
  options->multiple = tiny(16);
  options->plans = plans.get();
  options->route = tiny(3);
  switch (bytes_.below(8)) {
    case 0:
      options->config = "mma m64";
      break;
    case 1:  // sets a configuration in both
      options->config = kConfig;
      break;
    case 2:
      break;
    default:
      options->config = kConfig;
      plans->config = nullptr;
      plans->block_rows = plans->block_columns = 0;
  }
  const std::int64_t cut = bytes_.between(0, kSide);
  const annulus_segment pieces[] = {
      {0, cut}, {cut, described->seq_q - cut}, {cut, described->seq_k - cut}, {small(64), 3}};
  annulus_shard shards[3] = {
      {&pieces[0], 1, &pieces[0], 1}, {&pieces[1], 1, &pieces[2], 1}, {pieces, 0, nullptr, 0}};
  if (bytes_.below(2) == 0) options->shards = shards;
  if (bytes_.below(8) == 0) shards[bytes_.below(3)].q = &pieces[3];
  if (bytes_.below(8) == 0) shards[bytes_.below(3)].k_count = count(3);
  for (annulus_shard& shard : shards) {
    // A count beyond its array would violate the contract.
    if (shard.k_count == 2 && shard.k != &pieces[0]) shard.k = &pieces[0];
    if (shard.k == nullptr && shard.k_count > 0 && bytes_.below(2) == 0) shard.k_count = 0;
  }
  if (tiny(3) == 3) {
    Sized<annulus_problem> step(ANNULUS_PROBLEM_INIT, bytes_);
    const bool good = std::exchange(good_, true);  // this call takes no handle
    returned(annulus_ring_get_step(ranks, described.get(), options.get(), step.get()),
             "annulus_ring_get_step");
    good_ = good;
  }
  annulus_ring* ring = nullptr;
  made(annulus_ring_create(devices, ranks, described.get(), options.get(), &ring), ring,
       Kind::kRing, "annulus_ring_create");
}

void Program::run_ring() {
  annulus_ring* ring = pick<annulus_ring>(Kind::kRing);
  constexpr std::size_t kMost = 4;
  constexpr std::size_t kEach = Setting::kBytes / kMost;
  // Elements of an array are struct_size bytes apart.
  std::size_t size = sizeof(annulus_ring_call);
  if (bytes_.below(8) == 0) size = count(9) * 8;
  alignas(16) std::byte calls[kMost * 64 + 64] = {};
  std::vector<Sized<annulus_operands>> given;
  for (std::size_t rank = 0; rank < kMost; ++rank) {
    Sized<annulus_operands> one(ANNULUS_OPERANDS_INIT, bytes_);
    const auto at = [&](int i) {
      return bytes_.below(48) == 0 ? nullptr
                                   : static_cast<std::byte*>(setting().memory[i]) + rank * kEach;
    };
    one->q = at(0), one->k = at(1), one->v = at(2), one->o = at(3);
    one->q_strides = one->k_strides = one->v_strides = one->o_strides = {64 * 64, 64 * 64, 64};
    given.push_back(one);
  }
  for (std::size_t rank = 0; rank < kMost; ++rank) {
    annulus_ring_call call = ANNULUS_RING_CALL_INIT;
    call.struct_size = rank > 0 && bytes_.below(32) == 0 ? count(80) : size;
    call.operands = bytes_.below(32) == 0 ? nullptr : given[rank].get();
    call.workspace = static_cast<std::byte*>(setting().memory[9]) + rank * kEach;
    if (bytes_.below(32) == 0) call.workspace = nullptr;
    std::memcpy(calls + rank * size, &call, std::min(size, sizeof call));
  }
  const std::size_t ranks = bytes_.below(8) == 0 ? count(kMost + 1) : 2;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    annulus_ring_rank info = ANNULUS_RING_RANK_INIT;
    if (annulus_ring_get_rank(ring, rank, &info) == ANNULUS_OK &&
        info.workspace_bytes > static_cast<std::int64_t>(kEach)) {
      wrong("a rank needs {} bytes of workspace", info.workspace_bytes);
    }
  }
  if (!may_launch()) return;
  returned(annulus_ring_run(ring, reinterpret_cast<const annulus_ring_call*>(calls), ranks),
           "annulus_ring_run");
}

void Program::call_ring() {
  switch (bytes_.below(7)) {
    case 0:
    case 1:
      return create_ring();
    case 2: {
      Sized<annulus_ring_info> info(ANNULUS_RING_INFO_INIT, bytes_);
      returned(annulus_ring_get_info(pick<annulus_ring>(Kind::kRing), info.get()),
               "annulus_ring_get_info");
      return;
    }
    case 3: {
      Sized<annulus_ring_rank> info(ANNULUS_RING_RANK_INIT, bytes_);
      annulus_ring* ring = pick<annulus_ring>(Kind::kRing);
      const auto rank = static_cast<std::size_t>(small(3));
      returned(annulus_ring_get_rank(ring, rank, info.get()), "annulus_ring_get_rank");
      return;
    }
    case 4: {
      const char* picture = nullptr;
      if (returned(annulus_ring_get_picture(pick<annulus_ring>(Kind::kRing), &picture),
                   "annulus_ring_get_picture") &&
          std::strstr(picture, "</svg>") == nullptr) {
        wrong("a picture that is no SVG");
      }
      return;
    }
    default:
      return run_ring();
  }
}

}  // namespace annulus::fuzz
