#ifndef ANNULUS_ATTENTION_RUN_SCORE_UPLOAD_H_
#define ANNULUS_ATTENTION_RUN_SCORE_UPLOAD_H_

// Uploads the tables and the code of a score to the device.

#include <cstddef>

#include "attention/score/score.h"
#include "attention/score/score_code.h"
#include "attention/tiles/packed.h"
#include "device/buffer.h"
#include "params/attention_params.h"

namespace annulus::attention {

class ScoreUpload {
 public:
  // Adds the tables and the code's words to the arrays of one upload.
  ScoreUpload(const Score& score, const ScoreTables& tables, const ScoreCode& code, Packed* packed);

  // The part of the score that a kernel reads. The pointers are into `uploaded`, a copy of the
  // packed bytes on the device, which must live as long as they are used.
  kernels::ScoreParams params(const device::Buffer& uploaded) const;

 private:
  kernels::ScoreParams numbers_{};  // without the pointers
  // Offsets of the arrays in the packed bytes.
  std::size_t slopes_;
  std::size_t bias_;
  std::size_t sinks_;
  std::size_t words_;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_RUN_SCORE_UPLOAD_H_
