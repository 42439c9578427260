//! What a script of lines is played on.

use weir_policy::route::policy::PolicyKind;

/// What answers the lines of a script.
pub(crate) trait Stage {
    /// With a policy of this kind, before the first line.
    fn new(kind: PolicyKind) -> Self;

    /// The line, as it should be.
    fn play(&mut self, line: &str) -> String;
}

/// Runs the script, writes its answers into it again, and compares.
#[track_caller]
pub(crate) fn check<S: Stage>(kind: PolicyKind, script: &str) {
    let lines = script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let mut stage = S::new(kind);
    let (mut expected, mut got) = (String::new(), String::new());
    for line in lines {
        expected.push_str(line);
        expected.push('\n');
        got.push_str(&stage.play(line));
        got.push('\n');
    }
    assert_eq!(got, expected, "{kind}:\n{got}");
}
