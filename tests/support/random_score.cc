#include "support/random_score.h"

namespace annulus::test {
namespace {

using E = ScoreExpression;

struct Maker {
  base::Random& random;
  bool tame;

  int below(int n) { return static_cast<int>(random.below(static_cast<std::uint32_t>(n))); }

  E integer(int depth) {
    const auto [score, b, h, q, k] = score_variables();
    if (depth <= 0 || below(4) == 0) {
      switch (below(5)) {
        case 0:
          return b;
        case 1:
          return h;
        case 2:
          return q;
        case 3:
          return k;
        default:
          return below(200) - 100;
      }
    }
    const auto part = [&] { return integer(depth - 1); };
    switch (below(11)) {
      case 0:
        return part() + part();
      case 1:
        return part() - part();
      case 2:
        return tame ? k - q : part() * part();
      case 3:
        return div(part(), tame ? E(1 + below(9)) : part());
      case 4:
        return mod(part(), part());
      case 5:
        return min(part(), part());
      case 6:
        return max(part(), part());
      case 7:
        return abs(part());
      case 8:
        return where(truth(depth - 1), part(), part());
      case 9:
        return ScoreTable::integers({3, -4, 8, 0, 250, -7})(part());
      default:
        return -part();
    }
  }

  E truth(int depth) {
    const auto part = [&] { return tame || below(2) == 0 ? integer(depth - 1) : real(depth - 1); };
    switch (depth <= 0 ? below(6) : below(9)) {
      case 0:
        return part() < part();
      case 1:
        return part() <= part();
      case 2:
        return part() > part();
      case 3:
        return part() >= part();
      case 4:
        return eq(part(), part());
      case 5:
        return ne(part(), part());
      case 6:
        return truth(depth - 1) & truth(depth - 1);
      case 7:
        return truth(depth - 1) | truth(depth - 1);
      default:
        return ~truth(depth - 1);
    }
  }

  E real(int depth) {
    const auto [score, b, h, q, k] = score_variables();
    if (depth <= 0 || below(5) == 0) {
      return below(3) > 0 ? score : E(random.normal());
    }
    const auto part = [&] { return real(depth - 1); };
    const auto bounded = [&] { return tame ? E(max(-4.0, min(part(), 4.0))) : part(); };
    const auto near_one = [&] { return tame ? E(1.5 + tanh(part())) : part(); };
    switch (below(17)) {
      case 0:
        return part() + part();
      case 1:
        return part() - part();
      case 2:
        return bounded() * bounded();
      case 3:
        return bounded() / near_one();
      case 4:
        return min(part(), part());
      case 5:
        return max(part(), part());
      case 6:
        return abs(part());
      case 7:
        return tame ? floor(integer(depth - 1) * 0.125 + 0.0625) * 0.01 : floor(part());
      case 8:
        return sqrt(near_one());
      case 9:
        return exp(bounded());
      case 10:
        return exp2(bounded());
      case 11:
        return log(near_one());
      case 12:
        return log2(near_one());
      case 13:
        return tanh(part()) + sigmoid(part());
      case 14:
        return where(truth(depth - 1), part(), part());
      case 15:
        return ScoreTable::reals({0.5, -1, 2, 0.25, 3, -0.75}, 3)(integer(depth - 1),
                                                                  integer(depth - 1));
      default:
        return part() + 0.01 * (tame ? E(mod(integer(depth - 1), 300)) : integer(depth - 1));
    }
  }
};

}  // namespace

ScoreExpression random_score_expression(base::Random& random, int depth) {
  Maker maker{random, false};
  return maker.below(4) == 0 ? maker.integer(depth) : maker.real(depth);
}

ScoreExpression tame_score_expression(base::Random& random, int depth) {
  return Maker{random, true}.real(depth);
}

}  // namespace annulus::test
