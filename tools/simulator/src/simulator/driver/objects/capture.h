#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_CAPTURE_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_CAPTURE_H_

// The rules of stream capture, except for the recording itself (Stream::submit). A stream joins a
// capture when it waits for an event that was recorded in the capture. It leaves when the origin
// waits for the last of its work. It is an error to end a capture that still has work which was not
// joined.

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// If `stream` is under capture, makes the capture invalid and throws
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: the host cannot wait for work that was never queued.
void refuse_capturing(Stream& stream);

// Stores that `event` marks a point of a capture. Returns false if the stream is not under capture.
bool capture_record(Stream& stream, Event& event);

// Makes `stream` wait for a captured `event`. For an ordinary event it does nothing.
abi::CUresult join_capture(Stream& stream, Event& event);

// Begins to record into `graph`, after its nodes `behind`. If `graph` is null, a new graph is made.
abi::CUresult begin_capture(abi::CUstream stream, std::shared_ptr<Graph> graph,
                            std::vector<std::shared_ptr<GraphNode>> behind, int mode);

// Ends the part of a stream in its capture when the stream is destroyed. The capture becomes
// invalid.
void abandon_capture(Stream& stream);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_CAPTURE_H_
