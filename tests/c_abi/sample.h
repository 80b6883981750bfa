#ifndef ANNULUS_TESTS_C_ABI_SAMPLE_H_
#define ANNULUS_TESTS_C_ABI_SAMPLE_H_

// A small problem with its tensors on a device, and the expected answer computed here in double.

#include <annulus/c.h>

enum { kRows = 40, kHeads = 4, kKvHeads = 2, kDim = 32 };

typedef struct sample {
  annulus_device* device;
  annulus_problem problem;  // dense, bf16
  annulus_operands operands;
  float q[kRows * kHeads * kDim];  // the values that the device reads
  float k[kRows * kKvHeads * kDim];
  float v[kRows * kKvHeads * kDim];
} sample;

// The options of the tests' device: ANNULUS_DEVICE or "sim:sm_80". The caller may change them.
annulus_device_options sample_options(void);
annulus_device* sample_open(void);

// Allocates and fills the tensors on an open device. The memory is released with the device.
void sample_make(sample* made, annulus_device* device);

typedef int (*sample_visible)(int q, int k);
int sample_causal(int q, int k);
int sample_all(int q, int k);

// The largest difference between O on the device and the definition, over all heads and rows. If
// `lse` is given, it includes the natural LSE. Waits for the device.
double sample_error(const sample* made, sample_visible visible, const float* lse);

// Like sample_error(), for one head and for O only.
double sample_head_error(const sample* made, int head, sample_visible visible);

// Clears the answer.
void sample_clear(const sample* made);

#endif  // ANNULUS_TESTS_C_ABI_SAMPLE_H_
