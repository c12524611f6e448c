#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace netdyno {

/// First in, first out, in one block of memory that is kept: once it has grown, it allocates no more (std::deque
/// frees and allocates a chunk every few items). Only a large block is given back when it is empty.
template <typename Item>
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  std::size_t size() const { return items_.size() - head_; }
  Item& operator[](std::size_t i) { return items_[head_ + i]; }

  void push(Item item) { items_.push_back(std::move(item)); }
  Item pop() {
    Item item = std::move(items_[head_++]);
    if (empty()) {
      clear();
    } else if (head_ > items_.size() / 2) {  // as many moved as popped before: constant time on average
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return item;
  }
  void clear() {
    if (items_.capacity() * sizeof(Item) > most_kept) {
      items_ = std::vector<Item>{};
    } else {
      items_.clear();
    }
    head_ = 0;
  }

 private:
  static constexpr std::size_t most_kept = 64 << 10;

  std::vector<Item> items_;
  std::size_t head_ = 0;
};

}  // namespace netdyno
