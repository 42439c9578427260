//! Modules: listed, disabled, enabled.

use super::*;

#[test]
fn module_is_listed_disabled_and_enabled_by_its_name() {
    let (_folder, token) = token();
    let (admin, _fake) = start(Fake {
        token: Some(token),
        ..Fake::default()
    });
    let check = |request: &str, expected: u16, part: &str| {
        let (status, text) = ask(&admin, request);
        assert!(
            status == expected && text.contains(part),
            "{request}: {text}"
        );
    };
    let key = "Authorization: Bearer 0123456789abcdef";
    check(
        "GET /modules HTTP/1.1",
        200,
        "\r\n\r\nname  kind     for  run     state    on failure  failures  hooks\n\
         ads   headers  */a  worker  enabled  refuse      3         request-sent, done\n\
         ads: the list has 2 rules\n",
    );
    check("POST /modules/ads/disable HTTP/1.1", 401, "token");
    check("POST /stored/read?url=http://a/ HTTP/1.1", 401, "token");
    check(
        "GET /modules?format=json HTTP/1.1",
        200,
        "\"run\": \"worker\",\n    \"state\": \"enabled\"",
    );
    check(
        &format!("POST /modules/ads/disable HTTP/1.1\n{key}"),
        200,
        "\r\n\r\ndisabled ads\n",
    );
    check(
        "GET /modules?format=json HTTP/1.1",
        200,
        "\"state\": \"disabled\"",
    );
    check(
        &format!("POST /modules/ads/enable HTTP/1.1\n{key}"),
        200,
        "\r\n\r\nenabled ads\n",
    );
    check("GET /modules HTTP/1.1", 200, "enabled");
    check(
        &format!("POST /modules/none/enable HTTP/1.1\n{key}"),
        404,
        "no module `none`; there are: ads\n",
    );
    check(
        &format!("POST /modules/ads/remove HTTP/1.1\n{key}"),
        404,
        "/modules/NAME/disable",
    );
    check(
        "GET /modules/ads/disable HTTP/1.1",
        405,
        "not by this method",
    );
}
