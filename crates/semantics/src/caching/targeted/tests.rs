use super::*;
use crate::facts::Expires;
use crate::time::Timestamp;

fn chosen(names: &[&str], lines: &[(&str, &str)]) -> Option<(DecidedBy, ResponseDirectives)> {
    let fields: Vec<_> = lines
        .iter()
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect();
    TargetedFields::new(names.iter().copied()).choose(&fields)
}

/// What a response with these lines of `CDN-Cache-Control` says there; `None` if it is as if it had
/// none.
fn check(lines: &[&str], expected: Option<fn(&mut ResponseDirectives)>) {
    let lines: Vec<_> = lines
        .iter()
        .map(|line| ("cdn-cache-control", *line))
        .collect();
    let said = chosen(&["CDN-Cache-Control"], &lines).map(|(_, said)| said);
    let expected = expected.map(|set| {
        let mut said = ResponseDirectives {
            any: true,
            ..ResponseDirectives::default()
        };
        set(&mut said);
        said
    });
    assert_eq!(said, expected, "{lines:?}");
}

#[test]
fn targeted_directive_is_read_by_its_structured_type() {
    check(
        &["max-age=60"],
        Some(|d| d.max_age = Some(DeltaSeconds(60))),
    );
    check(&[" \tmax-age=0"], None);
    check(
        &["  max-age=0  "],
        Some(|d| d.max_age = Some(DeltaSeconds(0))),
    );
    check(
        &["s-maxage=5"],
        Some(|d| d.s_maxage = Some(DeltaSeconds(5))),
    );
    check(
        &["max-age=999999999999999"],
        Some(|d| d.max_age = Some(DeltaSeconds::MAX)),
    );
    check(&["no-store"], Some(|d| d.no_store = true));
    check(&["no-store=?1"], Some(|d| d.no_store = true));
    check(&["no-store=?0"], Some(|_| {}));
    check(&["no-store=1"], Some(|d| d.no_store = true));
    check(&["private"], Some(|d| d.private = true));
    check(&["private=\"x-a\""], Some(|d| d.private = true));
    check(&["no-cache"], Some(|d| d.no_cache = true));
    check(&["no-cache=\"x-a\""], Some(|d| d.no_cache_fields = true));
    check(&["public"], Some(|d| d.public = true));
    check(&["public=1"], Some(|_| {}));
    check(
        &["immutable, must-revalidate, must-understand"],
        Some(|d| {
            d.immutable = true;
            d.must_revalidate = true;
            d.must_understand = true;
        }),
    );
    check(
        &["stale-while-revalidate=7\t,\tstale-if-error=8"],
        Some(|d| {
            d.stale_while_revalidate = Some(DeltaSeconds(7));
            d.stale_if_error = Some(DeltaSeconds(8));
        }),
    );
    check(
        &["x=(1 2);a, *y=:YQ==:, z=@5, w=%\"a\", max-age=1;a=b;c"],
        Some(|d| {
            d.max_age = Some(DeltaSeconds(1));
        }),
    );
}

#[test]
fn max_age_of_wrong_type_or_negative_counts_as_zero() {
    for value in [
        "=\"60\"", "=-1", "=1.5", "=abc", "=(60)", "=:YQ==:", "=@60", "",
    ] {
        check(
            &[&format!("max-age{value}")],
            Some(|d| d.max_age = Some(DeltaSeconds(0))),
        );
    }
}

#[test]
fn last_of_two_directives_of_one_name_applies() {
    check(
        &["max-age=1, max-age=60"],
        Some(|d| d.max_age = Some(DeltaSeconds(60))),
    );
    check(
        &["max-age=60", "max-age=1"],
        Some(|d| d.max_age = Some(DeltaSeconds(1))),
    );
    check(&["no-cache=\"a\", no-cache"], Some(|d| d.no_cache = true));
}

