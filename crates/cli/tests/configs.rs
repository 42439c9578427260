//! Config files and what is made of them: each good one beside its normal form (`.normal.toml`),
//! each bad one beside exit code, stdout and stderr (`.error.txt`).

mod snapshot;

use snapshot::{compare, finish, folder, weir, whole};
use std::path::Path;

#[test]
fn config_matches_its_normal_form_or_error_snapshot() {
    let folder = folder("configs");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml") && !name.ends_with(".normal.toml"))
        .collect();
    names.sort();
    assert!(names.len() > 25, "{names:?}");
    let mut differences = Vec::new();
    for name in &names {
        check(&folder, name, &mut differences);
    }
    finish(&differences);
}

fn check(folder: &Path, name: &str, differences: &mut Vec<String>) {
    let printed = weir(folder, &["serve", "--config", name, "--print-config"]);
    let stem = name.trim_end_matches(".toml");
    let (normal, error) = (
        folder.join(format!("{stem}.normal.toml")),
        folder.join(format!("{stem}.error.txt")),
    );
    if !printed.status.success() {
        assert!(!normal.exists(), "{name} is refused and has a normal form");
        return compare(&error, &whole(&weir(folder, &["check", name])), differences);
    }
    assert!(!error.exists(), "{name} is good and has an error");
    assert!(printed.stderr.is_empty(), "{name}: {}", whole(&printed));
    let text = String::from_utf8(printed.stdout).expect("TOML is UTF-8");
    compare(&normal, &text, differences);
    let normal_name = format!("{stem}.normal.toml");
    let again = weir(
        folder,
        &["serve", "--config", &normal_name, "--print-config"],
    );
    assert_eq!(
        String::from_utf8(again.stdout).expect("TOML is UTF-8"),
        text,
        "{name} twice"
    );
}

/// What keeps an example of the documents from being valid by itself: it is a part of a file, or
/// needs what another machine or build has.
const LACKS: [&str; 4] = [
    "there are members, and it is not said which one this node is",
    "there are routes and no listener uses them",
    "No such file or directory",
    "this program is built without",
];

#[test]
fn examples_of_the_documents_are_valid_configurations() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let mut documents = vec![root.join("README.md")];
    let pages = std::fs::read_dir(root.join("docs")).unwrap();
    documents.extend(pages.map(|page| page.unwrap().path()));
    let mut examples = 0;
    for document in documents
        .iter()
        .filter(|it| it.extension().is_some_and(|it| it == "md"))
    {
        let text = std::fs::read_to_string(document).unwrap();
        for example in text.split("\n```toml\n").skip(1) {
            examples += 1;
            let example = example.split("```").next().unwrap();
            std::fs::write(folder.path().join("example.toml"), example).unwrap();
            let checked = weir(folder.path(), &["check", "example.toml"]);
            let said = whole(&checked);
            let is_good = checked.status.success() || LACKS.iter().any(|it| said.contains(it));
            assert!(is_good, "{}: {said}", document.display());
        }
    }
    assert!(examples > 20, "{examples}");
}

#[test]
fn quota_without_a_place_for_what_is_spent_is_refused_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let check = |disk: bool, state_file: &str, expected: &str| {
        let text = format!(
            "[disk]\nenabled = {disk}\ndirectories = [{{ path = {:?} }}]\n\n[[link]]\nname = \"a\"\nquota = \"1GiB\"\nperiod = \"month\"\n{state_file}",
            folder.path().join("store")
        );
        std::fs::write(folder.path().join("weir.toml"), text).unwrap();
        let said = whole(&weir(folder.path(), &["check", "weir.toml"]));
        assert!(said.starts_with(expected), "{said}");
        said
    };
    check(true, "", "exit 0\n");
    check(false, "state_file = \"/var/lib/weir/a\"\n", "exit 0\n");
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let said = check(false, &format!("state_file = {empty:?}\n"), "exit 0\n");
    let warning = format!(
        "warning: weir.toml:9:14: `link[0].state_file`: `{}` is empty: as much of the quota counts as spent as has passed of the period\n",
        empty.display()
    );
    assert!(said.contains(&warning), "{said}");
    let refused = "exit 2\n--- stdout\n--- stderr\nerror: cannot use config `weir.toml`\n  caused by: weir.toml:7:9: `link[0].quota`: there is no place for what is spent: no store on disk, and no directory of a service (`STATE_DIRECTORY`)\n";
    check(false, "", refused);
}

#[test]
fn unreadable_or_non_utf8_config_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let junk: Vec<u8> = (0..4096_u32)
        .map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    std::fs::write(folder.path().join("junk.toml"), junk).unwrap();
    std::fs::create_dir(folder.path().join("folder.toml")).unwrap();
    let check = |name: &str, part: &str| {
        let said = whole(&weir(folder.path(), &["check", name]));
        assert!(
            said.starts_with("exit 2\n--- stdout\n--- stderr\nerror: "),
            "{said}"
        );
        assert!(said.contains(part), "{said}");
    };
    check("junk.toml", "is not UTF-8 text");
    check("folder.toml", "cannot read config `folder.toml`");
    check("missing.toml", "cannot read config `missing.toml`");
}

