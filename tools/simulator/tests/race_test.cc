// Pairs of unordered operations, each in a small program. They are found with every seed, with work
// that runs at once and with work that runs later. No fault may be reported for the same programs
// with the missing wait.

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>

#include "racing.h"

namespace annulus::simulator {
namespace {

using test::kBytes;
using test::Rank;
using test::Ring;
using namespace annulus::abi;

constexpr std::uint64_t kSeeds = 60;

struct Planted {
  std::string name;
  std::set<std::string> kinds;     // the kinds that may be reported
  std::vector<std::string> named;  // words that the message must contain
  std::function<void(const Ring&, bool right)> program;
  bool on_second = false;  // the fault may be reported on the second device
};

// Streams are 0 and 1 of a device, and -1 is its default stream. `right` adds the missing wait.
const std::vector<Planted>& planted() {
  static const std::vector<Planted> all = {
      {"a consumer does not wait for its producer",
       {"missing wait"},
       {"kernel scale on stream 1 of device 3", "kernel move on stream 2 of device 3",
        "of an allocation of 256 bytes", "cuStreamWaitEvent"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.scale(on.buffers[0], 3, 0);
         on.record(0, 0);
         if (right) on.wait(1, 0);
         on.move(on.buffers[1], on.buffers[0], 1);
       }},
      {"the event is recorded in front of the producer",
       {"missing wait"},
       {"kernel scale", "kernel move"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         if (!right) on.record(0, 0);
         on.scale(on.buffers[0], 3, 0);
         if (right) on.record(0, 0);
         on.wait(1, 0);
         on.move(on.buffers[1], on.buffers[0], 1);
       }},
      {"a kernel does not wait for the fill of its input",
       {"missing wait"},
       {"cuMemsetD32Async on stream 1", "kernel move on stream 2"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.fill(on.buffers[0], 0, 0);
         on.record(0, 0);
         if (right) on.wait(1, 0);
         on.move(on.buffers[1], on.buffers[0], 1);
       }},
      {"a copy overwrites what a kernel still reads",
       {"early reuse"},
       {"cuMemcpyHtoDAsync on stream 2", "kernel move on stream 1", "writes", "reads"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.move(on.buffers[1], on.buffers[0], 0);
         on.record(0, 0);
         if (right) on.wait(1, 0);
         on.in([&] {
           return on.cuda.memcpy_htod_async(on.buffers[0], on.locked[0], kBytes, on.at(1));
         });
       }},
      {"a kernel overwrites what a copy still reads",
       {"early reuse"},
       {"kernel move on stream 2", "cuMemcpyDtoDAsync on stream 1"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.in([&] {
           return on.cuda.memcpy_dtod_async(on.buffers[1], on.buffers[0], kBytes, on.at(0));
         });
         on.record(0, 0);
         if (right) on.wait(1, 0);
         on.fill(on.buffers[2], 0, 1);
         on.move(on.buffers[0], on.buffers[2], 1);
       }},
      {"two copies on two streams go to one place",
       {"unordered writes"},
       {"cuMemcpyHtoDAsync on stream 1", "cuMemcpyDtoDAsync on stream 2"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.in([&] {
           return on.cuda.memcpy_htod_async(on.buffers[0], on.locked[0], kBytes, on.at(0));
         });
         on.record(0, 0);
         if (right) on.wait(1, 0);
         on.in([&] {
           return on.cuda.memcpy_dtod_async(on.buffers[0] + 128, on.buffers[1], 64, on.at(1));
         });
       }},
      {"two kernels write the same value to one element",
       {"unordered writes"},
       {"kernel put16 on stream 1", "kernel put16 on stream 2", "2 bytes"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.put16(on.buffers[0], 1, 7, 0);
         on.record(0, 0);
         if (right) on.wait(1, 0);
         on.put16(on.buffers[0] + 62, 1, 7, 1);
       }},
      {"the host reads without waiting",
       {"missing wait"},
       {"cuMemcpyDtoH on the default stream of device 3", "kernel scale on stream 1"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.scale(on.buffers[0], 3, 0);
         if (right) on.synchronize(0);
         on.first(on.buffers[0]);
       }},
      {"the host asks whether the work is done and does not listen",
       {"early reuse"},
       {"cuMemcpyHtoD on the default stream", "kernel move"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.move(on.buffers[1], on.buffers[0], 0);
         on.record(0, 0);
         const float value = 4;
         const auto poll = [&] { return on.in([&] { return on.cuda.event_query(on.events[0]); }); };
         if (right) {
           while (poll() == kCudaNotReady) {
           }
         }
         on.in([&] { return on.cuda.memcpy_htod(on.buffers[0], &value, 4); });
       }},
      {"memory is freed under a kernel",
       {"freed in use"},
       {"cuMemFree frees", "kernel scale on stream 1"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         CUdeviceptr mine = 0;
         on.in([&] { return on.cuda.mem_alloc(&mine, kBytes); });
         on.fill(mine, 0, 0);
         on.scale(mine, 3, 0);
         if (right) on.synchronize(0);
         on.in([&] { return on.cuda.mem_free(mine); });
       }},
      {"memory is freed under a copy to another device",
       {"freed in use"},
       {"cuMemFree frees", "cuMemcpyPeerAsync on stream 1 of device 5"},
       [](const Ring& ring, bool right) {
         const Rank& from = ring.first;
         const Rank& to = ring.second;
         CUdeviceptr mine = 0;
         from.in([&] { return from.cuda.mem_alloc(&mine, kBytes); });
         from.fill(mine, 0, 0);
         from.record(0, 0);
         to.wait(0, from.events[0]);
         to.in([&] {
           return to.cuda.memcpy_peer_async(to.buffers[0], to.context, mine, from.context, kBytes,
                                            to.at(0));
         });
         from.finish();
         if (right) to.synchronize(0);
         from.in([&] { return from.cuda.mem_free(mine); });
       },
       true},
      {"page-locked memory receives from two streams",
       {"unordered writes"},
       {"cuMemcpyDtoHAsync on stream 1", "cuMemcpyDtoHAsync on stream 2"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.in([&] {
           return on.cuda.memcpy_dtoh_async(on.locked[0], on.buffers[0], kBytes, on.at(0));
         });
         on.record(0, 0);
         if (right) on.wait(1, 0);
         on.in([&] {
           return on.cuda.memcpy_dtoh_async(on.locked[0], on.buffers[1], kBytes, on.at(1));
         });
       }},
      {"the default stream does not know a non-blocking one",
       {"early reuse"},
       {"cuMemsetD32Async on the default stream of device 3", "kernel move on stream 1"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.move(on.buffers[1], on.buffers[0], 0);
         on.record(0, 0);
         if (right) on.wait(-1, 0);
         on.fill(on.buffers[0], 0, -1);
       }},
      {"a receiver does not wait for the sender's device",
       {"missing wait"},
       {"cuMemcpyPeerAsync on stream 1 of device 5", "kernel scale on stream 1 of device 3"},
       [](const Ring& ring, bool right) {
         const Rank& from = ring.first;
         const Rank& to = ring.second;
         from.scale(from.buffers[0], 3, 0);
         from.record(0, 0);
         if (right) to.wait(0, from.events[0]);
         to.in([&] {
           return to.cuda.memcpy_peer_async(to.buffers[0], to.context, from.buffers[0],
                                            from.context, kBytes, to.at(0));
         });
       },
       true},
      {"a sender reuses its buffer before the receiver has taken it",
       {"early reuse"},
       {"kernel scale on stream 1 of device 3", "cuMemcpyPeerAsync on stream 1 of device 5"},
       [](const Ring& ring, bool right) {
         const Rank& from = ring.first;
         const Rank& to = ring.second;
         from.record(0, 0);
         to.wait(0, from.events[0]);
         to.in([&] {
           return to.cuda.memcpy_peer_async(to.buffers[0], to.context, from.buffers[0],
                                            from.context, kBytes, to.at(0));
         });
         to.record(0, 0);
         if (right) from.wait(0, to.events[0]);
         from.fill(from.buffers[1], 0, 0);
         from.scale(from.buffers[0], 3, 0);
       },
       true},
      {"a kernel writes to a peer that reads",
       {"early reuse"},
       {"kernel move on stream 1 of device 5", "kernel scale on stream 1 of device 3"},
       [](const Ring& ring, bool right) {
         const Rank& from = ring.first;
         const Rank& to = ring.second;
         from.in([&] { return from.cuda.ctx_enable_peer_access(to.context, 0); });
         to.move(to.buffers[1], to.buffers[0], 0);
         to.record(0, 0);
         if (right) from.wait(0, to.events[0]);
         from.fill(from.buffers[1], 0, 0);
         from.scale(to.buffers[0], 3, 0);
       },
       true},
      {"an update races with a plain read",
       {"missing wait"},
       {"kernel count on stream 1", "updates atomically", "kernel move on stream 2"},
       [](const Ring& ring, bool right) {
         const Rank& on = ring.first;
         on.count(on.buffers[0] + 8, 0);
         on.record(0, 0);
         if (right) on.wait(1, 0);
         on.move(on.buffers[1], on.buffers[0], 1);
       }},
  };
  return all;
}

TEST_CASE("what nothing orders is found, whatever the seed") {
  for (const Planted& bug : planted()) {
    for (const bool later : {false, true}) {
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Ring ring(seed, later);
        bug.program(ring, false);
        ring.finish();
        base::Json fault = ring.first.fault();
        if (fault.is_null() && bug.on_second) fault = ring.second.fault();
        INFO(bug.name, ", seed ", seed, std::string(later ? ", later: " : ", at once: "),
             fault.dump());
        REQUIRE(!fault.is_null());
        REQUIRE(bug.kinds.contains(fault.at("kind").get<std::string>()));
        const std::string message = fault.at("message").get<std::string>();
        for (const std::string& part : bug.named) {
          INFO("missing: ", part);
          REQUIRE(message.find(part) != std::string::npos);
        }
        if (message.find("kernel ") != std::string::npos) {
          REQUIRE(fault.at("ptx_line").get<int>() > 0);
        }
        REQUIRE(ring.first.finish() == kCudaLaunchFailed);
        if (bug.on_second) REQUIRE(ring.second.finish() == kCudaLaunchFailed);
      }
    }
  }
}

TEST_CASE("what is ordered is not, whatever the seed") {
  for (const Planted& bug : planted()) {
    for (const bool later : {false, true}) {
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Ring ring(seed, later);
        bug.program(ring, true);
        ring.finish();
        INFO(bug.name, ", seed ", seed, ": ", ring.first.fault().dump(),
             ring.second.fault().dump());
        REQUIRE(ring.first.fault().is_null());
        REQUIRE(ring.second.fault().is_null());
      }
    }
  }
}

}  // namespace
}  // namespace annulus::simulator
