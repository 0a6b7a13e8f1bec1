//! Results of `reproduce`. One seed: what is tested here is the report, not the simulator.

mod support;

use nearlock_lab::band::PARAMETERS;
use support::{assert_fits, keys, nearlock, sorted};

#[test]
fn json_has_the_documented_keys_and_every_cell() {
    let run = nearlock("reproduce cna-locktorture --quick --seeds 1 --format json");
    assert_eq!(run.code, 0, "{}", run.err);
    let documented = "table row variant metric unit published published_sd simulated low high error class";
    assert_eq!(keys(&run.out), sorted(documented));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(rows.len(), 30);
    let last = &rows[29];
    assert_eq!(last["row"], serde_json::json!({"threads": 142}));
    assert_eq!((last["variant"].as_str(), last["published"].as_f64()), (Some("cna"), Some(10.424)));
    for row in rows {
        // A band is made only where one is asked for.
        assert!(row["low"].is_null() && row["high"].is_null(), "{row}");
        let (simulated, published) = (row["simulated"].as_f64(), row["published"].as_f64());
        let (Some(simulated), Some(published), Some(error)) = (simulated, published, row["error"].as_f64())
        else {
            panic!("not all are numbers: {row}");
        };
        assert!((simulated / published - 1.0 - error).abs() < 1e-9, "{row}");
        let fitted =
            row["variant"] == "stock" && [1, 36, 142].map(|n| row["row"]["threads"] == n).contains(&true);
        assert_eq!(row["class"] == "fitted", fitted, "{row}");
    }
}

#[test]
fn help_says_what_a_band_is_made_of() {
    let help = nearlock("reproduce --help").out;
    assert_fits(&help);
    for parameter in PARAMETERS {
        assert!(help.contains(&format!("  {}: ", parameter.setting)), "{}: {help}", parameter.setting);
    }
}
