#include "c_abi/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"

static uint32_t bits_of(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float value_of(uint16_t bf16) {
  const uint32_t bits = (uint32_t)bf16 << 16;
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

annulus_device_options sample_options(void) {
  annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
  if (getenv("ANNULUS_DEVICE") == NULL) options.name = "sim:sm_80";
  return options;
}

annulus_device* sample_open(void) {
  const annulus_device_options options = sample_options();
  annulus_device* device = NULL;
  CHECK_OK(annulus_device_open(&options, &device));
  return device;
}

// Random numbers in (-1, 1), as bf16 on the device and as float in `host`.
static void* random_tensor(annulus_device* device, float* host, size_t count, uint32_t seed) {
  uint16_t* bits = malloc(count * 2);
  void* memory = NULL;
  size_t i = 0;
  for (i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    bits[i] = (uint16_t)(bits_of((float)(seed >> 8) / 8388608.0f - 1.0f) >> 16);
    host[i] = value_of(bits[i]);
  }
  CHECK_OK(annulus_device_allocate(device, count * 2, &memory));
  CHECK_OK(annulus_device_copy_to_device(device, memory, bits, count * 2));
  free(bits);
  return memory;
}

void sample_make(sample* made, annulus_device* device) {
  const annulus_problem problem = ANNULUS_PROBLEM_INIT;
  const annulus_operands operands = ANNULUS_OPERANDS_INIT;
  const annulus_strides q_strides = {kRows * kHeads * kDim, kDim, kHeads * kDim};
  const annulus_strides k_strides = {kRows * kKvHeads * kDim, kDim, kKvHeads * kDim};
  made->device = device;
  made->problem = problem;
  made->problem.heads = kHeads;
  made->problem.kv_heads = kKvHeads;
  made->problem.seq_q = made->problem.seq_k = kRows;
  made->problem.dim_qk = made->problem.dim_v = kDim;
  made->operands = operands;
  made->operands.q_strides = made->operands.o_strides = q_strides;
  made->operands.k_strides = made->operands.v_strides = k_strides;
  made->operands.q = random_tensor(device, made->q, kRows * kHeads * kDim, 1);
  made->operands.k = random_tensor(device, made->k, kRows * kKvHeads * kDim, 2);
  made->operands.v = random_tensor(device, made->v, kRows * kKvHeads * kDim, 3);
  CHECK_OK(annulus_device_allocate(device, kRows * kHeads * kDim * 2, &made->operands.o));
  sample_clear(made);
}

void sample_clear(const sample* made) {
  const size_t bytes = kRows * kHeads * kDim * 2;
  void* nan = malloc(bytes);
  memset(nan, 0xff, bytes);
  CHECK_OK(annulus_device_copy_to_device(made->device, made->operands.o, nan, bytes));
  free(nan);
}

int sample_causal(int q, int k) { return k <= q; }
int sample_all(int q, int k) { return q >= 0 && k >= 0; }

// The larger of two numbers. NaN counts as infinitely large.
static double larger(double a, double b) { return a >= b ? a : (isnan(b) ? HUGE_VAL : b); }

static double row_error(const sample* made, sample_visible visible, int head, int q,
                        const uint16_t* o, const float* lse) {
  const int kv_head = head / (kHeads / kKvHeads);
  double scores[kRows];
  double peak = -HUGE_VAL;
  double sum = 0;
  double error = 0;
  int k = 0;
  int d = 0;
  for (k = 0; k < kRows; ++k) {
    double score = 0;
    for (d = 0; d < kDim; ++d) {
      score += (double)made->q[(q * kHeads + head) * kDim + d] *
               (double)made->k[(k * kKvHeads + kv_head) * kDim + d];
    }
    scores[k] = visible(q, k) ? score / sqrt((double)kDim) : -HUGE_VAL;
    if (scores[k] > peak) peak = scores[k];
  }
  for (k = 0; k < kRows; ++k) sum += scores[k] = exp(scores[k] - peak);
  for (d = 0; d < kDim; ++d) {
    double expected = 0;
    for (k = 0; k < kRows; ++k) {
      expected += scores[k] / sum * (double)made->v[(k * kKvHeads + kv_head) * kDim + d];
    }
    error = larger(error, fabs((double)value_of(o[(q * kHeads + head) * kDim + d]) - expected));
  }
  if (lse != NULL) error = larger(error, fabs((double)lse[head * kRows + q] - peak - log(sum)));
  return error;
}

// The largest difference over the heads [first, last).
static double heads_error(const sample* made, int first, int last, sample_visible visible,
                          const float* lse) {
  uint16_t* o = malloc(kRows * kHeads * kDim * 2);
  double error = 0;
  int head = 0;
  int q = 0;
  CHECK_OK(annulus_device_synchronize(made->device));
  CHECK_OK(
      annulus_device_copy_to_host(made->device, o, made->operands.o, kRows * kHeads * kDim * 2));
  for (head = first; head < last; ++head) {
    for (q = 0; q < kRows; ++q) {
      error = larger(error, row_error(made, visible, head, q, o, lse));
    }
  }
  free(o);
  return error;
}

double sample_error(const sample* made, sample_visible visible, const float* lse) {
  return heads_error(made, 0, kHeads, visible, lse);
}

double sample_head_error(const sample* made, int head, sample_visible visible) {
  return heads_error(made, head, head + 1, visible, NULL);
}
