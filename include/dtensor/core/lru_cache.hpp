// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// A bounded cache of results that follow from their keys.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace dtensor {

/// Keeps the most recently used `capacity` values. Safe to use from several threads.
template <class Key, class Value, class KeyHash>
class LruCache {
 public:
  explicit LruCache(std::size_t capacity) : capacity_(capacity) {}

  /// The value of `key`; that of `make(key)` when it is not there. What `make` throws passes
  /// through.
  template <class Make>
  Value get(Key key, Make&& make) {
    std::lock_guard lock(mutex_);
    if (const auto found = index_.find(key); found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().value;
    }
    Value value = make(std::as_const(key));
    const auto [position, inserted] = index_.emplace(std::move(key), entries_.end());
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
  std::unordered_map<Key, typename std::list<Entry>::iterator, KeyHash> index_;
};

}  // namespace dtensor
