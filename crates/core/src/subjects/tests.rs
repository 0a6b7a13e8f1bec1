use super::*;
use crate::testing::OneThread;
use std::string::{String, ToString};
use std::vec::Vec;

struct TypeName;
impl LockVisitor<OneThread> for TypeName {
    type Output = String;
    fn visit<L: RawTryLock>(self) -> String {
        let lock = L::default();
        let node = L::Node::default();
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            lock.lock(&node);
            lock.unlock(&node);
        }
        core::any::type_name::<L>().to_string()
    }
}

#[test]
fn every_subject_has_a_name_and_a_type_of_its_own() {
    let mut names: Vec<_> = SUBJECTS.iter().map(|s| s.name).collect();
    let mut types: Vec<_> = SUBJECTS.iter().map(|s| s.visit::<OneThread, _>(TypeName)).collect();
    names.sort_unstable();
    names.dedup();
    types.sort_unstable();
    types.dedup();
    assert_eq!((names.len(), types.len()), (SUBJECTS.len(), SUBJECTS.len()));
    assert_eq!(Subject::named("qspinlock").map(|s| s.family), Some(Family::Linux));
    assert!(Subject::named("no such lock").is_none());
}

impl RwLockVisitor<OneThread> for TypeName {
    type Output = String;
    fn visit<L: RawRwLock>(self) -> String {
        core::any::type_name::<L>().to_string()
    }
}

impl TimedLockVisitor<OneThread> for TypeName {
    type Output = String;
    fn visit<L: RawTimedLock<Platform = OneThread>>(self) -> String {
        core::any::type_name::<L>().to_string()
    }
}

impl TimedRwLockVisitor<OneThread> for TypeName {
    type Output = String;
    fn visit<L: RawTimedRwLock<Platform = OneThread>>(self) -> String {
        core::any::type_name::<L>().to_string()
    }
}

#[test]
fn a_subject_is_visited_as_what_it_is() {
    for subject in SUBJECTS {
        let name = subject.visit::<OneThread, _>(TypeName);
        let as_what = [
            (subject.is_rw, subject.visit_rw::<OneThread, _>(TypeName)),
            (subject.is_timed, subject.visit_timed::<OneThread, _>(TypeName)),
            (subject.is_rw && subject.is_timed, subject.visit_timed_rw::<OneThread, _>(TypeName)),
        ];
        for (is, visited) in as_what {
            assert_eq!(visited, is.then(|| name.clone()), "{}", subject.name);
        }
    }
    let kind = |name| Subject::named(name).map(|s| (s.is_rw, s.is_timed));
    assert_eq!(kind("lock-busted-rw"), Some((true, false)));
    assert_eq!(kind("lock-lost-cancel"), Some((false, true)));
}

#[test]
fn promises_have_names_of_their_own() {
    let mut names: Vec<_> = SUBJECTS.iter().map(|s| s.fairness.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, ["first come, first served", "none", "pass limit", "threshold"]);
}
