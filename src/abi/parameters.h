#ifndef ANNULUS_ABI_PARAMETERS_H_
#define ANNULUS_ABI_PARAMETERS_H_

// Macros for functions that are generated from a list such as abi/cuda.def, whose lines have the
// parameters in parentheses. They count the parameters, declare them with names, and pass them on.
//
// ANNULUS_DECLARE_2(int(char, float)) is `char a, float b`, and ANNULUS_PASS_2 is `a, b`. The
// number comes from ANNULUS_COUNT, applied to the parentheses of the line.

#include <cstddef>
#include <tuple>

namespace annulus::abi {

// The type of a parameter of a function.
template <typename Function, std::size_t kIndex>
struct ParameterOf;
template <typename Result, typename... Parameters, std::size_t kIndex>
struct ParameterOf<Result(Parameters...), kIndex> {
  using Type = std::tuple_element_t<kIndex, std::tuple<Parameters...>>;
};

}  // namespace annulus::abi

// Counts the parameters of a list of up to twelve.
#define ANNULUS_COUNT(...) \
  ANNULUS_COUNT_OF(__VA_ARGS__ __VA_OPT__(, ) 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ANNULUS_COUNT_OF(a, b, c, d, e, f, g, h, i, j, k, l, count, ...) count

#define ANNULUS_PARAMETER(function, index, name) \
  ::annulus::abi::ParameterOf<function, index>::Type name
#define ANNULUS_DECLARE_0(function)
#define ANNULUS_DECLARE_1(function) ANNULUS_PARAMETER(function, 0, a)
#define ANNULUS_DECLARE_2(function) ANNULUS_DECLARE_1(function), ANNULUS_PARAMETER(function, 1, b)
#define ANNULUS_DECLARE_3(function) ANNULUS_DECLARE_2(function), ANNULUS_PARAMETER(function, 2, c)
#define ANNULUS_DECLARE_4(function) ANNULUS_DECLARE_3(function), ANNULUS_PARAMETER(function, 3, d)
#define ANNULUS_DECLARE_5(function) ANNULUS_DECLARE_4(function), ANNULUS_PARAMETER(function, 4, e)
#define ANNULUS_DECLARE_6(function) ANNULUS_DECLARE_5(function), ANNULUS_PARAMETER(function, 5, f)
#define ANNULUS_DECLARE_7(function) ANNULUS_DECLARE_6(function), ANNULUS_PARAMETER(function, 6, g)
#define ANNULUS_DECLARE_8(function) ANNULUS_DECLARE_7(function), ANNULUS_PARAMETER(function, 7, h)
#define ANNULUS_DECLARE_9(function) ANNULUS_DECLARE_8(function), ANNULUS_PARAMETER(function, 8, i)
#define ANNULUS_DECLARE_10(function) ANNULUS_DECLARE_9(function), ANNULUS_PARAMETER(function, 9, j)
#define ANNULUS_DECLARE_11(function) \
  ANNULUS_DECLARE_10(function), ANNULUS_PARAMETER(function, 10, k)
#define ANNULUS_DECLARE_12(function) \
  ANNULUS_DECLARE_11(function), ANNULUS_PARAMETER(function, 11, l)
#define ANNULUS_PASS_0
#define ANNULUS_PASS_1 a
#define ANNULUS_PASS_2 ANNULUS_PASS_1, b
#define ANNULUS_PASS_3 ANNULUS_PASS_2, c
#define ANNULUS_PASS_4 ANNULUS_PASS_3, d
#define ANNULUS_PASS_5 ANNULUS_PASS_4, e
#define ANNULUS_PASS_6 ANNULUS_PASS_5, f
#define ANNULUS_PASS_7 ANNULUS_PASS_6, g
#define ANNULUS_PASS_8 ANNULUS_PASS_7, h
#define ANNULUS_PASS_9 ANNULUS_PASS_8, i
#define ANNULUS_PASS_10 ANNULUS_PASS_9, j
#define ANNULUS_PASS_11 ANNULUS_PASS_10, k
#define ANNULUS_PASS_12 ANNULUS_PASS_11, l

#endif  // ANNULUS_ABI_PARAMETERS_H_
