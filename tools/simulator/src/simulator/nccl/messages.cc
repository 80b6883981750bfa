#include "simulator/nccl/messages.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "base/half.h"
#include "simulator/nccl/options.h"

namespace annulus::simulator::nccl {
namespace {

using Kind = Notice::Kind;

constexpr const char* kNames[] = {"ncclSend",      "ncclRecv",    "ncclAllGather",
                                  "ncclAllReduce", "ncclReduce",  "ncclReduceScatter",
                                  "ncclBroadcast", "ncclAlltoAll"};
const char* name_of(std::int32_t operation) { return kNames[operation]; }

// One direction of a message: this rank sends it or receives it.
struct Leg {
  bool sends = false;
  int peer = 0;
  Channel channel = Channel::kPairs;
  std::uint64_t number = 0;
  Label label;
  std::uint64_t address = 0;  // the bytes to send, or the place for received bytes
  // In place of `address`, if the received bytes are reduced: the index of the part in a collective
  // call.
  int part = -1;
  bool under_way = false;  // sent, but not received yet
  bool done = false;
};

// The reduction of a collective call, which combines the received parts.
struct Reduction {
  std::vector<std::vector<std::byte>> parts;  // by rank
  std::uint64_t to = 0;
  std::uint64_t count = 0;
  int type = 0;
  int operation = 0;
};

GlobalMemory& memory_holding(std::uint64_t address, std::uint64_t bytes, const char* what) {
  GlobalMemory* const memory = driver::memory_at(address);
  if (memory == nullptr || memory->find(address, bytes).end == 0) {
    raise(FaultKind::kOutOfBounds,
          fmt::format("{}: {} bytes at {:#x} are not in one allocation", what, bytes, address));
  }
  return *memory;
}

void read_device(const OperationPointer& operation, std::uint64_t address, std::uint64_t bytes,
                 const char* what, Notice* notice) {
  notice->bytes.resize(bytes);
  if (bytes == 0) return;
  const GlobalMemory& memory = memory_holding(address, bytes, what);
  driver::note(operation, AccessKind::kRead, memory, address, bytes);
  memory.read(notice->bytes.data(), address, bytes);
  if (address % 8 != 0) return;
  const std::uint8_t* const shadow = memory.shadow(address);
  notice->written.assign(shadow, shadow + (bytes + 7) / 8);
}

void write_device(const OperationPointer& operation, std::uint64_t address,
                  std::span<const std::byte> bytes, std::span<const std::uint8_t> written,
                  const char* what) {
  if (bytes.empty()) return;
  GlobalMemory& memory = memory_holding(address, bytes.size(), what);
  driver::note(operation, AccessKind::kWrite, memory, address, bytes.size());
  memory.write(address, bytes.data(), bytes.size());
  // Only whole bytes of the shadow are copied. A bit too few leads to a fault, while a bit too many
  // hides one.
  if (written.empty() || address % 8 != 0) return;
  std::copy_n(written.begin(), bytes.size() / 8, memory.shadow(address));
}

// Fills the memory with a NaN of every floating-point type. It counts as written: on a GPU,
// launches that were queued after the message read it too, and their results are invalid.
void poison(std::uint64_t address, std::uint64_t bytes) {
  GlobalMemory* const memory = driver::memory_at(address);
  if (bytes == 0 || memory == nullptr || memory->find(address, bytes).end == 0) return;
  const std::vector<std::byte> nothing(bytes, std::byte{0xff});
  memory->write(address, nothing.data(), bytes);
}

template <typename T>
T reduced(T a, T b, int operation) {
  switch (operation) {
    case abi::kNcclMax:
      return std::max(a, b);
    case abi::kNcclMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

// Reduces the parts in the order of the ranks and rounds once. 16-bit floats are added in fp32.
template <typename T, typename Wide, typename ToWide, typename FromWide>
std::vector<std::byte> reduce_as(const Reduction& call, ToWide to_wide, FromWide from_wide) {
  std::vector<T> result(call.count);
  for (std::uint64_t i = 0; i < call.count; ++i) {
    Wide sum{};
    for (std::size_t rank = 0; rank < call.parts.size(); ++rank) {
      T one;
      std::memcpy(&one, call.parts[rank].data() + i * sizeof(T), sizeof(T));
      sum = rank == 0 ? to_wide(one) : reduced<Wide>(sum, to_wide(one), call.operation);
    }
    result[i] = from_wide(sum);
  }
  std::vector<std::byte> bytes(call.count * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), result.data(), bytes.size());
  return bytes;
}

template <typename T>
std::vector<std::byte> reduce_plain(const Reduction& call) {
  const auto same = [](T value) { return value; };
  return reduce_as<T, T>(call, same, same);
}

// The element types of reductions.
struct Reducer {
  int type;
  std::vector<std::byte> (*reduce)(const Reduction& call);
};
constexpr Reducer kReducers[] = {
    {abi::kNcclUint8, reduce_plain<std::uint8_t>},
    {abi::kNcclInt32, reduce_plain<std::int32_t>},
    {abi::kNcclInt64, reduce_plain<std::int64_t>},
    {abi::kNcclFloat32, reduce_plain<float>},
    {abi::kNcclFloat16,
     [](const Reduction& call) {
       return reduce_as<std::uint16_t, float>(call, base::fp16_to_float, base::float_to_fp16);
     }},
    {abi::kNcclBfloat16,
     [](const Reduction& call) {
       return reduce_as<std::uint16_t, float>(call, base::bf16_to_float, base::float_to_bf16);
     }},
};
const Reducer* reducer_of(int type) {
  const auto* const found = std::ranges::find(kReducers, type, &Reducer::type);
  return found == std::end(kReducers) ? nullptr : found;
}

class Messages : public driver::Meeting {
 public:
  explicit Messages(const std::vector<Call>& calls) : communicator_(calls.front().communicator) {
    for (const Call& call : calls) add(call);
    count();
  }

  bool able() override {
    if (communicator_->stopped() || !came_) return true;
    return std::any_of(legs_.begin(), legs_.end(),
                       [&](const Leg& leg) { return !leg.done && can_go(leg); }) ||
           ended();
  }

  // Sends a drawn number of the messages that can be sent, in a drawn order.
  bool step(const OperationPointer& operation) override {
    if (communicator_->stopped()) {
      for (const Leg& leg : legs_) {
        if (!leg.done && !leg.sends && leg.part < 0) poison(leg.address, leg.label.bytes);
      }
      for (const Reduction& call : reductions_) {
        if (call.to != 0) poison(call.to, call.count * type_bytes(call.type));
      }
      return true;
    }
    if (!came_) {
      came_ = true;
      for (const Leg& leg : legs_) {
        if (leg.sends) continue;
        communicator_->wire().send(leg.peer, {.kind = Kind::kReady,
                                              .channel = leg.channel,
                                              .number = leg.number,
                                              .label = leg.label});
      }
    }
    std::vector<Leg*> ready;
    for (Leg& leg : legs_) {
      if (!leg.done && can_go(leg)) ready.push_back(&leg);
    }
    const unsigned going = ready.empty() ? 0 : 1 + draw(static_cast<unsigned>(ready.size()) - 1);
    for (unsigned i = 0; i < going; ++i) {
      std::swap(ready[i], ready[i + draw(static_cast<unsigned>(ready.size()) - 1 - i)]);
      go(*ready[i], operation);
    }
    if (!ended()) return false;
    for (Reduction& call : reductions_) end(call, operation);
    return true;
  }

 private:
  // Notices that were not sent yet would be lost with this process.
  bool ended() const {
    return std::all_of(legs_.begin(), legs_.end(), [](const Leg& leg) { return leg.done; }) &&
           communicator_->wire().flushed();
  }
  // The kind of notice that a leg waits for.
  static Kind awaited(const Leg& leg) {
    if (!leg.sends) return Kind::kData;
    return leg.under_way ? Kind::kTaken : Kind::kReady;
  }
  bool can_go(const Leg& leg) const {
    return communicator_->inbox().has(awaited(leg), leg.peer, leg.channel, leg.number);
  }

  void go(Leg& leg, const OperationPointer& operation) {
    const std::optional<Notice> notice =
        communicator_->inbox().take(awaited(leg), leg.peer, leg.channel, leg.number);
    leg.done = !leg.sends || leg.under_way;
    if (leg.under_way) return;
    require_match(leg, notice->label);
    const char* const what = name_of(leg.label.call);
    if (leg.sends) {
      Notice data = {
          .kind = Kind::kData, .channel = leg.channel, .number = leg.number, .label = leg.label};
      read_device(operation, leg.address, leg.label.bytes, what, &data);
      leg.under_way = true;
      communicator_->wire().send(leg.peer, std::move(data));
      return;
    }
    if (leg.part >= 0) {
      reductions_[static_cast<std::size_t>(leg.part)].parts[static_cast<std::size_t>(leg.peer)] =
          notice->bytes;
    } else {
      write_device(operation, leg.address, notice->bytes, notice->written, what);
    }
    communicator_->wire().send(
        leg.peer, {.kind = Kind::kTaken, .channel = leg.channel, .number = leg.number});
  }

  void require_match(const Leg& leg, const Label& theirs) const {
    if (theirs == leg.label) return;
    const auto text = [](const Label& label) {
      return fmt::format("{} of {} bytes, type {}, operation {}, root {}", name_of(label.call),
                         label.bytes, label.type, label.operation, label.root);
    };
    raise(FaultKind::kMessageMismatch,
          fmt::format("message {} between rank {} and rank {}: rank {} calls {}, rank {} calls {}",
                      leg.number, communicator_->rank(), leg.peer, communicator_->rank(),
                      text(leg.label), leg.peer, text(theirs)));
  }

  // A link has two directions. Messages in the same direction follow one another.
  void count() const {
    const Options options = nccl::options();
    std::map<std::pair<int, bool>, std::uint64_t> busy;
    std::uint64_t messages = 0, bytes = 0, longest = 0;
    for (const Leg& leg : legs_) {
      if (leg.peer == communicator_->rank()) continue;
      const double rate = static_cast<double>(options.link_bytes_per_second);
      const double wire = rate == 0 ? 0 : 1e9 * static_cast<double>(leg.label.bytes) / rate;
      std::uint64_t& sum = busy[{leg.peer, leg.sends}];
      sum += options.link_latency_ns + static_cast<std::uint64_t>(std::llround(wire));
      longest = std::max(longest, sum);
      messages += leg.sends ? 1 : 0;
      bytes += leg.sends ? leg.label.bytes : 0;
    }
    count_group(messages, bytes, longest);
  }

  void add(const Call& call) {
    const std::uint64_t bytes = call.count * type_bytes(call.type);
    const auto label_of = [&](std::uint64_t of) {
      Label label;
      // Both halves of a message of a pair have the same label.
      const bool pair = call.operation == Operation::kReceive;
      label.call = static_cast<std::int32_t>(pair ? Operation::kSend : call.operation);
      label.type = call.type;
      label.operation = call.reduction;
      label.bytes = of;
      return label;
    };
    if (call.operation == Operation::kSend || call.operation == Operation::kReceive) {
      const bool sends = call.operation == Operation::kSend;
      legs_.push_back({.sends = sends,
                       .peer = call.root,
                       .number = sends ? communicator_->next_sent(call.root)
                                       : communicator_->next_received(call.root),
                       .label = label_of(bytes),
                       .address = sends ? call.from : call.to});
      return;
    }
    const int ranks = communicator_->ranks(), own = communicator_->rank();
    const std::uint64_t number = communicator_->next_collective();
    const auto leg = [&](bool sends, int peer, std::uint64_t address, int part) {
      Label both = label_of(bytes);
      both.root = call.root;
      legs_.push_back({.sends = sends,
                       .peer = peer,
                       .channel = Channel::kCollectives,
                       .number = number,
                       .label = both,
                       .address = address,
                       .part = part});
    };
    const auto of_rank = [&](std::uint64_t address, int rank) {
      return address + static_cast<std::uint64_t>(rank) * bytes;
    };
    int part = -1;
    const bool rooted = call.operation == Operation::kReduce;
    if (call.operation == Operation::kAllReduce || call.operation == Operation::kReduceScatter ||
        (rooted && own == call.root)) {
      part = static_cast<int>(reductions_.size());
      reductions_.push_back({std::vector<std::vector<std::byte>>(static_cast<std::size_t>(ranks)),
                             call.to, call.count, call.type, call.reduction});
    }
    for (int peer = 0; peer < ranks; ++peer) {
      switch (call.operation) {
        case Operation::kAllGather:
          leg(true, peer, call.from, -1);
          leg(false, peer, of_rank(call.to, peer), -1);
          break;
        case Operation::kAllToAll:
          leg(true, peer, of_rank(call.from, peer), -1);
          leg(false, peer, of_rank(call.to, peer), -1);
          break;
        case Operation::kAllReduce:
          leg(true, peer, call.from, -1);
          leg(false, peer, 0, part);
          break;
        case Operation::kReduceScatter:
          leg(true, peer, of_rank(call.from, peer), -1);
          leg(false, peer, 0, part);
          break;
        case Operation::kReduce:
          if (own == call.root) leg(false, peer, 0, part);
          if (peer == call.root) leg(true, peer, call.from, -1);
          break;
        case Operation::kBroadcast:
          if (own == call.root) leg(true, peer, call.from, -1);
          if (peer == call.root) leg(false, peer, call.to, -1);
          break;
        case Operation::kSend:
        case Operation::kReceive:
          break;
      }
    }
  }

  void end(Reduction& call, const OperationPointer& operation) {
    write_device(operation, call.to, reducer_of(call.type)->reduce(call), {},
                 "a reduction of NCCL");
  }

  const CommunicatorPointer communicator_;
  bool came_ = false;  // the stream has reached this group
  std::vector<Leg> legs_;
  std::vector<Reduction> reductions_;
};

}  // namespace

std::uint64_t type_bytes(int type) {
  switch (type) {
    case 0:  // ncclInt8
    case abi::kNcclUint8:
    case 10:  // ncclFloat8e4m3
    case 11:  // ncclFloat8e5m2
      return 1;
    case abi::kNcclFloat16:
    case abi::kNcclBfloat16:
      return 2;
    case abi::kNcclInt32:
    case 3:  // ncclUint32
    case abi::kNcclFloat32:
      return 4;
    case abi::kNcclInt64:
    case 5:  // ncclUint64
    case 8:  // ncclFloat64
      return 8;
    default:
      return 0;
  }
}

abi::NcclResult check(const Call& call) {
  const int ranks = call.communicator->ranks();
  const bool reduces = call.operation == Operation::kAllReduce ||
                       call.operation == Operation::kReduce ||
                       call.operation == Operation::kReduceScatter;
  const bool reads =
      call.operation != Operation::kReceive &&
      (call.operation != Operation::kBroadcast || call.communicator->rank() == call.root);
  const bool writes =
      call.operation != Operation::kSend &&
      (call.operation != Operation::kReduce || call.communicator->rank() == call.root);
  const bool good =
      type_bytes(call.type) != 0 && call.root >= 0 && call.root < ranks &&
      call.count < (std::uint64_t{1} << 48) &&
      (!reduces || (reducer_of(call.type) != nullptr &&
                    (call.reduction == abi::kNcclSum || call.reduction == abi::kNcclMax ||
                     call.reduction == abi::kNcclMin))) &&
      (!reads || call.from != 0 || call.count == 0) && (!writes || call.to != 0 || call.count == 0);
  return good ? abi::kNcclSuccess : abi::kNcclInvalidArgument;
}

driver::Work messages_work(const std::vector<Call>& calls, std::vector<int>* peers) {
  driver::Work work;
  work.operation.what = calls.size() == 1 ? name_of(static_cast<std::int32_t>(calls[0].operation))
                                          : "a group of NCCL";
  // A collective call without elements is dropped, by all ranks alike.
  std::vector<Call> real;
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(real), [](const Call& call) {
    return call.count > 0 || call.operation == Operation::kSend ||
           call.operation == Operation::kReceive;
  });
  for (const Call& call : real) {
    const bool pair = call.operation == Operation::kSend || call.operation == Operation::kReceive;
    for (int rank = 0; rank < call.communicator->ranks(); ++rank) {
      if (rank == call.communicator->rank() || (pair && rank != call.root)) continue;
      if (std::find(peers->begin(), peers->end(), rank) == peers->end()) peers->push_back(rank);
    }
  }
  if (real.empty()) {
    work.run = [](const OperationPointer&) {};
  } else {
    work.meet = [real]() -> std::shared_ptr<driver::Meeting> {
      return std::make_shared<Messages>(real);
    };
  }
  return work;
}

}  // namespace annulus::simulator::nccl
