// The limits of a server's customers. Each request reads them, and they are replaced now and then.
// `RwLock` is the lock that is measured: in a program, `use nearlock::RwLock;`.

use std::collections::BTreeMap;

/// How many requests each customer may make in a second.
pub type Limits = BTreeMap<String, u32>;

static LIMITS: RwLock<Limits> = RwLock::new(Limits::new());

/// For each request. Any number of threads read the map at the same time. Nothing is copied but the
/// number.
pub fn limit(customer: &str) -> Option<u32> {
    LIMITS.read().get(customer).copied()
}

/// Now and then. The old map is freed after the unlock, so no request waits for that.
pub fn reload(limits: Limits) {
    let old = std::mem::replace(&mut *LIMITS.write(), limits);
    drop(old);
}
