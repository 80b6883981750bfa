// The public interface of score expressions (annulus/score.h).
#include "annulus/score.h"

#include "attention/score/score_node.h"
#include "base/fail.h"

namespace annulus::inline v0 {

using attention::ScoreNodePointer;

ScoreExpression::ScoreExpression()
    : node_(attention::make_score_node(detail::ScoreOperation::kScore, {})) {}

ScoreExpression::ScoreExpression(std::shared_ptr<const detail::ScoreNode> node)
    : node_(std::move(node)) {
  if (node_ == nullptr) {
    base::fail(ErrorCode::kInvalidArgument, "a score expression needs a node, not null");
  }
}

ScoreExpression ScoreExpression::number(std::int64_t value) {
  return ScoreExpression(attention::make_score_integer(value));
}

ScoreExpression ScoreExpression::number(double value) {
  return ScoreExpression(attention::make_score_real(value));
}

ScoreExpression ScoreExpression::make(detail::ScoreOperation operation,
                                      const std::vector<ScoreExpression>& operands) {
  std::vector<ScoreNodePointer> children;
  for (const ScoreExpression& operand : operands) children.push_back(operand.node_);
  return ScoreExpression(attention::make_score_node(operation, std::move(children)));
}

bool operator==(const ScoreExpression& a, const ScoreExpression& b) {
  return attention::equal(a.node(), b.node());
}

ScoreVariables score_variables() {
  using Op = detail::ScoreOperation;
  const auto variable = [](Op operation) {
    return ScoreExpression(attention::make_score_node(operation, {}));
  };
  return {variable(Op::kScore), variable(Op::kBatch), variable(Op::kHead), variable(Op::kQuery),
          variable(Op::kKey)};
}

ScoreTable::ScoreTable(std::shared_ptr<const detail::ScoreTableData> data)
    : data_(std::move(data)) {}

ScoreTable ScoreTable::reals(std::vector<double> values, std::int64_t columns) {
  detail::ScoreTableData data;
  data.columns = columns;
  data.reals = std::move(values);
  return ScoreTable(attention::make_score_table(std::move(data)));
}

ScoreTable ScoreTable::integers(std::vector<std::int32_t> values, std::int64_t columns) {
  detail::ScoreTableData data;
  data.whole = true;
  data.columns = columns;
  data.integers = std::move(values);
  return ScoreTable(attention::make_score_table(std::move(data)));
}

ScoreExpression ScoreTable::operator()(const ScoreExpression& i) const {
  return ScoreExpression(attention::make_score_lookup(data_, {i.shared_node()}));
}

ScoreExpression ScoreTable::operator()(const ScoreExpression& i, const ScoreExpression& j) const {
  return ScoreExpression(attention::make_score_lookup(data_, {i.shared_node(), j.shared_node()}));
}

}  // namespace annulus::inline v0
