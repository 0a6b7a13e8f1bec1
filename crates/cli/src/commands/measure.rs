//! `nearlock measure`.

use std::io::{self, Write};
use std::path::Path;

use nearlock_bench::measure::{self, Effort, MeasureError};

use crate::Ending;
use crate::args::MeasureArgs;
use crate::out::OutFile;
use crate::{interrupt, progress, report};

/// The machine's name where no file gives one.
const NAME: &str = "this-machine";

/// Measures the machine.
pub fn run(args: &MeasureArgs) -> anyhow::Result<Ending> {
    let file = args.out.as_deref().map(OutFile::begin).transpose()?;
    let stem = args.out.as_deref().and_then(Path::file_stem).and_then(|stem| stem.to_str());
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    report::say(format_args!("measuring; {}", args.priority.permitted()));
    let bar = progress::steps();
    interrupt::watch()?;
    let measured = measure::run(stem.unwrap_or(NAME), effort, args.priority.into(), |step| {
        bar.set_message(step.to_owned());
        interrupt::check()
    });
    bar.finish_and_clear();
    let measurement = match measured {
        Ok(measurement) => measurement,
        Err(MeasureError::Interrupted) => {
            report::say("interrupted: not all is measured, and nothing is written");
            return Ok(Ending::Interrupted);
        }
        Err(error) => {
            report::say(format_args!("error: {error}"));
            return Ok(Ending::CheckFailed);
        }
    };
    report::measure::table(&measurement);
    let text = measurement.machine.to_toml();
    match file {
        Some(file) => file.end(text.as_bytes())?,
        None => io::stdout().lock().write_all(text.as_bytes())?,
    }
    Ok(Ending::Success)
}
