//! The environment of the steps: without the variables that change what a test does.
//!
//! `WEIR_PARITY_SEEDS`, `WEIR_BLESS` and the like are for a single test that is run by hand. Left
//! over in a shell, they would make this run test less than it says, or rewrite files instead of
//! comparing them.

use std::process::Command;
use xtask::root;

/// How the names of our variables begin.
const PREFIX: &str = "WEIR_";

/// `cargo` as [`root::cargo`] has it, without our variables.
pub(super) fn cargo() -> Command {
    let mut command = root::cargo();
    for name in settings() {
        command.env_remove(name);
    }
    command
}

/// Names of our variables that are set, in order.
pub(super) fn settings() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    chosen(names)
}

fn chosen(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut ours: Vec<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
    ours.sort();
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_with_the_weir_prefix_are_cleared() {
        let names = [
            "PATH",
            "WEIR_SEED",
            "CARGO_TARGET_DIR",
            "WEIR_BLESS",
            "MY_WEIR_X",
        ];
        let ours = chosen(names.into_iter().map(str::to_owned));
        assert_eq!(ours, ["WEIR_BLESS", "WEIR_SEED"]);
    }
}
