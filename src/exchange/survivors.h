#ifndef ANNULUS_EXCHANGE_SURVIVORS_H_
#define ANNULUS_EXCHANGE_SURVIVORS_H_

// Who goes on where ranks have gone or are late. Each rank says whom it takes for a member of the
// next generation, at first all that it has no reason to leave out, and takes out whoever another
// member leaves out. Where all of them say the same, that is decided. Lists only get shorter, so it
// ends. A rank that has decided says so, and the others follow it: what it decided, all of them
// have said.

#include <optional>
#include <span>
#include <vector>

namespace annulus::exchange {

class Survivors {
 public:
  // `rank` of `ranks` leaves out `without`, and never itself.
  Survivors(int rank, int ranks, std::span<const int> without);

  // Ascending.
  const std::vector<int>& members() const { return members_; }
  bool has(int rank) const;

  void gone(int rank);
  void heard(int from, std::span<const int> members);
  void decided(int from, std::span<const int> members);
  // Leaves out those who have said nothing.
  void leave_out_silent();

  // Whether members() has changed since this was asked last, or since the beginning: the others
  // have to be told.
  bool take_change();
  bool agreed() const;
  // The rank that leaves this one out, if there is no way to go on: a member does, or as many
  // others as there are members, who may have gone on already.
  std::optional<int> left_out_by() const;
  // Members that have said nothing, or something else.
  std::vector<int> awaited() const;

 private:
  template <typename Stays>
  void keep(const Stays& stays);

  int rank_;
  std::vector<int> members_;
  std::vector<std::optional<std::vector<int>>> said_;  // by rank
  bool changed_ = true;
  bool decided_ = false;
  std::optional<int> left_out_by_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_SURVIVORS_H_
