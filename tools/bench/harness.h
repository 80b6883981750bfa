#ifndef ANNULUS_TOOLS_BENCH_HARNESS_H_
#define ANNULUS_TOOLS_BENCH_HARNESS_H_

// Measurements that are reliable on a machine that other programs share. All measurements of a
// program run interleaved, round after round, and each round also runs a plain calibration loop. A
// figure is the median over the rounds. The result is a table on stdout and, with --output, a JSON
// file with every single value, the calibration of its round and a description of the machine.
//
//   int main(int argc, char** argv) {
//     annulus::bench::Bench bench("sim_bench", argc, argv);
//     bench.add({.name = "checked, one core", .unit = "M/s", .bar = 12}, [&] { return ...; });
//     return bench.run();
//   }
//
// All programs have the options --output FILE, --rounds N (default 5), --filter TEXT and --commit
// TEXT. With --rounds 0 every measurement only warms up, so that a test can run the program to its
// end.

#include <functional>
#include <string>
#include <vector>

namespace annulus::bench {

struct Figure {
  std::string name;
  std::string unit;
  double bar = 0;  // the target; 0: none
  bool lower_is_better = false;
};

class Bench {
 public:
  // Parses the options. A wrong option prints the usage and exits with 2.
  Bench(std::string program, int argc, char** argv);

  // `measure` does the work once and returns the value in the unit of the figure. It is called once
  // to warm up, and then once in each round.
  void add(Figure figure, std::function<double()> measure);

  // Adds a figure that is computed in each round from two other figures of the round, given by
  // name: first / second.
  void add_ratio(Figure figure, std::string first, std::string second);

  // Measures, prints and writes. Returns the exit code of the program. It is 0 even if a target is
  // missed, because a loaded machine is not a defect. It is 1 if a measurement throws or if the
  // filter selects no figure.
  int run();

 private:
  struct Entry {
    Figure figure;
    std::function<double()> measure;  // empty for a ratio
    std::string first;
    std::string second;
    std::vector<double> values;
  };
  void measure_round(bool keep);
  void print() const;
  void write() const;

  std::string program_;
  std::string command_;
  std::string output_;
  std::string filter_;
  std::string commit_;
  int rounds_ = 5;
  std::vector<Entry> entries_;
  std::vector<double> calibration_;  // one value per round
};

double median(std::vector<double> values);  // 0 if empty

// Seconds of wall time, of processor time of the process, and of processor time of the calling
// thread. Processor times exclude the time of other programs.
double wall_seconds();
double process_seconds();
double thread_seconds();

// Million steps per second of a fixed integer loop on one core. The number shows the current speed
// of the machine.
double calibrate();

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_HARNESS_H_
