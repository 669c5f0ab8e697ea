// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// A bounded cache of results that follow from their keys.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace dtensor {

/// Keeps the most recently used `capacity` values. Safe to use from several threads. A key may be
/// looked up by a view of its parts, which `KeyHash` hashes and `==` compares like the key, and of
/// which a key is made when it is not there.
template <class Key, class Value, class KeyHash>
class LruCache {
 public:
  explicit LruCache(std::size_t capacity) : capacity_(capacity) {}

  /// The value of a key; that of `make(view)` when it is not there. What `make` throws passes
  /// through.
  template <class View, class Make>
  Value get(const View& view, Make&& make) {
    std::lock_guard lock(mutex_);
    if (const auto found = index_.find(view); found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().value;
    }
    Value value = make(view);
    const auto [position, inserted] = index_.emplace(Key(view), entries_.end());
    entries_.push_front({value, &position->first});
    position->second = entries_.begin();
    if (entries_.size() > capacity_) {
      index_.erase(index_.find(*entries_.back().key));
      entries_.pop_back();
    }
    return value;
  }

 private:
  struct Entry {
    Value value;
    const Key* key;
  };
  std::size_t capacity_;
  std::mutex mutex_;
  std::list<Entry> entries_;
  std::unordered_map<Key, typename std::list<Entry>::iterator, KeyHash, std::equal_to<>> index_;
};

}  // namespace dtensor
