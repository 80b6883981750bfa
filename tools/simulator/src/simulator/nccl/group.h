#ifndef ANNULUS_SIMULATOR_NCCL_GROUP_H_
#define ANNULUS_SIMULATOR_NCCL_GROUP_H_

// Groups of calls. A group belongs to a thread, can be nested, and acts when its outermost level
// ends.

#include <vector>

#include "simulator/nccl/communicator.h"
#include "simulator/nccl/messages.h"

namespace annulus::simulator::nccl {

class Group {
 public:
  static Group& of_thread();

  void begin() { ++depth_; }
  abi::NcclResult end();
  // Called when a communicator of the process could not be made. NCCL then leaves the thread inside
  // a group.
  void stay_inside() { ++depth_; }

  // Ends the group without its calls, like an end that fails.
  void leave() noexcept;

  // The call acts at the end of the group, or at once outside of a group.
  abi::NcclResult add(const Call& call);
  abi::NcclResult add(const CommunicatorPointer& started);

  // Records an argument error inside a group. Only the call itself reports the error. At its end
  // the group is dropped and returns this code.
  abi::NcclResult fail(abi::NcclResult code);

 private:
  abi::NcclResult act();
  abi::NcclResult meet();
  abi::NcclResult exchange();

  int depth_ = 0;
  abi::NcclResult failure_ = abi::kNcclSuccess;
  std::vector<Call> calls_;
  std::vector<CommunicatorPointer> started_;
};

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_GROUP_H_
