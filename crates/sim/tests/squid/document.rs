//! The tables of `docs/sim-squid.md` are what the comparison comes to.

use crate::deed::{Deed, agree};
use crate::explained::EXPLAINED;
use crate::{Compared, compared};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const DOCUMENT: &str = include_str!("../../../../docs/sim-squid.md");

fn check(mark: &str, expected: &str) {
    let begin = format!("<!-- {mark}:begin -->\n");
    let (_, rest) = DOCUMENT.split_once(&begin).expect("a beginning");
    let end = format!("<!-- {mark}:end -->");
    let (found, _) = rest.split_once(&end).expect("an end");
    assert!(
        found == expected,
        "between the marks `{mark}` should stand:\n{expected}"
    );
}

/// Field lines of the origin, by class.
const CLASSES: [(&str, &str); 23] = [
    ("s", "`max-age=3600`, ETag, Last-Modified"),
    ("b", "`max-age=3600`, ETag; 1 MB, half of them aborted"),
    ("m", "`max-age=2`, ETag, Last-Modified"),
    ("e", "Expires in an hour"),
    ("h", "Last-Modified, ten days ago"),
    ("u", "nothing"),
    ("c", "`no-cache`, ETag"),
    ("n", "`no-store`"),
    ("p", "`private, max-age=600`"),
    ("sm", "`max-age=0, s-maxage=3600`"),
    ("a", "`max-age=3600`; the request has Authorization"),
    (
        "ap",
        "`public, max-age=3600`; the request has Authorization",
    ),
    ("k", "`public, max-age=3600`, Set-Cookie"),
    ("kn", "Set-Cookie, Last-Modified"),
    ("v", "`max-age=3600`, `Vary: Accept-Encoding`"),
    ("vu", "`max-age=3600`, `Vary: User-Agent`"),
    ("vs", "`max-age=3600`, `Vary: *`"),
    ("q", "`max-age=3600`; the target has a query"),
    ("qn", "Last-Modified; the target has a query"),
    ("cgi-bin", "Last-Modified; never 304"),
    ("r", "301, `max-age=3600`"),
    ("x", "404, nothing"),
    ("all", ""),
];

#[test]
fn documented_table_of_classes_matches_the_comparison() {
    let mut counts: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for compared in compared() {
        for class in [compared.done.asked.class(), "all"] {
            let counts = counts.entry(class.to_owned()).or_default();
            for (count, holds) in counts.iter_mut().zip(facts(&compared)) {
                *count += usize::from(holds);
            }
        }
    }
    let mut text = String::from(
        "| class | field lines of the origin | requests | hits of Squid | hits of Weir | alike |\n| --- | --- | --: | --: | --: | --: |\n",
    );
    for (class, says) in CLASSES {
        let [requests, squid, weir, alike] = counts.remove(class).unwrap_or_default();
        let name = if class == "all" {
            "all".to_owned()
        } else {
            format!("`{class}`")
        };
        let _ = writeln!(
            text,
            "| {name} | {says} | {requests} | {squid} | {weir} | {alike} |"
        );
    }
    assert!(
        counts.is_empty(),
        "nobody says what these classes are: {:?}",
        counts.keys()
    );
    check("classes", &text);
}

/// It is one; answered or confirmed from the store by Squid, by us; both did the same.
fn facts(compared: &Compared) -> [bool; 4] {
    let is_hit = |deed| matches!(deed, Deed::Served | Deed::Confirmed);
    let tag = &compared.done.tag;
    [
        true,
        is_hit(Deed::of_tag(tag)),
        is_hit(Deed::of_verdict(&compared.verdict)),
        agree(tag, &compared.verdict),
    ]
}

#[test]
fn documented_table_of_differences_matches_the_list_of_explanations() {
    let mut text = String::from(
        "| requests | class | request | Squid | Weir | by | why |\n| --: | --- | --- | --- | --- | --- | --- |\n",
    );
    for explained in EXPLAINED {
        let classes: Vec<String> = explained
            .classes
            .iter()
            .map(|class| format!("`{class}`"))
            .collect();
        let request = match explained.request {
            "" => String::new(),
            control => format!("`{control}`"),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {request} | `{}` | `{}` | {} | {} |",
            explained.requests,
            classes.join(", "),
            explained.squid,
            explained.weir,
            explained.section,
            explained.why
        );
    }
    check("differences", &text);
}
