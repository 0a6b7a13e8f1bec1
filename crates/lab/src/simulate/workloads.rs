//! All workloads. Each file has one, or a family whose members differ only in their parameters.
//! Except for the published tables, no other code refers to a workload by name.

mod context1;
mod jobs;
mod locktorture;
mod mutex_section;
mod readrandom;
mod rw_section;
mod sections;
mod will_it_scale;

pub use context1::{Context1, Partners};
#[cfg(test)]
pub(super) use jobs::Constants;
pub use jobs::Jobs;
pub use locktorture::{Locktorture, Statistics};
pub use mutex_section::MutexSection;
pub use readrandom::ReadRandom;
pub use rw_section::RwSection;
pub use sections::Sections;
pub use will_it_scale::WillItScale;

use super::workload::{AnyWorkload, Workload};

/// All workloads with their defaults, by family.
pub const WORKLOADS: &[&[&dyn AnyWorkload]] = &[
    &[&Locktorture::DEFAULT],
    &[&Sections::DEFAULT],
    &[&MutexSection::DEFAULT],
    &[&RwSection::DEFAULT],
    &[&Context1::DEFAULT],
    &family(&WillItScale::ALL),
    &[&ReadRandom::DEFAULT],
    &family(&Jobs::ALL),
];

const fn family<W: Workload, const N: usize>(members: &'static [W; N]) -> [&'static dyn AnyWorkload; N] {
    let mut family = [&members[0] as &dyn AnyWorkload; N];
    let mut next = 1;
    while next < N {
        family[next] = &members[next];
        next += 1;
    }
    family
}

/// All workloads with their defaults.
pub fn workloads() -> impl Iterator<Item = &'static dyn AnyWorkload> {
    WORKLOADS.iter().copied().flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use crate::settings::Value;
    use crate::settings::fields::Values;

    #[test]
    fn every_workload_has_a_name_of_its_own_and_says_what_it_does() {
        let machine = names::machine("haswell-ex-4s").unwrap();
        for (index, workload) in workloads().enumerate() {
            let name = workload.name();
            assert!(!workloads().take(index).any(|other| other.name() == name), "{name}");
            assert!(!workload.summary().is_empty() && !name.contains('.'), "{name}");
            assert!(workload.facts(&machine).threads_max >= workload.facts(&machine).group, "{name}");
        }
    }

    #[test]
    fn every_field_is_stored_in_a_place_of_its_own() {
        for workload in workloads() {
            let defaults = workload.fields();
            for (index, field) in defaults.iter().enumerate() {
                let name = format!("{}.{}", workload.name(), field.key);
                let mut changed = workload.copy();
                // One more or one less, or one of the other words.
                let others = match (field.value, &field.values) {
                    (Value::Integer(n), _) => vec![Value::Integer(n + 1), Value::Integer(n.wrapping_sub(1))],
                    (_, Values::Words(words)) => words.iter().map(|word| Value::Word(word)).collect(),
                    _ => panic!("{name} is {field:?}"),
                };
                let mut others = others.into_iter().filter(|other| *other != field.value);
                assert!(others.any(|other| changed.set(field.key, other).is_ok()), "{name}");
                for (other, (before, after)) in defaults.iter().zip(changed.fields()).enumerate() {
                    assert_eq!(before.value != after.value, other == index, "{name}: {}", before.key);
                }
                changed.set(field.key, field.value).unwrap_or_else(|_| panic!("{name} is out of its limits"));
            }
        }
    }
}
