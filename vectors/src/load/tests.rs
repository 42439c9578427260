//! Each mistake in a file is told with its line.

use super::*;

/// A file whose vector begins in line 2, with `steps` in line 7.
fn file(id: &str, kind: &str, steps: &str) -> String {
    format!(
        "\n[[vector]]\nid = \"{id}\"\nspec = \"RFC 9111\"\nkind = \"{kind}\"\nwhy = \"So.\"\nsteps = [{steps}]\n"
    )
}

fn check_text(text: &str, line: usize, expected: &str) {
    match read("a.toml", text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => {
            assert!(error.what.contains(expected), "{error}");
            assert_eq!(error.line, line, "{error}");
        }
    }
}

fn check(steps: &str, expected: &str) {
    check_text(&file("a-b", "must", steps), 7, expected);
}

#[test]
fn unknown_key_or_value_is_refused_with_its_line() {
    check("{ origin = {}, clint = {} }", "clint");
    check("{ origin = { state = 200 } }", "state");
    check("{ origin = {}, client = { stats = 200 } }", "stats");
    check("{ origin = \"nobody\" }", "nobody");
    check_text(&file("a", "shall", "{ origin = {} }"), 5, "shall");
    check_text("[[vektor]]\n", 1, "vektor");
}

#[test]
fn incomplete_step_is_refused_with_its_line() {
    check("{ request = \"GET /\" }", "origin");
    check("{ origin = \"none\" }", "neither status nor body");
    check(
        "{ origin = \"none\", client = { body = 1 } }",
        "step 1 has no response",
    );
    check(
        "{ origin = {}, client = { body = 2 } }",
        "step 2 has no response",
    );
    check(
        "{ origin = { fails = \"closed\" } }",
        "neither status nor body",
    );
    check(
        "{ origin = \"none\", client = { body = \"x\" } }",
        "does not say the status",
    );
    check_text(&file("a", "must", ""), 3, "no steps");
}

#[test]
fn contradictory_step_is_refused_with_its_line() {
    check(
        "{ at = 5, origin = {} }, { at = 4, origin = {} }",
        "before the step before",
    );
    check(
        "{ at = 5, origin = { takes = 3 } }, { at = 7, origin = {} }",
        "before the step before",
    );
    check("{ origin = { body = \"x\", body_bytes = 1 } }", "both");
    check("{ origin = { status = 103 } }", "103");
    check("{ origin = { fields = [\"Date: @x\"] } }", "@x");
    check(
        "{ origin = {}, client = { cache_status = \"hot\" } }",
        "hot",
    );
    check("{ request = \"GET\", origin = {} }", "method and a path");
    check(
        "{ origin = { body = \"abc\" }, client = { body = { step = 1, first = 1, last = 3 } } }",
        "no such part",
    );
}

#[test]
fn error_names_the_line_and_step_of_the_mistake() {
    let text = file(
        "a",
        "must",
        "\n  { origin = {} },\n  { origin = { has = [\"a b\"] } }\n",
    );
    check_text(&text, 9, "`a` step 2: `a b` is no field name");
    check_text(&file("A-b", "must", "{ origin = {} }"), 3, "kebab-case");
}

#[test]
fn omitted_client_expectations_follow_from_the_origin_response() {
    let text = file(
        "a",
        "must",
        "{ origin = { status = 404, body = \"0123\" } }, { origin = \"none\", client = { body = 1 } },
         { origin = \"none\", client = { body = { step = 1, first = 1, last = 2 } } },
         { request = \"HEAD /\", origin = {} }, { origin = { status = 304 }, client = { body = 1 } }",
    );
    let vectors = read("a.toml", &text).unwrap();
    let seen = vectors[0]
        .steps
        .iter()
        .map(|step| (step.client.status[0], step.client.body.clone()));
    let expected = [
        (404, "0123"),
        (404, "0123"),
        (206, "12"),
        (200, ""),
        (404, "0123"),
    ];
    assert!(
        seen.eq(expected.map(|(status, body)| (status, Some(body.to_owned())))),
        "{vectors:?}"
    );
}
