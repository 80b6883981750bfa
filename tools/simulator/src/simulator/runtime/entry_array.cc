// Channel formats, the only part of arrays and textures that is supported. They need no device.

#include "simulator/runtime/entries.h"

namespace annulus::simulator::runtime {

extern "C" ChannelFormat cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}

}  // namespace annulus::simulator::runtime
