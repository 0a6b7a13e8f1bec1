#include <new>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/spin_mutex.h>

SHIM(tbb_mutex, tbb::mutex, char, new (l) tbb::mutex, l->lock(), l->unlock())
SHIM(tbb_spin, tbb::spin_mutex, char, new (l) tbb::spin_mutex, l->lock(), l->unlock())
