#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_PARAMETERS_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_PARAMETERS_H_

// Conversions of the structs in which programs describe the nodes of graphs. All of these functions
// throw Refusal.

#include "simulator/driver/objects/graph.h"

namespace annulus::simulator::driver {

// `whole`: the struct has the members of its second version (CUDA 12).
NodeParameters kernel_parameters(const KernelNodeParameters* asked, bool whole,
                                 std::vector<entry::LaunchAttribute> attributes);
NodeParameters copy_parameters(const Copy3d* copy, abi::CUcontext context);
NodeParameters fill_parameters(const MemsetNodeParameters* fill, abi::CUcontext context);
NodeParameters host_parameters(const HostNodeParameters* host);
NodeParameters child_parameters(abi::CUgraph child);
NodeParameters event_parameters(int type, abi::CUevent event);
NodeParameters any_parameters(const AnyNodeParameters* asked,
                              std::vector<entry::LaunchAttribute> attributes);

// The parameters of a kernel node, with other attributes.
NodeParameters with_attributes(const NodeParameters& kernel,
                               std::vector<entry::LaunchAttribute> attributes);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_PARAMETERS_H_
