#ifndef ANNULUS_SIMULATOR_NCCL_GROUP_H_
#define ANNULUS_SIMULATOR_NCCL_GROUP_H_

// Groups of calls: of a thread, nested, acting at the end of the outermost one.

#include <vector>

#include "simulator/nccl/communicator.h"
#include "simulator/nccl/messages.h"

namespace annulus::simulator::nccl {

class Group {
 public:
  static Group& of_thread();

  void begin() { ++depth_; }
  abi::NcclResult end();
  // A communicator of the process could not be made: NCCL leaves the thread inside a group then.
  void stay_inside() { ++depth_; }

  // Ends the group without its calls, as an end that fails does.
  void leave() noexcept;

  // The call acts at the end of the group, or at once outside of one.
  abi::NcclResult add(const Call& call);
  abi::NcclResult add(const CommunicatorPointer& started);

  // An argument error inside a group: the call alone reports it, and the group is dropped at its
  // end with this code.
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