#[test]
fn invalid_targeted_field_is_ignored_entirely() {
    for value in [
        "no-store,",
        ",no-store",
        "no-store,, private",
        "No-Store",
        "no-store, Max-Age=1",
        "no-store, max-age = 1",
        "no-store max-age=1",
        "no-store, max-age=",
        "no-store, max-age='1'",
        "no-store, max-age=01.",
        "no-store, max-age=1234567890123456",
        "no-store, a=\"",
        "no-store, a=\"\\x\"",
        "no-store, a=?2",
        "no-store, a=:a",
        "no-store, a=:@:",
        "no-store, a=(1 2",
        "no-store, a=(1,2)",
        "no-store; A",
        "no-store;",
        "no-store, \u{e9}",
    ] {
        check(&[value], None);
    }
    check(&["no-store", ""], None);
    check(&["no-store", "private,"], None);
}

#[test]
fn empty_targeted_field_is_ignored() {
    check(&[""], None);
    check(&["   "], None);
    check(&[], None);
}

#[test]
fn first_usable_targeted_field_of_the_list_applies() {
    let list = ["Weir-Cache-Control", "CDN-Cache-Control"];
    let cdn = ("CDN-Cache-Control", "max-age=1");
    let ours = |value| ("weir-cache-control", value);
    let place = |lines: &[_]| chosen(&list, lines).map(|(decided_by, _)| decided_by);
    assert_eq!(
        place(&[cdn, ours("max-age=2")]),
        Some(DecidedBy::Targeted(0))
    );
    assert_eq!(place(&[cdn, ours("")]), Some(DecidedBy::Targeted(1)));
    assert_eq!(place(&[cdn, ours("A")]), Some(DecidedBy::Targeted(1)));
    assert_eq!(place(&[cdn]), Some(DecidedBy::Targeted(1)));
    assert_eq!(place(&[("Cache-Control", "max-age=1")]), None);
    assert_eq!(chosen(&[], &[cdn]), None);
    let targets = TargetedFields::new(list);
    assert_eq!(
        targets.name(DecidedBy::Targeted(1)),
        Some("CDN-Cache-Control")
    );
    assert_eq!(targets.name(DecidedBy::Targeted(2)), None);
    assert_eq!(targets.name(DecidedBy::CacheControl), None);
}

#[test]
fn targeted_field_replaces_cache_control_and_expires() {
    let gather = |cdn: &str| {
        let fields = [
            FieldLine::new("Cache-Control", b"no-store, public"),
            FieldLine::new("Expires", b"0"),
            FieldLine::new("CDN-Cache-Control", cdn.as_bytes()),
            FieldLine::new("Age", b"7"),
        ];
        let targets = TargetedFields::new(["CDN-Cache-Control"]);
        ResponseFacts::gather(200, &fields, Timestamp(0)).targeted(&fields, &targets)
    };
    let facts = gather("max-age=60");
    assert!(!facts.directives.no_store && !facts.directives.public);
    assert_eq!(facts.directives.max_age, Some(DeltaSeconds(60)));
    assert_eq!(facts.expires, None);
    assert_eq!(facts.decided_by, DecidedBy::Targeted(0));
    // the age is that of the response, whatever decides
    assert_eq!(facts.age, Some(DeltaSeconds(7)));
    for other in ["", "Max-Age=60"] {
        let facts = gather(other);
        assert!(facts.directives.no_store && facts.directives.public);
        assert_eq!(facts.expires, Some(Expires::Invalid));
        assert_eq!(facts.decided_by, DecidedBy::CacheControl);
    }
}

#[test]
fn response_is_private_if_connection_names_its_targeted_field() {
    let check = |name: &str, option: &str, expected: bool| {
        let fields = [
            FieldLine::new("Cache-Control", b"public, max-age=600"),
            FieldLine::new(name, b"max-age=60"),
            FieldLine::new("Connection", option.as_bytes()),
        ];
        let targets = TargetedFields::new([name]);
        let facts = ResponseFacts::gather(200, &fields, Timestamp(0)).targeted(&fields, &targets);
        assert_eq!(facts.directives.private, expected, "{name} {option}");
        assert_eq!(facts.decided_by, DecidedBy::Targeted(0));
    };
    check("Edge-Cache-Control", "close, edge-cache-control", true);
    check("Edge-Cache-Control", "close", false);
    check("Edge-Cache-Control", "Other-Cache-Control", false);
    // that one is known to be for all recipients, and is stored all the same
    check("CDN-Cache-Control", "CDN-Cache-Control", false);
}
