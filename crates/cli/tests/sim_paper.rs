//! `weir sim paper proxim` at a small scale, as a stranger runs it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use weir_sim::paper::proxim::{Exhibit, PUBLISHED};

/// Runs the command in `folder`.
fn proxim(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["sim", "paper", "proxim"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the binary was built with this test")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn paper_run_shows_every_exhibit_and_is_reproducible() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["--requests", "4000", "--seed", "7"];
    let one = proxim(folder.path(), &arguments);
    assert_eq!(one.status.code(), Some(0), "{}", err(&one));
    assert!(err(&one).contains("page: proxim.html"), "{}", err(&one));
    assert!(err(&one).contains("100 %"), "{}", err(&one));
    let page = std::fs::read_to_string(folder.path().join("proxim.html")).expect("the page");
    for exhibit in Exhibit::ALL {
        assert!(out(&one).contains(&format!("[{exhibit}]")), "{exhibit}");
        assert!(page.contains(&format!("id=\"{exhibit}\"")), "{exhibit}");
    }
    for number in 4..=9 {
        assert!(
            out(&one).contains(&format!("Figure {number}: ")),
            "{number}"
        );
    }
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"));
    let other = proxim(
        folder.path(),
        &[
            "--requests",
            "4000",
            "--seed",
            "7",
            "--threads",
            "1",
            "--out",
            "b.html",
        ],
    );
    assert_eq!(out(&other), out(&one));
    let again = std::fs::read_to_string(folder.path().join("b.html")).expect("the page");
    assert_eq!(again, page);
}

#[test]
fn json_lists_every_exhibit_and_counts_every_published_number() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = proxim(folder.path(), &["--requests", "1500", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["about"]["requests"], 1500);
    assert_eq!(json["count"]["published"], PUBLISHED.len());
    let exhibits = json["exhibits"].as_array().expect("exhibits");
    assert_eq!(exhibits.len(), Exhibit::ALL.len());
    for (shown, exhibit) in exhibits.iter().zip(Exhibit::ALL) {
        assert_eq!(shown["exhibit"], exhibit.as_str());
    }
    let causes = exhibits.iter().find(|one| one["exhibit"] == "causes");
    let cookie = &causes.expect("causes")["lines"][0];
    assert_eq!(cookie["key"], "causes.cookie");
    assert_eq!(cookie["modem"]["paper"]["value"], 30.2);
    assert!(cookie["modem"]["ours"].is_f64() && cookie["modem"]["difference"].is_f64());
}

#[test]
fn only_selects_exhibits_and_an_unknown_exhibit_or_output_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let some = proxim(
        folder.path(),
        &["--requests", "1000", "--only", "causes,figure-5"],
    );
    let said = out(&some);
    assert!(
        said.contains("[causes]") && said.contains("[figure-5]"),
        "{said}"
    );
    assert!(
        !said.contains("[aborts]") && !said.contains("[figure-4]"),
        "{said}"
    );
    let unknown = proxim(folder.path(), &["--only", "figure-10"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        err(&unknown).contains("`figure-10` is none of traces, causes"),
        "{}",
        err(&unknown)
    );
    let nowhere = proxim(
        folder.path(),
        &[
            "--requests",
            "10",
            "--only",
            "causes",
            "--out",
            "proxim.html/a.html",
        ],
    );
    assert_eq!(nowhere.status.code(), Some(3));
    let said = err(&nowhere);
    // before anything is simulated, of which there would be a line
    assert!(
        said.starts_with("error: cannot write `proxim.html/a.html`\n"),
        "{said}"
    );
    assert!(said.contains("`proxim.html` is not a directory"), "{said}");
}
