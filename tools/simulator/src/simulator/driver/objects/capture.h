#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_CAPTURE_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_CAPTURE_H_

// The rules of stream capture, apart from the recording itself (Stream::submit). A stream joins a
// capture when it waits for an event recorded in one, and leaves it when the origin waits for
// the last of its work; a capture that ends with work that was not joined is an error.

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// Ends with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and spoils the capture, where `stream` is
// under capture: the host cannot wait for work that was never queued.
void refuse_capturing(Stream& stream);

// Notes that `event` marks a point of a capture; false where the stream is not under capture.
bool capture_record(Stream& stream, Event& event);

// Does what a wait of `stream` for a captured `event` means. For an ordinary event it does nothing.
abi::CUresult join_capture(Stream& stream, Event& event);

// Begins to record in a graph, a new one where it is null, behind nodes of it.
abi::CUresult begin_capture(abi::CUstream stream, std::shared_ptr<Graph> graph,
                            std::vector<std::shared_ptr<GraphNode>> behind, int mode);

// A stream that is under capture is destroyed.
void abandon_capture(Stream& stream);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_CAPTURE_H_
