#pragma once

#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {

/// A member function and the object to call it on: what goes on when a wait is over. Two pointers, where a
/// std::function is four.
struct Callback {
  void (*function)(void*) = nullptr;
  void* object = nullptr;

  void operator()() const { function(object); }
  explicit operator bool() const { return function != nullptr; }
};
static_assert(Continuation<Callback>);

/// callback<&Class::method>(object)
template <auto method, typename Object>
Callback callback(Object& object) {
  return {[](void* target) { (static_cast<Object*>(target)->*method)(); }, &object};
}

}  // namespace netdyno
