//! Rules of a vector as the policy has them.

use weir_policy::rule::{
    Actions, Denial, FieldRules, KeyRule, Matchers, Message, RuleLifetime, RuleSet, RuleSpec,
    parse_fields,
};
use weir_semantics::DeltaSeconds;
use weir_vectors::RuleTable;

/// The rules of a vector.
pub(crate) fn set(tables: &[RuleTable]) -> RuleSet {
    let specs = tables.iter().map(spec).collect();
    RuleSet::new(specs).expect("the rules of the vector can be in force")
}

/// The keys that this driver knows.
const KEYS: [&str; 18] = [
    "bypass",
    "content_type",
    "deny",
    "host",
    "ignore",
    "key.codings",
    "key.drop_query",
    "key.keep_query",
    "key.languages",
    "key.sort_query",
    "lifetime.default",
    "lifetime.forced",
    "path",
    "request",
    "response",
    "share",
    "stale_for",
    "status",
];

fn spec(table: &RuleTable) -> RuleSpec {
    for key in table.keys() {
        assert!(KEYS.contains(&key.as_str()), "no driver knows `{key}`");
    }
    let seconds = |path: &str| Some(seconds(table.texts(path)?.first()?));
    let forced = seconds("lifetime.forced").map(RuleLifetime::Forced);
    let default = seconds("lifetime.default").map(RuleLifetime::Default);
    let ignored = parsed(table, "ignore");
    RuleSpec {
        name: "of the vector".into(),
        matchers: Matchers {
            host: list(table, "host"),
            path: list(table, "path"),
            status: list(table, "status"),
            content_type: list(table, "content_type"),
            ..Matchers::default()
        },
        actions: Actions {
            deny: table.texts("deny").map(|texts| match texts[0] {
                "off" => Denial::Off,
                text => Denial::Text(text.into()),
            }),
            bypass: table.flag("bypass"),
            ignore: ignored.clone().map(|it| it.into_iter().collect()),
            ignore_storing: ignored.map(|it| it.into_iter().collect()),
            shares: table.texts("share").is_some(),
            lifetime: forced.or(default),
            stale_for: seconds("stale_for"),
            key: table
                .keys()
                .iter()
                .any(|key| key.starts_with("key."))
                .then(|| key(table)),
            request: fields(table, "request", Message::Request),
            response: fields(table, "response", Message::Response),
            // how fast content goes is no matter of vectors
            ..Actions::default()
        },
    }
}

fn key(table: &RuleTable) -> KeyRule {
    KeyRule {
        drop_query: list(table, "key.drop_query"),
        keep_query: parsed(table, "key.keep_query"),
        sort_query: table.flag("key.sort_query").unwrap_or(false),
        languages: parsed(table, "key.languages"),
        codings: parsed(table, "key.codings"),
    }
}

fn fields(table: &RuleTable, key: &str, message: Message) -> Option<FieldRules> {
    let texts = table.texts(key)?;
    Some(parse_fields(message, texts).expect("changes of a head"))
}

fn list<T: std::str::FromStr<Err: std::fmt::Debug>>(table: &RuleTable, path: &str) -> Vec<T> {
    parsed(table, path).unwrap_or_default()
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(
    table: &RuleTable,
    path: &str,
) -> Option<Vec<T>> {
    let texts = table.texts(path)?;
    Some(texts.iter().map(|text| text.parse().expect(text)).collect())
}

/// A time such as `10s` or `1h`.
fn seconds(text: &str) -> DeltaSeconds {
    let (count, unit) = text.split_at(text.len() - 1);
    let unit = match unit {
        "s" => 1,
        "h" => 3600,
        "d" => 86_400,
        _ => panic!("`{text}` is no time that this driver knows"),
    };
    DeltaSeconds(count.parse::<u32>().expect("a number") * unit)
}
