use super::*;
use std::net::Ipv4Addr;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Of `htpasswd -nbB -C 4 ada secret`, `openssl passwd -6` and `-5`.
const USERS: &str = "# users\n\
    ada:$2y$04$ZwwYRlzsp6pZRoczVxKXeenYMgothR5R9gUWMb3PS3m2vfSjLyY5.\n\
    bob:$6$abcdefgh$ltjgWl6579NluT/Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/cZ/1GM/O6IND4WQhG.\n\
    \n\
    cy:$5$abcdefgh$gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM.\r\n";

/// The SHA-256 of `token-of-ci`.
const TOKENS: &str = "ci:sha256:d1968d6184b8eddf4b0d9fee136141d5f88a53784b9aa94e0d648ffc5b952caf\n";

fn users(text: &str) -> Users {
    Users::of_text(text.as_bytes()).expect("users")
}

fn logins() -> Logins {
    let tokens = Tokens::of_text(TOKENS.as_bytes()).expect("tokens");
    Logins::new(users(USERS), tokens, "Weir")
}

/// What is known of the credentials once they are verified; `None`: they are wrong.
fn verified(logins: &Logins, value: &str) -> Option<Arc<str>> {
    loop {
        match logins.check(CLIENT, [value.as_bytes()].into_iter()) {
            Login::Of(user) => return Some(user),
            Login::Wrong => return None,
            Login::Pending(told) => told.blocking_recv().expect("a verifier"),
            other => panic!("{value}: {other:?}"),
        }
    }
}

fn basic(text: &str) -> String {
    use base64::Engine as _;
    let credentials = base64::engine::general_purpose::STANDARD.encode(text);
    format!("Basic {credentials}")
}

#[test]
fn user_with_the_password_of_each_hash_is_known_by_name() {
    let logins = logins();
    for name in ["ada", "bob", "cy"] {
        let right = basic(&format!("{name}:secret"));
        assert_eq!(verified(&logins, &right).as_deref(), Some(name));
        // remembered now
        assert!(matches!(
            logins.check(CLIENT, [right.as_bytes()].into_iter()),
            Login::Of(_)
        ));
        for wrong in ["Secret", "", "secret ", "secret:"] {
            let wrong = basic(&format!("{name}:{wrong}"));
            assert_eq!(verified(&logins, &wrong), None, "{name}");
        }
    }
    for wrong in ["eve:secret", "ADA:secret", "ci:token-of-ci"] {
        assert_eq!(verified(&logins, &basic(wrong)), None, "{wrong}");
    }
    assert_eq!(
        verified(&logins, "bearer token-of-ci").as_deref(),
        Some("ci")
    );
    for wrong in ["Bearer token-of-cI", "Bearer ci"] {
        assert_eq!(verified(&logins, wrong), None, "{wrong}");
    }
}

#[test]
fn what_is_no_login_is_none() {
    let logins = logins();
    let long = format!("Basic {}", "A".repeat(5000));
    for value in [
        "",
        "Basic",
        "Basic ",
        "Basic *",
        "Digest a=b",
        &basic("no colon"),
        &basic(":x"),
        &basic("a:b\0"),
        "Bearer ",
        &long,
    ] {
        let login = logins.check(CLIENT, [value.as_bytes()].into_iter());
        assert!(matches!(login, Login::Missing), "{value}: {login:?}");
    }
    let twice = basic("ada:secret");
    let login = logins.check(CLIENT, [twice.as_bytes(), twice.as_bytes()].into_iter());
    assert!(matches!(login, Login::Missing), "two are ambiguous");
}

#[test]
fn wrong_line_is_named() {
    let check = |text: &str, expected: &str| {
        let refused = Users::of_text(text.as_bytes()).expect_err(text).to_string();
        assert!(refused.starts_with(expected), "{refused}");
    };
    let bob = USERS.lines().nth(2).expect("bob");
    check("", "line 1: there is no user");
    check(&format!("{bob}\nada"), "line 2: a name, a colon and a hash");
    check(
        &format!("{bob}\n\n{bob}"),
        "line 3: `bob` is in the file twice",
    );
    check(":x", "line 1: the name has 0 bytes");
    check(
        &format!("{}:x", "a".repeat(65)),
        "line 1: the name has 65 bytes",
    );
    check("a\tb:x", "line 1: the name has a control character");
    for hash in [
        "secret",
        "",
        "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/",
        "{SHA}x",
        "$2y$",
        "$1$a$b",
    ] {
        check(&format!("a:{hash}"), "line 1: the ");
    }
    let costly = USERS.lines().nth(1).expect("ada").replace("$04$", "$17$");
    check(
        &costly,
        "line 1: the cost of bcrypt is 17, more than the maximum, 16",
    );
    check(
        "a:$6$rounds=5000001$a$b",
        "line 1: SHA-crypt has more than the maximum",
    );
    let check = |text: &str, expected: &str| {
        let refused = Tokens::of_text(text.as_bytes())
            .expect_err(text)
            .to_string();
        assert!(refused.starts_with(expected), "{refused}");
    };
    check("", "line 1: there is no token");
    check("a:token", "line 1: `NAME:sha256:`");
    check("a:sha256:12", "line 1: a SHA-256 has 64");
    check(
        &format!("{TOKENS}{TOKENS}"),
        "line 2: the token is in the file twice",
    );
}

#[test]
fn client_is_told_of_the_schemes_that_there_are() {
    let challenge = |logins: Logins| String::from_utf8(logins.challenge().to_vec()).expect("text");
    let basic = "Proxy-Authenticate: Basic realm=\"Weir\", charset=\"UTF-8\"\r\n";
    let bearer = "Proxy-Authenticate: Bearer realm=\"Weir\"\r\n";
    assert_eq!(challenge(logins()), [basic, bearer].concat());
    assert_eq!(
        challenge(Logins::new(users(USERS), Tokens::default(), "Weir")),
        basic
    );
    let tokens = Tokens::of_text(TOKENS.as_bytes()).expect("tokens");
    assert_eq!(
        challenge(Logins::new(Users::default(), tokens, "Weir")),
        bearer
    );
}
