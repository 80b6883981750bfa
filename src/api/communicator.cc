// The functions of a communicator's public handle. Each has a few lines that call src/exchange.
#include "annulus/communicator.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "api/communicator_impl.h"
#include "api/impl.h"
#include "api/rendezvous_impl.h"
#include "base/fail.h"
#include "exchange/memory.h"

namespace annulus::inline v0 {

namespace {

exchange::NcclPointer nccl_of(const Device::Impl& device) {
  return exchange::open_nccl(*device.context, device.info.name.starts_with("sim:"));
}

// The message of a rank to the others before they open a communicator: a zero and, on rank 0, the
// id after it; or the code of the rank's error and then its text.
std::vector<std::byte> brought(const CommunicatorId* id, const std::optional<Error>& error) {
  std::vector<std::byte> bytes = {
      static_cast<std::byte>(error ? static_cast<int>(error->code()) : 0)};
  const auto put = [&](const char* from, std::size_t count) {
    const auto all = std::as_bytes(std::span(from, count));
    bytes.insert(bytes.end(), all.begin(), all.end());
  };
  if (error) {
    put(error->what(), std::min(std::strlen(error->what()), std::size_t{4096}));
  } else if (id != nullptr) {
    put(id->bytes, sizeof(id->bytes));
  }
  return bytes;
}

// The id of rank 0. Throws the error of the first rank that has one.
CommunicatorId id_of(const std::vector<std::vector<std::byte>>& all) {
  CommunicatorId id;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::vector<std::byte>& bytes = all[rank];
    const bool whole = bytes.size() == (rank == 0 ? 1 + sizeof(id.bytes) : 1);
    if (whole && bytes[0] == std::byte{0}) continue;
    const int code = bytes.empty() ? 0 : std::to_integer<int>(bytes[0]);
    const bool known = code >= 1 && code <= static_cast<int>(ErrorCode::kCommunication);
    const std::string text =
        known ? std::string(reinterpret_cast<const char*>(bytes.data()) + 1, bytes.size() - 1)
              : "it brought bytes that do not open a communicator";
    base::fail(known ? static_cast<ErrorCode>(code) : ErrorCode::kInvalidArgument,
               "rank {} of {}: {}", rank, all.size(), text);
  }
  std::memcpy(id.bytes, all[0].data() + 1, sizeof(id.bytes));
  return id;
}

Communicator made(std::unique_ptr<exchange::Rank> rank) {
  return Communicator(std::make_shared<Communicator::Impl>(
      Communicator::Impl{base::share_in_process(std::move(rank))}));
}

}  // namespace

CommunicatorId make_communicator_id(const Device& device) {
  const exchange::NcclPointer nccl = nccl_of(api::inside(device));
  abi::NcclUniqueId unique{};
  const abi::NcclResult code = nccl->table.get_unique_id(&unique);
  if (code != abi::kNcclSuccess) {
    throw Error(ErrorCode::kCommunication, exchange::text_of(nccl->table, code, "ncclGetUniqueId"));
  }
  CommunicatorId id;
  static_assert(sizeof(id) == sizeof(unique));
  std::memcpy(id.bytes, &unique, sizeof(unique));
  return id;
}

Communicator Communicator::open(const Device& device, const CommunicatorId& id, int ranks, int rank,
                                const CommunicatorOptions& options) {
  const Device::Impl& inside = api::inside(device);
  const base::Span span("open a communicator", inside.info.name);
  return made(
      exchange::Rank::open(inside.context, nccl_of(inside), id, ranks, rank, options, nullptr));
}

