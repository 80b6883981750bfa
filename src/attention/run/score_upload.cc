#include "attention/run/score_upload.h"

#include <algorithm>

namespace annulus::attention {

ScoreUpload::ScoreUpload(const Score& score, const ScoreTables& tables, const ScoreCode& code,
                         Packed* packed)
    : slopes_(packed->add(tables.slopes)),
      bias_(packed->add(tables.bias)),
      sinks_(packed->add(tables.sinks)),
      words_(packed->add(code.words)) {
  numbers_.slope_count = static_cast<int>(tables.slopes.size());
  numbers_.bias_reach = static_cast<int>(tables.bias_reach);
  numbers_.bias_count = static_cast<int>(score.bias.size());
  numbers_.sink_count = static_cast<int>(tables.sinks.size());
  std::copy(code.numbers.begin(), code.numbers.end(), numbers_.numbers);
}

kernels::ScoreParams ScoreUpload::params(const device::Buffer& uploaded) const {
  kernels::ScoreParams params = numbers_;
  params.slopes = pointer<float>(uploaded, slopes_);
  params.bias = pointer<float>(uploaded, bias_);
  params.sinks = pointer<float>(uploaded, sinks_);
  params.words = pointer<int>(uploaded, words_);
  return params;
}

}  // namespace annulus::attention
