#ifndef ANNULUS_PROGRAM_RUN_STREAM_H_
#define ANNULUS_PROGRAM_RUN_STREAM_H_

// Streams, and how long a run takes, by functions of the driver that the device uses: what any
// program does that links no driver of its own.

#include <functional>
#include <memory>

#include "annulus/device.h"

namespace annulus::program {

// A CUstream that does not wait for the default stream. Destroyed with the last copy of the
// pointer, which also keeps the device.
using Stream = std::shared_ptr<void>;
Stream make_stream(const Device& device);

// Whether the work on the stream has ended. Throws where a kernel did wrong.
bool has_ended(const Device& device, const Stream& stream);

// Waits for what `launch` puts on the default stream, and returns the milliseconds it took: between
// two events on a GPU; of a simulated device wall time of this machine.
double timed_millis(const Device& device, const std::function<void()>& launch);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_STREAM_H_
