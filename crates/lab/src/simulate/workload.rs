//! The definition of a workload. Each file of [`workloads`](super::workloads) has one, or a family.

use std::fmt::Debug;

use nearlock_erased::{Erased, InRoom, in_room};
use nearlock_sim::spec::{MachineSpec, Value};
use nearlock_workload::Gate;

use super::facts::Facts;
use super::seating::Seating;
use crate::settings::fields::{self, Field, FieldRow, Refused};

/// The code of a simulation's threads, with its parameters.
pub trait Workload: Clone + Debug + Send + Sync + 'static {
    /// The parameters that can be set, as `NAME.KEY=VALUE`.
    const FIELDS: &'static [Field<Self>];

    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// A sentence about its threads.
    fn summary(&self) -> &'static str;

    /// The facts that a simulation needs.
    fn facts(&self, machine: &MachineSpec) -> Facts;

    /// Places its threads on the machine. Its locks have type `L`.
    fn start<L: Gate>(&self, seating: &mut Seating<'_>);
}

/// A `Workload` of any type.
pub trait AnyWorkload: Debug + Send + Sync {
    /// As `Workload::name`.
    fn name(&self) -> &'static str;
    /// As `Workload::summary`.
    fn summary(&self) -> &'static str;
    /// As `Workload::facts`.
    fn facts(&self, machine: &MachineSpec) -> Facts;
    /// A copy with the same parameters.
    fn copy(&self) -> Box<dyn AnyWorkload>;
    /// The parameters with their present values.
    fn fields(&self) -> Vec<FieldRow>;
    /// Sets a parameter.
    ///
    /// # Errors
    ///
    /// If there is no parameter with this key, or it cannot have this value.
    fn set(&mut self, key: &str, value: Value) -> Result<(), Refused>;
    /// As `Workload::start`, with the current lock.
    fn start_erased(&self, seating: &mut Seating<'_>);
}

impl<W: Workload> AnyWorkload for W {
    fn name(&self) -> &'static str {
        Workload::name(self)
    }
    fn summary(&self) -> &'static str {
        Workload::summary(self)
    }
    fn facts(&self, machine: &MachineSpec) -> Facts {
        Workload::facts(self, machine)
    }
    fn copy(&self) -> Box<dyn AnyWorkload> {
        Box::new(self.clone())
    }
    fn fields(&self) -> Vec<FieldRow> {
        fields::rows(W::FIELDS, self)
    }
    fn set(&mut self, key: &str, value: Value) -> Result<(), Refused> {
        fields::set(W::FIELDS, self, key, value)
    }
    fn start_erased(&self, seating: &mut Seating<'_>) {
        in_room(Started { workload: self, seating });
    }
}

impl Clone for Box<dyn AnyWorkload> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

struct Started<'a, 'b, W> {
    workload: &'a W,
    seating: &'a mut Seating<'b>,
}

impl<W: Workload> InRoom for Started<'_, '_, W> {
    type Output = ();

    fn with<R: 'static>(self) {
        self.workload.start::<Erased<R>>(self.seating);
    }
}
