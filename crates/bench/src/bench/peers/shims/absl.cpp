#include <absl/synchronization/mutex.h>
#include <new>

SHIM(absl, absl::Mutex, char, new (l) absl::Mutex, l->Lock(), l->Unlock())
