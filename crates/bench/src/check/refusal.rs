//! A response that is no answer, in a few words: its status line and what it says in `Proxy-Status`
//! (RFC 9209).

/// Longer words are cut, in characters.
const WORDS_MAX: usize = 300;

/// The status line without its version, and every `Proxy-Status` field, of a response head as it
/// was received.
pub(crate) fn refusal(head: &[u8]) -> String {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let status_line = lines.next().unwrap_or_default();
    let status = status_line
        .split_once(' ')
        .map_or(status_line, |(_, status)| status);
    let mut words = status.trim().to_owned();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if name.eq_ignore_ascii_case("proxy-status") {
            words.push_str(", Proxy-Status: ");
            words.push_str(value.trim());
        }
    }
    // what a proxy sends goes to a terminal
    let is_plain = |character: &char| !character.is_control();
    words.chars().filter(is_plain).take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_text_has_status_and_proxy_status_without_control_characters() {
        let check = |head: &str, expected: &str| {
            assert_eq!(refusal(head.as_bytes()), expected, "{head:?}");
        };
        check(
            "HTTP/1.1 403 Forbidden\r\nDate: x\r\nproxy-status: weir; error=destination_ip_prohibited\r\n\r\n",
            "403 Forbidden, Proxy-Status: weir; error=destination_ip_prohibited",
        );
        check(
            "HTTP/1.0 502 Bad\u{1b}[2J Gateway\r\n",
            "502 Bad[2J Gateway",
        );
        check("", "");
        let long = format!("HTTP/1.1 500 {}\r\n", "x".repeat(1000));
        assert_eq!(refusal(long.as_bytes()).len(), WORDS_MAX);
    }
}
