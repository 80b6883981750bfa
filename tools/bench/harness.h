#ifndef ANNULUS_TOOLS_BENCH_HARNESS_H_
#define ANNULUS_TOOLS_BENCH_HARNESS_H_

// Measurements that hold on a machine which other work shares. All measurements of a program run
// interleaved, round after round, and each round also runs a plain calibration loop; a figure is
// the median over the rounds. The result is a table on stdout and, with --output, one JSON file
// with every single value, the calibration of its round and the machine.
//
//   int main(int argc, char** argv) {
//     annulus::bench::Bench bench("sim_bench", argc, argv);
//     bench.add({.name = "checked, one core", .unit = "M/s", .bar = 12}, [&] { return ...; });
//     return bench.run();
//   }
//
// Options of every program: --output FILE, --rounds N (default 5), --filter TEXT, --commit TEXT.
// With --rounds 0 every measurement only warms up, so that a test can run the program to its end.

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
  // Reads the options; a wrong one prints the usage and exits with 2.
  Bench(std::string program, int argc, char** argv);

  // `measure` does the work once and returns the value in the unit of the figure. It is called
  // once to warm up and then once a round.
  void add(Figure figure, std::function<double()> measure);

  // A figure computed in each round from two others of that round, by name: first / second.
  void add_ratio(Figure figure, std::string first, std::string second);

  // Measures, prints, writes. Returns the exit code of the program: 0 also where a target is
  // missed, because a loaded machine is not a defect; 1 where a measurement throws or the filter
  // leaves none.
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
  std::vector<double> calibration_;  // per round
};

double median(std::vector<double> values);  // 0 when empty

// Seconds of wall time, and of processor time of the whole process or of the calling thread. The
// latter two do not count the time that other programs take.
double wall_seconds();
double process_seconds();
double thread_seconds();

// Million steps a second of a fixed integer loop on one core, which tells how fast the machine is
// at the moment.
double calibrate();

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_HARNESS_H_