Communicator Communicator::open(const Device& device, const Rendezvous& rendezvous,
                                const CommunicatorOptions& options) {
  CommunicatorId id;
  const bool makes_id = rendezvous.rank() == 0;
  std::optional<Error> error;
  try {
    exchange::check_options(options);
    if (makes_id) {
      id = make_communicator_id(device);
    } else {
      nccl_of(api::inside(device));
    }
  } catch (const Error& caught) {
    error = caught;
  }
  const auto deadline = options.planning.count() > 0
                            ? std::min(options.planning, exchange::kLongestDeadline)
                            : exchange::kLongestDeadline;
  std::vector<std::vector<std::byte>> all;
  try {
    all = rendezvous.all_gather(brought(makes_id ? &id : nullptr, error), deadline);
  } catch (const Error&) {
    if (!error) throw;
  }
  if (error) throw *error;
  const Device::Impl& inside = api::inside(device);
  const base::Span span("open a communicator", inside.info.name);
  return made(exchange::Rank::open(inside.context, nccl_of(inside), id_of(all), rendezvous.ranks(),
                                   rendezvous.rank(), options, rendezvous.impl()->control));
}

Communicator Communicator::borrow(const Device& device, void* nccl_comm,
                                  const CommunicatorOptions& options) {
  const Device::Impl& inside = api::inside(device);
  return made(exchange::Rank::borrow(inside.context, nccl_of(inside),
                                     static_cast<abi::NcclComm>(nccl_comm), options, nullptr));
}

Communicator Communicator::borrow(const Device& device, void* nccl_comm,
                                  const Rendezvous& rendezvous,
                                  const CommunicatorOptions& options) {
  const Device::Impl& inside = api::inside(device);
  return made(exchange::Rank::borrow(inside.context, nccl_of(inside),
                                     static_cast<abi::NcclComm>(nccl_comm), options,
                                     rendezvous.impl()->control));
}

const CommunicatorInfo& Communicator::info() const { return impl_->rank->info(); }

std::int64_t Communicator::exchange(void* stream, std::span<const SentBytes> sends,
                                    std::span<const ReceivedBytes> receives) const {
  return impl_->here().exchange(static_cast<abi::CUstream>(stream), sends, receives);
}

struct ExchangeMemory::Impl {
  std::shared_ptr<exchange::Memory> memory;
};

ExchangeMemory Communicator::allocate(std::size_t bytes) const {
  impl_->here();
  return ExchangeMemory(std::make_shared<const ExchangeMemory::Impl>(ExchangeMemory::Impl{
      base::share_in_process(std::make_unique<exchange::Memory>(impl_->rank, bytes))}));
}

void* ExchangeMemory::data() const { return impl_->memory->data(); }
std::size_t ExchangeMemory::bytes() const { return impl_->memory->bytes(); }

std::int64_t Communicator::runs() const { return impl_->here().runs(); }
RunState Communicator::state(std::int64_t run) const { return impl_->here().state(run); }
RunState Communicator::wait(std::int64_t run) const { return impl_->here().wait_for_run(run); }

bool Communicator::usable() const { return impl_->here().usable(); }
std::string Communicator::reason() const { return impl_->here().reason(); }
std::vector<int> Communicator::blamed() const { return impl_->here().blamed(); }
std::vector<CommunicatorEvent> Communicator::events() const { return impl_->here().events(); }
std::vector<RankState> Communicator::peers() const { return impl_->here().peers(); }
void Communicator::give_up(const std::string& reason) const { impl_->here().give_up(reason); }

const char* to_string(RunState state) {
  switch (state) {
    case RunState::kUnderWay:
      return "under way";
    case RunState::kGood:
      return "good";
    case RunState::kVoid:
      return "void";
  }
  return "?";
}

const char* to_string(CommunicatorEventKind kind) {
  switch (kind) {
    case CommunicatorEventKind::kOpened:
      return "opened";
    case CommunicatorEventKind::kSlow:
      return "slow";
    case CommunicatorEventKind::kGone:
      return "gone";
    case CommunicatorEventKind::kGivenUp:
      return "given up";
  }
  return "?";
}

}  // namespace annulus::inline v0

namespace annulus::api {

std::shared_ptr<exchange::Rank> inside(const Communicator& communicator) {
  communicator.impl()->here();
  return communicator.impl()->rank;
}

}  // namespace annulus::api
