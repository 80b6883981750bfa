#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_PARAMETERS_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_PARAMETERS_H_

// The structs by which programs say what a node of a graph does. All of these throw Refusal.

#include "simulator/driver/objects/graph.h"

namespace annulus::simulator::driver {

// `whole`: the struct has the members of its second version.
NodeParameters kernel_parameters(const KernelNodeParameters* asked, bool whole,
                                 std::vector<entry::LaunchAttribute> attributes);
NodeParameters copy_parameters(const Copy3d* copy, abi::CUcontext context);
NodeParameters fill_parameters(const MemsetNodeParameters* fill, abi::CUcontext context);
NodeParameters host_parameters(const HostNodeParameters* host);
NodeParameters child_parameters(abi::CUgraph child);
NodeParameters event_parameters(int type, abi::CUevent event);
NodeParameters any_parameters(const AnyNodeParameters* asked,
                              std::vector<entry::LaunchAttribute> attributes);

// The launch of a kernel node with other attributes.
NodeParameters with_attributes(const NodeParameters& kernel,
                               std::vector<entry::LaunchAttribute> attributes);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_PARAMETERS_H_
