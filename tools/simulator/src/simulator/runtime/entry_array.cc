// Channel formats, which are all of arrays and textures that is here: they need no device.

#include "simulator/runtime/entries.h"

namespace annulus::simulator::runtime {

extern "C" ChannelFormat cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}

}  // namespace annulus::simulator::runtime
