#include <ck_spinlock.h>

SHIM(ck_fas, ck_spinlock_fas_t, char, ck_spinlock_fas_init(l), ck_spinlock_fas_lock(l), ck_spinlock_fas_unlock(l))
SHIM(ck_ticket, ck_spinlock_ticket_t, char, ck_spinlock_ticket_init(l), ck_spinlock_ticket_lock(l), ck_spinlock_ticket_unlock(l))
SHIM(ck_mcs, ck_spinlock_mcs_t, struct ck_spinlock_mcs, ck_spinlock_mcs_init(l), ck_spinlock_mcs_lock(l, n),
     ck_spinlock_mcs_unlock(l, n))
