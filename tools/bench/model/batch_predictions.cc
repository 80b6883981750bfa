// Prints the pipe model's predictions for decoding batches of requests (src/batch/batch_cost.h) on
// an A100 and an H200. It also prints the model's predictions for decoding kernels whose times were
// published by others. These are predictions and not measurements: no GPU is used and no kernel is
// compiled.
//
//   model batch_predictions                prints the tables
//   model batch_predictions --write FILE   puts them between the marks of a document
//   model batch_predictions --check FILE   exits 1 if the document has other tables

#include <fmt/core.h>

#include <string>

#include "batch_shapes.h"
#include "document.h"
#include "model/model.h"
#include "published.h"

namespace {

using namespace annulus;
using bench::BatchShape;
using bench::PredictedBatch;

// A published time of a decoding kernel of another program.
struct PublishedBatch {
  BatchShape shape;
  device::DeviceInfo device;
  double element_bytes;  // the size of an element of K and V
  double micros;
  int source;
};

std::vector<PublishedBatch> published_batches() {
  std::vector<PublishedBatch> all;
  const auto h100 = bench::h100(), h200 = bench::h200();
  all.push_back({{"TileOPs, B32 32/8 4k", 32, 32, 8, 4096, 128, 0}, h200, 2, 135, 1});
  all.push_back({{"TileOPs e4m3, B1 32/4 256k", 1, 32, 4, 262144, 128, 0}, h200, 1, 116.8, 2});
  all.push_back({{"TileOPs e4m3, B1 32/4 64k", 1, 32, 4, 65536, 128, 0}, h200, 1, 36.5, 2});
  all.push_back({{"TileOPs e4m3, B1 32/4 16k", 1, 32, 4, 16384, 128, 0}, h200, 1, 17.0, 2});
  all.push_back({{"TileOPs e4m3, B1 32/4 4k", 1, 32, 4, 4096, 128, 0}, h200, 1, 11.7, 2});
  all.push_back({{"FlashInfer, B1 20/4 16k", 1, 20, 4, 16384, 128, 0}, h100, 2, 25.1, 3});
  all.push_back({{"FlashInfer, B1 20/4 8k", 1, 20, 4, 8192, 128, 0}, h100, 2, 18.8, 3});
  all.push_back({{"FlashInfer, B1 20/4 4k", 1, 20, 4, 4096, 128, 0}, h100, 2, 15.9, 3});
  all.push_back({{"ONNX Runtime, B64 64/8 512", 64, 64, 8, 512, 128, 0}, h100, 2, 61.9, 4});
  all.push_back({{"ONNX Runtime, B64 64/8 256", 64, 64, 8, 256, 128, 0}, h100, 2, 39.5, 4});
  all.push_back({{"ONNX Runtime, B64 64/8 128", 64, 64, 8, 128, 128, 0}, h100, 2, 25.4, 4});
  return all;
}

constexpr const char* kSources =
    "[1] TileOPs pull request 2136: contiguous keys, cold L2; [2] TileOPs "
    "pull request 2132; [3] vllm-project/flash-attention pull request 63, pages of 16: its device "
    "is not named, and an H100 is assumed; [4] onnxruntime pull request 21414: a kernel of its "
    "own, "
    "pages of 16, fp16, on an H100.\n";

std::string table() {
  std::string made =
      "| step | device | parts of | predicted | share of the memory's rate | interval | bar | "
      "K and V | launches | first keys | uneven | joining | prepare, once a step |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  struct Device {
    const char* name;
    device::DeviceInfo info;
  };
  for (const Device& device : {Device{"A100", bench::a100()}, Device{"H200", bench::h200()}}) {
    for (const BatchShape& shape : bench::decode_shapes()) {
      const PredictedBatch predicted = bench::predict_batch(device.info, shape);
      const batch::StepPrediction& of = predicted.made;
      made += fmt::format(
          "| {} | {} | {} | {:.0f} us | {:.3f}{} | {:.2f} to {:.2f} | >= {:.2f} | {:.1f} | {:.1f} "
          "| {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n",
          shape.name, device.name, predicted.plan.classes.front().part_keys, of.predicted_micros,
          of.share(), of.share() < shape.bar ? " (missed)" : "", predicted.share.least,
          predicted.share.most, shape.bar, of.keys_micros, of.launch_micros, of.first_micros,
          of.uneven_micros, of.join_micros, of.predicted_prepare_micros);
    }
  }
  made +=
      "\n| kernel of others | published | ours, predicted | difference | interval |\n"
      "|---|---|---|---|---|\n";
  for (const PublishedBatch& one : published_batches()) {
    const PredictedBatch predicted = bench::predict_batch(one.device, one.shape, one.element_bytes);
    const double micros = predicted.made.predicted_micros;
    made +=
        fmt::format("| {} [{}] | {:.1f} us | {:.1f} us | {:+.1f} % | {:.0f} to {:.0f} us |\n",
                    one.shape.name, one.source, one.micros, micros, 100 * (micros / one.micros - 1),
                    predicted.micros.least, predicted.micros.most);
  }
  return made + "\n" + kSources;
}

}  // namespace

int annulus::bench::batch_predictions(int argc, char** argv) {
  return bench::make_table(argc, argv, "batch_predictions",
                           [] { return bench::MadeTable{table()}; });
}
