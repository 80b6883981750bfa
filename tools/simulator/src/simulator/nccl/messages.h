#ifndef ANNULUS_SIMULATOR_NCCL_MESSAGES_H_
#define ANNULUS_SIMULATOR_NCCL_MESSAGES_H_

// The messages of one group on one stream, as work of the simulated driver.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/nccl/communicator.h"

namespace annulus::simulator::nccl {

// The functions that move data. Labels hold these numbers.
enum class Operation : std::int32_t {
  kSend,
  kReceive,
  kAllGather,
  kAllReduce,
  kReduce,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
};

// A call of such a function.
struct Call {
  CommunicatorPointer communicator = {};
  std::shared_ptr<driver::Stream> stream = {};
  Operation operation = Operation::kSend;
  std::uint64_t from = 0;  // addresses
  std::uint64_t to = 0;
  std::uint64_t count = 0;
  int type = 0;
  int reduction = 0;
  int root = 0;  // the root, or the peer
};

// The bytes of an element; 0 if there is no such type.
std::uint64_t type_bytes(int type);
// The code with which the call is refused, or kNcclSuccess if it is correct.
abi::NcclResult check(const Call& call);

// The work of these calls, which have the same communicator and stream. *peers becomes the ranks
// with which messages are exchanged.
driver::Work messages_work(const std::vector<Call>& calls, std::vector<int>* peers);

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_MESSAGES_H_
