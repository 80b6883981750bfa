#ifndef ANNULUS_PROGRAM_RUN_STREAM_H_
#define ANNULUS_PROGRAM_RUN_STREAM_H_

// Streams and the timing of runs. They use functions of the driver that the device provides, as any
// program can that does not link a driver.

#include <functional>
#include <memory>

#include "annulus/device.h"

namespace annulus::program {

// A CUstream that does not wait for the default stream. It is destroyed with the last copy of the
// pointer. The pointer also keeps the device alive.
using Stream = std::shared_ptr<void>;
Stream make_stream(const Device& device);

// Whether the work on the stream has ended. Throws if a kernel failed.
bool has_ended(const Device& device, const Stream& stream);

// Waits for the work that `launch` puts on the default stream, and returns its milliseconds. On a
// GPU they are the time between two events. On a simulated device they are wall time of the host.
double timed_millis(const Device& device, const std::function<void()>& launch);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_STREAM_H_
