#ifndef ANNULUS_BENCH_MODEL_MODEL_H_
#define ANNULUS_BENCH_MODEL_MODEL_H_

// The verbs of the program `model`. Each takes its own arguments and returns the exit status.
// argv[0] is the name for a usage line.

namespace annulus::bench {

int batch_predictions(int argc, char** argv);
int calibration(int argc, char** argv);
int choices(int argc, char** argv);
int core_model(int argc, char** argv);
int predictions(int argc, char** argv);
int static_proof(int argc, char** argv);

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_MODEL_MODEL_H_
