//! What `weir generate` makes, as the programs that read it see it: groff, bash, zsh, fish.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use crate::snapshot::{folder, weir, whole};

#[test]
fn each_command_has_a_man_page_that_is_formatted_without_a_warning() {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = directory.path().join("new/man");
    let output = weir(
        directory.path(),
        &["generate", "man", pages.to_str().expect("text")],
    );
    assert!(output.status.success(), "{}", whole(&output));

    let list = |section: &str| -> BTreeSet<PathBuf> {
        let entries = std::fs::read_dir(pages.join(section)).expect("it was made");
        entries.map(|it| it.expect("an entry").path()).collect()
    };
    let mut files = list("man1");
    let expected = commands().map(|name| pages.join("man1").join(name));
    assert_eq!(files, expected.collect());
    files.append(&mut list("man5"));
    assert!(files.contains(&pages.join("man5/weir.toml.5")));

    for file in files {
        // preconv for UTF-8; each warning that it has; nothing is printed
        let mut groff = Command::new("groff");
        groff.args(["-k", "-man", "-Tutf8", "-ww", "-z"]).arg(&file);
        let output = groff.output().expect("groff is installed");
        let said = whole(&output);
        assert_eq!(said, "exit 0\n--- stdout\n--- stderr\n", "{file:?}");
    }
}

/// The names of the pages, from the reference of all commands.
fn commands() -> impl Iterator<Item = String> {
    let reference = folder("../../../docs/reference/commands.md");
    let reference = std::fs::read_to_string(reference).expect("the reference");
    let lines: Vec<String> = reference.lines().map(str::to_owned).collect();
    lines.into_iter().filter_map(|line| {
        let title = line.strip_prefix("## `")?.strip_suffix('`')?;
        Some(format!("{}.1", title.replace(' ', "-")))
    })
}

#[test]
fn man_page_of_the_config_file_has_each_setting() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = weir(directory.path(), &["generate", "man", "."]);
    assert!(output.status.success(), "{}", whole(&output));
    let mut groff = Command::new("groff");
    groff.args(["-k", "-man", "-Tutf8", "-P-cbou"]);
    let page = groff
        .arg(directory.path().join("man5/weir.toml.5"))
        .output();
    let page = String::from_utf8(page.expect("groff is installed").stdout).expect("text");
    let settings = weir(directory.path(), &["settings"]);
    let settings = String::from_utf8(settings.stdout).expect("text");
    let mut count = 0;
    for line in settings.lines() {
        if let Some(path) = line
            .strip_prefix("## `")
            .and_then(|it| it.strip_suffix('`'))
        {
            let title = page.lines().any(|line| line.trim() == path);
            assert!(title, "`{path}` is no title of the page");
            count += 1;
        }
    }
    assert!(count > 50, "{count} settings");
}

/// What a shell prints that has sourced its completions and is asked for those of a line.
fn completed(shell: &str, script: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("weir-completions");
    let output = weir(directory.path(), &["generate", "completions", shell]);
    assert!(output.status.success(), "{}", whole(&output));
    std::fs::write(&file, output.stdout).expect("it can be written");
    let mut command = Command::new(shell);
    command.args(["-c", script]).arg("shell").arg(&file);
    let output = command.env("HOME", directory.path()).output();
    let output = output.expect("the shell is installed");
    let said = whole(&output);
    let printed = said.strip_prefix("exit 0\n--- stdout\n");
    let printed = printed.and_then(|it| it.strip_suffix("--- stderr\n"));
    printed.unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn bash_completes_commands_flags_and_their_values() {
    let script = r#"
        set -eu
        source "$1"
        complete_line() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _weir weir "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            echo "${COMPREPLY[@]}"
        }
        complete_line weir se
        complete_line weir serve --rec
        complete_line weir generate completions z
        complete -p weir > /dev/null
    "#;
    let expected = "serve settings\n\
                    --record --record-rotate --record-names --record-key-file\n\
                    zsh\n";
    let printed = completed("bash", script);
    assert_eq!(printed, expected);
}

#[test]
fn zsh_takes_the_completions_for_weir() {
    let script = r#"
        emulate zsh; setopt errexit
        autoload -Uz compinit; compinit -D -u
        source "$1"
        print $_comps[weir] $+functions[_weir]
    "#;
    assert_eq!(completed("zsh", script), "_weir 1\n");
}

#[test]
fn fish_completes_commands_and_flags() {
    let script = r#"
        source $argv[2]
        complete -C 'weir se' | string split -f 1 \t
        complete -C 'weir serve --rec' | string split -f 1 \t
    "#;
    let expected = "serve\nsettings\n\
                    --record\n--record-key-file\n--record-names\n--record-rotate\n";
    assert_eq!(completed("fish", script), expected);
}
