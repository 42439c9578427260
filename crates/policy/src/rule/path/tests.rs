use super::*;
use proptest::prelude::*;

fn pattern(text: &str) -> PathPattern {
    text.parse().expect(text)
}

fn check(text: &str, path: &str, expected: bool) {
    assert_eq!(pattern(text).matches(path), expected, "{text} {path}");
}

/// Tries all ways to share the path among the stars.
fn naive(glob: &[u8], path: &[u8]) -> bool {
    match glob {
        [] => path.is_empty(),
        [b'/', b'*', b'*', b'/', rest @ ..] => {
            let Some(behind) = path.strip_prefix(b"/") else {
                return false;
            };
            let after_slash = |end: &usize| *end == 0 || behind[end - 1] == b'/';
            let mut ends = (0..=behind.len()).filter(after_slash);
            // a second `/**/` shares the slash
            ends.any(|end| naive_behind_slash(rest, &behind[end..]))
        }
        [b'*', b'*', rest @ ..] => (0..=path.len()).any(|end| naive(rest, &path[end..])),
        [b'*', rest @ ..] => {
            let segment = path.iter().take_while(|byte| **byte != b'/').count();
            (0..=segment).any(|end| naive(rest, &path[end..]))
        }
        [byte, rest @ ..] => path.first() == Some(byte) && naive(rest, &path[1..]),
    }
}

fn naive_behind_slash(glob: &[u8], path: &[u8]) -> bool {
    if glob.starts_with(b"**/") {
        return naive(&[b"/", glob].concat(), &[b"/", path].concat());
    }
    naive(glob, path)
}

#[test]
fn prefix_is_for_a_path_and_those_below_it() {
    check("/", "/", true);
    check("/", "/a", true);
    check("/a", "/a", true);
    check("/a", "/a/b", true);
    check("/a", "/ab", false);
    check("/a", "/", false);
    check("/a/", "/a", false);
    check("/a/", "/a/b", true);
}

#[test]
fn star_stays_within_a_segment_and_two_stars_do_not() {
    check("/a/*.deb", "/a/x.deb", true);
    check("/a/*.deb", "/a/.deb", true);
    check("/a/*.deb", "/a/b/x.deb", false);
    check("/a/**.deb", "/a/b/x.deb", true);
    check("/a/**.deb", "/a/x.deb.gz", false);
    check("/a*/b", "/a/b", true);
    check("/a*/b", "/abc/b", true);
    check("/a*/b", "/a/c/b", false);
    check("/**", "/", true);
    check("/**", "/a/b", true);
    check("/a**b", "/ab", true);
    // head and tail must not overlap
    check("/ab**ba", "/aba", false);
    check("/ab**ba", "/abba", true);
    check("/*", "/a/b", false);
    check("/*/x*y*z", "/q/xaybz", true);
    check("/*/x*y*z", "/q/xa/ybz", false);
}

#[test]
fn stars_between_slashes_stand_for_any_number_of_segments() {
    check("/**/pool/**.deb", "/pool/x.deb", true);
    check("/**/pool/**.deb", "/debian/pool/main/x.deb", true);
    check("/**/pool/**.deb", "/a/b/pool/x.deb", true);
    check("/**/pool/**.deb", "/carpool/x.deb", false);
    check("/**/pool/**.deb", "/pool.deb", false);
    check("/a/**/b", "/a/b", true);
    check("/a/**/b", "/ab", false);
    check("/a/**/b", "/a/x/y/b", true);
    check("/a/**/b", "/a/xb", false);
}

#[test]
fn path_that_no_rule_can_mean_is_refused() {
    let check = |text: &str, expected: PathError| {
        assert_eq!(text.parse::<PathPattern>(), Err(expected), "{text}");
    };
    check("", PathError::Relative);
    check("a", PathError::Relative);
    check("*.deb", PathError::Relative);
    check("/a?b", PathError::Character('?'));
    check("/a b", PathError::Character(' '));
    check("/{a,b}", PathError::Character('{'));
    check("/\u{e4}", PathError::Character('\u{e4}'));
    check("/a***", PathError::Stars);
    check("/*a*a*a*a*a*a*a*a*", PathError::TooManyStars);
    let long = format!("/{}", "a".repeat(GLOB_BYTES_MAX));
    assert!(long.parse::<PathPattern>().is_ok());
    check(&format!("{long}*"), PathError::TooLong);
    check(
        &format!("/{}", "a".repeat(PREFIX_BYTES_MAX)),
        PathError::TooLong,
    );
}

#[test]
fn first_segment_is_known_where_all_paths_share_it() {
    let check = |text: &str, expected: Option<&str>| {
        assert_eq!(pattern(text).first_segment(), expected, "{text}");
    };
    check("/", None);
    check("/a", Some("a"));
    check("/a/b", Some("a"));
    check("/a/", Some("a"));
    check("/a*", None);
    check("/a/*", Some("a"));
    check("/**/a", None);
    check("//a", Some(""));
}

#[test]
fn pattern_covers_what_is_below_it_and_itself() {
    let check = |one: &str, other: &str, expected: bool| {
        assert_eq!(
            pattern(one).covers(&pattern(other)),
            expected,
            "{one} {other}"
        );
    };
    check("/", "/**.deb", true);
    check("/a", "/a/b", true);
    check("/a", "/ab", false);
    check("/a", "/a*", false);
    check("/a", "/a/*", true);
    check("/a/", "/a/*", true);
    check("/a/", "/a", false);
    check("/a/*", "/a/*", true);
    check("/a/*", "/a/b", false);
}

#[test]
fn path_made_to_be_costly_is_matched_in_bounded_steps() {
    let text = format!("/{}b", "**a".repeat(GLOB_STARS_MAX));
    let path = format!("/{}", "a".repeat(60_000));
    check(&text, &path, false);
    check(&text, &format!("{path}b"), true);
}

proptest! {
    #[test]
    fn glob_matches_as_a_naive_one_does(
        glob in "/[ab/*]{0,9}",
        paths in proptest::collection::vec("/[ab/]{0,9}", 1..8),
    ) {
        if let Ok(pattern @ PathPattern::Glob(_)) = glob.parse::<PathPattern>() {
            for path in paths {
                let expected = naive(glob.as_bytes(), path.as_bytes());
                prop_assert_eq!(pattern.matches(&path), expected, "{} {}", glob, path);
            }
        }
    }

    #[test]
    fn covered_pattern_matches_nothing_that_the_covering_one_does_not(
        one in "/[ab/*]{0,4}", other in "/[ab/*]{0,6}", path in "/[ab/]{0,8}",
    ) {
        if let (Ok(one), Ok(other)) = (one.parse::<PathPattern>(), other.parse::<PathPattern>()) {
            prop_assert!(!one.covers(&other) || !other.matches(&path) || one.matches(&path));
        }
    }
}