#[test]
fn config_that_is_probably_not_meant_is_good_with_a_warning_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "an-agreed-secret-of-nodes").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secret, private).unwrap();
    let secret = format!("secret_file = \"{}\"\n", secret.display());
    let listeners = "[[listener]]\naddress = \"127.0.0.1:3128\"\n[[listener]]\naddress = \"127.0.0.1:4001\"\nmode = \"peer\"\n";
    let check = |cluster: &str, members: &str, expected: Option<&str>| {
        let text = format!("[cluster]\n{cluster}{listeners}{members}");
        std::fs::write(folder.path().join("weir.toml"), text).unwrap();
        let said = whole(&weir(folder.path(), &["check", "weir.toml"]));
        let ok = "exit 0\n--- stdout\nok: weir.toml\n";
        assert!(said.starts_with(ok), "{said}");
        let (_, told) = said.split_once("--- stderr\n").unwrap();
        match expected {
            None => assert_eq!(told, "", "{cluster}"),
            Some(warning) => assert!(told.starts_with(warning), "{said}"),
        }
    };
    let member = |url: &str| format!("[[cluster.member]]\nname = \"a\"\nurl = \"{url}\"\n");
    let (node, here) = ("node = \"a\"\n", member("http://127.0.0.1:4001"));
    check(node, &here, None);
    let elsewhere = "warning: weir.toml:11:7: `cluster.member[0].url`: http://10.0.0.1:3129 is the url of this node, `a`, and its peer listener is at 127.0.0.1:4001\nhint: ";
    let away = member("http://10.0.0.1:3129");
    check(&format!("{node}{secret}"), &away, Some(elsewhere));
    for policy in ["in-turn", "least", "two-choices"] {
        let warning = format!("warning: weir.toml:3:10: `cluster.policy`: `{policy}` chooses");
        let cluster = format!("{node}policy = \"{policy}\"\n");
        check(&cluster, &here, Some(&warning));
    }
    let addresses = "members = \"dns:weir.example:4001\"\n";
    let warning = "warning: weir.toml:2:11: `cluster.members`: without a secret";
    check(addresses, "", Some(warning));
    check(&format!("{addresses}{secret}"), "", None);
    check("members = \"dns:127.0.0.1:4001\"\n", "", None);
}

#[test]
fn rule_that_decides_nothing_is_named_at_its_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str, expected: &[&str]| {
        std::fs::write(folder.path().join("weir.toml"), text).unwrap();
        let said = whole(&weir(folder.path(), &["check", "weir.toml"]));
        assert!(said.starts_with("exit 0\n"), "{said}");
        let (_, told) = said.split_once("--- stderr\n").unwrap();
        let warnings: Vec<&str> = told
            .lines()
            .filter(|line| !line.starts_with("hint"))
            .collect();
        assert_eq!(warnings, expected, "{text}");
    };
    let hosts = "[[rule]]\nhost = [\"*.example.com\"]\nbypass = true\n\n";
    check(hosts, &[]);
    check(
        &format!("{hosts}[[rule]]\nname = \"www\"\nhost = [\"www.example.com\"]\nbypass = false\n"),
        &[
            "warning: weir.toml:8:10: `rule[1].bypass`: the rule `rule[0]` before it decides this for all requests of this rule",
        ],
    );
    check(
        &format!("{hosts}[[rule]]\nname = \"www\"\nlistener = [\"gateway\"]\nbypass = false\n"),
        &[
            "warning: weir.toml:7:12: `rule[1].listener`: there is no such listener: the rule `www` does nothing",
        ],
    );
    check(
        "[[rule]]\nclient = [\"10.0.0.0/8\"]\ndeny = \"no\"\n",
        &[
            "warning: weir.toml:2:10: `rule[0].client`: `access` lets none of these clients in: the rule `rule[0]` does nothing",
        ],
    );
}

/// Not a time limit: eight times the routes may take 32 times as long, where a quadratic reader
/// takes 64 times.
#[test]
fn reading_routes_takes_less_than_quadratic_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut seconds = [12_500, 100_000].map(|count| {
        let name = format!("{count}.toml");
        std::fs::write(folder.path().join(&name), routes(count)).unwrap();
        let start = std::time::Instant::now();
        let said = whole(&weir(folder.path(), &["check", &name]));
        let seconds = start.elapsed().as_secs_f64();
        assert!(said.contains(&format!("routes {count},")), "{said}");
        seconds
    });
    seconds[0] = seconds[0].max(0.01);
    assert!(seconds[1] < seconds[0] * 32.0, "{seconds:?}");
}

fn routes(count: usize) -> String {
    let mut text = String::from("[[listener]]\naddress = \"127.0.0.1:0\"\nmode = \"gateway\"\n");
    for index in 0..count {
        text.push_str(&format!(
            "[[route]]\nhost = \"host-{index}.example\"\nnext_hops = [\"http://10.0.0.1:8080\"]\n"
        ));
    }
    text
}
