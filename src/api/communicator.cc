// The functions of the public handle of a communicator, each a few lines that call src/exchange.
#include "annulus/communicator.h"

#include <cstring>

#include "api/communicator_impl.h"
#include "api/impl.h"
#include "base/fail.h"

namespace annulus::inline v0 {

namespace {

exchange::NcclPointer nccl_of(const Device::Impl& device) {
  return exchange::open_nccl(*device.context, device.info.name.starts_with("sim:"));
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
  return Communicator(std::make_shared<Impl>(
      Impl{exchange::Rank::open(inside.context, nccl_of(inside), id, ranks, rank, options)}));
}

Communicator Communicator::borrow(const Device& device, void* nccl_comm,
                                  const CommunicatorOptions& options) {
  const Device::Impl& inside = api::inside(device);
  return Communicator(std::make_shared<Impl>(Impl{exchange::Rank::borrow(
      inside.context, nccl_of(inside), static_cast<abi::NcclComm>(nccl_comm), options)}));
}

const CommunicatorInfo& Communicator::info() const { return impl_->rank->info(); }

void Communicator::exchange(void* stream, std::span<const SentBytes> sends,
                            std::span<const ReceivedBytes> receives) const {
  impl_->here().exchange(static_cast<abi::CUstream>(stream), sends, receives);
}

bool Communicator::usable() const { return impl_->here().usable(); }
std::string Communicator::reason() const { return impl_->here().reason(); }
void Communicator::give_up(const std::string& reason) const { impl_->here().give_up(reason); }

}  // namespace annulus::inline v0

namespace annulus::api {

std::shared_ptr<exchange::Rank> inside(const Communicator& communicator) {
  communicator.impl()->here();
  return communicator.impl()->rank;
}

}  // namespace annulus::api
