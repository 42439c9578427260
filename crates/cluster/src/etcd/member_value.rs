//! A member as a key of etcd and its value.

use crate::member::{Member, WEIGHT_DEFAULT, parse_url};
use serde::{Deserialize, Serialize};
use weir_policy::route::{NodeState, Weight};
use weir_semantics::is_node_name;

/// The longest value that is read, bytes: a URL has at most some hundred.
const VALUE_BYTES_MAX: usize = 4096;

/// What the keys of members begin with.
pub(super) fn members_prefix(prefix: &str) -> String {
    format!("{prefix}member/")
}

#[derive(Serialize, Deserialize)]
struct Value {
    url: String,
    #[serde(default = "weight")]
    weight: u16,
    #[serde(default = "state")]
    state: String,
}

const fn weight() -> u16 {
    WEIGHT_DEFAULT
}

fn state() -> String {
    NodeState::In.as_str().into()
}

/// The value of a member.
pub(super) fn write(member: &Member) -> Vec<u8> {
    let value = Value {
        url: format!("http://{}", member.hop),
        weight: member.weight.get(),
        state: member.state.as_str().into(),
    };
    serde_json::to_vec(&value).expect("strings and a number")
}

/// The member of a name with this value.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn read(name: &str, value: &[u8]) -> Result<Member, String> {
    if !is_node_name(name) {
        return Err("its end is not a name for a node".into());
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(format!("its value is longer than {VALUE_BYTES_MAX} bytes"));
    }
    let value: Value = serde_json::from_slice(value).map_err(|error| error.to_string())?;
    let hop = parse_url(&value.url).map_err(|error| error.to_string())?;
    let weight = Weight::new(value.weight).ok_or("its weight is 0")?;
    let state = NodeState::named(&value.state);
    let state = state.ok_or_else(|| format!("`{}` is no state", value.state))?;
    Ok(Member {
        name: name.to_owned(),
        hop,
        weight,
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_a_member_is_read_as_it_was_written() {
        for state in NodeState::ALL {
            let member = Member {
                name: "a".into(),
                hop: parse_url("http://[::1]:4001").unwrap(),
                weight: Weight::new(7).unwrap(),
                state,
            };
            assert_eq!(read("a", &write(&member)), Ok(member));
        }
        let short = read("a", br#"{"url":"http://a:1","later":1}"#).unwrap();
        assert_eq!((short.weight.get(), short.state), (100, NodeState::In));
    }

    #[test]
    fn bad_value_of_a_member_is_refused_with_the_reason() {
        let check = |name: &str, value: &str, expected: &str| {
            let problem = read(name, value.as_bytes()).unwrap_err();
            assert!(problem.contains(expected), "{value}: {problem}");
        };
        check("", r#"{"url":"http://a:1"}"#, "not a name");
        check("a/b", r#"{"url":"http://a:1"}"#, "not a name");
        check("a", "", "EOF");
        check("a", "{}", "url");
        check("a", r#"{"url":"a:1"}"#, "scheme http");
        check("a", r#"{"url":"http://a:1","weight":0}"#, "weight is 0");
        check("a", r#"{"url":"http://a:1","weight":65536}"#, "65536");
        check("a", r#"{"url":"http://a:1","weight":-1}"#, "-1");
        check(
            "a",
            r#"{"url":"http://a:1","state":"x"}"#,
            "`x` is no state",
        );
        let long = format!(r#"{{"url":"http://a:1{}"}}"#, "1".repeat(5000));
        check("a", &long, "longer than 4096");
    }
}
