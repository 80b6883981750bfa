#ifndef ANNULUS_TESTS_C_ABI_SAMPLE_H_
#define ANNULUS_TESTS_C_ABI_SAMPLE_H_

// A small problem with its tensors on a device, and its answer computed here in double.

#include <annulus/c.h>

enum { kRows = 40, kHeads = 4, kKvHeads = 2, kDim = 32 };

typedef struct sample {
  annulus_device* device;
  annulus_problem problem;  // dense, bf16
  annulus_operands operands;
  float q[kRows * kHeads * kDim];  // as the device reads them
  float k[kRows * kKvHeads * kDim];
  float v[kRows * kKvHeads * kDim];
} sample;

// A device of the tests: ANNULUS_DEVICE or "sim:sm_80", with the options changed by the caller.
annulus_device_options sample_options(void);
annulus_device* sample_open(void);

// Allocates and fills on an opened device. The operands' memory goes with the device.
void sample_make(sample* made, annulus_device* device);

typedef int (*sample_visible)(int q, int k);
int sample_causal(int q, int k);
int sample_all(int q, int k);

// Largest difference of O on the device from the definition, of all heads and rows; where `lse` is
// given, of the natural LSE as well. Waits for the device.
double sample_error(const sample* made, sample_visible visible, const float* lse);

// sample_error of one head, and of O alone.
double sample_head_error(const sample* made, int head, sample_visible visible);

// Forgets the answer.
void sample_clear(const sample* made);

#endif  // ANNULUS_TESTS_C_ABI_SAMPLE_H_
