#ifndef ANNULUS_EXCHANGE_SURVIVORS_H_
#define ANNULUS_EXCHANGE_SURVIVORS_H_

// Decides which ranks continue if some ranks have gone or are late. Each rank sends a list of the
// ranks that it accepts as members of the next generation. The first list has all ranks that it has
// no reason to leave out. Later it removes each rank that another member leaves out. When all
// members have sent the same list, that list is decided. Lists only become shorter, so the
// procedure ends. A rank that has decided sends its decision, and the others adopt it: they have
// all sent the decided list before.

#include <optional>
#include <span>
#include <vector>

namespace annulus::exchange {

class Survivors {
 public:
  // This object belongs to rank `rank` of `ranks`. It leaves out the ranks `without`, but never
  // itself.
  Survivors(int rank, int ranks, std::span<const int> without);

  // In ascending order.
  const std::vector<int>& members() const { return members_; }
  bool has(int rank) const;

  void gone(int rank);
  void heard(int from, std::span<const int> members);
  void decided(int from, std::span<const int> members);
  // Leaves out the ranks that have sent no list.
  void leave_out_silent();

  // Whether members() has changed since the last call, or since construction. If it has, the list
  // must be sent to the others.
  bool take_change();
  bool agreed() const;
  // The rank that leaves this one out, if this rank cannot continue. That is the case if a member
  // leaves it out, or if the ranks that leave it out are as many as the members and may have
  // continued already.
  std::optional<int> left_out_by() const;
  // The members that have sent no list or a different one.
  std::vector<int> awaited() const;

 private:
  template <typename Stays>
  void keep(const Stays& stays);

  int rank_;
  std::vector<int> members_;
  // the lists that were received, indexed by rank
  std::vector<std::optional<std::vector<int>>> said_;
  bool changed_ = true;
  bool decided_ = false;
  std::optional<int> left_out_by_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_SURVIVORS_H_
