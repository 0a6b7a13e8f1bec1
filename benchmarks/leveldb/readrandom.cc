// readrandom of LevelDB's own benchmark, with its defaults, and a count of what it does to mutexes.
//
//   readrandom DIRECTORY [THREADS [SECONDS]]
//
// Fills a database in DIRECTORY (which must not exist) with a million entries of 16-byte keys and 100-byte values that compress to
// a half, as `db_bench --benchmarks=fillrandom,readrandom` does; then that many threads look up keys drawn from as
// many again, so that two thirds are found. First without counting, for the throughput; then for as long with each call of
// pthread_mutex_lock counted by its mutex, and timed.
//
// What it prints is MEASURED on the machine where it runs.

#include <dlfcn.h>
#include <leveldb/db.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kEntries = 1000000;
constexpr int kValueBytes = 100;
// More mutexes than LevelDB has; those that find no row are counted together.
constexpr int kRows = 1024;

struct Row {
  std::atomic<void*> mutex{nullptr};
  std::atomic<uint64_t> locks{0};
  std::atomic<uint64_t> waits{0};
  std::atomic<uint64_t> held_ns{0};
};

Row rows[kRows + 1];
std::atomic<bool> counting{false};

uint64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Row& RowOf(void* mutex) {
  const auto first = (reinterpret_cast<uintptr_t>(mutex) >> 3) % kRows;
  for (int probe = 0; probe < kRows; probe++) {
    Row& row = rows[(first + probe) % kRows];
    void* found = row.mutex.load(std::memory_order_relaxed);
    if (found == nullptr && row.mutex.compare_exchange_strong(found, mutex)) return row;
    if (found == mutex) return row;
  }
  return rows[kRows];
}

struct Held {
  void* mutex;
  uint64_t since_ns;
};
thread_local Held held[16];
thread_local int depth = 0;

using Function = int (*)(pthread_mutex_t*);

Function Next(const char* name) { return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name)); }

}  // namespace

// The dynamic linker gives LevelDB these in the place of the C library's.
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const Function lock = Next("pthread_mutex_lock");
  if (!counting.load(std::memory_order_relaxed)) return lock(mutex);
  static const Function try_lock = Next("pthread_mutex_trylock");
  Row& row = RowOf(mutex);
  int result = try_lock(mutex);
  if (result != 0) {
    row.waits.fetch_add(1, std::memory_order_relaxed);
    result = lock(mutex);
  }
  row.locks.fetch_add(1, std::memory_order_relaxed);
  if (depth < 16) held[depth] = {mutex, NowNs()};
  depth++;
  return result;
}

extern "C" int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static const Function unlock = Next("pthread_mutex_unlock");
  // Those that were locked before counting began are on nobody's list.
  for (int i = std::min(depth, 16) - 1; i >= 0; i--) {
    if (held[i].mutex == mutex) {
      RowOf(mutex).held_ns.fetch_add(NowNs() - held[i].since_ns, std::memory_order_relaxed);
      std::move(held + i + 1, held + std::min(depth, 16), held + i);
      depth--;
      break;
    }
  }
  return unlock(mutex);
}

namespace {

void Check(const leveldb::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "readrandom: %s\n", status.ToString().c_str());
    std::exit(1);
  }
}

std::string Key(int number) {
  char key[32];
  std::snprintf(key, sizeof key, "%016d", number);
  return key;
}

// Half of it random, so that it compresses to about a half.
std::string Value(std::mt19937& random) {
  std::string half(kValueBytes / 2, ' ');
  for (char& c : half) c = static_cast<char>(' ' + random() % 95);
  return half + half;
}

void Fill(leveldb::DB* db) {
  std::mt19937 random(301);
  leveldb::WriteOptions options;
  for (int i = 0; i < kEntries; i++) {
    Check(db->Put(options, Key(static_cast<int>(random() % kEntries)), Value(random)));
  }
}

// Gets per microsecond.
double Run(leveldb::DB* db, int threads, double seconds, uint64_t* gets) {
  std::atomic<bool> over{false};
  std::atomic<uint64_t> all{0}, found{0};
  std::vector<std::thread> running;
  const uint64_t begin_ns = NowNs();
  for (int t = 0; t < threads; t++) {
    running.emplace_back([&, t] {
      std::mt19937 random(1000 + t);
      leveldb::ReadOptions options;
      std::string value;
      uint64_t done = 0, hits = 0;
      while (!over.load(std::memory_order_relaxed)) {
        const auto status = db->Get(options, Key(static_cast<int>(random() % kEntries)), &value);
        done++;
        hits += status.ok();
      }
      all += done;
      found += hits;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  over = true;
  for (auto& thread : running) thread.join();
  *gets = all;
  const double us = (NowNs() - begin_ns) / 1e3;
  std::printf("MEASURED: %d threads, %.0f s: %.3f gets/us, %.0f %% found\n", threads, seconds, all / us,
              100.0 * found / all);
  return all / us;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: readrandom DIRECTORY [THREADS [SECONDS]]\n");
    return 2;
  }
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 5;
  if (threads < 1 || threads > 1024 || seconds <= 0) {
    std::fprintf(stderr, "readrandom: 1 to 1024 threads, and more than 0 seconds\n");
    return 2;
  }
  leveldb::Options options;
  options.create_if_missing = true;
  options.error_if_exists = true;
  leveldb::DB* opened = nullptr;
  Check(leveldb::DB::Open(options, argv[1], &opened));
  const std::unique_ptr<leveldb::DB> db(opened);
  Fill(db.get());
  db->CompactRange(nullptr, nullptr);

  uint64_t gets = 0;
  Run(db.get(), threads, seconds, &gets);
  counting = true;
  Run(db.get(), threads, seconds, &gets);
  counting = false;

  std::vector<const Row*> busiest;
  for (const Row& row : rows) {
    if (row.locks > 0) busiest.push_back(&row);
  }
  std::sort(busiest.begin(), busiest.end(), [](const Row* a, const Row* b) { return a->locks > b->locks; });
  std::printf("%zu mutexes\nmutex       locks/get  waited %%  held ns (two looks at the clock included)\n", busiest.size());
  for (size_t i = 0; i < busiest.size() && i < 8; i++) {
    const Row& row = *busiest[i];
    const double locks = static_cast<double>(row.locks);
    std::printf("%-10zu  %9.3f  %8.2f  %.0f\n", i + 1, locks / gets, 100.0 * row.waits / locks, row.held_ns / locks);
  }
  return 0;
}
