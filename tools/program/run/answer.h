#ifndef ANNULUS_PROGRAM_RUN_ANSWER_H_
#define ANNULUS_PROGRAM_RUN_ANSWER_H_

// The answer that annulus run keeps in host memory.

#include <vector>

#include "program/input/host_tensor.h"

namespace annulus::program {

struct Answer {
  HostTensor o;
  std::vector<float> lse;      // [B, H, Sq]
  std::vector<double> millis;  // the time of each repetition
};

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_ANSWER_H_
