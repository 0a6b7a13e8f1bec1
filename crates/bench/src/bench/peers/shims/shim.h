/* What is exported of a lock. Its memory, and that of the acquisition's node, are the caller's. */
#ifdef __cplusplus
#define EXPORTED extern "C" __attribute__((visibility("default")))
#define EXPORTED_SIZE extern "C" __attribute__((visibility("default"))) const unsigned long
#else
#define EXPORTED __attribute__((visibility("default")))
#define EXPORTED_SIZE __attribute__((visibility("default"))) const unsigned long
#endif

#define SHIM(name, type, node, init, lock, unlock)                       \
    EXPORTED_SIZE nearlock_##name##_size = sizeof(type);                 \
    EXPORTED_SIZE nearlock_##name##_node_size = sizeof(node);            \
    EXPORTED void nearlock_##name##_init(type *l) { init; }              \
    EXPORTED void nearlock_##name##_lock(type *l, node *n) { (void)n; lock; } \
    EXPORTED void nearlock_##name##_unlock(type *l, node *n) { (void)n; unlock; }
