#include <nsync.h>

SHIM(nsync, nsync_mu, char, nsync_mu_init(l), nsync_mu_lock(l), nsync_mu_unlock(l))
