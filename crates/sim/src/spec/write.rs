//! Writes a [`MachineSpec`] as the text of a machine file.

use std::fmt::Write;

use toml::Value;

use super::measured::{Measured, MeasuredFigure};
use super::{LatencyNs, LocalNs, MachineSpec, Provenance, settings};

impl MachineSpec {
    /// The machine file from which [`MachineSpec::parse`] makes this machine.
    ///
    /// Parameters of the model with their default value are left out. There is no such file if a
    /// setting has cut a socket to less than a cache domain, since distances within a socket are
    /// those of whole domains.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("a string takes any text");
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Self { name, description, source, confidence, measured, .. } = self;
        writeln!(out, "schema = 1")?;
        for (key, text) in [("name", name), ("description", description), ("source", source)] {
            writeln!(out, "{key} = {}", quoted(text))?;
        }
        writeln!(out, "confidence = \"{confidence}\"")?;
        self.write_topology(out)?;
        self.write_latencies(out)?;
        let LocalNs { l1, atomic_owned, pause } = self.local_ns;
        writeln!(out, "\n[local_ns]\nl1 = {l1:?}\natomic_owned = {atomic_owned:?}\npause = {pause:?}")?;
        let changed = settings::changed_model_keys(self);
        if !changed.is_empty() {
            writeln!(out, "\n[model]")?;
        }
        for (key, value) in changed {
            writeln!(out, "{key} = {value}")?;
        }
        measured.as_ref().map_or(Ok(()), |measured| write_measured(out, measured))
    }

    fn write_topology(&self, out: &mut String) -> std::fmt::Result {
        let Self { sockets, cores_per_socket, cores_per_domain, smt, ghz, distances, hops, .. } = self;
        writeln!(out, "\n[topology]\nsockets = {sockets}\ncores_per_socket = {cores_per_socket}")?;
        writeln!(out, "cores_per_domain = {cores_per_domain}\nsmt = {smt}\nghz = {ghz:?}")?;
        let names: Vec<_> = distances.iter().map(|name| quoted(name)).collect();
        writeln!(out, "distances = [{}]", names.join(", "))?;
        if hops.iter().flatten().any(|&hop| hop > 1) {
            let rows: Vec<_> = hops.iter().map(|row| format!("    {row:?},\n")).collect();
            writeln!(out, "hops = [\n{}]", rows.concat())?;
        }
        Ok(())
    }

    fn write_latencies(&self, out: &mut String) -> std::fmt::Result {
        let LatencyNs {
            load_modified,
            load_shared,
            load_memory,
            store_modified,
            store_shared,
            atomic_modified,
            atomic_shared,
            provenance,
        } = &self.latency_ns;
        let rows: &[(&str, &Vec<f64>)] = match provenance {
            Provenance::Derived => &[("cas", atomic_modified)],
            Provenance::MemoryOnly => &[("load_memory", load_memory)],
            Provenance::Given => &[
                ("load_modified", load_modified),
                ("load_shared", load_shared),
                ("load_memory", load_memory),
                ("store_modified", store_modified),
                ("store_shared", store_shared),
                ("atomic_modified", atomic_modified),
                ("atomic_shared", atomic_shared),
            ],
        };
        writeln!(out, "\n[latency_ns]")?;
        rows.iter().try_for_each(|(key, values)| writeln!(out, "{key} = {values:?}"))
    }
}

fn write_measured(out: &mut String, measured: &Measured) -> std::fmt::Result {
    let Measured { date, by, processor, system, cpus, priority, notes, figures } = measured;
    writeln!(out, "\n[measured]")?;
    let texts = [
        ("date", date),
        ("by", by),
        ("processor", processor),
        ("system", system),
        ("cpus", cpus),
        ("priority", priority),
    ];
    for (key, text) in texts {
        writeln!(out, "{key} = {}", quoted(text))?;
    }
    let notes: Vec<_> = notes.iter().map(|note| format!("    {},\n", quoted(note))).collect();
    match notes.as_slice() {
        [] => {}
        notes => writeln!(out, "notes = [\n{}]", notes.concat())?,
    }
    writeln!(out, "\n[measured.figures]")?;
    for (name, MeasuredFigure { low, median, high, samples }) in figures {
        let name = quoted(name);
        writeln!(
            out,
            "{name} = {{ low = {low:?}, median = {median:?}, high = {high:?}, samples = {samples} }}"
        )?;
    }
    Ok(())
}

/// Text as a TOML string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
